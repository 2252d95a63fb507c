"""Reduction: each identity once, exact sums, answers that say what they rest on."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.extraction.decode import decode
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.records import Record, RejectedLine, Reply, SegmentResult
from ctxstream_dagster.extraction.windows import windows
from ctxstream_dagster.planning.corpus import pack
from ctxstream_dagster.planning.manifest import ManifestOptions, Segment
from ctxstream_dagster.planning.units import SegmentText, Span, Unit
from ctxstream_dagster.reduction.answer import Answer, construct
from ctxstream_dagster.reduction.coverage import coverage
from ctxstream_dagster.reduction.records import place, records_table, result_to_table, table_to_result
from ctxstream_dagster.reduction.sweep import reduce_sweep
from ctxstream_dagster.reduction.tally import Tally, tally


def result(key: str, *records: Record, offset: int = 0, **changes: object) -> SegmentResult:
    return replace(SegmentResult(index=0, key=key, ok=True, offset=offset, records=records), **changes)


def sums(**values: int) -> Tally:
    pairs = tuple(sorted(((key, Decimal(value)) for key, value in values.items()), key=lambda pair: (pair[1], pair[0])))
    return Tally(
        sorted=pairs, total=sum((value for _, value in pairs), Decimal(0)), parsed_records=sum(values.values())
    )


def test_one_record_seen_by_two_segments_counts_once() -> None:
    first = result("a~1", Record(key="beta", unit=3, offset=90), offset=0)
    second = result("a~2", Record(key="beta", unit=1, offset=-10), offset=100)
    counted = tally([first, second])
    assert counted.sorted == (("beta", 1),)
    assert counted.duplicates == 1


def test_identical_lines_at_different_offsets_count_twice() -> None:
    rows = (Record(key="beta", unit=1, offset=0), Record(key="beta", unit=2, offset=6))
    assert tally([result("a~1", *rows)]).sorted == (("beta", 2),)


def test_a_failed_segment_adds_nothing_even_when_it_holds_records() -> None:
    assert tally([result("a~1", Record(key="x"), ok=False)]).sorted == ()


def test_declared_labels_that_never_occur_are_zero_and_least() -> None:
    counted = tally([result("a~1", Record(key="alpha", unit=1))], labels=["alpha", "beta"])
    assert counted.sorted == (("beta", 0), ("alpha", 1))
    assert construct(counted, Answer.LEAST).keys == ("beta",)


def test_sums_stay_exact_beyond_the_precision_of_floats_and_of_the_default_context() -> None:
    big = Decimal("999999999999999999.123456789")
    rows = [Record(key=key, unit=unit, offset=unit, value=big) for key in "ab" for unit in range(1, 4001)]
    counted = tally([result("a~1", *rows)])
    assert dict(counted.sorted) == {"a": big * 4000, "b": Decimal("3999999999999999996493.827156000")}
    assert counted.total == Decimal("7999999999999999992987.654312")


identities = st.tuples(st.integers(0, 30), st.sampled_from("abc"), st.integers(0, 1), st.integers(1, 5))


@given(st.lists(st.lists(identities, max_size=8), max_size=5), st.randoms())
def test_order_of_segments_and_records_never_matters(groups: list, random: object) -> None:
    results = [
        result(
            f"s~{index}",
            *(Record(key=k, offset=o, occurrence=n, unit=1, value=Decimal(v)) for o, k, n, v in group),
        )
        for index, group in enumerate(groups)
    ]
    shuffled = [replace(item, records=tuple(random.sample(item.records, len(item.records)))) for item in results]
    random.shuffle(shuffled)
    assert tally(shuffled) == tally(results)
    assert tally(results).parsed_records == len({(o, k, n) for group in groups for o, k, n, _ in group})


def test_results_survive_their_parquet_form_with_every_reply_and_rejection() -> None:
    whole = result(
        "a~1",
        Record(key="b\t ", value=Decimal("-1.5"), unit=2, offset=7, occurrence=1, path="x/y.txt", line=9),
        rejected=(RejectedLine(text="no tab", reason="no-tab", unit=2),),
        replies=(Reply(first_unit=1, last_unit=2, text="b\t-1.5\n```", request_sha256="f0", cached=True),),
        attempts={"http-503": 2},
        prompt_tokens=12,
    )
    assert table_to_result(result_to_table(whole)) == whole


def test_a_foreign_parquet_file_is_refused() -> None:
    with pytest.raises(StorageError, match="Delete it"):
        table_to_result(pa.table({"a": [1]}))


def test_placing_moves_records_to_where_their_unit_is_now() -> None:
    unit = Unit(number=1, offset=4, text="beta", path="moved.log", line=70)
    text = SegmentText(
        segment=Segment(index=5, offset=1000, length=20, key="a~1"),
        overlap="",
        core="",
        spans=(Span(path="moved.log", start=0, length=20, line=69),),
        units=(unit,),
    )
    old = result("a~1", Record(key="beta", unit=1, offset=4, path="old.log", line=3), offset=10)
    table = records_table([place(old, text)])
    assert table.to_pylist()[0] == {
        "segment": "a~1",
        "offset": 1004,
        "key": "beta",
        "occurrence": 0,
        "value": Decimal("1.000000000"),
        "path": "moved.log",
        "line": 70,
    }


def test_every_piece_of_a_record_that_had_to_be_cut_is_counted_in_counts(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("error " * 50 + "\nerror\n", encoding="utf-8")
    corpus = pack([tmp_path / "long.txt"], directory=tmp_path / "plan", options=ManifestOptions(segment_chars=96))
    question = Question(extract="How often each word occurs.", mode="counts")
    shown, results = 0, []
    for text in corpus:
        [window] = windows(text, question)
        count = window.text.count("error")
        shown += count
        decoded = decode(f"error\t{count}", window, question)
        results.append(result(text.segment.key, *decoded.records))
    assert corpus.manifest.proof.cut_records == 1
    assert shown == 51
    assert reduce_sweep(corpus, results, how=Answer.TOTAL).statement.value == 51


def test_a_count_over_several_files_names_none_of_them(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("beta\n", encoding="utf-8")
    corpus = pack([tmp_path / "a.txt", tmp_path / "b.txt"], directory=tmp_path / "plan")
    question = Question(extract="How often each word occurs.", mode="counts")
    [text] = corpus
    [window] = windows(text, question)
    counted = result(text.segment.key, *decode("beta\t2", window, question).records)
    assert [record.path for record in place(counted, text).records] == [""]


def test_answers_in_words() -> None:
    counted = sums(alpha=10, beta=2, gamma=7)
    assert str(construct(counted, "least")) == "Answer: beta (2; 5 below the next)"
    assert str(construct(counted, "most")) == "Answer: alpha (10; 3 above the next)"
    assert str(construct(counted, "total")) == "Answer: 19"
    assert str(construct(counted, "list", label="Statuses")) == "Statuses: beta 2, gamma 7, alpha 10"


def test_ties_are_reported_as_ties() -> None:
    statement = construct(sums(alpha=2, beta=2, gamma=7), Answer.LEAST)
    assert statement.keys == ("alpha", "beta")
    assert str(statement) == "Answer: alpha, beta (tie of 2 at 2; 5 below the next)"


def test_no_records_is_an_answer_of_its_own() -> None:
    assert str(construct(sums(), Answer.MOST)) == "Answer: no records"


@pytest.mark.parametrize(("rejected", "certain"), [(0, True), (4, True), (5, False), (6, False)])
def test_rejected_units_make_an_answer_uncertain_once_they_reach_the_margin(rejected: int, certain: bool) -> None:
    lines = tuple(RejectedLine(text="?", reason="prose") for _ in range(rejected))
    covered = coverage([result("a~1", rejected=lines)], keys=["a~1"])
    statement = construct(sums(beta=2, gamma=7), Answer.LEAST, coverage=covered, one_per_unit=True)
    assert statement.certain is certain
    assert bool(statement.caveat) is not certain


def test_one_rejected_unit_makes_a_tie_uncertain() -> None:
    covered = coverage([result("a~1", rejected=(RejectedLine(text="?", reason="prose"),))], keys=["a~1"])
    statement = construct(sums(alpha=2, beta=2, gamma=7), Answer.LEAST, coverage=covered, one_per_unit=True)
    assert not statement.certain


def test_a_missing_segment_is_a_failed_one_and_is_named() -> None:
    covered = coverage([result("a~1", units=4)], keys=["a~1", "a~2"])
    assert (covered.segments_ok, covered.share, covered.failed[0].key) == (1, 0.5, "a~2")
    assert "a~2" in covered.sentence()
    assert not construct(sums(a=1, b=9), Answer.LEAST, coverage=covered, one_per_unit=True).certain


def test_records_read_in_pieces_make_an_answer_uncertain() -> None:
    covered = coverage([result("a~1")], keys=["a~1"], cut_records=2)
    assert not construct(sums(beta=2, gamma=7), Answer.TOTAL, coverage=covered).certain
    labelled = [construct(sums(beta=2, gamma=top), Answer.MOST, coverage=covered, one_per_unit=True) for top in (6, 7)]
    assert [statement.certain for statement in labelled] == [False, True]


def test_a_clipped_segment_and_one_that_nobody_can_vouch_for_are_both_told() -> None:
    results = [
        result("a~1", units=4),
        result("a~2", units=4, guard="unknown"),
        result("a~3", ok=False, error="clipped", truncated=True, guard="clipped-signature"),
    ]
    covered = coverage(results, keys=["a~1", "a~2", "a~3"])
    assert covered.truncated == 2
    assert "2 segments perhaps clipped" in covered.sentence()
