"""Writes tickets.txt: help-desk tickets whose notes mention other statuses than the one they have.

Counting the words gives a wrong answer on purpose (the rarest status is talked about the most), so reading each line is
needed, while ``grep -o 'Status: [a-z]*' tickets.txt | sort | uniq -c`` still gives the truth to compare with.
Run it from anywhere: ``python assets/corpora/tickets.py``. Same seed, same file.
"""

from __future__ import annotations

import random
from pathlib import Path

SEED = 20261201
COUNTS = {"open": 64, "pending": 50, "solved": 41, "duplicate": 26, "escalated": 19}

OWNERS = ("ana", "bilal", "chidi", "dora", "emil", "farah", "goran", "hana", "ines", "jonas", "kemal", "lucia")
TEAMS = ("billing", "network", "accounts", "shipping", "desktop", "payroll")
SUBJECTS = (
    "invoice shows the old address",
    "VPN drops every hour",
    "cannot reset password",
    "parcel marked delivered but never came",
    "printer on floor 3 prints blank pages",
    "holiday pay missing in March",
    "two-factor code arrives too late",
    "laptop fan very loud",
    "duplicate charge on card",
    "shared drive is read-only",
    "export to CSV cuts umlauts (Müller, Ångström)",
    "calendar invitations in the wrong time zone",
    "webshop basket empties itself",
    "mail to support@ bounces",
    "licence key rejected",
    "screen flickers after the update",
)
# The rarest status is mentioned the most, and every status is mentioned by tickets that do not have it.
NOTES = (
    "customer asks whether this can be escalated",
    "was escalated twice last year, not now",
    "please do not have it escalated again",
    "a similar ticket was escalated on Monday",
    "escalated tickets of this kind go to {team}",
    "colleague thought it was solved",
    "customer says it is not solved",
    "maybe a duplicate of last week's ticket",
    "approval pending at {team}",
    "the window was left open",
    "reply promised before Friday",
    "sent the logs to {team}",
    "happens only on Mondays",
    "third call this week",
    "screenshot attached",
    "no further details",
)
SHAPE = "#{number} | {date} | {team} | Status: {status} | owner: {owner} | {subject} | {note}"


def tickets(*, seed: int = SEED) -> list[str]:
    """Return the lines, without line ends; the same for the same seed."""
    draw = random.Random(seed)
    statuses = [status for status, count in COUNTS.items() for _ in range(count)]
    draw.shuffle(statuses)
    lines: list[str] = []
    for number, status in enumerate(statuses, start=48_101):
        team = draw.choice(TEAMS)
        lines.append(
            SHAPE.format(
                number=number,
                status=status,
                owner=draw.choice(OWNERS),
                subject=draw.choice(SUBJECTS),
                note=draw.choice(NOTES).format(team=team),
                team=team,
                date=f"2026-{draw.randint(1, 11):02}-{draw.randint(1, 28):02}",
            )
        )
    return lines


if __name__ == "__main__":
    Path(__file__).with_name("tickets.txt").write_text("\n".join(tickets()) + "\n", encoding="utf-8", newline="\n")
