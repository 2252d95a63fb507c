"""Text planning in MB/s beside LangExtract's chunker on the same file.

Run: ``python benchmarks/planning.py [--megabytes 4] [--rounds 2]``. LangExtract pins older packages than ours, so it
lives in an environment of its own, `.venv-bench`, made on the first run. Every side is timed from text in memory to the
last chunk, twice in a fresh process, all sides in turn, round after round; ours also from the file to the stored plan.
Seconds are of CPU time, after a warm-up: other work on the machine does not count, nor does waiting for the disk. Saves
the table in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LANGEXTRACT = "1.7.1"
REACH = 50
MAX_TOKENS = 31_000

TIMED = """
import sys, time
from pathlib import Path
{imports}

def chunks(path):
    return {run}

small, path = map(Path, sys.argv[1:])
text = small.read_text("utf-8")
chunks(small)  # what is loaded on first use
text = path.read_text("utf-8")
for _ in range(2):
    started = time.process_time()
    found = chunks(path)
    print(time.process_time() - started, found)
"""
OURS = "from ctxstream_dagster.planning.corpus import pack\nfrom ctxstream_dagster.planning.manifest import *"
SIDES = {
    "LangExtract ChunkIterator": (
        "from langextract.chunking import ChunkIterator\nfrom langextract.core.tokenizer import RegexTokenizer",
        "sum(1 for _ in ChunkIterator(text, max_char_buffer=60_000, tokenizer_impl=RegexTokenizer()))",
    ),
    "plan, nearest": (OURS, "len(plan(text, ManifestOptions()))"),
    "plan, nearest, token budget": (OURS, f"len(plan(text, ManifestOptions(max_tokens={MAX_TOKENS})))"),
    "plan, stable, token budget": (
        OURS,
        f"len(plan(text, ManifestOptions(boundary='stable', max_tokens={MAX_TOKENS})))",
    ),
    "pack from disk, stable, token budget": (
        OURS,
        "len(pack([path], directory=path.with_suffix('.plan'), "
        f"options=ManifestOptions(boundary='stable', max_tokens={MAX_TOKENS})).manifest)",
    ),
}


def sample(*, megabytes: float) -> str:
    """Return log, ticket and CSV lines in equal parts, the same on every machine."""
    numbers = random.Random(7)
    words = ["printer", "login", "invoice", "network", "refund", "laptop", "schedule", "export"]
    lines: list[str] = []
    size = 0
    while size < megabytes * 1_000_000:
        number = numbers.randrange(10**6)
        word = numbers.choice(words)
        lines += (
            f"2026-11-{number % 28 + 1:02} 10:{number % 60:02}:07 INFO {word} request {number:x} took {number} ms\n",
            f"ticket {number} | Status: {word} | owner: ana | the {word} on floor {number % 9} fails again.\n",
            f'{number},{word},{number / 7:.2f},open,"{numbers.choice(words)} {numbers.choice(words)}"\n',
        )
        size += sum(map(len, lines[-3:]))
    return "".join(lines)


def langextract_python() -> str:
    """Return the interpreter of the environment that has LangExtract, made when it is not there."""
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", f"langextract=={LANGEXTRACT}"]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"LangExtract could not be installed into .venv-bench:\n{done.stderr}")
    return str(python)


def measured(python: str, side: str, *, file: Path) -> list[tuple[float, int]]:
    """Return (seconds, chunks) of two runs of one side, in a process of its own."""
    imports, run = SIDES[side]
    command = [python, "-c", TIMED.format(imports=imports, run=run), str(file.with_name("small.log")), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return [(float(seconds), int(chunks)) for seconds, chunks in map(str.split, done.stdout.splitlines())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    other = langextract_python()
    runs: dict[str, list[tuple[float, int]]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="ctxstream-bench-") as directory:
        file = Path(directory) / "sample.log"
        text = sample(megabytes=options.megabytes)
        file.write_text(text, encoding="utf-8", newline="")
        file.with_name("small.log").write_text(text[:1000], encoding="utf-8", newline="")
        for _ in range(options.rounds):
            for side in SIDES:
                python = other if side.startswith("LangExtract") else sys.executable
                runs[side] += measured(python, side, file=file)
    medians = {side: statistics.median(seconds for seconds, _ in times) for side, times in runs.items()}
    base = next(iter(medians.values()))
    print(f"{'':<38} {'chunks':>6} {'CPU s':>9} {'MB/s':>8} {'times':>7}")
    rows: list[dict[str, float | str]] = []
    for side, median in medians.items():
        chunks, speed, times = runs[side][0][1], len(text) / 1e6 / median, base / median
        print(f"{side:<38} {chunks:>6} {median:>9.4f} {speed:>8.2f} {times:>6.0f}x", flush=True)
        rows.append({"side": side, "chunks": chunks, "cpu_s": median, "mb_per_s": speed, "times": times})
    slowest = min(base / median for median in list(medians.values())[1:])
    print(
        f"{'reached' if slowest >= REACH else 'NOT reached'}: {REACH} times LangExtract (slowest of ours {slowest:.0f})"
    )
    result = {
        "benchmark": "planning",
        "megabytes": options.megabytes,
        "rounds": options.rounds,
        "rows": rows,
        "python": platform.python_version(),
        "langextract": LANGEXTRACT,
        "numpy": version("numpy"),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0],
    }
    target = ROOT / "benchmarks" / "results" / "planning.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
