"""The evidence page: one HTML file that shows where every counted record stands, and what was not counted and why.

It needs no network and no server. Data goes in as JSON that cannot end its element, is shown as text only, and a
content security policy lets nothing run but the page's own script.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ctxstream_dagster.extraction.records import SegmentResult
from ctxstream_dagster.planning.corpus import PackedCorpus
from ctxstream_dagster.reduction.answer import number
from ctxstream_dagster.reduction.coverage import counted
from ctxstream_dagster.reduction.sweep import Reduction
from ctxstream_dagster.report.charts import bar_chart, share
from ctxstream_dagster.report.entries import Entry, Listing, Status, list_entries
from ctxstream_dagster.report.escaping import html_text, relative_path, script_json, visible
from ctxstream_dagster.report.source import Source, source_text
from ctxstream_dagster.report.summary import certainty_sentence, short_answer

LARGEST_PAGE_BYTES = 14_000_000
_BUDGETS_CHARS = (5_000_000, 2_500_000, 1_000_000, 250_000)
_SCRIPTS = ("list.js", "source.js", "coverage.js", "start.js")
_KEYS_IN_TABLE = 200
_COLOURED_KEYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a page is made of.

    Attributes:
        sweep: its name.
        corpus: the plan that was reduced.
        results: extractions by segment key.
        reduction: what was counted.
        question: what the model was asked, in plain words; may be empty.
        withheld: why there is no answer; empty when there is one.
        remarks: sentences that a reader must know first, for example that the corpus was planned again since.
        root: a directory; paths below it are shown relative to it.
    """

    sweep: str
    corpus: PackedCorpus
    results: Mapping[str, SegmentResult]
    reduction: Reduction
    question: str = ""
    withheld: str = ""
    remarks: tuple[str, ...] = ()
    root: str = ""


def evidence_page(evidence: Evidence) -> bytes:
    """Return the page as UTF-8, at most 14 MB: the more records, the less text around each of them.

    Reads the corpus twice or more. Raises `StorageError` when it cannot.
    """
    listing = list_entries(evidence.corpus, results=evidence.results, reduction=evidence.reduction)
    page = b""
    for budget in _BUDGETS_CHARS:
        source = source_text(evidence.corpus, listing.entries, budget_chars=budget)
        page = _page(evidence, listing=listing, source=source)
        if len(page) <= LARGEST_PAGE_BYTES:
            break
    return page


