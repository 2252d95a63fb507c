"""Where a definition really starts: comments and attributes directly above belong to it, though no tree says so."""

from __future__ import annotations

_SLASHES = (b"//", b"/*")
_HASH = (b"#",)
_LONGEST_COMMENT_BYTES = 1 << 14
_PREFIXES: dict[str, tuple[bytes, ...]] = {
    "bash": _HASH,
    "c": _SLASHES,
    "cpp": _SLASHES,
    "csharp": _SLASHES,
    "go": _SLASHES,
    "java": _SLASHES,
    "javascript": _SLASHES,
    "kotlin": _SLASHES,
    "lua": (b"--",),
    "php": (*_SLASHES, b"#"),
    "python": _HASH,
    "ruby": _HASH,
    "rust": (*_SLASHES, b"#["),
    "scala": _SLASHES,
    "swift": _SLASHES,
    "tsx": _SLASHES,
    "typescript": _SLASHES,
}


def leading_start(source: bytes, start: int, *, language: str) -> int:
    """Return where the run of comment and attribute lines directly above the byte `start` begins, or `start`.

    Only whole lines count, a blank line ends the run, and the definition must be the first thing on its line. A
    shebang is no comment.
    """
    first = source.rfind(b"\n", 0, start) + 1
    if first < 2 or source[first - 2 : first] == b"\n\n" or source[first:start].strip():
        return start
    prefixes = _PREFIXES[language]
    top = start
    while first > 0:
        above = source.rfind(b"\n", 0, first - 1) + 1
        line = source[above : first - 1].strip()
        if line.endswith(b"*/") and prefixes[0] == b"//":
            opening = source.rfind(b"/*", max(0, first - _LONGEST_COMMENT_BYTES), first - 1)
            above = source.rfind(b"\n", 0, opening) + 1 if opening >= 0 else above
            line = source[above : first - 1].strip()
        if not line.startswith(prefixes) or (above == 0 and line.startswith(b"#!") and not line.startswith(b"#![")):
            break
        top = above + len(source[above:first]) - len(source[above:first].lstrip(b" \t\f"))
        first = above
    return top
