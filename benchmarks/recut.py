"""How many segments an edit re-cuts under `boundary: nearest` and `boundary: stable`, side by side.

Run: ``python benchmarks/recut.py [--megabytes 32] [--trials 9]``. A re-cut segment is one whose key the plan before the
edit did not have: it is what a scheduled sweep sends again. The edits are at random places of a log of uneven lines,
the same for both. Saves the table in benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
from pathlib import Path

from ctxstream_dagster.planning.manifest import Manifest, ManifestOptions, plan

ROOT = Path(__file__).resolve().parent.parent
EDITS = {"1 inserted": 1, "20 inserted": 20, "200 inserted": 200, "1 removed": -1, "20 removed": -20}


def log_lines(*, megabytes: float) -> list[str]:
    """Return uneven lines, the same on every machine."""
    numbers = random.Random(5)
    lines: list[str] = []
    size = 0
    while size < megabytes * 1_000_000:
        lines.append(line(numbers))
        size += len(lines[-1])
    return lines


def line(numbers: random.Random) -> str:
    """Return one line of 30 to 160 characters."""
    words = " ".join(f"{numbers.randrange(16**5):x}" for _ in range(numbers.randint(2, 22)))
    return f"{numbers.randrange(10**6)} status {numbers.choice(('open', 'closed', 'pending'))} {words}\n"


def edited(lines: list[str], *, count: int, seed: int) -> str:
    """Return the text with `count` new lines at random places, or with that many fewer when negative."""
    numbers = random.Random(seed)
    places = set(numbers.sample(range(len(lines)), abs(count)))
    if count < 0:
        return "".join(old for place, old in enumerate(lines) if place not in places)
    return "".join(line(numbers) + old if place in places else old for place, old in enumerate(lines))


def recut(before: Manifest, after: Manifest) -> int:
    """Return how many segments of `after` were not in `before`."""
    known = {segment.key for segment in before}
    return sum(segment.key not in known for segment in after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=32)
    parser.add_argument("--trials", type=int, default=9)
    options = parser.parse_args()
    lines = log_lines(megabytes=options.megabytes)
    text = "".join(lines)
    choices = {name: ManifestOptions.from_mapping({"boundary": name}) for name in ("nearest", "stable")}
    before = {name: plan(text, choice) for name, choice in choices.items()}
    counts = {name: len(manifest) for name, manifest in before.items()}
    print(
        f"{counts['nearest']} segments under nearest, {counts['stable']} under stable "
        f"({counts['stable'] / counts['nearest'] - 1:+.0%})"
    )
    print(f"{'edit':<14} {'nearest':>8} {'stable':>8}   re-cut segments, mean of {options.trials}")
    rows: list[dict[str, object]] = []
    for edit, count in EDITS.items():
        found: dict[str, list[int]] = {name: [] for name in choices}
        for trial in range(options.trials):
            changed = edited(lines, count=count, seed=trial)
            for name, choice in choices.items():
                found[name].append(recut(before[name], plan(changed, choice)))
        means = {name: statistics.mean(values) for name, values in found.items()}
        rows.append({"edit": edit, "mean": means, "all": found})
        print(f"{edit:<14} {means['nearest']:>8.1f} {means['stable']:>8.1f}", flush=True)
    result = {
        "benchmark": "recut",
        "megabytes": options.megabytes,
        "trials": options.trials,
        "segments": counts,
        "rows": rows,
        "python": platform.python_version(),
    }
    target = ROOT / "benchmarks" / "results" / "recut.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
