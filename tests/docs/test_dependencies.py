"""Every dependency is declared, and has its line in docs/dependencies.md."""

import ast
import re
import sys
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.docs.pages import ROOT, page, sources

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def names(requirements: list[Any]) -> set[str]:
    return {
        re.split(r"[<>=!~\[; ]", requirement)[0].lower().replace("_", "-")
        for requirement in requirements
        if isinstance(requirement, str)
    }


BASE = names(PROJECT["project"]["dependencies"])
EXTRAS = names([item for extra in PROJECT["project"]["optional-dependencies"].values() for item in extra])
DEVELOPMENT = names([item for group in PROJECT["dependency-groups"].values() for item in group])


@pytest.mark.parametrize("name", sorted(BASE | EXTRAS | DEVELOPMENT))
def test_it_has_a_line(name: str) -> None:
    rows = re.findall(r"^\| ([^|]+) \|", page("docs/dependencies.md"), re.MULTILINE)
    listed = {item.strip().lower().replace("_", "-") for row in rows for item in row.split(",")}
    if name.startswith("tree-sitter-"):
        name = "tree-sitter-<language>"
    assert name in listed


def test_whatever_the_package_imports_is_declared() -> None:
    homes = packages_distributions()
    undeclared = set()
    for file, module in sources():
        for node in ast.walk(module):
            for name in _imported(node):
                top = name.partition(".")[0]
                providers = {home.lower().replace("_", "-") for home in homes.get(top, [])}
                if providers and not providers & (BASE | EXTRAS | {"ctxstream-dagster"}):
                    undeclared.add(f"{file.relative_to(ROOT)} imports {top}")
    assert sorted(undeclared) == []


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
