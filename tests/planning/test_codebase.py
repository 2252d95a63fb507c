"""A codebase as packed text and segments: every byte there, no symbol that fits cut, cuts that stay where they are."""

from __future__ import annotations

import codecs
import random
import resource
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxstream_dagster.errors import CorpusError
from ctxstream_dagster.planning.codebase import CodebasePlan, PlannedCodebase, plan_codebase
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.values import CodeGraph
from ctxstream_dagster.planning.corpus import PackedCorpus, pack
from ctxstream_dagster.planning.manifest import segment_text
from ctxstream_dagster.planning.options import ManifestOptions
from ctxstream_dagster.planning.tokens import estimate_upper
from tests.planning.codegraph.trees import IN_PROCESS, plant

SCOPES = ("module", "namespace")

MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE, "utf-8-sig": codecs.BOM_UTF8}
NOT_IN_CP1252 = "\x81\x8d\x8f\x90\x9d"


def encoded(text: str, encoding: str) -> bytes:
    """Return the bytes of a file that was read as `text`, by other means than the reader's."""
    if encoding == "cp1252":
        return b"".join(c.encode("latin-1" if c in NOT_IN_CP1252 else "cp1252") for c in text)
    return MARKS.get(encoding, b"") + text.encode(encoding.removesuffix("-sig"))


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def stretches(planned: PlannedCodebase) -> dict[str, list[str]]:
    """Return the pieces of each file's text in packed order."""
    pieces: dict[str, list[str]] = {}
    for segment, spans in zip(planned.manifest, planned.spans, strict=True):
        window = segment_text(planned.text, segment)
        for span in spans:
            pieces.setdefault(span.path, []).append(window[span.start : span.start + span.length])
    return pieces


def cut_symbols(graph: CodeGraph, planned: PlannedCodebase, longest: int) -> list[str]:
    """Return the symbols of up to `longest` characters that a segment's end goes through."""
    pieces = stretches(planned)
    cut: list[str] = []
    for file in graph.files:
        ends = [sum(map(len, pieces.get(file.path, [])[:count])) for count in range(1, len(pieces.get(file.path, [])))]
        for symbol in graph.symbols.of_file(file.id):
            if symbol.kind not in SCOPES and symbol.length <= longest:
                cut += [symbol.qualname for end in ends if symbol.offset < end < symbol.offset + symbol.length]
    return cut


