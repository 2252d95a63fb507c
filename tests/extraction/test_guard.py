"""A clipped prompt is noticed by its count; a whole one never raises an alarm."""

from __future__ import annotations

import random
import string

import pytest

from ctxstream_dagster.extraction.guard import GuardOptions, Verdict, judge, looks_truncated

PROSE = "The quick brown fox jumps over the lazy dog while the ticket stays open. " * 800  # 12,000 tokens
_DRAW = random.Random(7)
CORPORA = {
    "csv": "".join(f"{_DRAW.random():.6f},{_DRAW.randrange(10**6)}\n" for _ in range(4_000))[:60_000],
    "hex": "".join(_DRAW.choices("0123456789abcdef", k=60_000)),
    "base64": "".join(_DRAW.choices(string.ascii_letters + string.digits + "+/", k=60_000)),
    "logs": "".join(
        f"10.{_DRAW.randrange(256)}.0.{_DRAW.randrange(256)} - - [01/Dec/2026:10:{_DRAW.randrange(60):02}:07 +0000] "
        f'"GET /a/{_DRAW.randrange(10**5)} HTTP/1.1" 200 {_DRAW.randrange(10**6)}\n'
        for _ in range(800)
    )[:60_000],
    "chinese": "".join(chr(_DRAW.randrange(0x4E00, 0x6000)) for _ in range(60_000)),
    "korean": "".join(chr(_DRAW.randrange(0xAC00, 0xC000)) for _ in range(60_000)),
}


@pytest.mark.parametrize("name", CORPORA)
def test_sixty_thousand_characters_of_dense_text_are_known_to_be_clipped(name: str) -> None:
    # 8,192 is no signature of 32,768: what tells is the fewest tokens that such text can have.
    assert judge(CORPORA[name], 8_192) == "clipped-bound"
    assert judge(CORPORA[name], 16_387) == "clipped-signature"
    assert looks_truncated(CORPORA[name], 8_192)


@pytest.mark.parametrize(
    ("tokens", "output", "options", "verdict"),
    [
        (12_000, 9, GuardOptions(), "ok"),
        (None, 9, GuardOptions(), "unknown"),
        (32_768, 9, GuardOptions(), "clipped-signature"),
        (32_767, 9, GuardOptions(), "clipped-signature"),
        (16_386, 9, GuardOptions(), "clipped-signature"),
        (16_387, 9, GuardOptions(), "clipped-signature"),
        (16_388, 9, GuardOptions(), "ok"),
        (16_390, 9, GuardOptions(num_keep=12), "clipped-signature"),
        (2_050, 9, GuardOptions(effective_ctx=4_096), "clipped-signature"),
        (3_000, 9, GuardOptions(), "clipped-bound"),
        (3_000, 9, GuardOptions(counts_cached=False), "unknown"),
        (32_000, 768, GuardOptions(), "shifted"),
        (32_000, 767, GuardOptions(), "ok"),
        (32_000, None, GuardOptions(), "ok"),
    ],
)
def test_every_layer_has_its_verdict(
    tokens: int | None, output: int | None, options: GuardOptions, verdict: Verdict
) -> None:
    assert judge(PROSE, tokens, output_tokens=output, options=options) == verdict


@pytest.mark.parametrize(
    ("text", "tokens"),
    [(" " * 60_000, 900), ("\n" * 60_000, 1_900), ("=" * 10_000, 700), ("", 5), ("ok", 12), ("a" * 60_000, 7_500)],
)
def test_long_runs_take_few_tokens_and_are_no_alarm(text: str, tokens: int) -> None:
    assert judge(text, tokens) == "ok"


@pytest.mark.parametrize(
    ("chars", "tokens", "clipped"),
    [
        (60_000, 0, False),
        (60_000, 12_900, False),
        (60_000, 16_387, True),
        (60_000, 32_768, True),
        (60_000, 4_900, True),
    ],
)
def test_with_the_length_alone_only_signature_and_an_impossible_ratio_tell(
    chars: int, tokens: int, clipped: bool
) -> None:
    assert looks_truncated(chars, tokens) is clipped