def _page(evidence: Evidence, *, listing: Listing, source: Source) -> bytes:
    files = importlib.resources.files("ctxstream_dagster.report") / "page"
    read = {name: (files / name).read_text(encoding="utf-8") for name in ("page.html", "page.css", *_SCRIPTS)}
    script = "\n".join(read[name] for name in _SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    reduction, statement = evidence.reduction, evidence.reduction.statement
    by_model = any(entry.status is Status.MODEL_COUNTED for entry in listing.entries)
    certainty = certainty_sentence(reduction, withheld=evidence.withheld, model_counted=by_model)
    state = "withheld" if evidence.withheld else "certain" if statement.certain else "uncertain"
    parts = {
        "script_hash": digest,
        "style": read["page.css"],
        "script": script,
        "data": script_json(_data(evidence, listing=listing, source=source)),
        "sweep": html_text(visible(evidence.sweep)),
        "headline": html_text(visible(evidence.withheld or short_answer(statement, reduction.tally), limit=600)),
        "state": state,
        "state_words": {"withheld": "no answer yet", "certain": "complete", "uncertain": "not certain"}[state],
        "certainty": html_text(certainty.removeprefix("Not certain: ")),
        "question": html_text(visible(evidence.question, limit=1_000)),
        "remarks": "".join(f'<p class="remark">{html_text(visible(remark))}</p>' for remark in evidence.remarks),
        "chart": _chart(reduction, width_px=580, name="wide") + _chart(reduction, width_px=330, name="narrow"),
        "keys": _keys_table(reduction),
        "coverage": html_text(reduction.coverage.sentence()),
        "facts": _facts(evidence),
        "limits": html_text(_limits(listing, source)),
    }
    # One pass: nothing that goes in is read as a place for something else.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], read["page.html"]).encode("utf-8")


def _data(evidence: Evidence, *, listing: Listing, source: Source) -> dict[str, Any]:
    """Return what the script reads; columns instead of objects, names once: a third of the size."""
    pairs = evidence.reduction.tally.sorted[::-1]
    keys = {key: index for index, (key, _) in enumerate(pairs)}
    paths = _numbering([entry.path for entry in listing.entries] + [path for path, _, _ in source.chunks])
    segments = _segments(evidence, paths)
    notes = _numbering(entry.note for entry in listing.entries)
    entries = listing.entries
    plain = all(entry.value == 1 for entry in entries)
    return {
        "keys": [[key, number(value)] for key, value in pairs],
        "coloured": _COLOURED_KEYS,
        "paths": [relative_path(path, root=evidence.root) for path in paths],
        "segments": segments,
        "notes": list(notes),
        "status": [int(entry.status) for entry in entries],
        "key": [_index(entry, keys) for entry in entries],
        "value": None if plain else [number(entry.value) for entry in entries],
        "path": [paths[entry.path] for entry in entries],
        "line": [entry.line for entry in entries],
        "segment": [entry.segment for entry in entries],
        "note": [notes[entry.note] for entry in entries],
        "place": [place or 0 for place in source.places],
        "chunks": [[paths[path], line, text] for path, line, text in source.chunks],
        "whole": source.whole,
    }


def _segments(evidence: Evidence, paths: dict[str, int]) -> list[list[Any]]:
    """Return (key, read or not, path, first line) for each segment, in plan order."""
    failed = {item.key for item in evidence.reduction.coverage.failed}
    rows: list[list[Any]] = []
    for key, stored in evidence.corpus.stored.items():
        span = stored.spans[0] if stored.spans else None
        path = paths.setdefault(span.path, len(paths)) if span else -1
        rows.append([key, int(key not in failed), path, span.line if span else 0])
    return rows


def _index(entry: Entry, keys: Mapping[str, int]) -> int:
    return keys[entry.key] if entry.status <= Status.MODEL_COUNTED else -1


def _numbering(values: Iterable[str]) -> dict[str, int]:
    return {value: index for index, value in enumerate(dict.fromkeys(values))}


def _chart(reduction: Reduction, *, width_px: int, name: str) -> str:
    return f'<div class="chart {name}">{bar_chart(reduction.tally, reduction.statement, width_px=width_px)}</div>'


def _keys_table(reduction: Reduction) -> str:
    answered = set(reduction.statement.keys)
    pairs = reduction.tally.sorted[::-1]
    rows = [
        f"<tr{' class=answered' if key in answered and len(answered) < len(pairs) else ''}>"
        f'<th scope="row"><bdi>{html_text(visible(key, limit=120))}</bdi></th><td>{number(value)}</td>'
        f"<td>{share(value, reduction.tally)}</td></tr>"
        for key, value in pairs[:_KEYS_IN_TABLE]
    ]
    more = (
        f"<p>and {len(pairs) - _KEYS_IN_TABLE:,} more; the filter below knows all.</p>"
        if len(pairs) > _KEYS_IN_TABLE
        else ""
    )
    return (
        '<table><thead><tr><th scope="col">key</th><th scope="col">value</th><th scope="col">share</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>{more}"
    )


def _facts(evidence: Evidence) -> str:
    covered, tally = evidence.reduction.coverage, evidence.reduction.tally
    models = sorted({f"{item.model} {item.model_digest[:12]}".strip() for item in evidence.results.values() if item.ok})
    facts = {
        "coverage": f"{covered.share:.1%} of {covered.segments:,} segments",
        "counted": f"{counted(tally.parsed_records, 'record')}, {counted(len(tally.sorted), 'key')}",
        "rejected": counted(covered.rejected, "reply line"),
        "files": f"{covered.files:,} read, {covered.files_skipped:,} skipped",
        "model": ", ".join(model for model in models if model) or "not recorded",
        "plan": evidence.corpus.directory.name,
    }
    return "".join(
        f"<div><dt>{name}</dt><dd>{html_text(visible(words, limit=200))}</dd></div>" for name, words in facts.items()
    )


def _limits(listing: Listing, source: Source) -> str:
    words = {
        Status.COUNTED: "counted records",
        Status.UNGROUNDED: "counted records",
        Status.MODEL_COUNTED: "counted records",
        Status.REJECTED: "rejected lines",
        Status.FAILED: "failed segments",
        Status.SKIPPED: "skipped paths",
    }
    said: list[str] = []
    if not source.whole:
        said.append("The corpus is large: only the text around what is listed is on this page.")
    said += [f"{count:,} {words[status]} are counted but not listed." for status, count in listing.left_out.items()]
    return " ".join(said) or "The whole text and every entry is on this page."
