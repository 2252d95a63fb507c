"""How right the code graph is, against the tools that people trust, on real packages from the registries.

Run: ``python benchmarks/accuracy_codegraph.py``. Includes: grimp (Python), madge and dependency-cruiser (TypeScript),
``gcc -H`` (C). Symbols: universal-ctags, by file and name; for C and C++ also which of the rest are here under another
name, and which are calls of macros. The walk of statements: a walk of every node. A tool that is not installed
is left out, and said. Saves the table in benchmarks/results/accuracy_codegraph.json.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.trees import HOME, tree  # noqa: E402
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo  # noqa: E402
from ctxstream_dagster.planning.codegraph.values import CodeGraph  # noqa: E402

IN_PROCESS = ScanOptions(workers=0)
# What ctags lists beside definitions of functions and types: variables, members, imported names, the file's own name.
COUNTED = {
    "C": {"function", "struct", "union", "enum", "typedef"},
    "C++": {"function", "class", "struct", "union", "enum", "typedef"},
    "JavaScript": {"function", "class", "method", "generator"},
    "Python": {"class", "function", "member"},
    "Go": {"func", "struct", "interface", "type", "talias", "methodSpec"},
    "TypeScript": {"function", "class", "interface", "enum", "method"},
}
MACRO = re.compile(r"[A-Z][A-Z0-9_]*")
NOT_DEFINITIONS = re.compile(r"^(?:Anonymous|__anon|anon)|^new$")


def edges(graph: CodeGraph) -> set[tuple[str, str]]:
    """Return includes edges as pairs of paths."""
    return {(graph.files[a].path, graph.files[b].path) for a, b in graph.edges.includes}


def against_grimp(name: str) -> dict[str, int]:
    """Return how many of the imports that grimp finds in a package are includes here."""
    code = (
        "import sys, json, grimp; sys.path.insert(0, sys.argv[1])\n"
        "graph = grimp.build_graph(sys.argv[2], cache_dir=None)\n"
        "pairs = [[a, b] for a in graph.modules for b in graph.find_modules_directly_imported_by(a)]\n"
        "print(json.dumps(pairs))"
    )
    root = tree(name)
    done = subprocess.run([sys.executable, "-c", code, str(root), name], capture_output=True, text=True, check=True)
    ours = edges(scan_repo(root, IN_PROCESS))

    def path(module: str) -> str:
        plain = module.replace(".", "/")
        return f"{plain}.py" if (root / f"{plain}.py").exists() else f"{plain}/__init__.py"

    wanted = {(path(a), path(b)) for a, b in json.loads(done.stdout) if a != b}
    return {"theirs": len(wanted), "found": len(wanted & ours)}


def against_madge() -> dict[str, int] | None:
    """Return how many of madge's TypeScript dependencies are includes here."""
    madge = HOME / "npm" / "node_modules" / ".bin" / "madge"
    if not madge.exists():
        return None
    root = tree("rxjs")
    command = [str(madge), "--json", "--extensions", "ts,tsx", str(root)]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    wanted = {(source, target) for source, targets in listed.items() for target in targets}
    return {"theirs": len(wanted), "found": len(wanted & edges(scan_repo(root, IN_PROCESS)))}


def against_dependency_cruiser() -> dict[str, int] | None:
    """Return how many of dependency-cruiser's local TypeScript dependencies, types included, are includes here."""
    cruiser = HOME / "npm" / "node_modules" / ".bin" / "depcruise"
    if not cruiser.exists():
        return None
    root = tree("rxjs")
    command = [str(cruiser), "--no-config", "--ts-pre-compilation-deps", "--output-type", "json", "."]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    wanted = {
        (module["source"], dependency["resolved"])
        for module in json.loads(done.stdout)["modules"]
        for dependency in module["dependencies"]
        if not dependency["couldNotResolve"] and "local" in dependency["dependencyTypes"]
    }
    return {"theirs": len(wanted), "found": len(wanted & edges(scan_repo(root, IN_PROCESS)))}


