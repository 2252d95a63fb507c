"""The four promises, whole pipeline: nothing missed, nothing counted twice, no arithmetic by the model, a source line
for every count. With a perfect extractor the tally equals a plain count, however the corpus is cut and asked."""

import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from ctxstream_dagster.planning.corpus import PackedCorpus, pack
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.reduction.sweep import Reduction, reduce_sweep
from tests.fakes import FakeBackend

LABELS = ("alpha", "beta", "gamma", "delta")

# Lines of real shapes: repeated ones, empty ones, several or no statuses, CJK, long ones, CRLF.
lines = st.lists(
    st.one_of(
        st.sampled_from([f"Status: {label}" for label in LABELS]),
        st.sampled_from(["", " ", "nothing here", "Status: beta", "Status: beta", "票 Status: gamma 😀"]),
        st.builds(
            "{} Status: {} {}".format,
            st.integers(0, 10**6),
            st.sampled_from(LABELS),
            st.text(alphabet="ab é", max_size=30),
        ),
    ),
    min_size=1,
    max_size=40,
)
cuts = st.builds(
    ManifestOptions,
    segment_chars=st.integers(60, 400),
    overlap_chars=st.sampled_from([0, 1, 20, 59]),
    boundary=st.sampled_from(["nearest", "stable"]),
    max_tokens=st.sampled_from([None, 60]),
)
endings = st.sampled_from(["\n", "\r\n"])


def sweep(corpus: PackedCorpus, question: Question, *, concurrency: int) -> Reduction:
    results = stream_segments(
        corpus, question, backend=FakeBackend(), options=PipelineOptions(concurrency=concurrency), ordered=False
    )
    return reduce_sweep(corpus, results, how="list", labels=question.labels, one_per_unit=question.mode == "labels")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.lists(lines, min_size=1, max_size=3),
    planning=cuts,
    mode=st.sampled_from(["labels", "records", "counts"]),
    concurrency=st.sampled_from([1, 3, 8]),
    units_per_window=st.sampled_from([None, 1, 3]),
    ending=endings,
    final=st.booleans(),
)
def test_the_tally_equals_a_plain_count(
    files: list[list[str]],
    planning: ManifestOptions,
    mode: str,
    concurrency: int,
    units_per_window: int | None,
    ending: str,
    final: bool,
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        paths = [Path(directory) / f"file{number}.log" for number in range(len(files))]
        for path, content in zip(paths, files, strict=True):
            path.write_bytes((ending.join(content) + ending * final).encode())
        everything = [line for content in files for line in content]
        if not any(everything):
            return
        if mode == "labels":
            # One label a unit: the last one stands for lines without a status, as the perfect model answers them.
            labels = (*LABELS, "none")
            found = [re.search(r"Status: ([a-z]+)", line) for line in everything if line.strip()]
            plain = Counter(match.group(1) if match else "none" for match in found)
        else:
            labels = ()
            plain = Counter(status for line in everything for status in re.findall(r"Status: ([a-z]+)", line))
        question = Question(extract="Status?", mode=mode, labels=labels, units_per_window=units_per_window)
        corpus = pack(paths, directory=Path(directory) / "plan", options=planning)
        reduction = sweep(corpus, question, concurrency=concurrency)
        assert {key: int(value) for key, value in reduction.tally.sorted if value} == dict(plain)
        assert reduction.tally.duplicates == 0
        assert reduction.coverage.share == 1.0
        for row in reduction.records.to_pylist():
            if mode == "counts":
                continue
            source = files[[str(path) for path in paths].index(row["path"])]
            line = source[row["line"] - 1]
            assert row["key"] == "none" or row["key"] in line


@pytest.mark.parametrize("mode", ["labels", "records", "counts"])
@pytest.mark.parametrize("size", [261_000, 2_610_000])
def test_the_story_this_grew_from(tmp_path: Path, mode: str, size: int) -> None:
    # About `size` tokens of status lines (4 characters a token), four labels, one of them rare.
    truth: Counter[str] = Counter()
    corpus_file = tmp_path / "status.log"
    with corpus_file.open("w", encoding="utf-8") as out:
        for number in range(size * 4 // 46):
            label = (
                "beta"
                if number % 97 == 0
                else ("alpha", "gamma", "delta")[number * number % 3 if number % 5 else number % 3]
            )
            truth[label] += 1
            out.write(f"2026-12-01 job {number:09d} | Status: {label}\n")
    question = Question(extract="Status?", mode=mode, labels=LABELS if mode == "labels" else (), units_per_window=500)
    corpus = pack([corpus_file], directory=tmp_path / "plan", options=ManifestOptions())
    results = stream_segments(corpus, question, backend=FakeBackend(), options=PipelineOptions(concurrency=8))
    reduction = reduce_sweep(corpus, results, how="least", labels=LABELS)
    assert {key: int(value) for key, value in reduction.tally.sorted} == dict(truth)
    assert reduction.statement.keys == ("beta",)