lines = st.sampled_from(["x = 1", "", "# words", "y = '漢字 😀'", "    pass", "é" * 30, "z" * 90, "\tq\r"])
functions = st.builds(
    lambda name, body: f"def {name}():\n" + "".join(f"    {line.strip()}\n" for line in body) + "    return 0\n",
    st.text(string.ascii_lowercase, min_size=1, max_size=6).map(lambda name: f"f_{name}"),
    st.lists(lines, max_size=8),
)
classes = st.builds(
    lambda body: "class C:\n" + "".join("    " + line for part in body for line in part.splitlines(keepends=True)),
    st.lists(functions, min_size=1, max_size=4),
)
sources = st.lists(st.one_of(lines.map(lambda line: line + "\n"), functions, classes), max_size=8).map("".join)
contents = st.one_of(
    sources.map(str.encode),
    sources.map(lambda text: text.rstrip("\n").encode()),
    sources.map(lambda text: b"\xef\xbb\xbf" + text.encode()),
    sources.map(lambda text: text.replace("\n", "\r\n").encode()),
    sources.map(lambda text: text.encode("utf-16")),
    st.binary(max_size=60).filter(lambda data: b"\0" not in data),
)
trees = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b/c", "d"]), st.integers(0, 5), st.sampled_from([".py", ".txt"])).map(
        lambda parts: f"{parts[0]}/m{parts[1]}{parts[2]}"
    ),
    contents,
    min_size=1,
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=80)
@given(trees, st.integers(60, 600), st.one_of(st.none(), st.integers(60, 600)), st.sampled_from(["line", "symbol"]))
def test_the_packed_text_reassembles_every_file_and_every_limit_holds(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, bytes], chars: int, tokens: int | None, unit: str
) -> None:
    root = plant(tmp_path_factory.mktemp("tree"), tree)
    graph = scan_repo(root, IN_PROCESS)
    options = ManifestOptions(segment_chars=chars, max_tokens=tokens, unit=unit, overlap_chars=0)  # type: ignore[arg-type]
    planned = plan_codebase(graph, options)
    pieces = stretches(planned)
    for file in graph.files:
        text = "".join(pieces.get(file.path, []))
        if "�" not in text:
            assert encoded(text, file.encoding) == (root / file.path).read_bytes()
        assert len(text) == file.chars
    skipped = {entry.path for entry in graph.skipped}
    assert {file.path for file in planned.files} | skipped == set(tree)
    for segment in planned.manifest:
        window = segment_text(planned.text, segment)
        assert 0 < len(window) <= chars or segment.length == 1
        assert tokens is None or estimate_upper(window) <= tokens or len(window) < 60
    assert "".join(segment_text(planned.text, segment) for segment in planned.manifest) == planned.text
    assert cut_symbols(graph, planned, min(chars, (tokens or chars) // 4) - 60) == []


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=12)
@given(trees, st.integers(60, 600), st.sampled_from(["line", "symbol"]))
def test_units_stand_where_they_say_and_lead_back_to_their_line(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, bytes], chars: int, unit: str
) -> None:
    root = plant(tmp_path_factory.mktemp("tree") / "root", tree)
    graph = scan_repo(root, IN_PROCESS)
    options = ManifestOptions(segment_chars=chars, unit=unit, overlap_chars=0)  # type: ignore[arg-type]
    if not any(file.chars for file in graph.files):
        return
    corpus = pack([root], directory=root.parent / "plan", options=options)
    text = {file.path: "".join(stretches(plan_codebase(graph, options)).get(file.path, [])) for file in graph.files}
    offsets: list[int] = []
    for window in corpus:
        whole = window.overlap + window.core
        assert [found.number for found in window.units] == list(range(1, len(window.units) + 1))
        for found in window.units:
            if not found.head:
                assert found.offset < 0 or found.offset == 0
                continue
            offsets.append(window.segment.offset + found.offset)
            assert whole[found.offset : found.offset + len(found.text)] == found.text
            if unit == "line":
                first = text[found.path].split("\n")[found.line - 1]
                assert first.startswith(found.text) or first.removesuffix("\r") == found.text
            else:
                first = found.text.split("\n")[0]
                assert first in text[found.path].split("\n")[found.line - 1]
                assert found.name
    assert len(offsets) == len(set(offsets))
    assert PackedCorpus.open(root.parent / "plan").manifest == corpus.manifest


def modules(count: int, *, seed: int = 0, longest: int = 40) -> dict[str, str]:
    """Return source files of uneven sizes, each importing an earlier one."""
    chance = random.Random(seed)
    files: dict[str, str] = {}
    for number in range(count):
        body = "".join(
            f"\n\ndef f{number}_{part}(a):\n"
            + f"    a = a + {part}  # padding of some length\n" * chance.randrange(4, 30)
            for part in range(chance.randrange(1, longest))
        )
        earlier = f"from p.m{chance.randrange(number):03d} import f\n" if number else ""
        files[f"p/m{number:03d}.py"] = earlier + body
    return files


def test_a_file_follows_what_it_includes(tmp_path: Path) -> None:
    graph = scan_repo(plant(tmp_path, modules(40)), IN_PROCESS)
    planned = plan_codebase(graph)
    place = {file.path: number for number, file in enumerate(planned.files)}
    assert len(graph.edges.includes) == 39
    assert planned.order.broken == ()
    for source, target in graph.edges.includes:
        assert place[graph.files[target].path] < place[graph.files[source].path]


def test_segments_are_well_filled_and_whole_files_stay_together_where_they_can(tmp_path: Path) -> None:
    graph = scan_repo(plant(tmp_path, modules(200)), IN_PROCESS)
    planned = plan_codebase(graph)
    lengths = [segment.length for segment in planned.manifest][:-1]
    assert len(lengths) > 20
    assert sum(lengths) / len(lengths) / 60_000 >= 0.85
    whole = sum(len(pieces) == 1 for pieces in stretches(planned).values())
    assert whole >= 0.7 * len(graph.files)


