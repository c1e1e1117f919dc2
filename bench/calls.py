"""Tool calls as the client records them: input, result content and `toolUseResult`, all as JSON text.

Shapes follow clients 2.1.x. Sizes are tuned to the averages of public transcripts, where half
of `toolUseResult` is the `originalFile` of edits.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench.texts import Source, Texts

FAILURE_RATE = 0.092  # of the calls that can fail here; 8 % of all results
REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file "
    "edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to "
    "tell you how to proceed."
)
COMMANDS = (
    "pytest -q tests/test_{n}.py",
    "git status --short && git diff --stat -- src/{n}.py",
    "ls -la src/{n}",
    "make lint {n}",
    "go test ./internal/{n}/... 2>&1 | tail -20",
    "git log --oneline -15 -- src/{n}.py",
    "docker compose logs --tail 40 {n}",
    "sed -n '1,80p' src/{n}.py",
    'git add -A && git commit -m \\"Handle an empty {n}\\"',
    "npm run build -- --filter={n}",
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `result` is the content of the tool_result block, `record` the line's toolUseResult."""

    name: str
    input: str
    result: str
    record: str
    failed: bool = False
    ticks: str = ""  # output repeated by bash_progress lines
    agent: str = ""  # prompt of a subagent


class Calls:
    """Draws calls in the proportions of real sessions."""

    def __init__(self, texts: Texts, newer: bool) -> None:
        self.texts, self.rng, self.newer = texts, texts.rng, newer
        kinds: list[tuple[float, Callable[[], Call]]] = [
            (36.2, self.bash), (21.5, self.read), (16.2, self.edit), (9.2, self.grep), (2.7, self.todo),
            (2.4, self.write), (1.8, self.agent), (1.5, self.task_update), (1.2, self.glob),
            (0.8, self.question), (0.3, self.plan), (0.8, self.fetch), (4.0, self.mcp),
        ]  # fmt: skip
        self._kinds = [make for _, make in kinds]
        self._weights = [weight for weight, _ in kinds]

    def draw(self, many: int = 1) -> list[Call]:
        return [make() for make in self.rng.choices(self._kinds, self._weights, k=many)]

    def explore(self, many: int) -> list[Call]:
        """What a subagent does: mostly reading."""
        return [make() for make in self.rng.choices((self.read, self.bash, self.grep), (6, 2, 2), k=many)]

    def _failed(self, name: str, given: str, message: str, record: str | None = None) -> Call:
        told = f"Error: {message}" if record is None else record
        return Call(name, given, f'"{message}"', f'"{told}"', failed=True)

    def _fails(self) -> bool:
        return self.rng.random() < FAILURE_RATE

    def bash(self) -> Call:
        texts, rng = self.texts, self.rng
        command = texts.pick(COMMANDS).format(n=texts.name())
        given = f'{{"command":"{command}","description":"{texts.pick(texts.notes)[:60].rpartition(" ")[0]}"}}'
        kind = ("test", "git", "list", "log")[int(rng.random() * 4)]
        lines = texts.output(kind, 700, 1.6)
        if kind == "test":
            lines = [
                *lines,
                f"{rng.getrandbits(3)} failed, {rng.getrandbits(8)} passed in {rng.random() * 30:.2f}s",
            ]
        out = "\\n".join(lines)
        if self._fails():
            if rng.random() < 0.15:
                return self._failed("Bash", given, REFUSED, "User rejected tool use")
            return self._failed("Bash", given, f"Exit code {1 + rng.getrandbits(1)}\\n{out}")
        record = f'{{"stdout":"{out}","stderr":"","interrupted":false,"isImage":false}}'
        return Call("Bash", given, f'"{out}"', record, ticks="\\n".join(lines[-8:]))

    def read(self) -> Call:
        source, rng = self.texts.source(), self.rng
        total = len(source.lines)
        count = min(total, int(rng.lognormvariate(4.45, 1.1)) + 1)
        start = int(rng.random() * (total - count + 1))
        given = f'{{"file_path":"{source.path}","offset":{start + 1},"limit":{count}}}'
        if self._fails():
            return self._failed("Read", given, "<tool_use_error>File does not exist.</tool_use_error>")
        shown = "\\n".join(source.numbered[start : start + count])
        content = "\\n".join(source.lines[start : start + count])
        record = (
            f'{{"type":"text","file":{{"filePath":"{source.path}","content":"{content}","numLines":{count},'
            f'"startLine":{start + 1},"totalLines":{total}}}}}'
        )
        return Call("Read", given, f'"{shown}"', record)

    def _hunk(self, source: Source) -> tuple[str, str, str]:
        """Old text, new text and structuredPatch of one change."""
        rng = self.rng
        count = min(len(source.lines) - 8, int(rng.lognormvariate(2.2, 0.9)) + 1)
        start = 3 + int(rng.random() * (len(source.lines) - count - 6))
        old = source.lines[start : start + count]
        other = self.texts.source().lines
        new = [line if rng.random() < 0.4 else other[i % len(other)] for i, line in enumerate(old)]
        new.insert(count // 2, f"    {self.texts.name()} = {rng.getrandbits(10)}")
        before, after = source.lines[start - 3 : start], source.lines[start + count : start + count + 3]
        patch = [" " + x for x in before] + ["-" + x for x in old]
        patch += ["+" + x for x in new] + [" " + x for x in after]
        listed = '","'.join(patch)
        hunk = (
            f'[{{"oldStart":{start - 2},"oldLines":{count + 6},"newStart":{start - 2},'
            f'"newLines":{len(new) + 6},"lines":["{listed}"]}}]'
        )
        return "\\n".join(old), "\\n".join(new), hunk

    def edit(self) -> Call:
        source = self.texts.source()
        old, new, patch = self._hunk(source)
        given = f'{{"replace_all":false,"file_path":"{source.path}","old_string":"{old}","new_string":"{new}"}}'
        if self._fails():
            return self._failed("Edit", given, "<tool_use_error>String to replace not found in file.</tool_use_error>")
        told = f"The file {source.path} has been updated successfully."
        if self.rng.random() < 0.4:
            told += f" Here's the result of running `cat -n` on a snippet:\\n{new}"
        record = (
            f'{{"filePath":"{source.path}","oldString":"{old}","newString":"{new}","originalFile":"{source.text}",'
            f'"structuredPatch":{patch},"userModified":false,"replaceAll":false}}'
        )
        return Call("Edit", given, f'"{told}"', record)

    def write(self) -> Call:
        texts, source = self.texts, self.texts.source()
        content = "\\n".join(source.lines[:100])
        if self.rng.random() < 0.75:
            path = f"{texts.root}/src/{texts.name()}.py"
            kind, patch, original = "create", "[]", "null"
            told = f"File created successfully at: {path}"
        else:
            path, kind, original = source.path, "update", f'"{source.text}"'
            patch = self._hunk(source)[2]
            told = f"The file {path} has been updated."
        given = f'{{"file_path":"{path}","content":"{content}"}}'
        record = (
            f'{{"type":"{kind}","filePath":"{path}","content":"{content}","structuredPatch":{patch},'
            f'"originalFile":{original}}}'
        )
        return Call("Write", given, f'"{told}"', record)

    def grep(self) -> Call:
        texts = self.texts
        given = f'{{"pattern":"def {texts.name()}","path":"{texts.root}/src","output_mode":"content","-n":true}}'
        if self._fails():
            return self._failed("Grep", given, "<tool_use_error>Path does not exist: src/legacy</tool_use_error>")
        lines = texts.output("search", 1000, 1.3, 18000)
        out = "\\n".join(lines)
        record = f'{{"mode":"content","numFiles":0,"filenames":[],"content":"{out}","numLines":{len(lines)}}}'
        return Call("Grep", given, f'"{out}"', record)

    def glob(self) -> Call:
        texts = self.texts
        paths = [f"{texts.root}/src/{texts.name()}.py" for _ in range(1 + int(self.rng.expovariate(0.2)))]
        quoted = '","'.join(paths)
        listed = "\\n".join(paths)
        record = f'{{"filenames":["{quoted}"],"durationMs":31,"numFiles":{len(paths)},"truncated":false}}'
        return Call("Glob", f'{{"pattern":"**/{texts.name()}*.py"}}', f'"{listed}"', record)

    def todo(self) -> Call:
        texts = self.texts
        states = ("completed", "in_progress", "pending", "pending", "pending")[: 2 + self.rng.getrandbits(2)]
        items = ",".join(
            f'{{"content":"{texts.pick(texts.notes)}","status":"{state}","activeForm":"Working on {texts.name()}"}}'
            for state in states
        )
        told = '"Todos have been modified successfully. Please proceed with the current tasks if applicable"'
        return Call("TodoWrite", f'{{"todos":[{items}]}}', told, f'{{"oldTodos":[],"newTodos":[{items}]}}')

    def task_update(self) -> Call:
        number = 1 + self.rng.getrandbits(3)
        record = f'{{"success":true,"taskId":"{number}","updatedFields":["status"]}}'
        given = f'{{"taskId":"{number}","status":"completed"}}'
        return Call("TaskUpdate", given, f'"Updated task #{number} status"', record)

    def agent(self) -> Call:
        texts, rng = self.texts, self.rng
        prompt, report = texts.ask(1000, 0.5), texts.note(2500, 0.7)
        agent_id = f"a{rng.getrandbits(24):06x}"
        given = f'{{"description":"Explore {texts.name()}","prompt":"{prompt}","subagent_type":"Explore"}}'
        name = "Agent" if self.newer else "Task"
        if self._fails():
            return self._failed(name, given, REFUSED, "User rejected tool use")
        blocks = f'[{{"type":"text","text":"{report}"}}]'
        record = (
            f'{{"status":"completed","prompt":"{prompt}","agentId":"{agent_id}","content":{blocks},'
            f'"totalDurationMs":{rng.getrandbits(17)},"totalTokens":{rng.getrandbits(17)},"totalToolUseCount":12}}'
        )
        return Call(name, given, blocks, record, agent=prompt)

    def question(self) -> Call:
        texts = self.texts
        asked = f"What should happen when the {texts.name()} is missing?"
        options = ",".join(
            f'{{"label":"{label}","description":"{texts.pick(texts.notes)}"}}'
            for label in ("Fail loudly", "Use the default", "Skip it")
        )
        questions = f'[{{"question":"{asked}","header":"Missing","multiSelect":false,"options":[{options}]}}]'
        told = f'"User has answered your questions: \\"{asked}\\"=\\"Use the default\\". You can now continue."'
        record = f'{{"questions":{questions},"answers":{{"{asked}":"Use the default"}}}}'
        return Call("AskUserQuestion", f'{{"questions":{questions}}}', told, record)

    def plan(self) -> Call:
        plan = f"# Plan: {self.texts.name()}\\n\\n{self.texts.note(2000, 0.5)}"
        path = "/home/dev/.claude/plans/quiet-folding-lantern.md"
        told = f'"User has approved your plan. You can now start coding.\\n\\n## Approved Plan:\\n{plan}"'
        record = f'{{"plan":"{plan}","isAgent":false,"filePath":"{path}"}}'
        return Call("ExitPlanMode", f'{{"plan":"{plan}"}}', told, record)

    def fetch(self) -> Call:
        texts = self.texts
        url = f"https://example.com/docs/{texts.name()}"
        given = f'{{"url":"{url}","prompt":"How is the option {texts.name()} set?"}}'
        if self._fails():
            return self._failed("WebFetch", given, "Request failed with status code 404")
        out = texts.note(800, 0.6)
        record = f'{{"bytes":35329,"code":200,"codeText":"OK","result":"{out}","durationMs":3714,"url":"{url}"}}'
        return Call("WebFetch", given, f'"{out}"', record)

    def mcp(self) -> Call:
        texts = self.texts
        name = f"mcp__tracker__{('list_issues', 'get_issue', 'search')[int(self.rng.random() * 3)]}"
        given = f'{{"query":"{texts.name()}","limit":20}}'
        if self._fails():
            return self._failed(name, given, "Argument Validation Error")
        blocks = f'[{{"type":"text","text":"{texts.note(3000, 1.0)}"}}]'
        return Call(name, given, blocks, blocks)
