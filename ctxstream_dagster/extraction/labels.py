"""Reads the replies of `labels`: for every unit asked one label of a closed set, or a rejection with a reason."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from ctxstream_dagster.errors import OutputLimit
from ctxstream_dagster.extraction.cleaning import bare, check_sane, reply_lines
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.records import Record, RejectedLine, RejectReason
from ctxstream_dagster.extraction.windows import Window

# `label: beta`, `"label": "beta"`, `Answer = beta`
_NAMED = re.compile(r"[^\W\d_]{1,20}\s*[:=]\s*(.{1,200})")
# `12\tbeta`, `12: beta`, `"12": "beta",`, `[12] beta`
_NUMBERED = re.compile(r"[\[(#\"']?\s*(\d{1,12})\s*[\])\"']?\s*[\t:=|.)]\s*(.{1,200})")
_DEEPEST = 4
_SHOWN = 500


def decode_labels(
    reply: str, window: Window, question: Question
) -> tuple[tuple[Record, ...], tuple[RejectedLine, ...]]:
    """Read a reply of `labels`; raises `OutputLimit` when it is empty and `BadReply` when it repeats itself."""
    lines = reply_lines(reply)
    if not lines:
        raise OutputLimit("The reply is empty; a label was asked for.", kind="empty")
    check_sane(lines)
    text = "\n".join(lines)
    known = {question.same_key(label): label for label in question.labels}
    # As it came, first: what is cleaned off a reply may be a part of a label.
    answers, rejected = _answers(reply if _json(reply) is not None else text, lines, window, cue=question.cue)
    numbers = {unit.number for unit in window.units}
    rejected += [
        RejectedLine(text=f"{number}: {label}"[:_SHOWN], reason="unknown-unit")
        for number, label in answers
        if number not in numbers
    ]
    by_unit: dict[int, list[str]] = {}
    for number, label in answers:
        by_unit.setdefault(number, []).append(label)
    records: list[Record] = []
    for unit in window.units:
        given = by_unit.get(unit.number, [])
        label = _known(given[0], known, question) if given else None
        if len(given) == 1 and label is not None:
            records.append(Record(key=label, unit=unit.number, offset=unit.offset, path=unit.path, line=unit.line))
            continue
        reason: RejectReason = "missing-unit" if not given else "unit-twice" if len(given) > 1 else "unknown-label"
        shown = " / ".join(given) if given else text if len(window.units) == 1 else ""
        rejected.append(RejectedLine(text=shown[:_SHOWN], reason=reason, unit=unit.number))
    return tuple(records), tuple(rejected)


def _known(given: str, known: Mapping[str, str], question: Question) -> str | None:
    forms = (given, given.strip(), bare(given), bare(given).rstrip("."))
    return next((known[same] for form in forms if (same := question.same_key(form)) in known), None)


def _answers(
    text: str, lines: list[str], window: Window, *, cue: str
) -> tuple[list[tuple[int, str]], list[RejectedLine]]:
    first, alone = window.units[0].number, len(window.units) == 1
    given = _json(text)
    if isinstance(given, str) and alone:
        return [(first, given)], []
    if isinstance(given, list):
        return _pairs(cast("list[tuple[str, Any]]", given), first=first, alone=alone)
    if alone and len(lines) == 1:
        return [(first, _label_of(lines[0].strip().removeprefix(cue)))], []
    answers: list[tuple[int, str]] = []
    rejected: list[RejectedLine] = []
    for line in lines:
        found = _NUMBERED.fullmatch(line.strip().rstrip(","))
        if found:
            answers.append((int(found.group(1)), found.group(2)))
        elif line.strip() not in "{}[]":
            rejected.append(RejectedLine(text=line[:_SHOWN], reason="prose"))
    return answers, rejected


def _label_of(line: str) -> str:
    """The label in `beta`, `Label: beta`, `**beta**`; a sentence stays a sentence, and so is no label."""
    found = _NAMED.fullmatch(line.strip().strip("{}").strip())
    return bare(found.group(1)) if found else line.strip()


def _pairs(
    pairs: list[tuple[str, Any]], *, first: int, alone: bool
) -> tuple[list[tuple[int, str]], list[RejectedLine]]:
    answers: list[tuple[int, str]] = []
    rejected: list[RejectedLine] = []
    for name, value in pairs:
        digits = bare(name)
        if isinstance(value, str) and digits.isdecimal() and len(digits) <= 12:
            answers.append((int(digits), value))
        elif isinstance(value, str) and alone and len(pairs) == 1:
            answers.append((first, value))
        else:
            rejected.append(RejectedLine(text=f"{name}: {value!r}"[:_SHOWN], reason="prose"))
    return answers, rejected


def _json(text: str) -> object:
    """The reply as JSON: a text, or an object as a list of pairs (so that a unit named twice is seen); else None."""
    text = text.strip()
    if not text.startswith(("{", '"')) or _nests_deeper(text):
        return None
    try:
        return json.loads(text, object_pairs_hook=list, parse_int=str, parse_float=str)
    except ValueError:
        return None


def _nests_deeper(text: str) -> bool:
    # The parser recurses, and a reply of a million brackets must not end the sweep.
    return text.count("{") + text.count("[") > _DEEPEST
