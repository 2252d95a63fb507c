"""Scanning three real code bases, side by side in one run: ours, a bare parse, universal-ctags, aider's tags, repomix.

Run: ``python benchmarks/codegraph.py [--rounds 3] [--files 50000]``. Trees come from the package registries into
``~/.cache/ctxstream-bench`` on the first run; so do aider and repomix by hand, as docs/codebases.md says. Every side
starts in a process of its own, pinned to one core, and is timed by its processor time and its children's, so that other
work does not count; the median of the rounds is shown, and their span. Then: a second scan with the cache, the memory
of a tree of `--files` files, and the fill of the segments. Saves the table in benchmarks/results/codegraph.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.trees import HOME, tree  # noqa: E402

TREES = ("networkx", "uvloop", "three")
MORE_TREES = ("django", "pip", "pybind11", "rxjs", "zod")
"""For a second scan and the fill only. Django has 1,200 binary files, in most of its 2,450 directories."""
NPM = HOME / "npm"
AIDER = HOME / "aider"

CLOCK = """
import resource, sys, time
def spent():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
"""
OURS = (
    CLOCK
    + """
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.grammars import load_grammar
from ctxstream_dagster.planning.codegraph.languages import LANGUAGES
if sys.argv[2] == "0": [load_grammar(language) for language in LANGUAGES]
started = spent()
references = sys.argv[3] == "references"
graph = scan_repo(sys.argv[1], ScanOptions(workers=int(sys.argv[2]), references=references))
print(spent() - started)
print(len(graph.files), len(graph.symbols), sum(f.bytes for f in graph.files if f.language != "text"))
"""
)
BARE = (
    CLOCK
    + """
from pathlib import Path
import tree_sitter
from ctxstream_dagster.planning.codegraph.grammars import load_grammar
from ctxstream_dagster.planning.codegraph.languages import is_minified, language_of
from ctxstream_dagster.planning.codegraph.walk import WalkOptions, walk_directory
from ctxstream_dagster.planning.codegraph.languages import LANGUAGES
parsers = {language: tree_sitter.Parser(load_grammar(language).tables) for language in LANGUAGES}
root = Path(sys.argv[1])
code = []
for file in walk_directory(root, WalkOptions())[0]:
    path = root / file.location
    source = path.read_bytes()
    language = language_of(file.path, source)
    if language != "text" and b"\\0" not in source and not is_minified(file.path, source):
        code.append((path, language))
started = spent()
for path, language in code:
    parsers[language].parse(path.read_bytes())
print(spent() - started)
"""
)
AIDER_TAGS = (
    CLOCK
    + """
import os
from aider.io import InputOutput
from aider.repomap import RepoMap
class Model:
    def token_count(self, text): return len(text) // 4
root = sys.argv[1]
repomap = RepoMap(root=root, main_model=Model(), io=InputOutput(yes=True))
count = 0
started = spent()
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.join(folder, name)
        try:
            count += len(list(repomap.get_tags_raw(path, os.path.relpath(path, root))))
        except Exception: pass
