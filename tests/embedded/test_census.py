"""The real small model answers the bundled sweep: every label of every line, so the answer too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from ctxstream_dagster.embedded.llama import LlamaEngine
from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Question
from ctxstream_dagster.extraction.stream import PipelineOptions, stream_segments
from ctxstream_dagster.planning.corpus import pack
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.reduction.answer import Answer
from ctxstream_dagster.reduction.sweep import reduce_sweep
from tests.embedded.conftest import serving
from tests.embedded.test_tickets import ASSETS, TEXT


@pytest.mark.model
# Two hundred calls: a minute on two idle cores, many on busy ones.
@pytest.mark.timeout(1_800)
def test_every_line_gets_its_own_status_and_the_rarest_is_the_answer(real_engine: LlamaEngine, tmp_path: Path) -> None:
    declared = yaml.safe_load((ASSETS / "sweeps" / "status_census" / "defs.yaml").read_text(encoding="utf-8"))
    sweep = declared["attributes"]
    question = Question.from_mapping(sweep["question"])
    planning = ManifestOptions(**sweep["planning"])
    corpus = pack([str(ASSETS / "corpora" / "tickets.txt")], directory=tmp_path / "plan", options=planning)
    with serving(real_engine) as server:
        backend = OllamaBackend(OllamaOptions(url=server.url, model=real_engine.card.name, **sweep["ollama"]))
        results = list(stream_segments(corpus, question, backend=backend, options=PipelineOptions(concurrency=1)))
    read = {record.line: record.key for result in results for record in result.records}
    truth = {number: line.split("Status: ")[1].split(" ")[0] for number, line in enumerate(TEXT.splitlines(), start=1)}
    assert {line: (read.get(line), status) for line, status in truth.items() if read.get(line) != status} == {}
    reduction = reduce_sweep(corpus, results, how=Answer.LEAST, labels=question.labels, one_per_unit=True)
    assert str(reduction.statement).startswith("Answer: escalated (19;")
    assert Counter(truth.values())["escalated"] == 19
