"""C and C++ with bare macros blanked out, for a grammar that cannot know what a macro stands for.

``FMT_EXPORT`` on a line of its own, ``class API_EXPORT Name`` and ``) LOCKS_EXCLUDED(m) {`` are no C++ to a parser, and
hide the definition they stand at. Blanks of the same length keep every offset. In C only macros that stand for fields
are blanked: the others more often make a function (``TEST_BEGIN(name) {``), and the grammar reads most of those.
"""

from __future__ import annotations

import re

_MACRO = rb"[A-Z][A-Z0-9_]{2,}(?:\([^()\n]*\))?"
# These start with a line end and not with ^, for a literal is found many times faster; `without_macros` adds the first.
_ALONE = re.compile(rb"\n[ \t]*" + _MACRO + rb"[ \t]*\\?$", re.M)
_FIELDS = re.compile(rb"\n[ \t]+[A-Z][A-Z0-9]*_[A-Z0-9_]*(?:\([^()\n]*\))?[ \t]*\\?$", re.M)
_IN_FRONT = re.compile(
    rb"\n[ \t]*[A-Z][A-Z0-9]*_[A-Z0-9_]*[ \t]+"
    rb"(?=(?:template|class|struct|enum|union|namespace|inline|extern|static|const)\b"
    rb"|(?:::)?\w[\w:<>]*[ \t*&]+[\w:~]+\s*[(;=])",
    re.M,
)
_NAMED = re.compile(rb"(?<=class|truct|union)[ \t]+" + _MACRO + rb"(?=[ \t]+[A-Za-z_])")
_BEHIND = re.compile(rb"(?<=\)|t)(?:[ \t\n]+" + _MACRO + rb")+(?=\s*\{)")


def without_macros(source: bytes, *, language: str) -> bytes:
    """Return the source with the macros in these places blanked, line ends kept."""
    plain = b"\n" + source
    for places in (_ALONE, _IN_FRONT, _NAMED, _BEHIND) if language == "cpp" else (_FIELDS,):
        plain = places.sub(_blank, plain)
    return plain[1:]


def _blank(found: re.Match[bytes]) -> bytes:
    return re.sub(rb"[^\n\\]", b" ", found[0])
