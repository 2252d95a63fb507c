"""Every reply becomes records or rejected lines with a typed reason; never a silent zero, never an untyped error."""

from __future__ import annotations

import contextlib
import json
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxstream_dagster.errors import BackendError, BadReply, OutputLimit
from ctxstream_dagster.extraction.decode import Decoded, decode, parse_records
from ctxstream_dagster.extraction.question import Mode, Question
from ctxstream_dagster.extraction.values import numbers_in, read_value
from ctxstream_dagster.extraction.windows import Window
from tests.fakes import segment_of

TEXT = "1 alpha bay\n2 beta beta\n3 Straße gamma\n4 caf\u00e9 delta\n"
UNITS = segment_of(TEXT)
WINDOW = Window(segment=UNITS, units=UNITS.units)
ONE = Window(segment=UNITS, units=UNITS.units[:1])
LABELS = ("alpha", "beta", "gamma", "not alpha")
QUESTIONS: dict[Mode, Question] = {
    "counts": Question(extract="Count the words.", mode="counts"),
    "records": Question(extract="List the words.", mode="records", values=True),
    "labels": Question(extract="Choose.", mode="labels", labels=LABELS),
}


def read(reply: str, mode: Mode, *, window: Window = WINDOW, **changes: object) -> Decoded:
    base = {name: getattr(QUESTIONS[mode], name) for name in ("extract", "mode", "labels", "values")}
    return decode(reply, window, Question(**{**base, **changes}))


def pairs(decoded: Decoded) -> list[tuple[str, int]]:
    return [(record.key, int(record.value)) for record in decoded.records]


def reasons(decoded: Decoded) -> list[str]:
    return [line.reason for line in decoded.rejected]


@pytest.mark.parametrize(
    "reply",
    [
        "alpha\t3",
        "```\nalpha\t3\n```",
        "```tsv\nalpha\t3",
        "<think>maybe 7 beta\t9\n</think>\nalpha\t3",
        "beta\t9 hmm</think>alpha\t3",
        "alpha\t3\r\n",
        "alpha\t3<|im_end|>",
        "<|channel|>final<|message|>alpha\t3".replace("final", ""),
        "<start_of_turn>alpha\t3<end_of_turn>",
        "\x00\x07alpha\t\x1f3",
        "\ufeffalpha\t3\u200b",
        "alpha\t３",
        "alpha\t٣",
        "alpha\t+3",
        'alpha\t"3"',
        "alpha\t3.0",
        "alpha\t03",
        "alpha\t\t3",
        "alpha\t3\t",
        "alpha\\t3",
        "alpha<tab>3",
        "- alpha\t3",
        "* alpha\t3",
        "**alpha**\t3",
        "`alpha`\t3",
        "key\tcount\nalpha\t3",
        "<key>\t<count>\nalpha\t3",
        "Count the words.\nalpha\t3",
        "Reply with one line for each key, in this form, a tab between the fields:\n<key>\t<count>\nalpha\t3",
        "\n\n  \nalpha\t3\n\n",
    ],
)
def test_what_models_put_around_a_count_does_not_change_it(reply: str) -> None:
    decoded = read(reply, "counts")
    assert (pairs(decoded), decoded.rejected) == ([("alpha", 3)], ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234", "1234"),
        ("12,345,678", "12345678"),
        ("1e3", "1000"),
        ("1.5e3", "1500"),
        ("2e-3", "0.002"),
        ("-2", "-2"),
        ("−2", "-2"),
        ("3.50", "3.5"),
        ("١٬٢٣٤", "1234"),
        ("१२", "12"),
        ("123456789012345678.123456789", "123456789012345678.123456789"),
        ("0.000000001", "0.000000001"),
        ("0", "0"),
        ("-0", "0"),
    ],
)
def test_a_number_is_read_exactly(text: str, value: str) -> None:
    found = read_value(text, count=False)
    assert found == Decimal(value)
    assert isinstance(found, Decimal)
    assert -9 <= found.as_tuple().exponent <= 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("3 items", "bad-value"),
        ("1,23", "bad-value"),
        ("1.234,5", "bad-value"),
        ("1_000", "bad-value"),
        ("1 000", "bad-value"),
        ("½", "bad-value"),
        ("²", "bad-value"),
        ("true", "bad-value"),
        ("NaN", "bad-value"),
        ("Infinity", "bad-value"),
        ("", "bad-value"),
        ("three", "bad-value"),
        ("3-4", "bad-value"),
        ("0x10", "bad-value"),
        ("1e99", "value-out-of-range"),
        ("1e-12", "value-out-of-range"),
        ("1234567890123456789", "value-out-of-range"),
        ("0.0000000001", "value-out-of-range"),
        ("0.1234567890000000000000000000000001", "value-out-of-range"),
        ("9" * 100_000, "value-out-of-range"),
        ("1e999999999", "bad-value"),
    ],
)
def test_what_is_no_exact_number_is_a_typed_reason(text: str, reason: str) -> None:
    assert read_value(text, count=False) == reason


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("alpha 3", "no-tab"),
        ("alpha: 3", "no-tab"),
        ("There are three alphas.", "no-tab"),
        ("alpha\tbeta\t3", "extra-tab"),
        ("\t3", "empty-key"),
        ("alpha\t", "no-tab"),
        ("alpha\t3 items", "bad-value"),
        ("alpha\t-2", "value-out-of-range"),
        ("alpha\t2.5", "value-out-of-range"),
        ("alpha\ttrue", "bad-value"),
        ("NONE", "none-beside-records"),
        ("x" * 3_000, "prose"),
    ],
)
def test_a_line_that_is_no_count_is_rejected_beside_the_good_ones(line: str, reason: str) -> None:
    decoded = read(f"gamma\t1\n{line}\ndelta\t2", "counts")
    assert (pairs(decoded), reasons(decoded)) == ([("gamma", 1), ("delta", 2)], [reason])
    assert decoded.rejected[0].text == line.rstrip()[:500]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("9\tgamma", "unknown-unit"),
        ("0\tgamma", "unknown-unit"),
        ("-1\tgamma", "unknown-unit"),
        ("gamma\t1", "unknown-unit"),
        ("999999999999999999999\tgamma", "unknown-unit"),
        ("2\t\tgamma", "empty-key"),
        ("2\t", "no-tab"),
        ("2\tgamma\t1\t1", "extra-tab"),
        ("2\tgamma\tmany", "bad-value"),
        ("2\tgamma\t1e30", "value-out-of-range"),
        ("2 gamma", "no-tab"),
        ("none.", "none-beside-records"),
    ],
)
def test_a_line_that_is_no_record_is_rejected_beside_the_good_ones(line: str, reason: str) -> None:
    decoded = read(f"1\talpha\n{line}", "records")
    assert (pairs(decoded), reasons(decoded)) == ([("alpha", 1)], [reason])


