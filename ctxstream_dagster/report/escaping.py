"""Text from corpora and models, made harmless for each place where it is shown.

Whatever a file holds (markup, control characters, lone surrogates, marks that turn the reading direction) must show as
text and must not run, hide or reorder what stands around it.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Everything that GitHub-flavoured Markdown or HTML gives a meaning inside a line.
_MARKDOWN = re.compile(r"([\\`*_\[\]!|~$@]|:(?=//))")
_SCRIPT = re.compile("[<>&\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def visible(text: str, *, limit: int = 0) -> str:
    """Return `text` as one line in which every character can be seen.

    Control characters become their pictures (``␉``), other characters without a shape ``⟨U+202E⟩``; joiners inside
    words (U+200C, U+200D) stay. A `limit` above 0 cuts to so many characters, the last of them ``…``.
    """
    cut = text[:limit] if limit else text
    shown = "".join(_picture(character) for character in cut)
    if limit and (len(text) > limit or len(shown) > limit):
        return shown[: limit - 1] + "…"
    return shown


def markdown_text(text: str, *, limit: int = 0) -> str:
    """Return `text` as one line of Markdown that shows exactly `visible(text)`, in a table's cell too."""
    return _MARKDOWN.sub(r"\\\1", html.escape(visible(text, limit=limit), quote=False))


def html_text(text: str) -> str:
    """Return `text` for HTML content and quoted attributes; what UTF-8 cannot hold becomes U+FFFD."""
    return re.sub("[\ud800-\udfff\x00]", "\ufffd", html.escape(text))


def script_json(value: object) -> str:
    """Return `value` as JSON that may stand inside an HTML script element: nothing in it can end the element."""
    dense = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _SCRIPT.sub(lambda found: f"\\u{ord(found.group()):04x}", dense)


def relative_path(path: str, *, root: str) -> str:
    """Return `path` below the directory `root` relative to it; any other path, and every path without a root, as is."""
    return path.removeprefix(root.rstrip("/") + "/") if root else path


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if character in "\u200c\u200d" or unicodedata.category(character) not in _UNSEEN:
        return character
    return f"⟨U+{code:04X}⟩"
