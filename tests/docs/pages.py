"""The documentation as tests see it: its pages, what they link to, what they show in code, and what the code says."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ctxstream_dagster"
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CHANGELOG.md"])

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def everything() -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in PAGES)


def blocks(text: str, language: str) -> list[str]:
    """Return the contents of a page's code blocks in one language."""
    return [body for found, body in _FENCE.findall(text) if found == language]


def prose(text: str) -> str:
    """Return a page without its code blocks."""
    return _FENCE.sub("", text)


def sources(*rooms: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the package's modules, parsed; those of `rooms` when given."""
    for folder in [PACKAGE / room for room in rooms] or [PACKAGE]:
        for file in sorted(folder.rglob("*.py")):
            yield file, ast.parse(file.read_text(encoding="utf-8"))


def sentences() -> Iterator[str]:
    """Yield every text in the package's code, with … where a value is filled in."""
    for _, module in sources():
        for node in ast.walk(module):
            if isinstance(node, ast.JoinedStr):
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