@pytest.mark.parametrize("name", ["2", "[2]", "#2", "2.", "2)", "2|", "２", "٢", " 2 "])
def test_a_unit_is_known_by_its_number_however_it_is_written(name: str) -> None:
    decoded = read(f"{name}\tbeta", "records")
    assert [(record.unit, record.key, record.offset, record.line) for record in decoded.records] == [(2, "beta", 12, 2)]


def test_a_value_is_rejected_where_the_question_has_none() -> None:
    assert reasons(read("1\talpha\t9999", "records", values=False)) == ["extra-tab"]


def test_a_unit_named_twice_is_two_records_unless_the_question_allows_one() -> None:
    many = read("1\talpha\n1\tbay\n1\talpha", "records")
    assert [(record.key, record.occurrence) for record in many.records] == [("alpha", 0), ("bay", 0), ("alpha", 1)]
    one = read("1\talpha\n1\tbay", "records", max_records_per_unit=1)
    assert (pairs(one), reasons(one)) == ([("alpha", 1)], ["unit-twice"])


def test_grounding_counts_how_often_a_key_stands_in_its_unit() -> None:
    decoded = read("1\tbeta\n2\tbeta\n2\tbeta\n2\tbeta\n3\tGAMMA", "records", grounding="verbatim")
    assert (pairs(decoded), reasons(decoded)) == ([("beta", 1), ("beta", 1)], ["not-in-unit"] * 3)


def test_a_grounded_value_is_a_number_of_its_unit_and_nothing_the_model_worked_out() -> None:
    segment = segment_of("alpha 1,234.50 and -7, 3-5\nbeta ٣ 10,20\n")
    window = Window(segment=segment, units=segment.units)
    stand = "1\talpha\t1234.5\n1\tand\t-7\n2\tbeta\t3"
    decoded = read(stand, "records", window=window, grounding="verbatim")
    assert [str(record.value) for record in decoded.records] == ["1234.5", "-7", "3"]
    worked_out = "1\talpha\t1227.5\n2\tbeta\t30\n2\tbeta\t-3"
    assert reasons(read(worked_out, "records", window=window, grounding="verbatim")) == ["not-in-unit"] * 3
    assert reasons(read(worked_out, "records", window=window)) == []


