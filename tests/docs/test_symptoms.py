"""Whoever searches the troubleshooting page for a sentence must find it: the page quotes what the code says."""

import re

import pytest

from tests.docs.pages import page, sentences

# What other programs say, quoted beside ours.
FOREIGN = {"No space left on device", "existed at storage-time, but no longer does"}
QUOTES = [
    quote
    for row in re.findall(r"^\| (.*?) \|", page("docs/troubleshooting.md"), re.MULTILINE)
    for quote in re.findall(r"`([^`]* [^`]*)`", row)
    if quote not in FOREIGN
]


def test_the_page_quotes_sentences() -> None:
    assert len(QUOTES) > 20


@pytest.mark.parametrize("quote", QUOTES)
def test_the_code_says_it(quote: str) -> None:
    pattern = re.compile(".*".join(re.escape(part) for part in quote.split("…")), re.DOTALL)
    assert any(pattern.search(sentence) for sentence in sentences()), f"no sentence of the code is {quote!r}"
