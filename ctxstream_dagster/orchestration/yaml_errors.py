"""Errors of a ``defs.yaml`` with file, line, field and the nearest known name."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from pydantic import ValidationError

from ctxstream_dagster.errors import ConfigError, nearest_name

_SECTIONS = ("question", "planning", "ollama", "schedule")


@contextmanager
def located(file: Path) -> Iterator[None]:
    """Put ``file:line`` before a `ConfigError`: the line of the field its message quotes, as far as there is one."""
    try:
        yield
    except ConfigError as error:
        # What is suggested instead may be a field that stands elsewhere in the file.
        told = str(error).partition(" (did you mean")[0]
        names = [*re.findall(r"'([^']+)'", told), *re.findall(r"\b[a-z_]+\b", told)]
        raise ConfigError(f"{file}:{_line_of(file, names)}: {error}") from error


def explain(error: ValidationError, *, known: Iterable[str]) -> ConfigError:
    """Say in one line for each what Dagster's validation of a component's attributes found.

    Args:
        error: as Dagster raises it, each location ending in `` at <file>:<line>``.
        known: the attributes that exist.
    """
    lines: list[str] = []
    for item in error.errors():
        place, _, where = ".".join(str(part) for part in item["loc"]).partition(" at ")
        field = place.removeprefix("attributes.")
        name = field.split(".")[-1]
        if item["type"] == "extra_forbidden":
            lines.append(f"{where}: unknown field {name!r}{nearest_name(name, known)}.")
        elif item["type"] == "missing":
            lines.append(f"{where}: the field {name!r} is missing.")
        else:
            lines.append(f"{where}: {field}: {item['msg']}.")
    return ConfigError("\n".join(dict.fromkeys(lines)))


def declared_names(sweeps: Path, *, component: str) -> Iterator[tuple[str, str]]:
    """Yield the name of every sweep declared in YAML under `sweeps`, with ``file:line``."""
    for file in sorted(sweeps.rglob("defs.yaml")):
        for document in _documents(file):
            kind, attributes = _child(document, "type"), _child(document, "attributes")
            if kind is None or str(kind.value).rpartition(".")[2] != component:
                continue
            name = _child(attributes, "name") if attributes is not None else None
            line = (name or document).start_mark.line + 1
            yield (str(name.value) if name is not None else file.parent.name), f"{file}:{line}"


def refuse_twins(declared: Iterable[tuple[str, str]]) -> None:
    """Raise `ConfigError` when two sweeps have one name."""
    places: dict[str, str] = {}
    for name, place in declared:
        if name in places:
            raise ConfigError(
                f"{place}: a sweep named {name!r} exists already, in {places[name]}. Give one of them another 'name'."
            )
        places[name] = place


def _line_of(file: Path, names: Sequence[str]) -> int:
    documents = _documents(file)
    for name in names:
        for document in documents:
            attributes = _child(document, "attributes")
            for parent in (attributes, *(_child(attributes, section) for section in _SECTIONS)):
                key = _key(parent, name)
                if key is not None:
                    return key.start_mark.line + 1
    return 1


def _documents(file: Path) -> list[yaml.Node]:
    try:
        return [node for node in yaml.compose_all(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader) if node]
    except (OSError, yaml.YAMLError):
        # Dagster reads the same file next and reports this with its own words and position.
        return []


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)


def _key(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((key for key, _ in node.value if key.value == name), None)