@given(
    st.decimals(min_value=-(10**9), max_value=10**9, places=3, allow_nan=False), st.text(alphabet="ab .,-", max_size=9)
)
def test_a_number_written_in_a_text_stands_in_it(value: Decimal, around: str) -> None:
    assert value in numbers_in(f"{around} {value:f} {around}")


def test_case_and_unicode_forms_are_one_key_only_when_the_question_says_so() -> None:
    reply = "3\tSTRASSE\n4\tcafe\u0301"
    assert [key for key, _ in pairs(read(reply, "records"))] == ["STRASSE", "cafe\u0301"]
    decoded = read(reply, "records", ignore_case=True, nfc=True, grounding="verbatim")
    assert [key for key, _ in pairs(decoded)] == ["strasse", "caf\u00e9"]


def test_declared_keys_are_a_closed_set() -> None:
    decoded = read("alpha\t1\nAlpha\t2\nomega\t3", "counts", labels=("alpha", "beta"))
    assert (pairs(decoded), reasons(decoded)) == ([("alpha", 1)], ["unknown-label", "unknown-label"])


def test_keys_may_hold_spaces_and_repeat() -> None:
    decoded = read("in progress\t3\nin progress\t2", "counts")
    assert [(r.key, r.value, r.occurrence) for r in decoded.records] == [("in progress", 3, 0), ("in progress", 2, 1)]


@pytest.mark.parametrize("reply", ["NONE", "none", "NONE.", "```\nNONE\n```", "<think>nothing</think>NONE<|eot|>"])
@pytest.mark.parametrize("mode", ["counts", "records"])
def test_none_means_no_records(reply: str, mode: Mode) -> None:
    assert read(reply, mode) == Decoded(records=())


@pytest.mark.parametrize("mode", QUESTIONS)
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ("", "empty"),
        (" \n\t\n", "empty"),
        ("```\n```", "empty"),
        ("<think>all day</think>", "empty"),
        ("<|im_end|>", "empty"),
        ("<think>1\talpha", "unclosed-think"),
        ("1\talpha\n<think>", "unclosed-think"),
    ],
)
def test_a_reply_that_says_nothing_is_a_failure_and_no_zero(reply: str, kind: str, mode: Mode) -> None:
    with pytest.raises(OutputLimit) as failure:
        read(reply, mode)
    assert failure.value.kind == kind


def test_instructions_alone_are_no_answer() -> None:
    with pytest.raises(OutputLimit) as failure:
        read("Count the words.\n<key>\t<count>", "counts")
    assert failure.value.kind == "echo"


@pytest.mark.parametrize(
    ("reply", "kind"), [("1\ta\n" * 20, "repeated-lines"), ("1\ta\n2\tb\n" * 20_000, "too-many-lines")]
)
@pytest.mark.parametrize("mode", QUESTIONS)
def test_a_reply_in_a_loop_is_a_bad_reply(reply: str, kind: str, mode: Mode) -> None:
    with pytest.raises(BadReply) as failure:
        read(reply, mode)
    assert failure.value.kind == kind


@pytest.mark.parametrize(
    "reply",
    [
        '"alpha"',
        "alpha",
        "alpha.",
        "**alpha**",
        " alpha \n",
        '```json\n"alpha"\n```',
        '{"label": "alpha"}',
        '{"1": "alpha"}',
        "Label: alpha",
        "<think>beta?</think>alpha",
        "alpha<end_of_turn>",
    ],
)
def test_one_label_is_read_from_schema_and_plain_replies(reply: str) -> None:
    decoded = read(reply, "labels", window=ONE)
    assert (pairs(decoded), decoded.rejected) == ([("alpha", 1)], ())


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("It is not alpha.", "unknown-label"),
        ("The label could be alpha or beta", "unknown-label"),
        ("Alpha", "unknown-label"),
        ("omega", "unknown-label"),
        ("alpha 9999", "unknown-label"),
        ("alpha\t9999", "unknown-label"),
        ('{"1": "alpha", "1": "beta"}', "unit-twice"),
        ("{", "unknown-label"),
    ],
)
def test_a_reply_that_is_not_exactly_one_label_rejects_its_unit(reply: str, reason: str) -> None:
    decoded = read(reply, "labels", window=ONE)
    assert decoded.records == ()
    assert reason in reasons(decoded)
    assert decoded.rejected[-1].unit == 1


