"""``ctxstream ask``: one question of one corpus, answered in this process without Dagster."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ctxstream_dagster.cli.exits import EXIT_WITHHELD
from ctxstream_dagster.cli.options import (
    CUE,
    OLLAMA,
    PLANNING,
    BoundarySlack,
    Cue,
    Examples,
    Extract,
    HowToAnswer,
    Json,
    MaxTokens,
    Model,
    OverlapChars,
    Paths,
    RecordDelim,
    SegmentBoundary,
    SegmentChars,
    Url,
    written_example,
)
from ctxstream_dagster.cli.progress import SweepProgress
from ctxstream_dagster.cli.tables import print_tally
from ctxstream_dagster.extraction.advice import server_advice
from ctxstream_dagster.extraction.budget import within_context
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Mode, Question
from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.extraction.store import ReplyStore
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from ctxstream_dagster.planning.corpus import PackedCorpus, pack
from ctxstream_dagster.planning.line_ends import line_end_hint
from ctxstream_dagster.planning.options import ManifestOptions, UnitKind, written_delimiter
from ctxstream_dagster.reduction.answer import Answer, number
from ctxstream_dagster.reduction.sweep import Reduction, reduce_sweep, reduction_json
from ctxstream_dagster.storage import cache_home, data_home, replies_path


def ask_command(
    paths: Paths,
    *,
    mode: Annotated[
        Mode, typer.Option(help="labels: a label for every unit; records: keys by unit; counts: the model counts.")
    ],
    extract: Extract,
    answer: HowToAnswer = Answer.LIST,
    labels: Annotated[str, typer.Option(metavar="A,B,C", help="The closed set of labels, separated by commas.")] = "",
    cue: Cue = CUE,
    example: Examples = None,
    url: Url = "",
    model: Model = OLLAMA.model,
    concurrency: Annotated[
        int, typer.Option(min=1, max=256, help="Model calls in flight, at most the server's OLLAMA_NUM_PARALLEL.")
    ] = 2,
    num_ctx: Annotated[int, typer.Option(help="Context of every call, in tokens.")] = OLLAMA.num_ctx,
    num_predict: Annotated[int, typer.Option(help="Most tokens of a reply.")] = OLLAMA.num_predict,
    unit: Annotated[
        UnitKind, typer.Option(help="What a directory of code is asked about: its lines, or its functions and types.")
    ] = "line",
    units_per_window: Annotated[int | None, typer.Option(help="Units in one call; 0 for a whole segment.")] = None,
    segment_chars: SegmentChars = PLANNING.segment_chars,
    overlap_chars: OverlapChars = PLANNING.overlap_chars,
    boundary: SegmentBoundary = PLANNING.boundary,
    boundary_slack: BoundarySlack = None,
    record_delim: RecordDelim = r"\n",
    max_tokens: MaxTokens = None,
    min_coverage: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of segments to be read, or the answer is withheld.")
    ] = 1.0,
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask again even where a reply is stored.")] = False,
    as_json: Json = False,
) -> None:
    """Ask a counting question of a corpus and print the answer.

    ctxstream ask tickets.log --mode labels --labels open,closed --extract "Which status?" --answer least
    """
    question = Question(
        extract=extract,
        mode=mode,
        labels=tuple(label.strip() for label in labels.split(",") if label.strip()),
        cue=cue,
        examples=tuple(written_example(written) for written in example or ()),
        units_per_window=units_per_window,
    )
    options = OllamaOptions(url=url, model=model, num_ctx=num_ctx, num_predict=num_predict)
    planning = ManifestOptions(
        segment_chars=segment_chars,
        overlap_chars=overlap_chars,
        boundary=boundary,
        boundary_slack=boundary_slack,
        record_delim=written_delimiter(record_delim),
        max_tokens=max_tokens,
        unit=unit,
    )
    _note(question.advice())
    _note(line_end_hint(paths, delim=planning.record_delim, way="--record-delim '\\r'"))
    with tempfile.TemporaryDirectory(prefix="ctxstream-") as directory:
        planning = within_context(planning, question=question, options=options)
        corpus = pack(paths, directory=Path(directory) / "plan", options=planning)
        pipeline = PipelineOptions(concurrency=concurrency, refresh=refresh)
        results = list(_read(corpus, question, options=options, pipeline=pipeline))
        reduction = reduce_sweep(corpus, results, how=answer, labels=question.labels, one_per_unit=mode == "labels")
    for sentence in server_advice(results):
        _note(sentence)
    withheld = reduction.coverage.share < min_coverage
    if as_json:
        typer.echo(json.dumps({**reduction_json(reduction), "withheld": withheld}, ensure_ascii=False, indent=2))
    else:
        print_reduction(reduction, withheld=withheld)
    if withheld:
        raise typer.Exit(EXIT_WITHHELD)


def _note(sentence: str) -> None:
    if sentence:
        Console(stderr=True, soft_wrap=True).print(f"Note: {sentence}", highlight=False, markup=False)


def print_reduction(reduction: Reduction, *, withheld: bool) -> None:
    """Print tally, coverage and answer for a person; the answer last, where the eye rests."""
    console = Console(soft_wrap=True, highlight=False)
    print_tally(console, ((key, number(value), float(value)) for key, value in reduction.tally.sorted))
    console.print(reduction.coverage.sentence(), markup=False)
    if withheld:
        console.print("[bold red]Withheld[/]: the segments above failed; run again to try only them.")
        for failed in reduction.coverage.failed[:10]:
            console.print(f"  {failed.key}: {failed.reason}", markup=False)
        return
    console.print(str(reduction.statement), style="bold", markup=False)
    if not reduction.statement.certain:
        console.print(f"Not certain: {reduction.statement.caveat}.", markup=False)


def _read(
    corpus: PackedCorpus, question: Question, *, options: OllamaOptions, pipeline: PipelineOptions
) -> Iterator[SegmentResult]:
    store = ReplyStore(replies_path(data_home(cache_home()), local=cache_home()))
    backend = OllamaBackend(options)
    with SweepProgress(segments=len(corpus.manifest), chars=corpus.manifest.proof.chars) as progress:
        for result in stream_segments(
            corpus, question, backend=backend, options=pipeline, store=store, on_window=progress.window
        ):
            progress.segment(result)
            yield result
