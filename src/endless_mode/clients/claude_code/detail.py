"""The part of a transcript line's ``toolUseResult`` that is worth having.

The reader decodes every line with :class:`Detail` in one pass; whatever is not named here is skipped
without being built. Left out on purpose: whole files (``originalFile``, a Read's ``content``), images, and
everything that the result text or the call's arguments say already (``stdout``, ``filenames``,
``oldString``, ``results``...).

Every field is ``Any``: clients of all versions write here, and a surprising type must not cost the line.
``file`` and ``task`` are structs so that their large members are skipped too; their unions take any JSON
value.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import Struct, field

Scalar: TypeAlias = str | int | float | bool | list[Any] | None


class FileDetail(Struct, rename="camel", gc=False):
    """What a Read says of the file, without its content."""

    file_path: Any = None
    num_lines: Any = None
    start_line: Any = None
    total_lines: Any = None
    type: Any = None
    original_size: Any = None
    dimensions: Any = None
    count: Any = None


class TaskDetail(Struct, gc=False):
    """A background task (``task_id`` ...) or an item of the task list (``id``, ``subject`` ...)."""

    task_id: Any = None
    task_type: Any = None
    status: Any = None
    description: Any = None
    exit_code: Any = field(default=None, name="exitCode")
    id: Any = None
    subject: Any = None


class Detail(Struct, rename="camel", gc=False):
    """``toolUseResult`` of a tool that succeeded; a failed one has a string there, an MCP tool a list."""

    type: Any = None
    status: Any = None
    message: Any = None
    success: Any = None
    # shell
    interrupted: Any = None
    is_image: Any = None
    background_task_id: Any = None
    return_code_interpretation: Any = None
    exit_code: Any = None
    command: Any = None
    shell_id: Any = None
    persisted_output_path: Any = None
    # files
    file: FileDetail | Scalar = None
    file_path: Any = None
    structured_patch: Any = None
    user_modified: Any = None
    edit_mode: Any = field(default=None, name="edit_mode")
    cell_id: Any = field(default=None, name="cell_id")
    # searches
    mode: Any = None
    num_files: Any = None
    num_lines: Any = None
    num_matches: Any = None
    truncated: Any = None
    applied_limit: Any = None
    operation: Any = None
    result_count: Any = None
    file_count: Any = None
    matches: Any = None
    # web
    code: Any = None
    code_text: Any = None
    bytes: Any = None
    # agents and tasks
    agent_id: Any = None
    agent_type: Any = None
    is_async: Any = None
    output_file: Any = None
    total_tokens: Any = None
    total_tool_use_count: Any = None
    total_duration_ms: Any = None
    retrieval_status: Any = field(default=None, name="retrieval_status")
    task: TaskDetail | Scalar = None
    task_id: Any = field(default=None, name="task_id")
    killed_shell_id: Any = field(default=None, name="shell_id")
    tasks: Any = None
    updated_task_id: Any = field(default=None, name="taskId")
    status_change: Any = None
    updated_fields: Any = None
    # conversation
    answers: Any = None
    annotations: Any = None
    plan: Any = None
    command_name: Any = None
