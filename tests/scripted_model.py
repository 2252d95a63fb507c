"""What a perfect model would reply to our prompts: the extractor behind the scripted server and the fake backend."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

STATUS = r"Status:\s*([\w-]+)"
"""Finds the key of a unit; a second group, if any, is its value."""

ORDER = re.compile(r"output (\w+) (\d+)")
"""An order inside the corpus, which an obedient model follows."""

_FENCE = re.compile(r"<<<(TEXT\d*)\n(.*?)\n?\1>>>", re.DOTALL)
_UNIT = re.compile(r"(\d+)\| ")


def user_text(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the corpus text of the last message, as the model sees it."""
    content = messages[-1]["content"] if messages else ""
    found = _FENCE.search(content)
    return found.group(2) if found else content


def units(text: str) -> dict[int, str]:
    """Return the numbered units of a window by their numbers."""
    by_number: dict[int, str] = {}
    number = 0
    for line in text.split("\n"):
        found = _UNIT.match(line)
        if found:
            number = int(found.group(1))
            by_number[number] = line[found.end() :]
        elif line.startswith(" | ") and number:
            by_number[number] += "\n" + line[3:]
    return by_number


def by_pattern(pattern: str = STATUS) -> Callable[[str], list[tuple[str, str]]]:
    """Return an extractor: the (key, value) pairs that a pattern finds in a unit; no second group means no value."""
    compiled = re.compile(pattern)

    def find(text: str) -> list[tuple[str, str]]:
        return [(found.group(1), found.group(2) if compiled.groups > 1 else "") for found in compiled.finditer(text)]

    return find


def perfect_reply(
    messages: Sequence[Mapping[str, str]],
    format: Mapping[str, Any] | None,
    *,
    find: Callable[[str], list[tuple[str, str]]],
) -> str:
    """Return the right reply in any mode, which is read off the schema and the system text as a model would."""
    text = user_text(messages)
    if format is not None and format.get("type") == "string":
        return json.dumps(_label(text, format["enum"], find), ensure_ascii=False)
    if format is not None:
        choices = next(iter(format["properties"].values()))["enum"]
        shown = units(text)
        labels = {name: _label(shown[int(name)], choices, find) for name in format["properties"]}
        return json.dumps(labels, ensure_ascii=False)
    system = messages[0]["content"]
    if "<number>\t<key>" in system:
        with_value = "<number>\t<key>\t<value>" in system
        lines = [
            f"{number}\t{key}" + (f"\t{value}" if with_value and value else "")
            for number, unit in units(text).items()
            for key, value in find(unit)
        ]
        return "\n".join(lines) or "NONE"
    counts = Counter(key for line in text.split("\n") for key, _ in find(line))
    return "\n".join(f"{key}\t{count}" for key, count in counts.items()) or "NONE"


def _label(text: str, choices: Sequence[str], find: Callable[[str], list[tuple[str, str]]]) -> str:
    for key, _ in find(text):
        if key in choices:
            return key
    return next((label for label in choices if re.search(rf"\b{re.escape(label)}\b", text)), choices[-1])
