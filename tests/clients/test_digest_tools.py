"""Every other tool: what its digest keeps."""

from __future__ import annotations

from typing import Any

import pytest

from endless_mode.clients.claude_code.detail import Detail, FileDetail, TaskDetail
from endless_mode.clients.claude_code.digest import TOOLS, digest
from endless_mode.model import Digest, Status, Todo, ToolEvent


def use(
    name: str,
    arguments: dict[str, Any],
    result: str = "",
    status: Status = "ok",
    detail: Any = None,
    words: str = "",
) -> Digest:
    return digest(ToolEvent("t1", name, 0, 0, arguments, result=result, detail=detail, status=status, words=words))


def numbered(source: str, first: int = 1, mark: str = "→") -> str:
    return "\n".join(f"{n:>6}{mark}{line}" for n, line in enumerate(source.split("\n"), first))


def test_the_table_knows_every_built_in_tool() -> None:
    assert {
        "Bash",
        "BashOutput",
        "TaskOutput",
        "KillShell",
        "KillBash",
        "TaskStop",
        "Read",
        "Edit",
        "MultiEdit",
        "Write",
        "NotebookEdit",
        "Grep",
        "Glob",
        "LS",
        "LSP",
        "WebFetch",
        "WebSearch",
        "Agent",
        "Task",
        "TodoWrite",
        "TaskCreate",
        "TaskUpdate",
        "TaskList",
        "TaskGet",
        "Skill",
        "SlashCommand",
        "EnterPlanMode",
        "ExitPlanMode",
        "AskUserQuestion",
        "ToolSearch",
        "ListMcpResourcesTool",
        "!",
    } <= set(TOOLS)


# -- Read ------------------------------------------------------------------------------------------


def test_a_read_keeps_lines_total_and_symbols() -> None:
    detail = Detail(type="text", file=FileDetail(file_path="/p/a.go", start_line=154, num_lines=3, total_lines=365))
    body = numbered("type Options struct {\n\tID string\nfunc (s *Store) Open(id string) error {", 154)
    digested = use("Read", {"file_path": "/p/a.go", "offset": 154, "limit": 3}, body, detail=detail)
    assert (digested.target, digested.lines, digested.outcome) == ("/p/a.go", "154–156", "of 365 lines")
    assert digested.symbols == ["Options", "Open"]


@pytest.mark.parametrize("mark", ["→", "\t"])
def test_a_read_without_structure_takes_the_lines_from_the_text(mark: str) -> None:
    digested = use("Read", {"file_path": "a.py"}, numbered("def f():\n    pass\n", 7, mark))
    assert (digested.lines, digested.symbols) == ("7–9", ["f"])


def test_a_whole_file_says_so() -> None:
    detail = Detail(type="text", file=FileDetail(start_line=1, num_lines=2, total_lines=2))
    assert use("Read", {"file_path": "a.txt"}, numbered("a\nb"), detail=detail).outcome == "whole file"


@pytest.mark.parametrize("path", ["a.py", "a.txt", "a.pen"])
def test_read_keeps_the_names_a_text_showed(path: str) -> None:
    digested = use("Read", {"file_path": path}, numbered("shareModal holds input_row and plain words"))
    assert digested.seen == ["shareModal", "input_row"]
    assert digested.names == (digested.seen if path == "a.py" else [])


def test_images_documents_and_notebooks_are_named() -> None:
    size = {"originalWidth": 640, "originalHeight": 480}
    assert (
        use("Read", {"file_path": "a.png"}, detail=Detail(type="image", file=FileDetail(dimensions=size))).outcome
        == "image, 640×480"
    )
    assert use("Read", {"file_path": "a.pdf", "pages": "1-5"}).outcome == "PDF, pages 1-5"
    assert use("Read", {"file_path": "a.ipynb"}, "{}").outcome == "notebook"


def test_a_failed_read_keeps_the_client_s_words_unwrapped() -> None:
    digested = use("Read", {"file_path": "a"}, "<tool_use_error>File does not exist.</tool_use_error>", "failed")
    assert (digested.status, digested.error) == ("failed", "File does not exist.")


