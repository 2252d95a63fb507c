"""Takes off a reply what models put around an answer (thinking, fences, control tokens, echoes), in linear time."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ctxstream_dagster.errors import BadReply, OutputLimit

_OPEN, _CLOSE = "<think>", "</think>"
_TOKEN = r"(?:<\|[^|<>\n]{1,40}\|>|</?(?:s|bos|eos|pad|unk|unused\d{1,4}|start_of_turn|end_of_turn)>|\[/?INST\])"
_EDGE_START = re.compile(rf"(?:\s*{_TOKEN})+\s*")
_EDGE_END = re.compile(rf"{_TOKEN}\s*\Z")
_TAB_WORDS = re.compile(r"\\t|<tab>|<TAB>|\[TAB\]|␉")
# Lone surrogates too: no file and no table can hold them.
_C0 = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127, *range(0xD800, 0xE000), 0xFEFF, 0x200B])
_LONGEST_TOKEN = 60
_MOST_REPEATS = 12
# No reply holds more lines than a context holds tokens.
_MOST_LINES = 32_768


def reply_lines(text: str) -> list[str]:
    """Return the lines of a reply that could be records: no thinking, fences, control characters or blank lines.

    Raises:
        OutputLimit: a `<think>` is never closed, so the answer was cut before it began (kind ``unclosed-think``).
    """
    lines: list[str] = []
    for raw in _without_thinking(text).replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if raw and not raw.isspace():
            line = _clean(raw)
            if line and not line.lstrip().startswith(("```", "~~~")):
                lines.append(line)
    return lines


def check_sane(lines: Sequence[str]) -> None:
    """Raise `BadReply` when the lines are a loop, no answer (kinds ``repeated-lines``, ``too-many-lines``)."""
    if len(lines) > _MOST_LINES:
        raise BadReply(f"The reply has {len(lines)} lines; no window has so many records.", kind="too-many-lines")
    previous, repeats = "", 0
    for line in lines:
        repeats = repeats + 1 if line == previous else 0
        previous = line
        if repeats >= _MOST_REPEATS:
            raise BadReply(f"The reply repeats one line {repeats} times: {line[:60]!r}.", kind="repeated-lines")


def bare(field: str) -> str:
    """Return a field without control tokens, surrounding spaces and the markup models like: `**x**`, quotes, ticks."""
    field = _without_tokens(field).strip()
    for mark in ("**", "`", '"'):
        if len(field) > 2 * len(mark) and field.startswith(mark) and field.endswith(mark):
            field = field[len(mark) : -len(mark)].strip()
    return field


def _clean(line: str) -> str:
    line = _without_tokens(line.translate(_C0))
    if "\t" not in line:
        line = _TAB_WORDS.sub("\t", line)
    return line.rstrip()


def _without_tokens(text: str) -> str:
    if "<" not in text and "[" not in text:
        return text
    found = _EDGE_START.match(text)
    start, end = found.end() if found else 0, len(text)
    while found := _EDGE_END.search(text, max(start, end - _LONGEST_TOKEN), end):
        end = found.start()
    return text[start:end]


def _without_thinking(text: str) -> str:
    if _CLOSE in text and _OPEN not in text[: text.index(_CLOSE)]:
        # Some chat templates open the thinking themselves, so that only its end stands in the reply.
        text = text[text.index(_CLOSE) + len(_CLOSE) :]
    kept: list[str] = []
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        kept.append(text[position:start])
        end = text.find(_CLOSE, start)
        if end < 0:
            raise OutputLimit("The reply ends inside <think>: the answer itself is missing.", kind="unclosed-think")
        position = end + len(_CLOSE)
    kept.append(text[position:])
    return "".join(kept)
