"""One line of ``ctxstream doctor``, whoever found it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        check: what was looked at.
        state: ``problem`` keeps a sweep from running, ``warning`` does not; ``skipped`` waits for an earlier problem.
        found: what is the case.
        change: what to do about it, empty when nothing.
    """

    check: str
    state: Literal["ok", "warning", "problem", "skipped"]
    found: str
    change: str = ""