def test_text_without_symbols_or_blank_lines_fills_segments_too(tmp_path: Path) -> None:
    page = "".join(f"<p>paragraph {number} of a page that nobody broke</p>\n" for number in range(750))
    graph = scan_repo(plant(tmp_path, {f"docs/p{number:02d}.html": page for number in range(40)}), IN_PROCESS)
    assert 30_000 < graph.files[0].chars < 50_000
    lengths = [segment.length for segment in plan_codebase(graph).manifest][:-1]
    assert sum(lengths) / len(lengths) / 60_000 >= 0.85


def test_an_edit_re_cuts_its_own_segment_and_seldom_another(tmp_path: Path) -> None:
    root = plant(tmp_path / "code", modules(200))
    options = ScanOptions(workers=0, cache_dir=tmp_path / "cache")
    before = plan_codebase(scan_repo(root, options))
    keys = {segment.key for segment in before.manifest}
    chance = random.Random(1)
    changed: list[int] = []
    for path in chance.sample(sorted(stretches(before)), 15):
        file = root / path
        content = file.read_text()
        at = chance.randrange(len(content))
        line_start = content.rfind("\n", 0, at) + 1
        file.write_text(content[:line_start] + "# one more line\n" + content[line_start:])
        after = plan_codebase(scan_repo(root, options))
        file.write_text(content)
        changed.append(sum(segment.key not in keys for segment in after.manifest))
    assert sorted(changed)[len(changed) // 2] == 1
    assert sum(changed) / len(changed) < 3


def test_a_revert_gives_the_same_keys_and_a_new_file_leaves_most(tmp_path: Path) -> None:
    root = plant(tmp_path, modules(120))
    before = plan_codebase(scan_repo(root, IN_PROCESS))
    (root / "p/a_new.py").write_text("def brand_new(): pass\n")
    with_new = plan_codebase(scan_repo(root, IN_PROCESS))
    (root / "p/a_new.py").unlink()
    assert plan_codebase(scan_repo(root, IN_PROCESS)) == before
    keys = {segment.key for segment in before.manifest}
    assert sum(segment.key not in keys for segment in with_new.manifest) <= len(keys) / 2


def test_a_cycle_is_packed_with_its_broken_edges_said(tmp_path: Path) -> None:
    graph = scan_repo(plant(tmp_path, {"a.py": "import b\n", "b.py": "import c\n", "c.py": "import a\n"}), IN_PROCESS)
    planned = plan_codebase(graph)
    assert planned.order.cycles == ((0, 1, 2),)
    assert len(planned.order.broken) == 1


def test_row_34_one_file_of_27_megabytes_is_split(tmp_path: Path) -> None:
    function = "def f{}():\n" + f"    return '{'something to say ' * 70}'\n\n"
    source = "".join(function.format(number) for number in range(22_500))
    assert len(source) > 27_000_000
    root = plant(tmp_path, {"one.py": source})
    graph = scan_repo(root, ScanOptions(workers=0, max_file_bytes=1 << 26, parse_timeout_s=120))
    planned = plan_codebase(graph)
    assert graph.files[0].symbols == 22_500
    assert max(segment.length for segment in planned.manifest) <= 60_000
    assert sum(segment.length for segment in planned.manifest) / len(planned.manifest) > 0.85 * 60_000
    assert cut_symbols(graph, planned, 59_000) == []


def test_row_33_a_large_tree_is_packed_in_little_memory(tmp_path: Path) -> None:
    line = "some words of text that nobody will read, " * 20 + "\n"
    root = plant(tmp_path / "tree", {f"t{number}.txt": line * 1_200 for number in range(100)})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    corpus = pack([root], directory=tmp_path / "plan")
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    size = (tmp_path / "plan" / "packed.txt").stat().st_size
    assert size > 100_000_000
    assert corpus.manifest.proof.owned_chars == corpus.manifest.proof.chars
    assert grown_kb * 1024 < size / 2


def test_a_symbol_longer_than_a_segment_is_cut_at_lines_and_counted(tmp_path: Path) -> None:
    body = "".join(f"    value_{number} = {number}\n" for number in range(200))
    root = plant(tmp_path / "code", {"a.py": f"def huge():\n{body}\n\ndef small():\n    return 1\n"})
    options = ManifestOptions(segment_chars=1_000, unit="symbol", overlap_chars=0)
    corpus = pack([root], directory=tmp_path / "plan", options=options)
    assert corpus.manifest.proof.cut_records == 1
    units = [(window.segment, unit) for window in corpus for unit in window.units]
    assert [unit.head for _, unit in units if unit.name == "huge"] == [True] + [False] * (len(units) - 2)
    assert len({segment.offset + unit.offset for segment, unit in units if unit.name == "huge"}) == 1
    joined = "".join(unit.text for _, unit in units if unit.name == "huge")
    assert joined == f"def huge():\n{body}".rstrip("\n")
    assert all("(continued)" in window.core.split("\n")[0] for window in list(corpus)[1:-1])


def test_a_line_longer_than_a_segment_goes_on_without_a_header(tmp_path: Path) -> None:
    root = plant(tmp_path / "code", {"a.txt": "start\n" + "word " * 700 + "end\nlast\n"})
    corpus = pack([root], directory=tmp_path / "plan", options=ManifestOptions(segment_chars=1_000, overlap_chars=0))
    assert corpus.manifest.proof.cut_records == 1
    heads = [(unit.line, unit.head) for window in corpus for unit in window.units]
    assert [line for line, head in heads if head] == [1, 2, 3]
    assert {line for line, head in heads if not head} == {2}
    assert sum("==>" in window.core for window in corpus) < len(corpus.manifest)


def test_symbol_units_do_not_overlap_and_carry_their_place(tmp_path: Path) -> None:
    source = (
        "import os\n\n\nclass A:\n    x = 1\n\n    # Why it is here.\n    def one(self):\n        def inner(): ...\n"
        "        return inner\n\n    def two(self): ...\n\n\nclass Empty:\n    y = 2\n\n\ndef free(): ...\n"
    )
    root = plant(tmp_path / "code", {"m.py": source, "README.md": "words\n"})
    corpus = pack([root], directory=tmp_path / "plan", options=ManifestOptions(unit="symbol"))
    units = [unit for window in corpus for unit in window.units]
    assert [(unit.name, unit.path, unit.line) for unit in units] == [
        ("A.one", "m.py", 7),
        ("A.two", "m.py", 12),
        ("Empty", "m.py", 15),
        ("free", "m.py", 19),
    ]
    assert units[0].text.startswith("# Why it is here.\n    def one")


def test_directories_beside_files_keep_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, {"one/a.py": "x = 1\n", "two/a.py": "y = 2\n", "list.txt": "1\n2\n", "two/logo.png": b"\0"})
    monkeypatch.chdir(tmp_path)
    corpus = pack(["one", "list.txt", "two/"], directory=tmp_path / "plan")
    assert [file.path for file in corpus.files] == ["one/a.py", "list.txt", "two/a.py"]
    assert [entry.path for entry in corpus.skipped] == ["two/logo.png"]
    text = (tmp_path / "plan" / "packed.txt").read_text()
    for file in corpus.files:
        assert text[file.offset : file.offset + file.chars] == Path(file.path).read_text()


def test_a_file_that_changed_since_the_scan_is_refused(tmp_path: Path) -> None:
    graph = scan_repo(plant(tmp_path, {"a.py": "x = 1\n", "b.py": "y = 1\n"}), IN_PROCESS)
    (tmp_path / "b.py").write_text("y = 2\n")
    with pytest.raises(CorpusError, match=r"b\.py changed"):
        plan_codebase(graph)
    (tmp_path / "b.py").unlink()
    with pytest.raises(CorpusError, match=r"b\.py could not be read"):
        list(CodebasePlan(graph))


def test_an_explicit_slack_decides_how_full_a_segment_must_be(tmp_path: Path) -> None:
    graph = scan_repo(plant(tmp_path, modules(60)), IN_PROCESS)
    tight = plan_codebase(graph, replace(ManifestOptions(), boundary_slack=0))
    loose = plan_codebase(graph, replace(ManifestOptions(), boundary_slack=40_000))
    assert len(tight.manifest) < len(loose.manifest)
