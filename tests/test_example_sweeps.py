"""The sweeps that come with the checkout: with a perfect model each gives what a plain count of its corpus gives."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from ctxstream_dagster.extraction.stream import stream_segments
from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.orchestration.spec import SweepSpec
from ctxstream_dagster.planning.corpus import pack
from ctxstream_dagster.reduction.sweep import Reduction, reduce_sweep
from tests.fakes import FakeBackend

ROOT = Path(__file__).resolve().parents[1]
WEBSHOP = ROOT / "assets" / "corpora" / "webshop"
# In TypeScript, counted by eye: loadStock handles errors; reorder, fewest and the interface Article do not.
TYPESCRIPT = Counter(yes=1, no=3)


def declared(name: str) -> SweepSpec:
    document = yaml.safe_load((ROOT / "assets" / "sweeps" / name / "defs.yaml").read_text(encoding="utf-8"))
    return SweepComponent(**document["attributes"]).spec(root=ROOT, default_name=name)


def answered(name: str, tmp_path: Path, *, find: Callable[[str], list[tuple[str, str]]]) -> Reduction:
    spec = declared(name)
    corpus = pack(spec.corpus_paths(), directory=tmp_path / "plan", options=spec.planning)
    results = stream_segments(corpus, spec.question, backend=FakeBackend(find))
    return reduce_sweep(
        corpus,
        results,
        how=spec.answer,
        labels=spec.question.labels,
        one_per_unit=spec.question.mode == "labels",
    )


def tallied(reduction: Reduction) -> dict[str, int]:
    assert reduction.coverage.share == 1.0
    assert reduction.coverage.rejected == 0
    return {key: int(value) for key, value in reduction.tally.sorted}


def sources(pattern: str) -> Iterator[str]:
    files = sorted(WEBSHOP.glob(pattern))
    assert files
    return (file.read_text(encoding="utf-8") for file in files if file.is_file())


def every(pattern: str) -> Callable[[str], list[tuple[str, str]]]:
    return lambda text: [(key, "") for key in re.findall(pattern, text)]


def test_status_census(tmp_path: Path) -> None:
    text = (ROOT / "assets" / "corpora" / "tickets.txt").read_text(encoding="utf-8")
    reduction = answered("status_census", tmp_path, find=every(r"Status: (\w+)"))
    assert tallied(reduction) == Counter(re.findall(r"Status: (\w+)", text))
    assert reduction.statement.keys == ("escalated",)


def test_todo_owners(tmp_path: Path) -> None:
    pattern = r"TODO\((\w+)\)"
    reduction = answered("todo_owners", tmp_path, find=every(pattern))
    assert tallied(reduction) == Counter(owner for text in sources("**/*") for owner in re.findall(pattern, text))
    assert reduction.statement.keys == ("ana",)


def test_api_routes(tmp_path: Path) -> None:
    pattern = r'@app\.\w+\("([^"]+)"'
    reduction = answered("api_routes", tmp_path, find=every(pattern))
    assert tallied(reduction) == Counter(route for text in sources("api/*.py") for route in re.findall(pattern, text))
    assert len(reduction.statement.keys) == 7


def test_error_handling(tmp_path: Path) -> None:
    def find(text: str) -> list[tuple[str, str]]:
        return [("yes" if re.search(r"\b(?:except|catch)\b", text) else "no", "")]

    functions = [
        node for text in sources("api/*.py") for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)
    ]
    truth = Counter("yes" if any(isinstance(n, ast.Try) for n in ast.walk(node)) else "no" for node in functions)
    assert tallied(answered("error_handling", tmp_path, find=find)) == truth + TYPESCRIPT