SOURCES = [
    ("a.py", "class A(B):\n    async def go(self):\nLIMIT: int = 3\nx = 1", ["A", "go", "LIMIT"]),
    (
        "a.ts",
        "export interface P {}\nexport const f = 1\nconst g = async (a) => {\n  private run(x) {\n  if (x) {",
        ["P", "f", "g", "run"],
    ),
    ("a.tsx", "export default function App() {\n  useEffect(() => {\n  const [a, b] = useState(1)", ["App"]),
    ("a.go", "func Open(x int) {\n\tvar local = 1\nvar Global = 2\ntype T struct", ["Open", "Global", "T"]),
    (
        "a.rs",
        "pub async fn go() {\nimpl Display for Foo {\npub struct Bar;\nconst MAX: u8 = 1;",
        ["go", "Foo", "Bar", "MAX"],
    ),
    ("a.rb", "module M\n  class C\n    def self.x", ["M", "C", "x"]),
    ("a.ex", 'defmodule A.B do\n  defp go(x) do\n  test "adds things" do', ["A.B", "go", "adds things"]),
    (
        "A.java",
        "public final class A {\n  private static int go(String a) {\n    return call(a);",
        ["A", "go"],
    ),
    ("a.c", "#define N 3\nstatic int go(char *a)\n{\n  if (x) {\nstruct s {", ["N", "go", "s"]),
    ("a.md", "# One\ntext\n## Two", ["One", "Two"]),
    ("a.sql", "CREATE TABLE IF NOT EXISTS users (\ncreate index i_a on users", ["users", "i_a"]),
    ("a.toml", "[tool.ruff]\nx = 1\n[[bin]]", ["[tool.ruff]", "[[bin]]"]),
    ("a.yml", "name: x\njobs:\n  build:", ["name", "jobs"]),
    ("package.json", '{\n  "name": "x",\n  "scripts": {', ["name", "scripts"]),
    ("a.sh", "function go {\nstop() {\nexport PATH_X=1", ["go", "stop", "PATH_X"]),
    ("a.proto", "message M {\nservice S {", ["M", "S"]),
    ("a.tf", 'resource "aws_s3" "b" {', ['resource "aws_s3" "b"']),
    ("a.css", ".card-title {\n  --gap: 1px;", [".card-title", "--gap"]),
    ("a.unknown", "def x", []),
]


@pytest.mark.parametrize(("path", "source", "names"), SOURCES, ids=[s[0] for s in SOURCES])
def test_symbols_are_found_by_kind_of_file(path: str, source: str, names: list[str]) -> None:
    assert use("Read", {"file_path": path}, source).symbols == names
    assert use("Read", {"file_path": path}, numbered(source, 998)).symbols == names


# -- edits -----------------------------------------------------------------------------------------

PATCH = [
    {
        "oldStart": 10,
        "newStart": 10,
        "lines": [
            " def outer():",
            "     x = 1",
            "-    return x",
            "+    total = compute_total(x)",
            "+    return total",
            " ",
        ],
    }
]


def test_an_edit_counts_its_patch_and_names_what_encloses_it() -> None:
    arguments = {
        "file_path": "/p/a.py",
        "old_string": "return x",
        "new_string": "total = compute_total(x)\nreturn total",
    }
    digested = use("Edit", arguments, "The file has been updated", detail=Detail(structured_patch=PATCH))
    assert (digested.added, digested.removed, digested.lines) == (2, 1, "12–13")
    assert digested.symbols == ["outer"]
    assert digested.names == ["compute_total"]
    assert digested.hunks == ["total = compute_total(x)\nreturn total"]
    assert digested.excerpt.startswith("+ total = compute_total(x)")


def test_an_edit_without_a_patch_is_compared() -> None:
    digested = use("Edit", {"file_path": "a.py", "old_string": "a\nb\nc", "new_string": "a\nB1_x\nb2\nc"}, detail=None)
    assert (digested.added, digested.removed) == (2, 1)
    assert digested.names == ["B1_x"]


def test_several_edits_are_one_digest() -> None:
    edits = [
        {"old_string": "a", "new_string": "def one(): pass"},
        {"old_string": "b", "new_string": "def two(): pass"},
    ]
    digested = use("MultiEdit", {"file_path": "a.py", "edits": edits}, "Applied 2 edits")
    assert (digested.added, digested.removed, digested.symbols) == (2, 2, ["one", "two"])
    assert len(digested.hunks) == 2


def test_a_new_file_counts_its_lines_and_names_what_it_defines() -> None:
    content = "import os\n\ndef load_config():\n    return os.environ\n"
    digested = use("Write", {"file_path": "/p/a.py", "content": content}, "File created", detail=Detail(type="create"))
    assert (digested.kind, digested.outcome, digested.added) == ("write", "created, 4 lines", 4)
    assert digested.symbols == ["load_config"]
    assert digested.hunks == [content]


def test_a_rewritten_file_counts_its_patch() -> None:
    digested = use(
        "Write",
        {"file_path": "a.py", "content": "x\n"},
        "updated",
        detail=Detail(type="update", structured_patch=PATCH),
    )
    assert (digested.outcome, digested.added, digested.removed) == ("rewritten, 1 line", 2, 1)