@pytest.mark.parametrize(
    "reply",
    [
        '{"1":"alpha","2":"beta","3":"gamma","4":"not alpha"}',
        '```json\n{"1": "alpha",\n "2": "beta",\n "3": "gamma",\n "4": "not alpha"}\n```',
        '"1": "alpha",\n"2": "beta",\n"3": "gamma",\n"4": "not alpha"',
        "1\talpha\n2\tbeta\n3\tgamma\n4\tnot alpha",
        "1: alpha\n2: beta\n3: gamma\n4: not alpha",
        "1. alpha\n2. beta\n3. gamma\n4. not alpha",
    ],
)
def test_every_unit_gets_its_label(reply: str) -> None:
    decoded = read(reply, "labels")
    assert [(record.unit, record.key) for record in decoded.records] == list(enumerate(LABELS, start=1))
    assert decoded.rejected == ()


def test_a_repeated_cue_is_no_part_of_the_label() -> None:
    assert pairs(read("The ticket's status: alpha", "labels", window=ONE, cue="The ticket's status:")) == [("alpha", 1)]


def test_units_left_out_twice_or_unknown_are_rejected_by_name() -> None:
    decoded = read("1: alpha\n2: beta\n2: gamma\n4: omega\n9: alpha\nSure!", "labels")
    assert pairs(decoded) == [("alpha", 1)]
    found = sorted((line.reason, line.unit) for line in decoded.rejected)
    assert found == [("missing-unit", 3), ("prose", 0), ("unit-twice", 2), ("unknown-label", 4), ("unknown-unit", 0)]


def test_the_canary_is_noted_and_taken_off() -> None:
    assert read("#read\nalpha\t3", "counts", canary=True).canary is True
    assert read("alpha\t3", "counts", canary=True).canary is False
    assert pairs(read("#read\nalpha\t3", "counts", canary=True)) == [("alpha", 3)]


def test_parse_records_is_the_seeds_reading() -> None:
    assert [(record.key, record.value) for record in parse_records("alpha\t3\nwords\nbeta\t1,200\nalpha\t3")] == [
        ("alpha", 3),
        ("beta", 1200),
        ("alpha", 3),
    ]


PIECES = [
    "alpha",
    "\t",
    "\n",
    "1",
    "٣",
    "<think>",
    "</think>",
    "```",
    "<|x|>",
    "NONE",
    '"',
    "{",
    "}",
    ":",
    ",",
    "-",
    "e9",
    "\r",
    "[",
    "<s>",
    "label",
    "beta",
]
REPLIES = st.one_of(
    st.text(),
    st.binary().map(lambda data: data.decode("utf-8", "replace")),
    st.lists(st.sampled_from(PIECES)).map("".join),
)


@given(reply=REPLIES)
@example(reply="{" * 5_000)
@example(reply="\ud800\t1")
@example(reply="1\tal\ud800pha")
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_records_rejected_lines_or_an_error_of_ours(reply: str) -> None:
    for mode in QUESTIONS:
        for window in (WINDOW, ONE):
            try:
                decoded = read(reply, mode, window=window)
            except BackendError:
                continue
            assert decoded.records or decoded.rejected or "none" in reply.casefold()
            assert all(isinstance(record.value, Decimal) and record.key for record in decoded.records)
            assert all(record.key.encode("utf-8") for record in decoded.records)
            assert 0 <= decoded.rejected_share <= 1


MEGABYTES = [
    *("a", " ", "\n", "\t", "<s>", "<think>", "</think>", "<think></think>", "{", '{"1":"alpha",', "[", "`", "*", '"'),
    *("1\ta\n", "\\t", "NONE\n", "<|", "x\ty\tz\n", "1", "9,", "\r", "ß", "\U0001f600", "- ", "1\tbeta\n2\tbeta\n"),
    *("x <s>\n", "label: ", "12: ", "<think>x</think>", "\u2028", "\x00"),
]


# Read once from front to back it takes a fraction of a second; anything that goes back and forth takes hours.
@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", MEGABYTES)
def test_a_megabyte_of_anything_is_read_in_linear_time(piece: str) -> None:
    reply = piece * (1_000_000 // len(piece.encode()))
    for mode in QUESTIONS:
        with contextlib.suppress(BackendError):
            read(reply, mode)
    with contextlib.suppress(BackendError):
        parse_records(reply)


@pytest.mark.parametrize(
    "label", ["Inc.", '"x"', "**x**", "C:\\temp", "<s>", "<tab>", "a: b", "[/a]", "\u0645\u06cc\u200c\u062e"]
)
def test_a_label_is_known_whatever_it_is_made_of(label: str) -> None:
    labels = (label, "beta")
    assert pairs(read(json.dumps(label), "labels", window=ONE, labels=labels)) == [(label, 1)]
    assert pairs(read(json.dumps({"1": label}), "labels", window=ONE, labels=labels)) == [(label, 1)]
