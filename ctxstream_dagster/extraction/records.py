"""What one segment's extraction yields: records, rejected lines and the exact replies they were read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

RejectReason = Literal[
    "no-tab",
    "extra-tab",
    "empty-key",
    "bad-value",
    "value-out-of-range",
    "unknown-label",
    "unknown-unit",
    "unit-twice",
    "missing-unit",
    "not-in-unit",
    "none-beside-records",
    "prose",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One extracted fact. Its identity is (absolute offset of its unit, key, occurrence).

    Attributes:
        key: what is counted, normalised only when the question says so.
        value: exact; 1 for a label or a bare mention.
        unit: number of the unit in the segment, from 1; 0 in `counts` mode, where a reply names no unit.
        offset: the unit's start in characters from the segment's start (see `planning.units.Unit.offset`); in `counts`
            mode where the text that was counted starts.
        occurrence: 0 for the first record of this key in this unit, then 1, 2, …
        path: source file; empty in `counts` mode when the window spans several files.
        line: line of the unit in that file, from 1.
    """

    key: str
    value: Decimal = Decimal(1)
    unit: int = 0
    offset: int = 0
    occurrence: int = 0
    path: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedLine:
    """A reply line that is no record, kept with its reason so that nothing disappears."""

    text: str
    reason: RejectReason
    unit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One exact reply and where it came from.

    Attributes:
        first_unit: number of the first unit of the window.
        last_unit: number of the last unit of the window.
        text: exactly what the model returned.
        request_sha256: the key of the reply store.
        cached: True when the reply store answered and no call was made.
    """

    first_unit: int
    last_unit: int
    text: str
    request_sha256: str = ""
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentResult:
    """Everything that is known of one segment after extraction, whether it succeeded or not.

    Attributes:
        index: position in the plan.
        key: the segment's key.
        offset: where the segment starts in the packed text, in characters.
        ok: True when every window gave a complete, trusted, decoded reply.
        records: empty when not `ok`; nothing partial is ever counted.
        rejected: reply lines that were no records.
        replies: the exact replies, in unit order.
        units: units that start in the segment.
        error: a sentence for a person when not `ok`.
        error_kind: stable short name of the cause when not `ok` (see `errors.BackendError.kind`).
        truncated: True when the guard saw, or suspects, a clipped prompt.
        guard: the guard's verdict: ``ok``, ``unknown`` or what it suspects.
        prompt_tokens, cached_tokens, output_tokens: sums over the calls; 0 when the server does not report them.
        calls: model calls made, retries included; 0 when the reply store answered everything.
        attempts: failed attempts by kind.
        splits: how often a window was bisected.
        seconds: wall-clock time of the segment.
        call_s: time its calls took, in seconds, summed over calls that ran side by side.
        queue_wait_s, load_s: time spent waiting and loading the model, in seconds, as the server reports it.
        model, model_digest, server_version: who answered.
    """

    index: int
    key: str
    ok: bool
    offset: int = 0
    records: tuple[Record, ...] = ()
    rejected: tuple[RejectedLine, ...] = ()
    replies: tuple[Reply, ...] = ()
    units: int = 0
    error: str = ""
    error_kind: str = ""
    truncated: bool = False
    guard: str = "ok"
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    attempts: Mapping[str, int] = field(default_factory=dict[str, int])
    splits: int = 0
    seconds: float = 0.0
    call_s: float = 0.0
    queue_wait_s: float = 0.0
    load_s: float = 0.0
    model: str = ""
    model_digest: str = ""
    server_version: str = ""

    @property
    def raw(self) -> str:
        """The exact replies, joined by newlines."""
        return "\n".join(reply.text for reply in self.replies)