def test_a_change_by_the_user_is_said() -> None:
    detail = Detail(structured_patch=PATCH, user_modified=True)
    assert (
        "changed by the user"
        in use("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, detail=detail).outcome
    )


def test_a_notebook_cell_is_named() -> None:
    arguments = {
        "notebook_path": "a.ipynb",
        "cell_id": "c3",
        "new_source": "def f():\n  pass",
        "edit_mode": "insert",
    }
    digested = use("NotebookEdit", arguments)
    assert (digested.scope, digested.outcome, digested.symbols) == ("cell c3", "cell inserted", ["f"])


def test_a_failed_edit_brings_no_new_names() -> None:
    digested = use(
        "Edit",
        {"file_path": "a", "old_string": "x", "new_string": "new_name"},
        "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>",
        "failed",
    )
    assert digested.error == "String to replace not found in file."
    assert digested.names == []


def test_hunks_are_bounded_together() -> None:
    edits = [{"old_string": "", "new_string": "y" * 3_000} for _ in range(9)]
    hunks = use("MultiEdit", {"file_path": "a", "edits": edits}).hunks
    assert max(map(len, hunks)) <= 1_500
    assert sum(map(len, hunks)) <= 4_000


# -- searches --------------------------------------------------------------------------------------


def test_a_content_search_gathers_lines_by_file() -> None:
    result = "/p/a.py:3:def load(x):\n/p/a.py:9:load(1)\n/p/b.py-1-import x\n/p/b.py:2:    load_all()"
    digested = use("Grep", {"pattern": "load", "output_mode": "content", "path": "/p"}, result)
    assert digested.paths == ["/p/a.py:3,9", "/p/b.py:2"]
    assert digested.outcome.startswith("3 matches in 2 files: def load(x):")
    assert "load_all" in digested.names


def test_a_search_of_one_file_has_lines_only() -> None:
    digested = use("Grep", {"pattern": "x", "output_mode": "content", "path": "a.py"}, "3:x = 1\n4-y\n7:x = 2")
    assert digested.paths == ["a.py:3,7"]
    assert digested.outcome == "2 matches: x = 1 ⏎ x = 2"


def test_files_and_counts_are_listed() -> None:
    assert use("Grep", {"pattern": "x"}, "Found 2 files\n/p/a.py\n/p/b.py").paths == ["/p/a.py", "/p/b.py"]
    counted = use("Grep", {"pattern": "x", "output_mode": "count"}, "a.py:3\nb.py:1", detail=Detail(num_matches=4))
    assert (counted.outcome, counted.paths) == ("4 matches in 2 files", ["a.py:3", "b.py:1"])


def test_nothing_found_is_said() -> None:
    assert use("Grep", {"pattern": "x"}, "No matches found").outcome == "no matches"
    assert use("Glob", {"pattern": "*.x"}, "No files found").outcome == "no files"


def test_a_glob_lists_files_and_says_when_cut() -> None:
    digested = use(
        "Glob",
        {"pattern": "**/*.py"},
        "/p/a.py\n/p/b.py\n(Results are truncated.)",
        detail=Detail(num_files=2, truncated=True),
    )
    assert (digested.paths, digested.outcome) == (["/p/a.py", "/p/b.py"], "2 files (cut off)")


def test_a_listing_and_a_language_server() -> None:
    assert use("LS", {"path": "/p"}, "- /p/\n  - a.py\n  - b.py\n").paths == ["/p/", "a.py", "b.py"]
    found = use(
        "LSP",
        {"operation": "findReferences", "filePath": "a.go", "line": 3},
        "Found 2 references:\n\na.go:\n  Line 3:1\n  Line 9:2\n",
        detail=Detail(result_count=2, file_count=1),
    )
    assert (found.paths, found.outcome) == (["a.go:3,9"], "2 results in 1 file")


# -- the rest --------------------------------------------------------------------------------------


def test_the_web() -> None:
    page = use(
        "WebFetch",
        {"url": "https://a.dev", "prompt": "What?"},
        "# A\n\nIt is a thing.",
        detail=Detail(code=200),
    )
    assert (page.target, page.outcome) == ("https://a.dev", "It is a thing.")
    assert (
        use("WebFetch", {"url": "https://a.dev"}, "Request failed with status code 404", "failed").error
        == "Request failed with status code 404"
    )
    links = 'Web search results for query: "x"\n\nLinks: [{"title":"One","url":"https://one.dev/a"},{"title":"Two","url":"https://two.dev"}]\n\nSaid.'
    found = use("WebSearch", {"query": "x"}, links)
    assert found.outcome == "2 results: One (one.dev); Two (two.dev)"
    assert found.names == ["https://one.dev/a", "https://two.dev"]


def test_an_agent_that_answered() -> None:
    detail = Detail(status="completed", agent_id="a1", total_tokens=41_200, total_tool_use_count=7)
    arguments = {"subagent_type": "Explore", "description": "Find it", "prompt": "Look for `load` in src."}
    digested = use("Agent", arguments, "## Result\nIt is in src/load.py:12.\nagentId: a1 (for resuming)", detail=detail)
    assert (digested.kind, digested.target, digested.scope, digested.task_id) == (
        "agent",
        "Find it",
        "Explore",
        "a1",
    )
    assert digested.outcome == "It is in src/load.py:12."
    assert digested.lines == "7 tool uses, 41k tokens"
    assert digested.excerpt.startswith("Task: Look for `load` in src.")


def test_an_agent_in_the_background() -> None:
    detail = Detail(status="async_launched", is_async=True, agent_id="a7", output_file="/tmp/a7.output")
    digested = use(
        "Task",
        {"description": "d", "prompt": "p"},
        "Async agent launched successfully.\nagentId: a7",
        detail=detail,
    )
    assert (digested.status, digested.task_id, digested.outcome) == ("background", "a7", "")


def test_todo_lists() -> None:
    todos = [
        {"content": "a", "status": "completed"},
        {"content": "b", "status": "in_progress", "activeForm": "b-ing"},
    ]
    digested = use("TodoWrite", {"todos": todos})
    assert digested.todos == [Todo("a", "completed"), Todo("b", "in_progress")]
    assert digested.todos_whole
    assert digested.outcome == "1 of 2 done"


def test_task_items() -> None:
    created = use(
        "TaskCreate",
        {"subject": "Do it"},
        "Task #3 created successfully: Do it",
        detail=Detail(task=TaskDetail(id="3", subject="Do it")),
    )
    assert created.todos == [Todo("Do it", "pending", "3")]
    updated = use(
        "TaskUpdate",
        {"taskId": "3", "status": "completed"},
        detail=Detail(status_change={"from": "pending", "to": "completed"}),
    )
    assert (updated.todos, updated.outcome) == ([Todo("", "completed", "3")], "pending → completed")
    listed = use("TaskList", {}, "#1 [completed] A\n#2 [pending] B")
    assert listed.todos == [Todo("A", "completed", "1"), Todo("B", "pending", "2")]
    got = use("TaskGet", {"taskId": "2"}, "Task #2: B\nStatus: pending\nDescription: more")
    assert got.todos == [Todo("B", "pending", "2")]


def test_a_question_and_its_answers() -> None:
    question = {"question": "Where?", "header": "Place", "options": [{"label": "Menu"}, {"label": "Dialog"}]}
    digested = use("AskUserQuestion", {"questions": [question]}, "…", detail=Detail(answers={"Where?": "Menu"}))
    assert (digested.target, digested.outcome, digested.words, digested.names) == (
        "Where?",
        "Menu",
        "Menu",
        ["Menu", "Dialog"],
    )
    older = use(
        "AskUserQuestion",
        {"questions": [question]},
        'User has answered your questions: "Where?"="Dialog". You can',
    )
    assert older.words == "Dialog"


def test_plans() -> None:
    approved = use(
        "ExitPlanMode",
        {"plan": "# Move it\n\nSteps"},
        "User has approved your plan.",
        detail=Detail(file_path="/h/plans/a.md"),
    )
    assert (approved.target, approved.outcome, approved.paths) == (
        "Move it",
        "approved by the user",
        ["/h/plans/a.md"],
    )
    refused = use("ExitPlanMode", {"plan": "# Move it"}, "The user doesn't want", "denied", words="smaller steps")
    assert (refused.status, refused.words, refused.outcome) == ("denied", "smaller steps", "")
    assert use("EnterPlanMode", {}, "Entered plan mode.").target == "plan mode"


def test_skills_commands_and_tool_searches() -> None:
    assert use("Skill", {"skill": "a:b", "args": "x"}).target == "a:b x"
    assert use("SlashCommand", {"command": "/go 1"}).target == "/go 1"
    assert use("ToolSearch", {"query": "select:X"}, detail=Detail(matches=["X", "Y"])).names == ["X", "Y"]


def test_a_tool_of_a_server() -> None:
    result = "### Result\nIssue ENT-12 created\n- url: https://linear.app/x/ENT-12"
    digested = use("mcp__linear__create_issue", {"title": "A", "labels": ["bug"], "body": {"x": 1}}, result)
    assert (digested.kind, digested.target) == ("mcp", "linear create_issue")
    assert digested.scope == "title=A, labels=[bug], body={x: 1}"
    assert digested.outcome == "Issue ENT-12 created; url: https://linear.app/x/ENT-12"


def test_a_tool_nobody_has_heard_of() -> None:
    digested = use("Frobnicate", {"level": 3, "name": "x"}, "done: 7 things")
    assert (digested.kind, digested.tool, digested.scope, digested.outcome) == (
        "other",
        "Frobnicate",
        "name=x, level=3",
        "done: 7 things",
    )


def test_a_call_without_result_is_open() -> None:
    assert use("Read", {"file_path": "a"}, status="open").status == "open"
    assert use("Bash", {"command": "sleep 9"}, status="open").exit_code is None
