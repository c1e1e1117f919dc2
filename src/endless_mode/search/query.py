"""Questions to the index, and the same questions to the texts where there is no index yet.

Whatever a user types is words to look for, never an expression: every word goes to FTS5 in quotes. ``"two words"`` is a
phrase, ``wor*`` a beginning; all words must occur, and when nothing holds them all, any of them will do.
"""

from __future__ import annotations

import re
import sqlite3
from typing import Literal

from msgspec import Struct

from endless_mode.bottle.escape import flatten
from endless_mode.privacy import clean
from endless_mode.search.index import exists, until

#: How much more a word in a title counts than one in the text.
TITLE_WEIGHT = 4.0
#: Words of a question that are looked at, and characters around a find.
MAX_WORDS = 24
AROUND = 160

_PART = re.compile(r'"([^"]*)"|(\S+)')


class Word(Struct, frozen=True):
    """A word or phrase to look for; ``beginning``: what starts with it counts too."""

    text: str
    beginning: bool = False

    @property
    def expression(self) -> str:
        """The word for FTS5."""
        return '"' + self.text.replace('"', '""') + '"' + ("*" if self.beginning else "")


class Question(Struct, frozen=True):
    """What is looked for and where: ``project`` is a directory with those below, ``session`` the beginning of an id."""

    text: str
    project: str = ""
    session: str = ""
    limit: int = 20


class Hit(Struct):
    """A find. ``kind`` says what ``id`` counts; observations have title and outcome, messages role and text."""

    kind: Literal["observation", "message"]
    id: int
    session: str
    project: str
    at: int | None
    title: str = ""
    outcome: str = ""
    role: str = ""
    text: str = ""


def words(text: str) -> list[Word]:
    """The words of a question. Only what has a letter or digit can be in the index."""
    found: list[Word] = []
    for phrase, word in _PART.findall(text.replace("\0", " ")):
        given = phrase or word.replace('"', " ").strip()
        stem = given.rstrip("*")
        if any(c.isalnum() for c in stem):
            found.append(Word(stem, beginning=not phrase and stem != given))
    return found[:MAX_WORDS]


def search(db: sqlite3.Connection, question: Question) -> list[Hit]:
    """The best finds first; what the index does not have yet comes behind, newest first."""
    looked_for = words(question.text)
    plain = [word.text for word in looked_for] or question.text.replace("\0", " ").split()[:MAX_WORDS]
    indexed = bool(looked_for) and exists(db)
    expressions = [word.expression for word in looked_for]
    hits = _indexed(db, " AND ".join(expressions), plain[0], question) if indexed else []
    if len(hits) < question.limit:
        hits += _plain(db, plain, question, everything=not looked_for)
    if not hits and indexed and len(expressions) > 1:
        hits = _indexed(db, " OR ".join(expressions), plain[0], question)
    return hits[: question.limit]


_COLUMNS = """
CASE WHEN o.id IS NULL THEN 'message' ELSE 'observation' END, coalesce(o.id, m.id), s.content_session_id, s.cwd,
coalesce(o.last_at, o.first_at, m.at), coalesce(o.title, ''), coalesce(o.narrative, ''), coalesce(m.role, '')
"""
_WHERE = """
(:project = '' OR s.cwd = :project OR substr(s.cwd, 1, length(:project) + 1) = :project || '/')
AND (:session = '' OR substr(s.content_session_id, 1, length(:session)) = :session)
AND (m.id IS NULL OR (m.withdrawn = '' AND m.rewound = ''))
"""


def _indexed(db: sqlite3.Connection, expression: str, word: str, question: Question) -> list[Hit]:
    rows = db.execute(
        f"SELECT {_COLUMNS}, coalesce(m.text, '') FROM search f"
        " LEFT JOIN messages m ON f.rowid % 2 = 0 AND m.id = f.rowid / 2"
        " LEFT JOIN observations o ON f.rowid % 2 = 1 AND o.id = f.rowid / 2"
        f" JOIN sessions s ON s.id = coalesce(m.session_id, o.session_id) WHERE search MATCH :expression AND {_WHERE}"
        f" ORDER BY bm25(search, {TITLE_WEIGHT}, 1.0) LIMIT :limit",
        {"expression": expression, **_where(question)},
    )
    return [_hit(*(*row[:-1], _around(row[-1], word))) for row in rows]


def _plain(db: sqlite3.Connection, looked_for: list[str], question: Question, *, everything: bool) -> list[Hit]:
    """Look through the texts that are not indexed (``everything``: all of them), newest first."""
    if not looked_for:
        return []
    given = {**_where(question), "message_until": 0 if everything else until(db, "message")}
    given["observation_until"] = 0 if everything else until(db, "observation")
    for n, word in enumerate(looked_for):
        given[f"word{n}"] = f"%{_escaped(word)}%"
    hits: list[Hit] = []
    for source, texts in (
        ("messages m ON m.id > :message_until AND m.session_id = s.id LEFT JOIN observations o ON 0", "m.text"),
        (
            "observations o ON o.id > :observation_until AND o.session_id = s.id LEFT JOIN messages m ON 0",
            "o.title || char(10) || o.narrative",
        ),
    ):
        like = " AND ".join(f"{texts} LIKE :word{n} ESCAPE '\\'" for n in range(len(looked_for)))
        rows = db.execute(
            f"SELECT {_COLUMNS}, coalesce(m.text, '') FROM sessions s JOIN {source} WHERE {_WHERE} AND {like}"
            " ORDER BY coalesce(o.id, m.id) DESC LIMIT :limit",
            given,
        )
        hits += [_hit(*(*row[:-1], _around(row[-1], looked_for[0]))) for row in rows]
    return sorted(hits, key=lambda hit: hit.at or 0, reverse=True)


def _where(question: Question) -> dict[str, object]:
    return {"project": question.project.rstrip("/"), "session": question.session, "limit": question.limit}


def _hit(
    kind: Literal["observation", "message"], number: int, session: str, project: str, at: int | None, title: str,
    narrative: str, role: str, text: str,
) -> Hit:  # fmt: skip
    if kind == "observation":
        return Hit(kind, number, session, project, at, _line(title), _line(narrative.partition("\n")[0]))
    return Hit(kind, number, session, project, at, role=role, text=_line(text))


def _line(text: str) -> str:
    return " ".join(flatten(clean(text)).split())


def _around(text: str, word: str) -> str:
    """The text around the first place where the word stands."""
    at = max(text.lower().find(word.lower().split()[0]), 0)
    start, end = max(0, at - AROUND // 2), at + AROUND
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
