"""The tally as a bar chart: one SVG that reads in a light page, a dark page and on paper.

Length and luminance carry the meaning, never hue alone: the answered bars are dark and named, the others pale. Text
stays text, so the chart can be searched and read aloud. Colours are custom properties with a light default
(``--chart-ink``, ``--chart-paper``, …), which a page may set; as an image the chart brings its own light background.
"""

from __future__ import annotations

import base64
import html
import io
import re
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ctxstream_dagster.reduction.answer import Answer, Statement, number
from ctxstream_dagster.reduction.tally import Tally, exact_sum
from ctxstream_dagster.report.escaping import visible

SHOWN_AT_EACH_END = 15
_ALL_SHOWN = 2 * SHOWN_AT_EACH_END + 1
_POINTS = 72
_ROW_PX = 24
_LABEL_CHARS = 34
# matplotlib wants colours it knows; each stands for a custom property of the page.
_COLOURS = {
    "#010101": "var(--chart-ink, #1f2328)",
    "#020202": "var(--chart-muted, #59636e)",
    "#030303": "var(--chart-bar, #9cc3e6)",
    "#040404": "var(--chart-answer, #0b4f8a)",
    "#050505": "var(--chart-paper, #ffffff)",
}
_INK, _MUTED, _BAR, _ANSWER, _PAPER = _COLOURS
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif"
# matplotlib takes how it writes SVG from process-wide settings only.
_settings = threading.Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One row of the chart; without a value, a remark that stands for the keys left out.

    Attributes:
        label: what the row says at its left.
        value: the bar's length, or None.
        note: what stands at the bar's end: value, share, and the answer's margin.
        answered: whether the row is (part of) the answer.
    """

    label: str
    value: Decimal | None
    note: str = ""
    answered: bool = False


def share(value: Decimal, tally: Tally) -> str:
    """Return a value's share of the total in percent; empty where that makes no sense: values below 0, a total of 0."""
    if tally.total <= 0 or tally.sorted[0][1] < 0:
        return ""
    return f"{float(value / tally.total):.1%}"


def bars(tally: Tally, statement: Statement) -> tuple[Bar, ...]:
    """Return the chart's rows, the answer first; of more than 31 keys the first and last 15, the rest as one remark."""
    pairs = tally.sorted if statement.how is Answer.LEAST else tally.sorted[::-1]
    answered = set(statement.keys) if statement.how in (Answer.LEAST, Answer.MOST) else set[str]()
    margin = ""
    if statement.margin is not None:
        margin = f"{number(statement.margin)} {'below' if statement.how is Answer.LEAST else 'above'} the next"

    def row(key: str, value: Decimal) -> Bar:
        own = key in answered
        words = [number(value), share(value, tally), margin if own else ""]
        return Bar(label=key, value=value, note=" · ".join(filter(None, words)), answered=own)

    if len(pairs) <= _ALL_SHOWN:
        return tuple(row(key, value) for key, value in pairs)
    first, last = pairs[:SHOWN_AT_EACH_END], pairs[-SHOWN_AT_EACH_END:]
    hidden = pairs[SHOWN_AT_EACH_END:-SHOWN_AT_EACH_END]
    rest = exact_sum(value for _, value in hidden)
    note = " · ".join(filter(None, [f"together {number(rest)}", share(rest, tally)]))
    remark = Bar(label=f"… {len(hidden):,} other keys", value=None, note=note)
    return (*(row(*pair) for pair in first), remark, *(row(*pair) for pair in last))


def bar_chart(tally: Tally, statement: Statement, *, width_px: int = 680) -> str:
    """Return the tally as an SVG element: a bar for each key with value and share, and the margin of the answer.

    Args:
        tally: the sums.
        statement: the answer; LEAST and MOST are emphasised, with the distance to the next value.
        width_px: width of the drawing; under 480 the labels stand above their bars.

    Returns:
        ``<svg …>…</svg>``, about 0.4 KB a row; the same bytes for the same input. Without keys, a chart that says so.
    """
    rows = bars(tally, statement)
    return _finish(_draw(rows, width_px=width_px), label=_spoken(rows, statement))


