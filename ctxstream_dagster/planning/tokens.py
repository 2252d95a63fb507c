"""How many tokens a text may have, without a tokenizer: an upper estimate to plan by, a lower one to catch clipping.

Both are sums over pairs of neighbouring UTF-8 bytes, each byte reduced to a class, so a prefix never costs more than
the whole and the longest prefix within a budget is found in one pass.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

_MILLI = 1_000


def estimate_upper(text: str) -> int:
    """Return tokens that `text` hardly exceeds with any common tokenizer."""
    return math.ceil(int(_milli_tokens(text.encode("utf-8", "surrogatepass")).sum()) / _MILLI)


def estimate_lower(text: str) -> int:
    """Return tokens that `text` hardly undercuts with any common tokenizer."""
    return len(text.split())


def fit(text: str, start: int, end: int, *, max_tokens: int) -> int:
    """Return the largest stop up to `end` with ``estimate_upper(text[start:stop]) <= max_tokens``; at least `start`."""
    data = text[start:end].encode("utf-8", "surrogatepass")
    costs = _milli_tokens(data)
    if int(costs.sum()) <= max_tokens * _MILLI:
        return end
    fitting = int(np.searchsorted(np.cumsum(costs), max_tokens * _MILLI, side="right"))
    return start + len(data[:fitting].decode("utf-8", "surrogatepass"))


def budget_tokens(num_ctx: int, *, num_predict: int, overhead_tokens: int) -> int:
    """Return the tokens left for corpus text in a context of `num_ctx` beside the reply and the prompt's fixed part."""
    return num_ctx - num_predict - overhead_tokens


def _milli_tokens(data: bytes) -> npt.NDArray[np.uint16]:
    continuation = (np.frombuffer(data, dtype=np.uint8) & 0xC0) == 0x80
    return np.where(continuation, 0, _MILLI).astype(np.uint16)
