"""Was the prompt read whole? Servers clip an over-long prompt without a word; their own token count gives them away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from ctxstream_dagster.planning.tokens import estimate_lower

Verdict = Literal["ok", "unknown", "clipped-signature", "clipped-bound", "shifted"]

_RUNS = re.compile(r"(.)\1{3,}", re.DOTALL)
# Measured on 44 corpora and 4 tokenizers: prose has 4.7 characters to a token, ASCII tables 8 to 11, long runs more.
_MOST_CHARS_PER_TOKEN = 7
# The lower estimate was fitted to ordinary text; pangrams come out a quarter too high. A false alarm fails a segment;
# the exact counts of a clipping server are the signature's to catch.
_LOWER_SHARE = 0.75
_MOST_CHARS_PER_TOKEN_UNSEEN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardOptions:
    """What the guard knows of the server.

    Attributes:
        num_ctx: context asked for, in tokens.
        effective_ctx: context the server really holds, in tokens; None when it does not say.
        num_keep: tokens kept at the front when a prompt is clipped.
        counts_cached: whether the reported count includes tokens taken from the prefix cache; 0.30.0 left them out, and
            then a low count means nothing.
    """

    num_ctx: int = 32_768
    effective_ctx: int | None = None
    num_keep: int = 4
    counts_cached: bool = True


def judge(
    text: str, prompt_tokens: int | None, *, output_tokens: int | None = None, options: GuardOptions | None = None
) -> Verdict:
    """Say whether a reply came from the whole prompt.

    Layers, each certain enough that a failed one is answered by sending less, which costs a split and never a count:

    - no count reported: ``unknown``. Absent is not zero (old servers leave it out when the prefix was cached).
    - ``clipped-signature``: the count is exactly what a clipping server reports: the context, one less, or the half
      that is left after cutting (16386 or 16387 of 32768). A true prompt meets one of these by chance once in ten
      thousand, and is then merely split.
    - ``clipped-bound``: fewer tokens than the text can have (three quarters of `planning.tokens.estimate_lower`, or 7
      characters to a token once runs are collapsed).
    - ``shifted``: prompt and reply together reach the context, so its front was pushed out while generating.
    """
    options = options or GuardOptions()
    if prompt_tokens is None:
        return "unknown"
    contexts = {options.num_ctx, options.effective_ctx or options.num_ctx}
    if any(prompt_tokens in clipped_counts(context, num_keep=options.num_keep) for context in contexts):
        return "clipped-signature"
    if _implausibly_few(text, prompt_tokens):
        return "clipped-bound" if options.counts_cached else "unknown"
    if prompt_tokens + (output_tokens or 0) >= min(contexts):
        return "shifted"
    return "ok"


def clipped_counts(context: int, *, num_keep: int = 4) -> frozenset[int]:
    """Return the counts a clipping server reports: up to 0.30.10 the context or one less, later what is left of it.

    From Ollama's source (`completionPromptForRequest`): ``context - (context - keep) // 2`` with `keep` one higher when
    the model puts a token in front of every prompt.
    """
    halves = (context - (context - keep) // 2 for keep in (num_keep, num_keep + 1))
    return frozenset((context, context - 1, *halves))


def looks_truncated(prompt: str | int, prompt_tokens: int, *, num_ctx: int = 32_768, num_keep: int = 4) -> bool:
    """Say whether a server read less of a prompt than it was sent.

    The specification compared characters with tokens, and that ratio cannot work: 60,000 characters cut to 16,387
    tokens are 3.66 to a token, cut to 32,768 they are 1.83, and both are everyday ratios. What does give a clipping
    server away is the count itself (see `clipped_counts`), then the fewest tokens that this text can have, then the
    context.

    Args:
        prompt: the prompt, or its length in characters. With the length alone only the count's signature and a ratio
            beyond any text without long runs (12) can tell.
        prompt_tokens: what the server reports; 0 for not reported, which is never truncation.
        num_ctx: the context asked for, in tokens.
        num_keep: tokens the server keeps at the front.
    """
    if prompt_tokens <= 0:
        return False
    if isinstance(prompt, str):
        verdict = judge(prompt, prompt_tokens, options=GuardOptions(num_ctx=num_ctx, num_keep=num_keep))
        return verdict != "ok"
    if prompt_tokens >= num_ctx or prompt_tokens in clipped_counts(num_ctx, num_keep=num_keep):
        return True
    return prompt > _MOST_CHARS_PER_TOKEN_UNSEEN * prompt_tokens


def _implausibly_few(text: str, prompt_tokens: int) -> bool:
    if len(text) <= prompt_tokens:
        return False
    if prompt_tokens < _LOWER_SHARE * estimate_lower(text):
        return True
    if len(text) <= _MOST_CHARS_PER_TOKEN * prompt_tokens:
        return False
    return len(_RUNS.sub(r"\1\1", text)) > _MOST_CHARS_PER_TOKEN * prompt_tokens
