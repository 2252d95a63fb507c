"""The estimates against counts of real tokenizers, and the budget built on them."""

from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxstream_dagster.planning import tokens
from ctxstream_dagster.planning.manifest import ManifestOptions, plan, segment_text
from ctxstream_dagster.planning.tokens import budget_tokens, estimate_lower, estimate_upper, fit

# Counted with the tokenizers of the published GGUF files, without special tokens.
COUNTED = json.loads((Path(__file__).parent / "token_counts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", COUNTED)
def test_the_upper_estimate_covers_every_tokenizer_made_for_the_content(kind: str) -> None:
    text, counted = COUNTED[kind]["text"], COUNTED[kind]["tokens"]
    meant = [count for name, count in counted.items() if text.isascii() or name != "smollm2"]
    assert max(meant) <= estimate_upper(text) <= 3 * max(meant)


@pytest.mark.parametrize("kind", COUNTED)
def test_the_lower_estimate_accuses_no_tokenizer(kind: str) -> None:
    assert estimate_lower(COUNTED[kind]["text"]) <= 0.95 * min(COUNTED[kind]["tokens"].values())


@pytest.mark.parametrize(
    "kind", ["csv", "csv_names", "web_log", "app_log", "hex", "base64", "uuid", "chinese", "japanese"]
)
def test_half_a_window_is_caught_on_dense_text(kind: str) -> None:
    text = COUNTED[kind]["text"]
    full = (text * (60_000 // len(text) + 1))[:60_000]
    assert estimate_lower(full) > 16_387


@pytest.mark.parametrize("kind", COUNTED)
def test_a_planned_segment_of_dense_text_fits_the_context(kind: str) -> None:
    text = COUNTED[kind]["text"] * 200
    budget = budget_tokens(32_768, num_predict=1_024, overhead_tokens=500)
    manifest = plan(text, ManifestOptions(max_tokens=budget))
    density = max(
        count for name, count in COUNTED[kind]["tokens"].items() if text.isascii() or name != "smollm2"
    ) / len(COUNTED[kind]["text"])
    for segment in manifest:
        assert segment.length * density <= budget * 1.01
        assert estimate_upper(segment_text(text, segment)) <= budget


@given(
    text=st.text(alphabet="ab1. A\n\t漢é😀", max_size=200),
    cut=st.integers(0, 200),
    budget=st.integers(0, 120),
    block=st.integers(1, 300),
)
def test_fit_is_the_longest_prefix_within_the_budget(text: str, cut: int, budget: int, block: int) -> None:
    start = min(cut, len(text))
    with mock.patch.object(tokens, "_BLOCK_CHARS", block):
        stop = fit(text, start, len(text), max_tokens=budget)
    assert start <= stop <= len(text)
    assert estimate_upper(text[start:stop]) <= budget
    if stop < len(text):
        assert estimate_upper(text[start : stop + 1]) > budget


def test_a_budget_may_be_used_up() -> None:
    assert fit("…" * 5, 0, 5, max_tokens=3) == 3


@given(text=st.text(max_size=200), more=st.text(max_size=50))
def test_more_text_never_has_fewer_tokens(text: str, more: str) -> None:
    assert estimate_upper(text) <= estimate_upper(text + more)
    assert estimate_lower(text) <= estimate_lower(text + more)


def test_nothing_is_no_token() -> None:
    assert (estimate_upper(""), estimate_lower("")) == (0, 0)