def chart_data_url(svg: str) -> str:
    """Return the chart as a ``data:`` URL for an image in Markdown."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode("utf-8")).decode("ascii")


def _draw(rows: Sequence[Bar], *, width_px: int) -> str:
    narrow = width_px < 480
    row_px = _ROW_PX * 2 - 6 if narrow else _ROW_PX
    left = 8 if narrow else _label_px(rows) + 16
    values = [row.value for row in rows if row.value is not None]
    least, most = min([Decimal(0), *values]), max([Decimal(0), *values])
    scale = _scale(rows, room_px=width_px - left - 16, least=least, most=most)
    zero = left - float(least) * scale
    canvas = _Canvas(width_px, max(len(rows), 1) * row_px + 12)
    if not rows:
        canvas.text(8, row_px / 2 + 6, "no records", _MUTED)
    for index, row in enumerate(rows):
        top = 6 + index * row_px
        label_y, bar_y = (top + 9, top + 28) if narrow else (top + row_px / 2, top + row_px / 2)
        colour = _INK if row.value is not None else _MUTED
        label = visible(row.label, limit=_LABEL_CHARS)
        if narrow:
            canvas.text(left, label_y, label, colour, bold=row.answered)
        else:
            canvas.text(left - 8, label_y, label, colour, side="right", bold=row.answered)
        if row.value is None:
            canvas.text(left, bar_y, row.note, colour)
            continue
        length = float(row.value) * scale
        bar = _ANSWER if row.answered else _BAR
        canvas.rectangle(zero + min(length, 0.0), bar_y - 8, max(abs(length), 1.0), 16, bar)
        canvas.text(zero + max(length, 0.0) + 6, bar_y, row.note, colour, bold=row.answered)
    return canvas.svg()


class _Canvas:
    """A figure measured in pixels from its top left corner, which is how a page counts."""

    def __init__(self, width_px: float, height_px: float) -> None:
        # Half a second of import, which only a chart should cost.
        from matplotlib.figure import Figure

        self._height = height_px
        self._figure = Figure(figsize=(width_px / _POINTS, height_px / _POINTS), dpi=_POINTS, frameon=False)
        self.rectangle(0, 0, width_px, height_px, _PAPER)

    def rectangle(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        from matplotlib.patches import Rectangle

        corner = (x, self._height - y - height)
        self._figure.add_artist(Rectangle(corner, width, height, facecolor=colour, transform=None))

    def text(self, x: float, y: float, words: str, colour: str, *, side: str = "left", bold: bool = False) -> None:
        from matplotlib.text import Text

        weight = "bold" if bold else "normal"
        look = {"color": colour, "ha": side, "va": "center", "fontsize": 12, "fontweight": weight}
        self._figure.add_artist(Text(x, self._height - y, words, transform=None, parse_math=False, **look))

    def svg(self) -> str:
        from matplotlib import rc_context
        from matplotlib.backends.backend_svg import FigureCanvasSVG

        settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "ctxstream", "font.family": ["DejaVu Sans"]}
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        sink = io.StringIO()
        with _settings, rc_context(settings), warnings.catch_warnings():
            # It measures text with its own font, which lacks most of the world's letters; the browser's has them.
            warnings.simplefilter("ignore", UserWarning)
            FigureCanvasSVG(self._figure).print_svg(sink, metadata=nothing)
        return sink.getvalue()


def _scale(rows: Sequence[Bar], *, room_px: float, least: Decimal, most: Decimal) -> float:
    """Return pixels per unit of value, so that every bar has room for its note."""
    reach = float(most - least)
    fits = [
        (room_px - 7.2 * len(row.note)) / float(max(row.value, Decimal(0)) - least)
        for row in rows
        if row.value is not None and max(row.value, Decimal(0)) > least
    ]
    return max(min(fits, default=0.0), 0.25 * room_px / reach) if reach else 0.0


def _label_px(rows: Sequence[Bar]) -> float:
    return 7.4 * max((len(visible(row.label, limit=_LABEL_CHARS)) for row in rows), default=8)


def _spoken(rows: Sequence[Bar], statement: Statement) -> str:
    shown = "; ".join(f"{visible(row.label, limit=60)}: {row.note}" for row in rows)
    return f"Bar chart. {visible(statement.text, limit=300)}. {shown}"


def _finish(svg: str, *, label: str) -> str:
    """Make a drawing an element of a page: no prologue, no global style, colours of the page, a spoken label."""
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg[svg.index("<svg") :], count=1, flags=re.DOTALL)
    # Inside tags only: a key may be called like one of our colours.
    body = re.sub(r"<[^>]*>", lambda tag: _finish_tag(tag.group()), body)
    return body.replace("<svg ", f'<svg role="img" aria-label="{html.escape(label)}" style="font-family: {_FONT}" ', 1)


def _finish_tag(tag: str) -> str:
    for colour, name in _COLOURS.items():
        tag = tag.replace(colour, name)
    tag = re.sub(r' id="[^"]*"| transform="rotate\(-?0 [^"]*"|font-family: [^;"]*; |(?<=\d)pt(?=")', "", tag)
    return re.sub(r"\s*\n", " ", tag)
