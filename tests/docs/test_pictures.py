"""The pictures are of the bundled sweep as it is cut now, and every one of them is shown on a page."""

import json
import re
from pathlib import Path

import yaml

from ctxstream_dagster.extraction.budget import within_context
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.planning.corpus import pack
from tests.docs.pages import ROOT, everything

IMAGES = ROOT / "docs" / "images"


def test_they_were_taken_of_as_many_segments_as_there_are(tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "assets" / "sweeps" / "status_census" / "defs.yaml").read_text(encoding="utf-8"))
    spec = SweepComponent(**document["attributes"]).spec(root=ROOT, default_name="status_census")
    model = OllamaOptions(**{**spec.ollama, "url": "127.0.0.1:1"})
    options = within_context(spec.planning, question=spec.question, options=model)
    planned = pack(spec.corpus_paths(), directory=tmp_path / "plan", options=options)
    taken_of = json.loads((IMAGES / "taken-of.json").read_text(encoding="utf-8"))
    assert taken_of == {"segments": len(planned.manifest)}, "run `python docs/pictures.py`, and look at every picture"


def test_every_picture_is_shown() -> None:
    shown = set(re.findall(r"images/([\w-]+\.(?:png|svg))", everything()))
    assert shown == {file.name for file in IMAGES.iterdir() if file.suffix in (".png", ".svg")}
