"""What is not part of a corpus, as a value: nothing disappears from a sweep without a line that says why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file or directory that is not part of the packed text.

    Attributes:
        path: as reported to people, forward slashes.
        reason: typed: ``binary``, ``special-file``, ``unreadable``, ``broken-link`` or ``directory`` for text corpora;
            codebases add their own.
        detail: a sentence part for a person, may be empty.
    """

    path: str
    reason: str
    detail: str = ""
