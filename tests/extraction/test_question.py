"""A question is checked when made, cut into windows without loss, and versioned by all that decides its replies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.extraction import question as module
from ctxstream_dagster.extraction.question import Example, Mode, Question, extraction_version
from ctxstream_dagster.extraction.render import prompt_overhead_tokens, render
from ctxstream_dagster.extraction.windows import Window, split, windows
from ctxstream_dagster.planning.tokens import estimate_upper
from tests.fakes import segment_of

GOOD = {"extract": "The status.", "mode": "labels", "labels": ["open", "closed"]}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"lables": []}, "did you mean 'labels'"),
        ({"mode": "label"}, "did you mean 'labels'"),
        ({"mode": "labels", "labels": []}, "at least two"),
        ({"labels": "open,closed"}, "is a list"),
        ({"labels": ["yes", True]}, "put it in quotes"),
        ({"labels": ["a", "a"]}, "same label"),
        ({"labels": ["a", "A"], "ignore_case": True}, "same label"),
        ({"labels": ["a", "b\t"]}, "without surrounding spaces or tabs"),
        ({"labels": ["a", ""]}, "A label is one line"),
        ({"extract": " "}, "extract"),
        ({"extract": None}, "extract"),
        ({"units_per_window": -1}, "units_per_window"),
        ({"units_per_window": True}, "units_per_window"),
        ({"max_rejected": 1}, "max_rejected"),
        ({"max_rejected": "2%"}, "max_rejected"),
        ({"nfc": "yes"}, "nfc"),
        ({"cue": "a\nb"}, "cue"),
        ({"values": True}, "belong to mode 'records'"),
        ({"grounding": "verbatim"}, "belongs to mode 'records'"),
        ({"mode": "records", "grounding": "verbatm"}, "did you mean 'verbatim'"),
        ({"canary": True}, "no room"),
        ({"examples": [{"text": "x", "reply": "opne"}]}, "did you mean 'open'"),
        ({"examples": [{"text": "x", "answer": "open"}]}, "Unknown example setting"),
        ({"examples": [{"text": "x"}]}, "needs 'text' and 'reply'"),
        ({"examples": ["open"]}, "An example has"),
    ],
)
def test_a_wrong_question_is_a_sentence(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Question.from_mapping({**GOOD, **change})


@pytest.mark.parametrize("missing", ["extract", "mode"])
def test_a_question_without_its_core_is_a_sentence(missing: str) -> None:
    with pytest.raises(ConfigError, match=f"needs '{missing}'"):
        Question.from_mapping({name: value for name, value in GOOD.items() if name != missing})


def test_counting_by_the_model_is_advised_against_where_code_could_count() -> None:
    assert "no small model" in Question(extract="x", mode="counts", labels=("a", "b")).advice()
    assert Question.from_mapping(GOOD).advice() == ""


def test_a_list_from_yaml_becomes_a_hashable_question() -> None:
    question = Question.from_mapping({**GOOD, "examples": [{"text": "x", "reply": "open"}]})
    assert question.labels == ("open", "closed")
    assert hash(question)


@given(
    lines=st.lists(
        st.text(st.characters(blacklist_characters="\n", blacklist_categories=("Cs",)), max_size=60), max_size=40
    ),
    per_window=st.integers(0, 7),
    budget=st.one_of(st.none(), st.integers(1, 200)),
    mode=st.sampled_from(["counts", "records", "labels"]),
)
def test_windows_ask_every_unit_exactly_once_within_their_limits(
    lines: list[str], per_window: int, budget: int | None, mode: Mode
) -> None:
    segment = segment_of("".join(f"{line}\n" for line in lines), overlap="before\n")
    labels = ("a", "b") if mode == "labels" else ()
    question = Question(extract="x", mode=mode, labels=labels, units_per_window=per_window)
    found = list(windows(segment, question, budget_tokens=budget))
    assert [unit for window in found for unit in window.units] == list(segment.units)
    assert all(len(window.units) <= (per_window or len(lines)) for window in found)
    assert [window.context for window in found] == [
        "before\n" if place == 0 and mode != "labels" else "" for place in range(len(found))
    ]
    if budget is not None and per_window != 1:
        for window in found:
            text = sum(estimate_upper(unit.text) for unit in window.units) + estimate_upper(window.context)
            assert text <= budget or len(window.units) == 1
    assert "".join(window.text for window in found).split() == segment.core.split()


@given(count=st.integers(2, 50))
def test_halving_loses_and_doubles_nothing(count: int) -> None:
    segment = segment_of("".join(f"{number}\n" for number in range(count)), overlap="before\n")
    whole = Window(segment=segment, units=segment.units, context="before\n")
    left, right = split(whole)
    assert (*left.units, *right.units) == whole.units
    assert left.text + right.text == whole.text
    assert (left.context, right.context) == ("before\n", "")
    assert left.depth == right.depth == 1
    assert abs(len(left.units) - len(right.units)) <= 1


@pytest.mark.parametrize("mode", ["counts", "records", "labels"])
def test_the_fixed_part_of_a_prompt_is_the_same_for_every_window(mode: Mode) -> None:
    segment = segment_of("".join(f"line {number}\n" for number in range(40)))
    question = Question(
        extract="x",
        mode=mode,
        labels=("a", "b"),
        examples=(Example(text="t", reply="a" if mode == "labels" else "1\ta"),),
    )
    prompts = [render(window, question) for window in windows(segment, question)]
    assert len({prompt.messages[:-1] for prompt in map(_frozen, prompts)}) == 1
    overhead = sum(estimate_upper(message["content"]) for message in prompts[0].messages[:-1])
    assert prompt_overhead_tokens(question) > overhead


def test_the_cue_ends_the_unit_and_its_examples_where_one_label_is_asked_for() -> None:
    segment = segment_of("a\nb\n")
    example = Example(text="t", reply="p")
    question = Question(extract="x", mode="labels", labels=("p", "q"), examples=(example,), cue="Status:")
    _, shown, answer, asked = render(next(windows(segment, question)), question).messages
    assert shown["content"] == "<<<TEXT\nt\nTEXT>>>\nStatus:"
    assert answer["content"] == '"p"'
    assert asked["content"] == "<<<TEXT\na\nTEXT>>>\nStatus:"
    many = replace(question, units_per_window=2)
    assert render(next(windows(segment, many)), many).messages[-1]["content"].endswith("TEXT>>>")


def test_the_schema_of_several_units_requires_each_by_its_number() -> None:
    segment = segment_of("a\nb\nc\n")
    question = Question(extract="x", mode="labels", labels=("p", "q"), units_per_window=3)
    [window] = windows(segment, question)
    schema = render(window, question).format
    assert schema is not None
    assert (schema["required"], schema["additionalProperties"]) == (["1", "2", "3"], False)
    assert {name: entry["enum"] for name, entry in schema["properties"].items()} == {
        name: ["p", "q"] for name in ("1", "2", "3")
    }


def test_the_version_changes_with_everything_that_decides_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    question, settings = Question.from_mapping(GOOD), {"num_ctx": 1, "digest": "d"}
    first = extraction_version(question, settings)
    assert (len(first), first) == (
        12,
        extraction_version(Question.from_mapping(dict(GOOD)), dict(reversed(settings.items()))),
    )
    others = [
        extraction_version(replace(question, extract="Another."), settings),
        extraction_version(replace(question, labels=("closed", "open")), settings),
        extraction_version(replace(question, nfc=True), settings),
        extraction_version(question, {**settings, "digest": "e"}),
    ]
    for name in ("PROMPT_VERSION", "DECODER_VERSION"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, 99)
            others.append(extraction_version(question, settings))
    assert len({first, *others}) == 7


def _frozen(prompt):
    return replace(prompt, messages=tuple(tuple(sorted(message.items())) for message in prompt.messages))


def test_a_label_that_no_text_can_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match="surrogate"):
        Question(extract="Which?", mode="labels", labels=("\udcff", "b"))
