"""A small codebase, asked by symbol, with a real small model: the counts are right and lead to their lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.question import Example
from ctxstream_dagster.extraction.store import ReplyStore
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from ctxstream_dagster.planning.corpus import pack
from ctxstream_dagster.planning.options import ManifestOptions
from tests.extraction.test_real_model import QUESTION, STATUSES, backend, url
from tests.fakes import tally_of

__all__ = ["backend", "url"]

pytestmark = [pytest.mark.model, pytest.mark.timeout(600)]

FORMS = {
    "py": "# Status: {1}\ndef step_{0}():\n    return {0}\n",
    "go": "// Status: {1}\nfunc step_{0}() int {{ return {0} }}\n",
    "rb": "# Status: {1}\ndef step_{0}\n  {0}\nend\n",
}


def test_a_real_model_labels_every_function_right(
    backend: OllamaBackend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    statuses = [STATUSES[number * number % 3] for number in range(9)]
    for at, (extension, form) in enumerate(FORMS.items()):
        parts = [form.format(number, statuses[number]) for number in range(at * 3, at * 3 + 3)]
        (tmp_path / "code").mkdir(exist_ok=True)
        (tmp_path / "code" / f"steps.{extension}").write_text(
            "package x\n\n" * (extension == "go") + "\n\n".join(parts)
        )
    corpus = pack([tmp_path / "code"], directory=tmp_path / "plan", options=ManifestOptions(unit="symbol"))
    examples = (
        Example(text="# Status: solved\ndef before():\n    return 1", reply="solved"),
        Example(text="// Status: open\nfunc before() int { return 2 }", reply="open"),
        Example(text="# Status: pending\ndef before\n  3\nend", reply="pending"),
    )
    question = replace(QUESTION, extract="Which status does the function have?", examples=examples)
    store = ReplyStore(tmp_path / "replies.sqlite")
    results = list(stream_segments(list(corpus), question, backend=backend, store=store, options=PipelineOptions()))
    assert tally_of(results) == dict(Counter(statuses))
    places = {(row.path, row.line) for result in results for row in result.records}
    assert places == {
        (f"steps.{extension}", line)
        for extension, first in (("py", 1), ("go", 3), ("rb", 1))
        for line in _lines(extension, first)
    }


def _lines(extension: str, first: int) -> list[int]:
    length = FORMS[extension].count("\n") + 2
    return [first + length * number for number in range(3)]
