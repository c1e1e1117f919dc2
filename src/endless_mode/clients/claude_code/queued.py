"""The client's queue: what is typed while the model works, until a line of its own holds it."""

from __future__ import annotations

from collections.abc import Iterator

from endless_mode.clients.claude_code import wording
from endless_mode.clients.claude_code.entry import Entry, ms_of
from endless_mode.clients.claude_code.reports import task_reports
from endless_mode.clients.claude_code.state import MAX_AWAITED, Queued, State, text_digest
from endless_mode.model import Item, Message, Withdrawn
from endless_mode.privacy import clean, is_wholly_private


class Queue:
    """Follows the queue operations of one transcript; what waits is in the reader's state."""

    def __init__(self, at: State) -> None:
        self._at = at

    def operation(self, entry: Entry, offset: int) -> Iterator[Item]:
        """A queue-operation line."""
        at, text = self._at, wording.joined_text(entry.content)
        if entry.operation == "enqueue":
            yield from self._enqueue(entry, text, offset)
        elif entry.operation in ("dequeue", "remove"):
            taken = self._take(text)
            if taken is not None and taken.key:
                at.awaited = [*at.awaited, taken][-MAX_AWAITED:]
                if entry.operation == "remove" and taken.private:
                    at.private = True
                    yield Message(taken.key, offset, 0, "user", "private", "", ms_of(entry.timestamp))
        elif entry.operation == "popAll":
            gone = [q for q in at.queue if not text or q.digest == text_digest(clean(text))]
            at.queue = [q for q in at.queue if q not in gone]
            for queued in gone:
                if queued.key:
                    yield Withdrawn(queued.key, "taken back")

    def leaves(self, text: str) -> Iterator[Item]:
        """A line of its own holds this text: the queued copy is none."""
        if not self._at.awaited and not self._at.queue:
            return
        digest = text_digest(clean(text))
        for waiting in (self._at.awaited, self._at.queue):
            for n, queued in enumerate(waiting):
                if queued.key and queued.digest == digest:
                    del waiting[n]
                    yield Withdrawn(queued.key, "stands elsewhere")
                    return

    def _enqueue(self, entry: Entry, text: str, offset: int) -> Iterator[Item]:
        cleaned = clean(text)
        queued = Queued(digest=text_digest(cleaned))
        typed = bool(text.strip()) and not text.lstrip().startswith(wording.ENVELOPES)
        if typed and not (text.startswith("/") and wording.is_steering(text)):
            queued = Queued(f"@{offset}", queued.digest, is_wholly_private(text))
            if cleaned.strip():
                yield Message(queued.key, offset, 0, "user", "queued", cleaned, ms_of(entry.timestamp))
        elif text:
            yield from task_reports(self._at, [text], entry, offset)
        self._at.queue.append(queued)

    def _take(self, text: str) -> Queued | None:
        """The queue entry an operation means: the one with its text, else the oldest."""
        queue = self._at.queue
        if text:
            digest = text_digest(clean(text))
            for n, queued in enumerate(queue):
                if queued.digest == digest:
                    return queue.pop(n)
        return queue.pop(0) if queue else None
