"""The client of a schedule: writes its transcripts, fires its hooks through a driver, keeps the account."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tests.chaos.model import Account, Compaction
from tests.chaos.schedule import Action
from tests.live.transcript import HEAD, Transcript, encoded


class Driver(Protocol):
    """How hooks reach the product, and what can be done to it."""

    projects: Path
    inside: bool

    def fire(self, event: str, payloads: list[dict[str, Any]], kill: float | None = None) -> list[str]:
        """Fire hooks of one event at once, killing the worker after a share of the way; what they print."""
        ...

    def seal_late(self, payload: dict[str, Any]) -> Callable[[], None]:
        """Begin a PreCompact whose seal arms only when the returned function is called."""
        ...

    def up(self) -> bool: ...
    def kill(self) -> None: ...
    def restart(self) -> None: ...
    def delete(self, under: bool) -> None: ...
    def clock(self) -> float: ...
    def skew(self, by: float) -> None: ...
    def trouble(self, name: str, times: int) -> None: ...
    def troubled(self) -> bool: ...
    def installed_at(self) -> float: ...
    def bottle(self, session: str, path: Path) -> list[str] | None: ...


class Client:
    """Carries out a schedule's actions one by one."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.count = 0
        self.problems: list[str] = []
        self.sessions = [self._session(f"s-{n}") for n in (1, 2)]
        self.now = 0

    def _session(self, name: str) -> tuple[Transcript, Account]:
        transcript = Transcript(self.driver.projects / f"{name}.jsonl", name, clock=self.driver.clock)
        return transcript, Account(name)

    @property
    def t(self) -> Transcript:
        return self.sessions[self.now][0]

    @property
    def account(self) -> Account:
        return self.sessions[self.now][1]

    def do(self, action: Action) -> None:
        getattr(self, f"_{action.name}")(**action.given)

    def finish(self) -> None:
        """The last look: every session's bottle against its transcript."""
        self.driver.trouble("", 0)
        for transcript, account in self.sessions:
            if transcript.path.exists():
                self._compare("at the end", transcript, account)

    # -- helpers -------------------------------------------------------------------------------------------

    def _text(self, what: str) -> str:
        self.count += 1
        return f"{what} {self.count}"

    def _size(self) -> int:
        return self.t.path.stat().st_size

    def _payload(self, event: str, **more: Any) -> dict[str, Any]:
        base = {"session_id": self.t.session, "transcript_path": str(self.t.path), "cwd": "/tmp"}
        return {**base, "hook_event_name": event, **more}

    def _hooks(self, event: str, times: int = 1, kill: float | None = None, **more: Any) -> list[str]:
        payload = self._payload(event, **more)
        printed = self.driver.fire(event, [payload] * times, kill)
        if event not in ("SessionStart", "UserPromptSubmit") and any(printed):
            self.account.problems.append(f"{event} printed something")
        return printed

    def _due(self, compaction: Compaction | None) -> bool:
        """Whether a prompt or a resume must hand over the newest boundary."""
        eligible = compaction is not None and int(compaction.at * 1000) >= self.driver.installed_at()
        return eligible and compaction is not None and not compaction.nothing

    def _note(self, where: str, compaction: Compaction | None, printed: list[str], due: bool, sure: bool = True) -> str:
        handed = [text for text in printed if HEAD in text]
        level = compaction.level if compaction is not None and sure else 0
        if compaction is not None and handed and not sure:
            compaction.nothing = False
        plain = level == 1 and any("Read(file_path=" in text for text in handed)
        self.account.printed(f"action {self.count}: {where}", compaction, len(handed), due, plain)
        return handed[0] if handed else ""

    # -- the session ---------------------------------------------------------------------------------------

    def _session_(self) -> None:
        self.now = 1 - self.now

    def _prompt(self, hook: bool = True, kill: float | None = None) -> None:
        text = self._text("please do")
        handed = ""
        if hook:
            newest, up = self.account.newest(), self.driver.up()
            sure = up and kill is None and not self.driver.troubled()
            printed = self._hooks("UserPromptSubmit", kill=kill, prompt=text)
            handed = self._note("prompt", newest, printed, due=sure and self._due(newest))
        self.t.prompt(text)
        self.account.add("u", self._size(), text)
        if handed:
            self.t.hooked(handed, "UserPromptSubmit")
            newest = self.account.newest()
            if newest is not None:
                newest.recorded = True

    def _say(self) -> None:
        text = self._text("so it is")
        self.t.say(text)
        self.account.add("a", self._size(), text)

    def _bash(self, times: int = 1) -> None:
        for _ in range(times):
            use = self.t.call("Bash", command=self._text("make"))
            item = self.account.add("t", self._size())
            self.t.result(use)
            item.done = self._size()

    def _open(self) -> None:
        self.t.call("Bash", command=self._text("make"))
        self.account.add("t", self._size())

    def _stop(self) -> None:
        self.t.stopped()
        self._hooks("Stop")

    def _render(self) -> None:
        if not self.driver.troubled():
            self._compare("at a render", self.t, self.account)

    def _compare(self, where: str, transcript: Transcript, account: Account) -> None:
        bottle = self.driver.bottle(transcript.session, transcript.path)
        if bottle is None:
            if account.said:
                account.problems.append(f"{where}: no bottle")
        else:
            account.holds(where, bottle)

    # -- compactions ---------------------------------------------------------------------------------------

    def _compact(
        self,
        pre: int = 1,
        start: int = 1,
        late_seal: bool = False,
        post: bool = True,
        early_boundary: bool = False,
        abort: str = "",
        kill: float | None = None,
        delete: bool = False,
    ) -> None:
        if not self.account.items:
            return None
        # When no PreCompact was taken in, a compaction right after another looks like the other one's hook once more:
        # then the handoff comes at the next prompt.
        pre_seen = bool(pre) and self.driver.up() and not self.driver.troubled()
        sure = pre_seen or not (self.account.dangling or self.account.just_compacted())
        dangling, compaction = self.account.dangling, self.account.begin()
        arm_late = None
        if pre:
            self._hooks("PreCompact", pre, trigger="auto", custom_instructions=None)
            if late_seal and self.driver.up():
                arm_late = self.driver.seal_late(self._payload("PreCompact", trigger="auto"))
        if abort == "pre":
            return self._die()
        if early_boundary:
            self._boundary(compaction)
        handed = ""
        if start:
            compaction.level = self.account.pressure() if not early_boundary else compaction.level
            compaction.nothing = compaction.level >= 2
            printed = self._hooks("SessionStart", min(start, 2), kill=kill, source="compact")
            handed = self._note("compact", compaction, printed, due=sure and not compaction.nothing, sure=sure)
            if arm_late is not None:
                arm_late()
            if start == 3:
                again = self._hooks("SessionStart", source="compact")
                handed = self._note("compact again", compaction, again, due=False) or handed
        elif arm_late is not None:
            arm_late()
        if delete:
            self._delete_under()
        if abort == "start":
            return self._die()
        if post:
            self._hooks("PostCompact", trigger="auto", compact_summary="…")
        if not early_boundary:
            self._boundary(compaction)
        if dangling and not pre_seen and start and not handed:
            compaction.nothing = compaction.unknowable = True  # taken for the given-up one
        if abort == "boundary":
            return self._die()
        if handed:
            self.t.hooked(handed)
            compaction.recorded = True
        return None

    def _boundary(self, compaction: Compaction) -> None:
        self.account.running = compaction
        at = self.driver.clock()
        self.t.boundary()
        self.account.end(self._size(), int(at * 1000) / 1000)

    def _die(self) -> None:
        """The client is killed and comes back."""
        self.account.give_up()
        self._resume()

    def _resume(self, hook: bool = True) -> None:
        if not hook:
            return
        newest = self.account.newest()
        sure = self.driver.up() and not self.driver.troubled()
        before = newest.printed if newest is not None else 0
        self.account.resumed()
        if newest is not None and not sure and newest.printed < before:
            newest.nothing = newest.unknowable = True  # only a resume that is answered sees that it was lost
        printed = self._hooks("SessionStart", source="resume")
        handed = self._note("resume", newest, printed, due=sure and self._due(newest))
        if handed and newest is not None:
            self.t.hooked(handed, "SessionStart", "resume")
            newest.recorded = True

    # -- trouble -------------------------------------------------------------------------------------------

    def _kill(self) -> None:
        self.driver.kill()

    def _restart(self) -> None:
        self.driver.restart()

    def _delete(self) -> None:
        self._forgotten()
        self.driver.delete(under=False)

    def _delete_under(self) -> None:
        self._forgotten()
        self.driver.delete(under=True)

    def _forgotten(self) -> None:
        """What the product remembered is gone; what the client has not written down cannot be known."""
        for _, account in self.sessions:
            for compaction in (account.running, account.newest()):
                if compaction is not None and not compaction.recorded:
                    compaction.unknowable = compaction.unknowable or bool(compaction.printed) or compaction.nothing

    def _rotate(self) -> None:
        if self.t.path.exists():
            copy = self.t.path.with_suffix(".copy")
            shutil.copy(self.t.path, copy)
            copy.replace(self.t.path)

    def _cut(self) -> None:
        """The end of the transcript is lost, as far as the newest record of anything of ours."""
        floor = max((i.end for i in self.account.items if i.kind == "B"), default=0)
        keep = [item.end for item in self.account.items if item.end > floor][:-1]
        newest = self.account.newest()
        if not keep or (newest is not None and newest.printed):
            return
        os.truncate(self.t.path, keep[-1])
        self.account.cut(keep[-1])

    def _torn(self, keep: float = 0.5) -> None:
        """A line arrives in two parts, with a look between them."""
        text = self._text("so it is")
        self.t.said.append(("assistant", text))
        block = {"type": "text", "text": text}
        message = {"id": f"msg_{self.count}", "role": "assistant", "model": "claude-opus-4-8", "content": [block]}
        line = encoded(self.t.entry("assistant", message=message))
        part = max(1, int(len(line) * keep) - 2)
        self.t.raw(line[:part])
        self._render()
        self.t.raw(line[part:])
        self.account.add("a", self._size(), text)

    def _clock(self, by: float = 0) -> None:
        self.driver.skew(by)

    def _throw(self, times: int = 1) -> None:
        self.driver.trouble("throw", times)

    def _readonly(self, times: int = 1) -> None:
        self.driver.trouble("readonly", times)


def carry_out(client: Client, actions: list[Action]) -> list[str]:
    """Do everything; return what was wrong, with the action it came from."""
    for n, action in enumerate(actions):
        if action.name == "session":
            client._session_()
        else:
            client.do(action)
        found = [problem for _, account in client.sessions for problem in account.problems] + client.problems
        if found:
            return [f"after action {n} {action}: {problem}" for problem in found]
    client.finish()
    return [problem for _, account in client.sessions for problem in account.problems] + client.problems
