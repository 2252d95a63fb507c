"""How much corpus text one call can hold: the context less the reply and the prompt's fixed part."""

from __future__ import annotations

from dataclasses import replace

from ctxstream_dagster.errors import ConfigError
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.render import prompt_overhead_tokens
from ctxstream_dagster.planning.options import SMALLEST_TOKEN_BUDGET, ManifestOptions
from ctxstream_dagster.planning.tokens import budget_tokens


def text_budget_tokens(question: Question, options: OllamaOptions) -> int:
    """Return the tokens of corpus text that fit one call; raises `ConfigError` when not even a short record would."""
    overhead = prompt_overhead_tokens(question)
    budget = budget_tokens(options.num_ctx, num_predict=options.num_predict, overhead_tokens=overhead)
    if budget < SMALLEST_TOKEN_BUDGET:
        raise ConfigError(
            f"num_ctx {options.num_ctx} is too small for one record: the prompt's fixed part takes about {overhead} "
            f"tokens and the reply up to {options.num_predict}. "
            f"Use num_ctx {overhead + options.num_predict + 1024} or more, or a smaller num_predict."
        )
    return budget


def within_context(planning: ManifestOptions, *, question: Question, options: OllamaOptions) -> ManifestOptions:
    """Return `planning` with segments that fit the context; in `labels`, where none is sent, without an overlap."""
    budget = min(text_budget_tokens(question, options), planning.max_tokens or options.num_ctx)
    overlap = 0 if question.mode == "labels" else planning.overlap_chars
    return replace(planning, max_tokens=budget, overlap_chars=overlap)
