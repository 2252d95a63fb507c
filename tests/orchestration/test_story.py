"""The failure this project began with: 261,226 tokens swept rightly, and the least common label then named wrongly.

Here code counts. The same story at ten times the size must end the same way.
"""

import json
import random
from collections import Counter

import dagster as dg
import pytest

from ctxstream_dagster.storage import read_bytes
from tests.fault_server import FaultServer
from tests.orchestration.checkout import LABELS, Checkout

# Lines like these take 2.4 characters a token (docs/choosing-a-model.md): 627,000 characters for 261,226 tokens.
CHARS = 627_000
# The rarest is close to the next, as in the story.
WEIGHTS = (30, 28, 22, 20)


def story(size: int) -> list[str]:
    draw = random.Random(261_226)
    lines: list[str] = []
    chars = 0
    while chars < size:
        label = draw.choices(LABELS, WEIGHTS)[0]
        line = f"ticket {len(lines):06} | Status: {label} | owner: {draw.choice(('ana', 'bo', 'chi'))}"
        lines.append(line)
        chars += len(line) + 1
    return lines


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.soak)])
def test_the_least_common_of_four_labels_is_named_rightly(
    checkout: Checkout, instance: dg.DagsterInstance, server: FaultServer, times: int
) -> None:
    lines = story(CHARS * times)
    checkout.write_corpus(lines)
    question = {"mode": "labels", "extract": "The status of the ticket.", "labels": LABELS, "units_per_window": 200}
    checkout.write_sweep(
        question=question, planning={}, ollama={"num_ctx": 32_768, "num_predict": 4_096}, in_flight=8, batch_size=25
    )
    outcome, _ = checkout.sweep(instance)
    assert outcome.withheld == ""
    truth = Counter(line.split("Status: ")[1].split(" ")[0] for line in lines)
    stated = json.loads(read_bytes(checkout.store().answer))
    assert {row["key"]: row["value"] for row in stated["tally"]} == dict(truth)
    least = min(truth, key=lambda label: truth[label])
    assert stated["keys"] == [least]
    assert stated["coverage"]["units"] == len(lines)
    assert outcome.segments > 10 * times
