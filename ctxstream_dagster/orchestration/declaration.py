"""What a ``defs.yaml`` may say, read off the component: the editor's JSON schema and the file that `init` writes."""

import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields
from itertools import takewhile
from typing import Any

from pydantic import TypeAdapter

from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import Example, Question
from ctxstream_dagster.orchestration.component import SweepComponent
from ctxstream_dagster.orchestration.spec import Schedule
from ctxstream_dagster.planning.options import ManifestOptions

COMPONENT = f"{SweepComponent.__module__}.{SweepComponent.__name__}"
SECTIONS: Mapping[str, type[Any]] = {
    "question": Question,
    "planning": ManifestOptions,
    "ollama": OllamaOptions,
    "schedule": Schedule,
}
# What a newcomer changes; the rest is in docs/sweep-options.md and in the editor's completion.
_SHOWN: Mapping[str, Sequence[str]] = {
    "question": ("mode", "extract", "labels", "cue", "examples", "units_per_window", "grounding"),
    "planning": ("segment_chars", "overlap_chars", "unit", "record_delim"),
    "ollama": ("url", "model", "num_ctx", "num_predict"),
    "schedule": ("cron", "retry_cron", "max_tries"),
}
# For settings without a default, or with one that does not show their form.
_EXAMPLES = {
    "mode": "labels",
    "extract": "",
    "cron": "0 3 * * *",
    "examples": [{"text": "a line like those of the corpus", "reply": "its label"}],
}
_HEAD = """\
# yaml-language-server: $schema=../../sweep.schema.json
# One question asked of one corpus. Lines with a # show what else may be said, with its default; all of it is in
# docs/sweep-options.md. `ctxstream check` validates this file without running it.
"""
_ENTRY = re.compile(r"([a-z_][a-z0-9_]*(?:, [a-z_][a-z0-9_]*)*): (.*)", re.DOTALL)
_TEMPLATE = {"type": "string", "pattern": r"\{\{.*\}\}"}


def new_sweep(
    *, corpus: Sequence[str], extract: str, labels: str, answer: str, cue: str = "", examples: Sequence[Example] = ()
) -> dict[str, Any]:
    """Return the attributes of a new sweep; without `labels` (separated by commas) the model names the keys."""
    closed = [label.strip() for label in labels.split(",") if label.strip()]
    question: dict[str, Any] = {"mode": "labels", "extract": extract, "labels": closed}
    if not closed:
        question = {"mode": "records", "extract": extract}
    if cue:
        question["cue"] = cue
    if examples:
        question["examples"] = [asdict(example) for example in examples]
    return {"corpus": list(corpus), "question": question, "answer": answer}


def sweep_yaml(attributes: Mapping[str, Any]) -> str:
    """Return a commented ``defs.yaml`` that sets `attributes` and shows, commented out, what else there is."""
    lines = [_HEAD + f"type: {COMPONENT}", "attributes:"]
    for name, field in SweepComponent.model_fields.items():
        said = re.sub(r"; fields of `\w+`", "", field.description or "")
        lines += [f"  # {line}" for line in _wrapped(said, indent=4)]
        section = SECTIONS.get(name)
        given = attributes.get(name, MISSING)
        if section is None:
            lines.append(_setting(name, given, default=field.get_default(call_default_factory=True), indent=2))
        else:
            lines += _section(name, section, given={} if given is MISSING else given, used=given is not MISSING)
    return "\n".join(lines) + "\n"


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a ``defs.yaml`` that declares a sweep, for an editor's completion and checks."""
    whole = SweepComponent.model_json_schema()
    properties, definitions = whole["properties"], whole.get("$defs", {})
    for name, section in SECTIONS.items():
        described = TypeAdapter(section).json_schema()
        definitions.update(described.pop("$defs", {}))
        _explain(described, section)
        described["description"] = properties[name]["description"]
        if name not in whole["required"]:
            described["type"] = ["object", "null"]
        properties[name] = described
    for definition in definitions.values():
        definition["additionalProperties"] = False
        definition.pop("description", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A ctxstream sweep",
        "type": "object",
        "properties": {
            "type": {"const": COMPONENT},
            "attributes": {
                "type": "object",
                "properties": {name: _or_template(entry) for name, entry in properties.items()},
                "required": whole["required"],
                "additionalProperties": False,
            },
            "template_vars_module": {"type": "string"},
            "requirements": {"type": "object"},
            "post_processing": {"type": "object"},
        },
        "required": ["type", "attributes"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def attributes(value: type[Any]) -> dict[str, str]:
    """Return what a class's docstring says of each entry under ``Attributes``, each as one line."""
    lines = inspect.cleandoc(value.__doc__ or "").partition("Attributes:\n")[2].splitlines()
    block = "\n".join(takewhile(lambda line: not line or line.startswith("    "), lines))
    found: dict[str, str] = {}
    for entry in re.split(r"\n {4}(?! )", f"\n{block}"):
        if match := _ENTRY.match(" ".join(entry.split())):
            meaning = match[2].replace("``", "`")
            found |= dict.fromkeys(match[1].split(", "), meaning[:1].upper() + meaning[1:])
    return found


def meanings(value: type[Any]) -> dict[str, str]:
    """Return `attributes` in the words of a YAML file, which knows no ``None``."""
    return {name: re.sub(r"\bNone\b", "`null`", said) for name, said in attributes(value).items()}


def _section(name: str, section: type[Any], *, given: Mapping[str, Any], used: bool) -> Iterator[str]:
    mark = "" if used else "# "
    yield f"  {mark}{name}:"
    known, said = {field.name: field for field in fields(section)}, meanings(section)
    for entry in dict.fromkeys([*given, *_SHOWN[name]]):
        yield from (f"    # {line}" for line in _wrapped(said[entry], indent=6))
        yield _setting(entry, given.get(entry, MISSING), default=_default(known[entry]), indent=4)


def _setting(name: str, given: Any, *, default: Any, indent: int) -> str:
    mark, value = ("# ", default) if given is MISSING else ("", given)
    return f"{' ' * indent}{mark}{name}: {_written(value)}"


def _written(value: Any) -> str:
    """Write a value in YAML's flow style, which JSON is a part of; what looks like a template is protected from it."""
    if isinstance(value, str) and re.search(r"\{[{%#]", value):
        value = "{% raw %}" + value + "{% endraw %}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(_written(item) for item in value)}]"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if text.isprintable() else json.dumps(value)


def _default(field: Field[Any]) -> Any:
    if field.name in _EXAMPLES:
        return _EXAMPLES[field.name]
    if field.default is not MISSING:
        return field.default
    assert field.default_factory is not MISSING, f"{field.name} has no default and no example"
    return field.default_factory()


def _wrapped(text: str, *, indent: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) + indent > 118:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines if text else []


def _explain(described: dict[str, Any], section: type[Any]) -> None:
    described["additionalProperties"] = False
    described.pop("title", None)
    said = meanings(section)
    for name, entry in described["properties"].items():
        entry["description"] = said[name]
        entry.pop("title", None)
        described["properties"][name] = _or_template(entry)


def _or_template(entry: dict[str, Any]) -> dict[str, Any]:
    """Allow ``{{ env.X }}`` in the place of any value that is no text already: Dagster fills it in."""
    if entry.get("type") in ("string", "object", ["object", "null"]):
        return entry
    kept = {name: entry.pop(name) for name in ("description", "default") if name in entry}
    entry.pop("title", None)
    return {**kept, "anyOf": [*entry.pop("anyOf", [entry] if entry else []), _TEMPLATE]}