print(spent() - started)
"""
)


def cpu_seconds(command: list[str], *, cwd: Path | None = None) -> tuple[float, str]:
    """Run a command on one core; return its and its children's processor seconds, and what it printed.

    A Python side says itself how many seconds its work took after the imports; a program's include its start.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pinned = ["taskset", "-c", "0", *command] if shutil.which("taskset") else command
    done = subprocess.run(pinned, cwd=cwd or ROOT, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    said = done.stdout.split("\n", 1)
    if any(part.startswith(CLOCK) for part in command):
        return float(said[0]), said[1]
    return spent, done.stdout


def sides(root: Path, scratch: Path) -> dict[str, list[str]]:
    """Return the command of each side that is installed here."""
    python = sys.executable
    found = {
        "ours, for a plan": [python, "-c", OURS, str(root), "0", "none"],
        "ours, in a worker": [python, "-c", OURS, str(root), "1", "none"],
        "ours, with references": [python, "-c", OURS, str(root), "0", "references"],
        "bare parse": [python, "-c", BARE, str(root)],
    }
    if shutil.which("ctags"):
        found["universal-ctags"] = ["ctags", "-R", "-o", str(scratch / "tags"), str(root)]
    if (AIDER / "bin" / "python").exists():
        found["aider's tags"] = [str(AIDER / "bin" / "python"), "-c", AIDER_TAGS, str(root)]
    repomix = NPM / "node_modules" / ".bin" / "repomix"
    if repomix.exists():
        output = str(scratch / "repomix.xml")
        found["repomix"] = [str(repomix), str(root), "--quiet", "-o", output]
        found["repomix --compress"] = [str(repomix), str(root), "--compress", "--quiet", "-o", output]
    return found


def speed(root: Path, rounds: int, scratch: Path) -> dict[str, list[float]]:
    """Return every side's processor seconds, sorted."""
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, command in sides(root, scratch).items():
            try:
                seconds, _ = cpu_seconds(command)
            except subprocess.CalledProcessError as error:
                print(f"  {name} failed: {error.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
                continue
            times.setdefault(name, []).append(seconds)
    return {name: sorted(values) for name, values in times.items()}


def again(root: Path, rounds: int, scratch: Path) -> dict[str, float]:
    """Return how long a first and a second scan with the cache take in one process, and their ratio."""
    from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo

    firsts: list[float] = []
    seconds: list[float] = []
    for number in range(rounds):
        options = ScanOptions(workers=0, cache_dir=scratch / f"cache-{root.name}-{number}")
        for times in (firsts, seconds):
            started = time.process_time()
            scan_repo(root, options)
            times.append(time.process_time() - started)
    first, second = statistics.median(firsts), statistics.median(seconds)
    return {"first_s": first, "again_s": second, "times_faster": first / second}


def fill(root: Path) -> dict[str, float]:
    """Return segments, their mean fill, and how many segments an edit of one line re-cuts."""
    from ctxstream_dagster.planning.codebase import plan_codebase
    from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo

    planned = plan_codebase(scan_repo(root, ScanOptions(workers=0)))
    lengths = [segment.length for segment in planned.manifest]
    return {
        "segments": len(lengths),
        "fill": sum(lengths) / len(lengths) / 60_000,
        "least_segments": -(-sum(lengths) // 60_000),
        "broken_edges": len(planned.order.broken),
    }


def memory(files: int, scratch: Path) -> dict[str, float]:
    """Return the peak memory of scanning and packing a tree of `files` small modules, in megabytes, and the seconds."""
    root = scratch / "many"
    for number in range(files):
        directory = root / f"p{number // 250:03d}"
        if number % 250 == 0:
            directory.mkdir(parents=True)
        body = "".join(
            f"def function_{number}_{part}(first, second):\n    return first + second * {part}\n\n\n"
            for part in range(8)
        )
        (directory / f"m{number:05d}.py").write_text(f"from p{number // 250:03d} import m{number // 2:05d}\n\n\n{body}")
    code = (
        "import sys, resource; from pathlib import Path\n"
        "from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo\n"
        "from ctxstream_dagster.planning.codebase import CodebasePlan\n"
        "cache = Path(sys.argv[1]).parent / 'cache-many'\n"
        "graph = scan_repo(sys.argv[1], ScanOptions(workers=1, cache_dir=cache))\n"
        "segments = sum(1 for _ in CodebasePlan(graph))\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print(len(graph.files), len(graph.symbols), segments, (peak + child) // 1024)"
    )
    seconds, printed = cpu_seconds([sys.executable, "-c", code, str(root)])
    found, symbols, segments, megabytes = map(int, printed.split())
    return {"files": found, "symbols": symbols, "segments": segments, "peak_mb": megabytes, "cpu_s": round(seconds, 1)}


def main() -> None:
    """Measure, print a table, save it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=50_000)
    options = parser.parse_args()
    results: dict[str, object] = {"python": platform.python_version(), "machine": platform.machine(), "trees": {}}
    with tempfile.TemporaryDirectory(prefix="ctxstream-bench-") as directory:
        scratch = Path(directory)
        for name in TREES:
            root = tree(name)
            runs = speed(root, options.rounds, scratch)
            times = {side: statistics.median(values) for side, values in runs.items()}
            counted = cpu_seconds([sys.executable, "-c", OURS, str(root), "0", "none"])[1]
            files, symbols, size = map(int, counted.split())
            row = {"files": files, "symbols": symbols, "mb": size / 1e6, "cpu_s": times, "runs_s": runs}
            row |= {"again": again(root, options.rounds, scratch), "plan": fill(root)}
            row["of_bare_parse"] = {
                side: times["bare parse"] / times[side] for side in times if side.startswith("ours")
            }
            results["trees"][name] = row  # type: ignore[index]
            print(f"\n{name}: {files:,} files, {size / 1e6:.1f} MB of code, {symbols:,} symbols")
            for side, seconds in sorted(times.items(), key=lambda item: item[1]):
                ratio = times["ours, for a plan"] / seconds
                spread = f"{runs[side][0]:.2f}-{runs[side][-1]:.2f}"
                print(
                    f"  {side:22} {seconds:8.2f} s ({spread}) {size / 1e6 / seconds:8.1f} MB/s  ours takes {ratio:6.2f}"
                )
            print(f"  second scan: {row['again']['times_faster']:.0f} times faster")  # type: ignore[index]
            plan = row["plan"]
            print(f"  {plan['segments']} segments, fill {plan['fill']:.3f}, {plan['broken_edges']} broken edges")  # type: ignore[index]
        results["more"] = {}
        for name in MORE_TREES:
            row = {"again": again(tree(name), options.rounds, scratch), "plan": fill(tree(name))}
            results["more"][name] = row  # type: ignore[index]
            faster, filled = row["again"]["times_faster"], row["plan"]["fill"]
            print(
                f"{name}: second scan {faster:.0f} times faster, {row['plan']['segments']} segments, fill {filled:.3f}"
            )
        if options.files:
            results["memory"] = memory(options.files, scratch)
            print(f"\nmemory: {results['memory']}")
    target = ROOT / "benchmarks" / "results" / "codegraph.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n")
    print(f"saved {target.relative_to(ROOT)}", f"({os.cpu_count()} cores, load {os.getloadavg()[0]:.1f})")


if __name__ == "__main__":
    main()
