"""Writing a sweep: what `init` writes loads, what `check` refuses does not, and the editor's schema agrees."""

import json
import sys
from dataclasses import fields
from pathlib import Path

import dagster as dg
import jsonschema
import pytest
import yaml
from dagster.components.scaffold.scaffold import get_scaffolder

from ctxstream_dagster.cli.check import schema_bytes
from ctxstream_dagster.errors import UsageError
from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.orchestration.declaration import COMPONENT, SECTIONS, json_schema, meanings, sweep_yaml
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.orchestration.launch import load_project
from ctxstream_dagster.orchestration.scaffold import SweepScaffolder
from tests.cli.conftest import Cli
from tests.orchestration.checkout import REPOSITORY, Checkout

QUESTION = {"mode": "labels", "extract": "Which status?", "labels": ["open", "closed"]}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty checkout, and the working directory in it."""
    root = tmp_path / "checkout"
    root.mkdir()
    Checkout.lay_out(root)
    monkeypatch.chdir(root)
    return root


def written(project: Path, name: str) -> Path:
    return project / "assets" / "sweeps" / name / "defs.yaml"


def declare(project: Path, folder: str, /, **attributes: object) -> None:
    settings = {"corpus": "c.txt", "question": QUESTION, **attributes}
    file = written(project, folder)
    file.parent.mkdir()
    declared = {"type": COMPONENT, "attributes": settings}
    file.write_text(yaml.safe_dump(declared), encoding="utf-8")


def test_what_init_writes_is_checked_valid_by_loader_and_schema(ctxstream: Cli, project: Path) -> None:
    (project / "c.txt").write_text("text\n", encoding="utf-8")
    nasty = 'Which "status" {{ has }} {% this %}: ünï\\code?'
    done = ctxstream(
        "init", "census", "--corpus", "c.txt", "--extract", nasty, "--labels", "yes, no", "--answer", "least"
    )
    assert (done.status, done.err) == (0, "")
    assert ctxstream("check").out == "✓ census\n1 sweep is declared rightly.\n"
    document = yaml.safe_load(written(project, "census").read_text(encoding="utf-8"))
    schema = json.loads((project / "assets" / "sweep.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    shown = json.loads(ctxstream("check", "--json").out)
    sweep = {"name": "census", "state": "ok", "error": "", "remarks": []}
    assert shown == {"sweeps": [sweep], "ok": True, "warnings": 0}


def test_dg_scaffold_writes_the_same_file_as_init(ctxstream: Cli, project: Path) -> None:
    ctxstream("init", "one", "--corpus", "c.txt", "--extract", "x", "--labels", "a,b", "--answer", "most")
    scaffolder = get_scaffolder(SweepComponent)
    assert isinstance(scaffolder, SweepScaffolder)
    target = project / "assets" / "sweeps" / "two"
    target.mkdir()
    given = scaffolder.get_scaffold_params()(corpus="c.txt", extract="x", labels="a,b", answer="most")
    request = dg.ScaffoldRequest(COMPONENT, target, "yaml", project, given)
    scaffolder.scaffold(request)
    assert written(project, "two").read_bytes() == written(project, "one").read_bytes()
    with pytest.raises(UsageError, match="A new sweep is a new"):
        scaffolder.scaffold(request)


def test_dg_knows_where_sweeps_and_the_component_are() -> None:
    tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        settings = tomllib.load(file)["tool"]["dg"]["project"]
    assert (REPOSITORY / settings["defs_module"].replace(".", "/")).is_dir()
    assert settings["registry_modules"] == [SweepComponent.__module__]


def test_templates_in_an_answer_reach_the_model_as_they_were_typed(ctxstream: Cli, project: Path) -> None:
    ctxstream("init", "todo", "--corpus", "c.txt", "--extract", "What is {{ name }}?", "--labels", "")
    answer = next(
        spec for spec in load_project(Project(project)).resolve_all_asset_specs() if spec.key.path == ["todo", "answer"]
    )
    assert answer.description == (
        "Every key with its sum, stated by code from the tally. The model was asked: What is {{ name }}?"
    )


def test_init_asks_for_what_is_not_given(ctxstream: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["c.txt", "Who owns it?", ""])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert ctxstream("init", "owners").status == 0
    declared = yaml.safe_load(written(project, "owners").read_text(encoding="utf-8"))["attributes"]
    assert declared == {
        "corpus": ["c.txt"],
        "question": {"mode": "records", "extract": "Who owns it?"},
        "answer": "list",
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["taken", "--corpus", "c", "--extract", "x", "--labels", "a,b"], "exists already"),
        (["twin", "--corpus", "c", "--extract", "x", "--labels", "a,b"], "A sweep named 'twin' is declared in"),
        (["Upper", "--corpus", "c", "--extract", "x", "--labels", "a,b"], "'Upper' must be 1 to 60 of a-z"),
        (["../out", "--corpus", "c", "--extract", "x", "--labels", "a,b"], "'../out' must be 1 to 60 of a-z"),
        (["one", "--corpus", "c", "--extract", "x", "--labels", "a"], "give at least two"),
        (["none", "--extract", "x"], "There is no terminal to ask on: give --corpus"),
    ],
)
def test_init_refuses_and_leaves_everything_as_it_was(
    ctxstream: Cli, project: Path, arguments: list[str], sentence: str
) -> None:
    declare(project, "taken")
    declare(project, "other", name="twin")
    before = sorted(project.rglob("*"))
    done = ctxstream("init", *arguments)
    assert done.status == 2
    assert sentence in done.err
    assert sorted(project.rglob("*")) == before


def test_check_names_every_mistake_with_its_line_and_hides_none_behind_another(ctxstream: Cli, project: Path) -> None:
    declare(project, "bad_field", answr="least")
    declare(project, "bad_mode", question={**QUESTION, "mode": "label"})
    declare(project, "good", corpus="not-there.txt")
    done = ctxstream("check")
    assert done.status == 2
    assert "2 of 3 sweeps cannot be loaded" in done.err
    assert "✕ bad_field" in done.out
    assert "unknown field 'answr' (did you mean 'answer'?)" in done.out
    assert "✕ bad_mode" in done.out
    assert "(did you mean 'labels'?)" in done.out
    assert "! good\n    Warning: " in done.out
    assert "not-there.txt does not exist" in done.out
    shown = json.loads(ctxstream("check", "--json").out)
    assert [entry["state"] for entry in shown["sweeps"]] == ["error", "error", "warning"]


def test_a_corpus_that_is_not_there_is_a_warning_and_no_tick(ctxstream: Cli, project: Path) -> None:
    (project / "old.txt").write_bytes(b"one\rtwo\r")
    declare(project, "old", corpus="old.txt")
    declare(project, "none", corpus="not-there.txt")
    done = ctxstream("check")
    assert done.status == 0
    assert "✓" not in done.out
    assert "The lines of " in done.out
    assert 'use planning.record_delim: "\\r"' in done.out
    assert done.out.endswith("2 sweeps are declared rightly, 2 with a warning.\n")
    assert json.loads(ctxstream("check", "--json").out)["warnings"] == 2


def test_init_reads_a_path_from_where_one_is_and_writes_it_as_the_sweep_reads_it(
    ctxstream: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    for folder in (project / "data", elsewhere):
        folder.mkdir()
        (folder / "t.txt").write_text("text\n", encoding="utf-8")
    asked = ("--extract", "x", "--labels", "a,b")
    monkeypatch.chdir(project / "data")
    for name, given, kept in (("inside", "t.txt", "data/t.txt"), ("globbed", "*.txt", "data/*.txt")):
        assert json.loads(ctxstream("init", name, "--corpus", given, *asked, "--json").out)["attributes"]["corpus"] == [
            kept
        ]
    outside = ctxstream("init", "outside", "--corpus", "../../elsewhere/t.txt", *asked, "--json")
    assert json.loads(outside.out)["attributes"]["corpus"] == [str(elsewhere / "t.txt")]
    from_root = ctxstream("init", "from_root", "--corpus", "data/t.txt", *asked)
    assert "Remark" not in from_root.out
    nowhere = ctxstream("init", "nowhere", "--corpus", "x.txt", *asked)
    assert "Remark: there is no text yet: " in nowhere.out
    assert f"Paths in a defs.yaml start from {project}." in nowhere.out


def test_init_takes_cue_and_examples(ctxstream: Cli, project: Path) -> None:
    shown = ("--cue", "Status:", "--example", "7 => x => a", "--example", "8=>b")
    assert ctxstream("init", "cued", "--corpus", "c.txt", "--extract", "x", "--labels", "a,b", *shown).status == 0
    question = yaml.safe_load(written(project, "cued").read_text(encoding="utf-8"))["attributes"]["question"]
    assert question["cue"] == "Status:"
    assert question["examples"] == [{"text": "7 => x", "reply": "a"}, {"text": "8", "reply": "b"}]
    refused = ctxstream(
        "init", "bad", "--corpus", "c.txt", "--extract", "x", "--labels", "a,b", "--example", "no arrow"
    )
    assert (refused.status, "An example is written" in refused.err) == (2, True)


def test_a_sweep_in_python_that_cannot_be_loaded_is_named_with_its_own_error(ctxstream: Cli, project: Path) -> None:
    (project / "assets" / "sweeps" / "broken").mkdir()
    (project / "assets" / "sweeps" / "broken" / "sweep.py").write_text("raise KeyError('nowhere')\n", encoding="utf-8")
    declare(project, "good")
    (project / "c.txt").write_text("text\n", encoding="utf-8")
    done = ctxstream("check")
    assert done.status == 2
    assert "✕ broken\n    KeyError: 'nowhere'\n✓ good" in done.out
    (project / "assets" / "sweeps" / "broken" / "sweep.py").rename(project / "assets" / "sweeps" / "broken.py")
    assert "✕ all together\n    KeyError: 'nowhere'" in ctxstream("check").out


def test_an_asset_that_needs_what_nobody_makes_is_a_sentence_everywhere(ctxstream: Cli, project: Path) -> None:
    declare(project, "good")
    asset = "@dg.asset(ins={'x': dg.AssetIn(key=['nowhere', 'tally'])})\ndef lone(x: object) -> None:\n    pass\n"
    (project / "assets" / "sweeps" / "lone.py").write_text(f"import dagster as dg\n\n\n{asset}", encoding="utf-8")
    for command in (("sweep", "good"), ("check",)):
        done = ctxstream(*command)
        assert done.status == 2
        assert '["nowhere", "tally"]' in done.out + done.err
        assert "Traceback" not in done.err


def test_check_finds_twins_that_are_right_one_by_one(ctxstream: Cli, project: Path) -> None:
    declare(project, "one", name="same")
    declare(project, "two", name="same")
    done = ctxstream("check")
    assert done.status == 2
    assert "✕ all together" in done.out
    assert "a sweep named 'same' exists already" in done.out


@pytest.mark.parametrize(
    ("attributes", "valid"),
    [
        ({}, True),
        ({"in_flight": 8, "schedule": {"cron": "0 3 * * *"}, "tags": {"a": "b"}}, True),
        ({"schedule": None, "corpus": ["a", "b"]}, True),
        ({"in_flight": "{{ env.IN_FLIGHT }}"}, True),
        ({"question": {**QUESTION, "examples": [{"text": "a", "reply": "open"}]}}, True),
        ({"in_flight": "eight"}, False),
        ({"answr": "least"}, False),
        ({"answer": "fewest"}, False),
        ({"question": {"mode": "labels"}}, False),
        ({"question": {**QUESTION, "modes": "x"}}, False),
        ({"planning": {"segment_char": 1}}, False),
        ({"ollama": {"num_ctx": "big"}}, False),
        ({"schedule": {"retry_cron": "* * * * *"}}, False),
    ],
)
def test_the_editor_s_schema_accepts_what_loads_and_nothing_else(attributes: dict[str, object], valid: bool) -> None:
    declared = {"corpus": "c.txt", "question": QUESTION, **attributes}
    document = {"type": COMPONENT, "attributes": declared}
    errors = list(jsonschema.Draft202012Validator(json_schema()).iter_errors(document))
    assert (not errors) is valid, errors


def test_every_sweep_of_the_repository_fits_the_schema_beside_it() -> None:
    file = REPOSITORY / "assets" / "sweep.schema.json"
    assert file.read_bytes() == schema_bytes(json_schema()), "run `ctxstream check --schema assets/sweep.schema.json`"
    for sweep in (REPOSITORY / "assets" / "sweeps").rglob("defs.yaml"):
        for document in yaml.safe_load_all(sweep.read_text(encoding="utf-8")):
            jsonschema.validate(document, json_schema())


def test_every_setting_is_explained() -> None:
    for name, field in SweepComponent.model_fields.items():
        assert field.description, name
    for section in SECTIONS.values():
        assert {field.name for field in fields(section)} <= set(meanings(section))


def test_a_commented_line_of_a_new_sweep_is_valid_once_its_mark_is_taken_off() -> None:
    text = sweep_yaml({"corpus": "c.txt", "question": QUESTION})
    settings = [line.replace("# ", "", 1) if line.lstrip().startswith("# ") else line for line in text.splitlines()]
    kept = [line for line in settings if line.lstrip().split(":")[0].isidentifier() and not line.startswith("    What")]
    document = yaml.safe_load("\n".join(kept))
    jsonschema.validate(document, json_schema())
    assert set(document["attributes"]) == set(SweepComponent.model_fields)
