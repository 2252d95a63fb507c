"""What the planning properties are tried on: texts full of record ends, and options of every size."""

from __future__ import annotations

from hypothesis import strategies as st

from ctxstream_dagster.planning.cutter import Cut, Cutter
from ctxstream_dagster.planning.options import ManifestOptions

DELIMS = ("\n", "\n\n", "\r\n", "||", "aba", "é漢")

# Made of pieces, so that delimiters (also ones that overlap themselves), CRLFs, blank records, equal neighbours and
# records longer than a segment come up all the time.
texts = st.lists(
    st.sampled_from(
        ["a", "b", " ", "\n", "\n", "\r\n", "|", "||", "aba", "é漢", "😀", "\n\n\n", "ababa", "x" * 9, "x" * 20]
    ),
    max_size=25,
).map("".join)
pieces = st.lists(st.sampled_from([1, 1, 2, 7, 50]), min_size=1, max_size=5)
corpora = st.lists(texts, min_size=1, max_size=4)


@st.composite
def manifest_options(draw: st.DrawFn) -> ManifestOptions:
    delim = draw(st.sampled_from(DELIMS))
    segment_chars = draw(st.integers(min_value=len(delim), max_value=40))
    return ManifestOptions(
        segment_chars=segment_chars,
        overlap_chars=draw(st.integers(min_value=0, max_value=segment_chars - 1)),
        boundary_slack=draw(st.none() | st.integers(min_value=0, max_value=segment_chars - 1)),
        record_delim=delim,
        boundary=draw(st.sampled_from(["nearest", "stable"])),
        max_tokens=draw(st.none() | st.integers(min_value=16, max_value=40)),
    )


def packed(files: list[str], *, delim: str) -> str:
    """The packed text by its definition."""
    with_text = [text for text in files if text]
    ended = [text if text.endswith(delim) else text + delim for text in with_text[:-1]]
    return "".join(ended + with_text[-1:])


def cuts(files: list[str], options: ManifestOptions, *, pieces: list[int] | None = None) -> list[Cut]:
    """Cut `files`, fed whole or in pieces of the given sizes, taken round and round."""
    cutter = Cutter(options)
    found: list[Cut] = []
    sizes = pieces or []
    turn = 0
    for number, text in enumerate(files):
        at = 0
        while at < len(text):
            size = sizes[turn % len(sizes)] if sizes else len(text)
            turn += 1
            found += cutter.feed(number, text[at : at + size])
            at += size
    return [*found, *cutter.finish()]
