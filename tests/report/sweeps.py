"""Sweeps of any shape for the report's tests: packed for real, extracted by a function instead of a model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ctxstream_dagster.extraction.records import Record, RejectedLine, SegmentResult
from ctxstream_dagster.planning.corpus import PackedCorpus, pack
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.units import SegmentText, Unit
from ctxstream_dagster.reduction.sweep import reduce_sweep
from ctxstream_dagster.report.evidence import Evidence


def second_field(unit: Unit) -> list[str]:
    """The key of a line ``id|key|…``."""
    return [unit.text.split("|")[1]] if "|" in unit.text else []


def packed(
    directory: Path, files: dict[str, str | bytes], *, segment_chars: int = 2_000, delim: str = "\n"
) -> PackedCorpus:
    """Write `files` into `directory` and plan them."""
    corpus = directory / "corpus"
    corpus.mkdir(parents=True)
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode("utf-8")
        (corpus / name).write_bytes(data)
    options = ManifestOptions(segment_chars=segment_chars, overlap_chars=0, record_delim=delim)
    return pack([str(corpus / "*")], directory=directory / "plan", options=options)


def extracted(
    text: SegmentText, *, keys: Callable[[Unit], Sequence[str]] = second_field, rejected: Sequence[RejectedLine] = ()
) -> SegmentResult:
    """Return a segment's result as a faultless model would give it."""
    records = tuple(
        Record(key=key, unit=unit.number, offset=unit.offset, occurrence=keys(unit)[:index].count(key))
        for unit in text.units
        for index, key in enumerate(keys(unit))
    )
    return SegmentResult(
        index=text.segment.index,
        key=text.segment.key,
        ok=True,
        records=records,
        rejected=tuple(rejected),
        units=len(text.units),
        model="scripted:1b",
        model_digest="0123456789abcdef",
        calls=1,
    )


def evidence(
    corpus: PackedCorpus,
    *,
    keys: Callable[[Unit], Sequence[str]] = second_field,
    failed: Sequence[int] = (),
    rejected: dict[int, Sequence[RejectedLine]] | None = None,
    how: str = "least",
    labels: Sequence[str] = (),
    **more: object,
) -> Evidence:
    """Return a sweep over `corpus` in which the segments at `failed` failed."""
    results = {
        text.segment.key: extracted(text, keys=keys, rejected=(rejected or {}).get(text.segment.index, ()))
        for text in corpus
    }
    for index in failed:
        key = corpus.manifest[index].key
        results[key] = replace(
            results[key], ok=False, records=(), error="The reply was cut at 32 tokens; raise num_predict."
        )
    reduction = reduce_sweep(corpus, results.values(), how=how, labels=labels, one_per_unit=True)
    return Evidence(sweep="help_desk", corpus=corpus, results=results, reduction=reduction, **more)