def against_gcc() -> dict[str, int] | None:
    """Return how many of the includes that ``gcc -H`` follows in libuv's Unix sources are includes here."""
    if shutil.which("gcc") is None:
        return None
    root = tree("uvloop").resolve()
    ours = edges(scan_repo(root, IN_PROCESS))
    wanted: set[tuple[str, str]] = set()
    for source in sorted((root / "src").rglob("*.c")):
        command = ["gcc", "-H", "-fsyntax-only", "-D_GNU_SOURCE", "-Iinclude", "-Isrc", str(source.relative_to(root))]
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            continue  # a source for another system
        above = [source]
        for line in done.stderr.splitlines():
            if not (found := re.match(r"(\.+) (.+)", line)):
                continue
            depth, included = len(found[1]), (root / found[2]).resolve()
            above[depth:] = [included]
            if root in included.parents and root in above[depth - 1].parents:
                wanted.add((str(above[depth - 1].relative_to(root)), str(included.relative_to(root))))
    return {"theirs": len(wanted), "found": len(wanted & ours)}


def against_ctags(name: str) -> dict[str, dict[str, int]]:
    """Return, by language and kind, how many of the definitions that ctags finds are symbols here."""
    root = tree(name)
    graph = scan_repo(root, IN_PROCESS)
    ours: dict[str, set[str]] = defaultdict(set)
    lines: dict[str, set[int]] = defaultdict(set)
    for symbol in graph.symbols:
        bare = re.split(r"::|[.:\\]", symbol.name)[-1]
        path = graph.files[symbol.file].path
        ours[path] |= {symbol.name, bare, bare.lstrip("~")}
        if symbol.kind in ("function", "method", "type"):
            lines[path].update(range(symbol.line, symbol.end_line + 1))
    listed = "\n".join(file.path for file in graph.files if file.language != "text")
    command = ["ctags", "--output-format=json", "--fields=+Kln", "-L", "-", "-o", "-"]
    done = subprocess.run(command, cwd=root, input=listed, capture_output=True, text=True, errors="replace", check=True)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        if tag.get("kind") not in COUNTED.get(tag.get("language", ""), ()) or NOT_DEFINITIONS.match(tag["name"]):
            continue
        bare = re.split(r"::|\.", tag["name"])[-1].replace("operator ", "operator")
        kind = f"{tag['language']} {tag['kind']}"
        is_found = bare in ours[tag["path"]] or bare.lstrip("~") in ours[tag["path"]]
        counts[kind]["theirs"] += 1
        counts[kind]["found"] += is_found
        if not is_found and tag["language"] in ("C", "C++") and tag["kind"] in ("function", "typedef"):
            # `TEST_IMPL(name) {` is listed by the macro's name, `} A, *B;` twice: the definition is here all the same.
            counts[kind]["by another name"] += tag["line"] in lines[tag["path"]]
            counts[kind]["macro calls"] += tag["line"] not in lines[tag["path"]] and MACRO.fullmatch(bare) is not None
    return {kind: dict(count) for kind, count in sorted(counts.items())}


def against_whole_walk(name: str) -> dict[str, int]:
    """Return how many of the symbols that a walk of every node finds the walk of statements finds."""
    from ctxstream_dagster.planning.codegraph import symbols as module

    quick = scan_repo(tree(name), IN_PROCESS).symbols
    walk = module.walk
    module.walk = lambda *arguments, **options: walk(*arguments, **options, whole=True)
    try:
        whole = scan_repo(tree(name), IN_PROCESS).symbols
    finally:
        module.walk = walk
    return {"theirs": len(whole), "found": len(quick)}


def main() -> None:
    """Compare, print a table, save it."""
    rows: dict[str, dict[str, int] | None] = {}
    for name in ("networkx", "django", "pip"):
        rows[f"includes of {name} against grimp"] = against_grimp(name)
    rows["includes of rxjs against madge"] = against_madge()
    rows["includes of rxjs against dependency-cruiser"] = against_dependency_cruiser()
    rows["includes of libuv against gcc -H"] = against_gcc()
    for name in ("networkx", "uvloop", "pybind11", "rxjs", "zod", "express"):
        rows[f"symbols of {name} against a walk of every node"] = against_whole_walk(name)
        if shutil.which("ctags"):
            for kind, count in against_ctags(name).items():
                rows[f"symbols of {name} against ctags: {kind}"] = count
    for title, row in rows.items():
        if row is None:
            print(f"{title:62} not installed here")
        elif row["theirs"]:
            share = row["found"] / row["theirs"]
            also = ", ".join(f"{row[key]} {key}" for key in ("by another name", "macro calls") if row.get(key))
            print(f"{title:62} {row['found']:6} of {row['theirs']:6}  {share:.3f}  {also}".rstrip())
    target = ROOT / "benchmarks" / "results" / "accuracy_codegraph.json"
    target.write_text(json.dumps(rows, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
