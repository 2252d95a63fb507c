"""Options that several commands have, each declared once."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Example, Question
from ctxstream_dagster.planning.options import Boundary, ManifestOptions
from ctxstream_dagster.reduction.answer import Answer

CUE = next(str(entry.default) for entry in dataclasses.fields(Question) if entry.name == "cue")
OLLAMA = OllamaOptions()
PLANNING = ManifestOptions()

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Paths = Annotated[list[str], typer.Argument(metavar="PATH", help="Files, globs, or a directory of code.")]
SweepName = Annotated[str, typer.Argument(metavar="NAME", help="The sweep's name: its folder under assets/sweeps.")]

# What is asked.
Extract = Annotated[str, typer.Option(metavar="TEXT", help="What to look for, in plain words.")]
HowToAnswer = Annotated[Answer, typer.Option(help="What code concludes from the tally.")]
Cue = Annotated[
    str, typer.Option(metavar="TEXT", help="In labels: words that end the question, as in the text: Status:")
]
Examples = Annotated[
    list[str] | None,
    typer.Option("--example", metavar="'TEXT => REPLY'", help="A solved example; may be given many times."),
]

# How a corpus is cut.
SegmentChars = Annotated[int, typer.Option(help="Most characters of a segment, overlap included.")]
OverlapChars = Annotated[
    int,
    typer.Option(help="Most characters of the segment before shown in front, in whole records; none in labels."),
]
SegmentBoundary = Annotated[
    Boundary, typer.Option(help="Where a segment ends: at the last record, or so that plans survive edits.")
]
BoundarySlack = Annotated[
    int | None, typer.Option(help="How far before the limit a record's end is preferred; else 4000 or a quarter.")
]
RecordDelim = Annotated[
    str, typer.Option(help=r"What ends a record; \n, \r, \t, \\, \xNN and \uNNNN may be written so.")
]
MaxTokens = Annotated[
    int | None, typer.Option(help="Most tokens of a segment by the upper estimate; left out, no limit of its own.")
]

# Which model.
Url = Annotated[str, typer.Option(help="The server; left out, OLLAMA_HOST.")]
Model = Annotated[str, typer.Option(envvar="CTXSTREAM_MODEL", help="A model of `ollama list`.")]


def written_example(written: str) -> Example:
    """Return the example that a person wrote as ``TEXT => REPLY``; raises `ConfigError`."""
    text, arrow, reply = written.rpartition("=>")
    if not arrow or not text.strip() or not reply.strip():
        raise ConfigError(f"An example is written 'TEXT => REPLY', not {written[:80]!r}.")
    return Example(text=text.strip(), reply=reply.strip())
