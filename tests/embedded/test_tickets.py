"""The bundled corpus is what its script writes, and asks for reading rather than counting words."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ASSETS = Path(__file__).parents[2] / "assets"
TEXT = (ASSETS / "corpora" / "tickets.txt").read_text(encoding="utf-8")
TRUTH = Counter(re.findall(r"Status: (\w+)", TEXT))


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tickets", ASSETS / "corpora" / "tickets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_script_writes_the_committed_file(script: ModuleType) -> None:
    assert "\n".join(script.tickets()) + "\n" == TEXT
    assert script.COUNTS == TRUTH


def test_every_line_has_one_status_and_the_rarest_is_the_one_talked_about_most() -> None:
    assert TRUTH.total() == TEXT.count("\n") == 200
    (rarest, least), (_, next_to_least) = sorted(TRUTH.items(), key=lambda pair: pair[1])[:2]
    assert least < next_to_least
    words = Counter(re.findall(r"\w+", TEXT))
    assert max(TRUTH, key=lambda status: words[status]) == rarest


def test_the_bundled_sweep_shows_no_line_of_the_corpus_as_an_example() -> None:
    declared = yaml.safe_load((ASSETS / "sweeps" / "status_census" / "defs.yaml").read_text(encoding="utf-8"))
    question = declared["attributes"]["question"]
    assert set(question["labels"]) == set(TRUTH) == {example["reply"] for example in question["examples"]}
    for example in question["examples"]:
        assert f"Status: {example['reply']} |" in example["text"]
        assert example["text"] not in TEXT
