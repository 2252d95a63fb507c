"""The tally as a table on the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_tally(console: Console, rows: Iterable[tuple[str, str, float]]) -> None:
    """Print a row for each (key, value as written, value), with its share where shares make sense: none below 0."""
    pairs = list(rows)
    total = sum(value for _, _, value in pairs)
    shared = total > 0 and all(value >= 0 for _, _, value in pairs)
    table = Table("key", "value", *(["share"] if shared else []), box=None, header_style="bold")
    for column in table.columns[1:]:
        column.justify = "right"
    for key, written, value in pairs:
        table.add_row(Text(repr(key)[1:-1]), written, *([f"{value / total:.1%}"] if shared else []))
    console.print(table)
