"""`ctxstream plan`: the contract of its JSON, and a sentence with exit status 2 for bad input."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "größe.log"
    file.write_text("".join(f"{number} größe open\n" for number in range(200)), encoding="utf-8")
    return file


def test_json_is_the_contract(ctxstream: Cli, log: Path, tmp_path: Path) -> None:
    (tmp_path / "image.log").write_bytes(b"\x89PNG\0")
    done = ctxstream("plan", tmp_path / "*.log", "--segment-chars", "500", "--overlap-chars", "40", "--json")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    text = log.read_text(encoding="utf-8")
    assert document["corpus"] == {"bytes": log.stat().st_size, "chars": len(text), "files": 1}
    [skipped] = document["skipped"]
    assert (skipped["path"], skipped["reason"]) == (str(tmp_path / "image.log"), "binary")
    cores = []
    for index, segment in enumerate(document["segments"]):
        assert list(segment) == ["index", "key", "offset", "length", "overlap_prefix"]
        assert segment["index"] == index
        cores.append(text[segment["offset"] + segment["overlap_prefix"] : segment["offset"] + segment["length"]])
    assert "".join(cores) == text


def test_a_person_reads_segments_skips_and_the_sum(
    ctxstream: Cli, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "image.log").write_bytes(b"\x89PNG\0")
    done = ctxstream("plan", log.name, "image.log", "--segment-chars", "100")
    lines = done.out.splitlines()
    index, key, source, chars, overlap = lines[1].split()
    assert (index, source, overlap) == ("0", f"{log.name}:1", "0")
    assert key.startswith("grosse~")
    assert 0 < int(chars) <= 100
    assert any("more; --json lists all" in line for line in lines)
    assert "skipped image.log: binary (holds NUL bytes)" in lines
    assert lines[-1].startswith("1 file, 2,890 characters, ")
    assert lines[-1].endswith(" that tile them exactly, 1 skipped.")


def test_stable_boundaries_and_a_token_budget_are_options(ctxstream: Cli, log: Path) -> None:
    plain = json.loads(ctxstream("plan", log, "--segment-chars", "800", "--json").out)
    stable = json.loads(ctxstream("plan", log, "--segment-chars", "800", "--boundary", "stable", "--json").out)
    within = json.loads(ctxstream("plan", log, "--segment-chars", "800", "--max-tokens", "60", "--json").out)
    assert len(plain["segments"]) < len(stable["segments"]) < len(within["segments"])


@pytest.mark.parametrize("written", [r"\n", ";"])
def test_a_delimiter_is_taken_as_written(ctxstream: Cli, tmp_path: Path, written: str) -> None:
    file = tmp_path / "mixed.txt"
    file.write_text("aa;bb\n" * 20)
    done = ctxstream("plan", file, "--record-delim", written, "--segment-chars", "40", "--overlap-chars", "0", "--json")
    ends = [segment["offset"] + segment["length"] for segment in json.loads(done.out)["segments"]]
    text = file.read_text()
    delim = "\n" if written == r"\n" else written
    assert all(text[end - 1] == delim for end in ends[:-1])


def test_lines_that_end_as_on_old_macs_are_hinted_at(ctxstream: Cli, tmp_path: Path) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_bytes(b"one\rtwo\rthree\r")
    new.write_bytes(b"one\r\ntwo\n")
    hint = f"The lines of {old} end by a carriage return only, so each file is one record: use --record-delim '\\r'."
    assert f"Hint: {hint}" in ctxstream("plan", old, new).out
    assert f"The lines of {old} and 1 more file end by" in ctxstream("plan", old, shutil.copy(old, tmp_path / "b")).out
    assert json.loads(ctxstream("plan", old, "--json").out)["hint"] == hint
    assert "Hint" not in ctxstream("plan", new).out
    assert "Hint" not in ctxstream("plan", old, "--record-delim", r"\r").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["missing.log"], "missing.log does not exist"),
        (["*.nothing"], "No file matches '*.nothing'"),
        (["{empty}"], "The corpus is empty"),
        (["{log}", "--segment-chars", "0"], "segment_chars is 0; it must be 1 or more"),
        (["{log}", "--segment-chars", "300", "--overlap-chars", "300"], "smaller than segment_chars"),
        (["{log}", "--boundary", "nearst"], "nearest"),
        (["{log}", "--segment-char", "300"], "--segment-chars"),
        (["{log}", "--record-delim", ""], "record_delim is ''"),
        ([], "PATH"),
    ],
)
def test_bad_input_gets_a_sentence(
    ctxstream: Cli, log: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    empty = tmp_path / "empty.txt"
    empty.touch()
    done = ctxstream("plan", *(argument.format(log=log, empty=empty) for argument in arguments))
    assert done.status == 2
    assert sentence in done.err
    assert "Traceback" not in done.err


def test_a_path_that_looks_like_markup_is_shown_as_it_is(ctxstream: Cli, tmp_path: Path) -> None:
    odd = tmp_path / "[" / "x].log"
    odd.parent.mkdir()
    odd.write_text("a\n", encoding="utf-8")
    done = ctxstream("plan", odd)
    assert done.status == 0
    assert "[/x].log" in "".join(done.out.split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_output_that_cannot_be_written_is_a_sentence(log: Path, form: tuple[str, ...]) -> None:
    code = "import sys; from ctxstream_dagster.cli import main; sys.argv[0] = 'ctxstream'; main()"
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-c", code, "plan", str(log), *form]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Could not write the output: ")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_says_that_what_is_done_is_kept(ctxstream: Cli, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ctxstream_dagster.cli.plan.pack", interrupted)
    done = ctxstream("plan", log)
    assert (done.status, done.out) == (130, "")
    assert "Finished replies are kept" in done.err
