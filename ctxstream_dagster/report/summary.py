"""What the UI shows of a sweep as Markdown, the answer first; plain functions of values, so every front end can."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal

from ctxstream_dagster.planning.corpus import PackedCorpus
from ctxstream_dagster.planning.planned import SourceFile, StoredSegment
from ctxstream_dagster.planning.tokens import estimate_upper
from ctxstream_dagster.reduction.answer import Answer, Statement, construct, number
from ctxstream_dagster.reduction.coverage import Coverage, counted
from ctxstream_dagster.reduction.sweep import Reduction
from ctxstream_dagster.reduction.tally import Tally, exact_sum
from ctxstream_dagster.report.charts import bar_chart, bars, chart_data_url, share
from ctxstream_dagster.report.escaping import markdown_text, relative_path, visible

MODEL_COUNTED = (
    "The model added up by itself (mode counts), so no number here was computed from lines by code. "
    "Ask for labels or records to have code count."
)
_CELL_CHARS = 120
_KEYS_NAMED = 5
_INLINE_CHARS = 920
_INLINE_KEY_CHARS = 30
_INLINE_BAR_CHARS = 6
_REASON_CHARS = 300
_FILES_NAMED = 5
_REASONS_NAMED = 5
# A line of the Overview's column of values holds about 32.
_PATH_CHARS = 30
_SAMPLED_SEGMENTS = 64


def answer_markdown(
    reduction: Reduction,
    *,
    segment_url: Callable[[str], str] | None = None,
    withheld: str = "",
    model_counted: bool = False,
    chart: bool = True,
    linked: int = 20,
) -> str:
    """Return answer, certainty, chart, table and coverage of a sweep as Markdown, in the order a reader asks.

    Args:
        reduction: what code concluded (`reduction.sweep.reduce_sweep`, or `stored_reduction` of a stored one).
        segment_url: gives the address of a segment's page by its key; None for no links.
        withheld: why there is no answer; then it stands in the answer's place.
        model_counted: whether the model counted by itself (mode `counts`).
        chart: whether the bar chart goes in, as a ``data:`` image of 4 to 20 KB.
        linked: failed segments that are listed by name.
    """
    certainty = certainty_sentence(reduction, withheld=withheld, model_counted=model_counted)
    parts = [_headline(reduction, withheld=withheld), certainty]
    if chart and reduction.tally.sorted:
        svg = bar_chart(reduction.tally, reduction.statement)
        parts.append(f"![Bar chart of the tally; the table below says the same]({chart_data_url(svg)})")
    parts += [tally_markdown(reduction), coverage_markdown(reduction.coverage, segment_url=segment_url, linked=linked)]
    return "\n\n".join(part for part in parts if part)


def answer_inline(reduction: Reduction, *, model_counted: bool = False) -> str:
    """Return answer, certainty, coverage and as many of the keys as fit into 999 characters of Markdown.

    Dagster shows so much in the asset's own page; anything longer hides behind a link.
    """
    head = [_headline(reduction, withheld=""), certainty_sentence(reduction, model_counted=model_counted)]
    foot = f"Coverage {reduction.coverage.share:.1%} of {counted(reduction.coverage.segments, 'segment')}."
    tally = reduction.tally
    pairs = tally.sorted if reduction.statement.how is Answer.LEAST else tally.sorted[::-1]
    most = max((abs(value) for _, value in pairs), default=Decimal(0))
    lines = ["| key | value | share | |", "|---|--:|--:|---|"]
    for key, value in pairs:
        bar = "█" * round(_INLINE_BAR_CHARS * abs(value) / most) if most else ""
        name = markdown_text(key, limit=_INLINE_KEY_CHARS)
        line = f"| {name} | {number(value)} | {share(value, tally)} | {bar} |"
        if sum(map(len, [*head, foot, *lines, line])) > _INLINE_CHARS:
            break
        lines.append(line)
    left = len(pairs) - (len(lines) - 2)
    if left:
        foot = f"{counted(left, 'other key')}. {foot}"
    shown = [*head, "\n".join(lines), foot] if len(lines) > 2 else [*head, foot]
    return "\n\n".join(shown)[:999]


def certainty_sentence(reduction: Reduction, *, withheld: str = "", model_counted: bool = False) -> str:
    """Say how sure the answer is, and how far it is from another one."""
    statement = reduction.statement
    if withheld:
        so_far = "What follows is what was counted so far; it is no answer yet."
        return f"{so_far} {MODEL_COUNTED}" if model_counted else so_far
    if model_counted:
        return f"{MODEL_COUNTED}{'' if statement.certain else f' Not certain: {statement.caveat}.'}"
    if not statement.certain:
        return f"Not certain: {statement.caveat}."
    sure = "Nothing unread or rejected could change it; what each unit says is the model's reading."
    if statement.how is Answer.LEAST and not statement.value:
        sure += (
            " No unit got this label: look whether it is missing, or the question or its examples lead away from it."
        )
    if statement.margin is None or statement.how not in (Answer.LEAST, Answer.MOST):
        return sure
    return f"{sure} The next value is {number(statement.margin)} away{_of_total(statement.margin, reduction.tally)}."


def short_answer(statement: Statement, tally: Tally) -> str:
    """Return the answer in a line that stays short: of many keys the first few, and how many others there are."""
    if len(statement.keys) <= _KEYS_NAMED:
        return statement.text
    label = statement.text.partition(": ")[0]
    more = f"and {len(statement.keys) - _KEYS_NAMED:,} more"
    if statement.how is Answer.LIST:
        named = ", ".join(f"{key} {number(value)}" for key, value in tally.sorted[::-1][:_KEYS_NAMED])
        return f"{label}: {len(statement.keys):,} keys: {named} {more}"
    rest = statement.text[len(label) + 2 + len(", ".join(statement.keys)) :]
    return f"{label}: {', '.join(statement.keys[:_KEYS_NAMED])} {more}{rest}"


def tally_markdown(reduction: Reduction) -> str:
    """Return the table of keys, values, shares and records; of more than 31 keys the first and last 15."""
    records = dict(
        zip(reduction.tally_table["key"].to_pylist(), reduction.tally_table["records"].to_pylist(), strict=True)
    )
    rows = bars(reduction.tally, reduction.statement)
    if not rows:
        return ""
    lines = ["| key | value | share | records |", "|---|--:|--:|--:|"]
    for row in rows:
        if row.value is None:
            lines.append(f"| {markdown_text(row.label)} | {markdown_text(row.note)} | | |")
            continue
        key = markdown_text(row.label, limit=_CELL_CHARS)
        part = share(row.value, reduction.tally)
        bold = "**" if row.answered else ""
        lines.append(
            f"| {bold}{key}{bold} | {bold}{number(row.value)}{bold} | {part} | {records.get(row.label, 0):,} |"
        )
    return "\n".join(lines)


def coverage_markdown(coverage: Coverage, *, segment_url: Callable[[str], str] | None = None, linked: int = 20) -> str:
    """Return the coverage sentence and every failed segment with its reason, up to `linked` of them."""
    lines = [f"**Coverage {coverage.share:.1%}.** {markdown_text(coverage.sentence())}"]
    if coverage.failed:
        lines.append("")
    for failed in coverage.failed[:linked]:
        key = markdown_text(failed.key)
        name = f"[{key}]({segment_url(failed.key)})" if segment_url else key
        lines.append(f"- {name}: {markdown_text(failed.reason, limit=_REASON_CHARS)}")
    if len(coverage.failed) > linked:
        lines.append(f"- and {len(coverage.failed) - linked:,} more")
    return "\n".join(lines)


def manifest_markdown(corpus: PackedCorpus, *, root: str = "") -> str:
    """Return the plan at a glance: segments, how full they are, tokens, the first files, what was left out and why.

    Lines stay short and break, so that the asset's own page shows them whole. Reads at most 64 segments' text, evenly
    spread, to estimate tokens. Raises `StorageError`.

    Args:
        corpus: the plan.
        root: a directory; paths below it are shown relative to it.
    """
    stored = list(corpus.stored.values())
    proof, options = corpus.manifest.proof, corpus.options
    fills = [entry.segment.length / options.segment_chars for entry in stored]
    full = f"{statistics.median(fills):.0%} of its limit"
    if len(stored) > 1:
        full += f" in the middle ({_range(fills, spec='.0%')})"
    tile = "tiles" if len(stored) == 1 else "tile"
    head = (
        f"**{counted(len(stored), 'segment')}** {tile} {counted(proof.chars, 'character')} of "
        f"{counted(len(corpus.files), 'file')} exactly, each character owned once. "
        f"A segment holds {_range([entry.segment.length for entry in stored])} characters, {full}."
    )
    found = _files(corpus)
    files = [
        f"- {_tail(relative_path(file.path, root=root))}: {counted(len(fills), 'segment')}, {_full(fills)} full"
        for file, fills in found[:_FILES_NAMED]
    ]
    if len(found) > _FILES_NAMED:
        files.append(f"- and {counted(len(found) - _FILES_NAMED, 'more file')}")
    parts = [head, _tokens(corpus, stored), "\n".join(files)]
    if proof.cut_records:
        parts.append(f"{counted(proof.cut_records, 'record')} longer than a segment, cut.")
    parts.append(_skipped(corpus))
    return "\n\n".join(part for part in parts if part)


def by_file_markdown(corpus: PackedCorpus, *, root: str = "", rows: int = 50) -> str:
    """Return the plan file by file, with a chart, and every path that was left out with its reason, up to `rows` each.

    Always long enough for Dagster to open it in a window of its own, where a table has the room that it needs.
    """
    files = _files(corpus)
    segments = [(relative_path(file.path, root=root), Decimal(len(fills))) for file, fills in files]
    tally = Tally(
        sorted=tuple(reversed(segments)), total=exact_sum(count for _, count in segments), parsed_records=len(segments)
    )
    chart = chart_data_url(bar_chart(tally, construct(tally, Answer.LIST, label="Segments by file")))
    lines = ["| file | segments | full | characters | bytes | encoding |", "|---|--:|--:|--:|--:|---|"]
    for file, fills in files[:rows]:
        path = markdown_text(relative_path(file.path, root=root), limit=_CELL_CHARS)
        lines.append(
            f"| {path} | {len(fills):,} | {_full(fills)} | {file.chars:,} | {file.bytes:,} | {file.encoding} |"
        )
    more = f"and {counted(len(files) - rows, 'more file')}." if len(files) > rows else ""
    parts = [f"![Segments by file; the table below says the same]({chart})", "\n".join(lines), more]
    return "\n\n".join(part for part in [*parts, _skipped_table(corpus, root=root, rows=rows)] if part)


def _headline(reduction: Reduction, *, withheld: str) -> str:
    if withheld:
        return f"### No answer: {markdown_text(withheld, limit=600)}"
    return f"### {markdown_text(short_answer(reduction.statement, reduction.tally), limit=600)}"


def _of_total(value: Decimal, tally: Tally) -> str:
    part = share(value, tally)
    return f", {part} of the total" if part else ""


def _range(values: Sequence[float], *, spec: str = ",") -> str:
    least, most = format(min(values), spec), format(max(values), spec)
    return least if least == most else f"{least} to {most}"


def _tokens(corpus: PackedCorpus, stored: Sequence[StoredSegment]) -> str:
    step = max(1, len(stored) // _SAMPLED_SEGMENTS)
    sample = [corpus.read(entry.segment.key) for entry in stored[::step][:_SAMPLED_SEGMENTS]]
    tokens = [estimate_upper(text.overlap + text.core) for text in sample]
    chars = sum(text.segment.length for text in sample)
    whole = sum(tokens) / chars * corpus.manifest.proof.chars
    return (
        f"At most about {whole:,.0f} tokens in all, {_range(tokens)} a segment "
        f"(upper estimate{f', from {len(sample)} segments' if len(sample) < len(stored) else ''})."
    )


def _files(corpus: PackedCorpus) -> list[tuple[SourceFile, list[float]]]:
    """Return each file with how full the segments are that hold text of it, those of most segments first."""
    fills: dict[str, list[float]] = defaultdict(list)
    for entry in corpus.stored.values():
        for path in {span.path for span in entry.spans}:
            fills[path].append(entry.segment.length / corpus.options.segment_chars)
    return sorted(((file, fills[file.path]) for file in corpus.files), key=lambda pair: (-len(pair[1]), pair[0].path))


def _full(fills: Sequence[float]) -> str:
    return f"{statistics.mean(fills):.0%}" if fills else "0%"


def _skipped_table(corpus: PackedCorpus, *, root: str, rows: int) -> str:
    if not corpus.skipped:
        return ""
    lines = [f"**{counted(len(corpus.skipped), 'path')} skipped**", "", "| path | reason | detail |", "|---|---|---|"]
    lines += [
        f"| {markdown_text(relative_path(entry.path, root=root), limit=_CELL_CHARS)} | {markdown_text(entry.reason)} "
        f"| {markdown_text(entry.detail, limit=_REASON_CHARS)} |"
        for entry in corpus.skipped[:rows]
    ]
    if len(corpus.skipped) > rows:
        lines += ["", f"and {len(corpus.skipped) - rows:,} more."]
    return "\n".join(lines)


def _skipped(corpus: PackedCorpus) -> str:
    if not corpus.skipped:
        return "Nothing was skipped."
    reasons = Counter(entry.reason for entry in corpus.skipped)
    named = ", ".join(f"{count:,} {visible(reason)}" for reason, count in reasons.most_common(_REASONS_NAMED))
    more = f" and {len(reasons) - _REASONS_NAMED} more reasons" if len(reasons) > _REASONS_NAMED else ""
    return f"**{counted(len(corpus.skipped), 'path')} skipped:** {markdown_text(named)}{more}."


def _tail(path: str) -> str:
    """Return the end of a path, which says more than its start, short enough for a narrow column."""
    cut = path if len(path) <= _PATH_CHARS else "…" + path[1 - _PATH_CHARS :]
    return markdown_text(cut)
