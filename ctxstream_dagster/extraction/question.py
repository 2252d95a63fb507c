"""What a sweep asks: the one value that decides prompt, windows and decoding, checked when it is made."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast, get_args

from ctxstream_dagster.errors import ConfigError, nearest_name

Mode = Literal["counts", "records", "labels"]
Grounding = Literal["none", "verbatim"]

# Raise PROMPT_VERSION when a rendered prompt changes, DECODER_VERSION when a stored reply may decode differently.
PROMPT_VERSION = 1
DECODER_VERSION = 4

# Measured (docs/choosing-a-model.md): one unit a call labels best and fastest; lists stay exact up to about 24.
_UNITS_PER_WINDOW: Mapping[str, int] = {"counts": 0, "records": 20, "labels": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A solved example, shown before the text.

    Attributes:
        text: the text of a unit, or of a whole window.
        reply: the reply that is right for it.
    """

    text: str
    reply: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One counting question, and how its replies are read.

    Attributes:
        extract: what to look for, in plain words.
        mode: ``labels`` gives every unit one label of a closed set; ``records`` lists keys by unit; ``counts`` asks the
            model to count, which small models get wrong.
        labels: the closed set. Required in `labels`; elsewhere optional, and then any other key is rejected.
        examples: solved examples. In `labels` a reply is a label; elsewhere it is the reply lines.
        cue: in `labels` with one unit a call, the words that end the question, best taken from the text itself
            (``Status:``). Measured on a 270M model: 44 of 60 right without, 59 with.
        units_per_window: units sent in one call; 0 for the whole segment; None for the measured default of the mode
            (labels 1, records 20, counts 0).
        values: in `records`, whether a line may carry a value; without it every record counts 1.
        max_records_per_unit: in `records`, how many records one unit may give; None for no limit.
        grounding: ``verbatim`` rejects, in `records`, a key that does not stand in its unit, or is reported more often
            than it stands there, and a value that is none of the unit's numbers.
        ignore_case: whether keys that differ only in case are the same key.
        nfc: whether keys that differ only in Unicode normalisation are the same key.
        max_rejected: share of reply lines (units, in `labels`) that may be no records before a segment fails.
        canary: in `records` and `counts`, ask for a fixed first line whose loss hints at a clipped prompt. Only
            recorded: small models leave it out for no reason.

    Raises `ConfigError` when a setting is missing, of the wrong type, out of range or makes no sense in the mode.
    """

    extract: str
    mode: Mode
    labels: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    cue: str = "Label:"
    units_per_window: int | None = None
    values: bool = False
    max_records_per_unit: int | None = None
    grounding: Grounding = "none"
    ignore_case: bool = False
    nfc: bool = False
    max_rejected: float = 0.02
    canary: bool = False

    def __post_init__(self) -> None:
        # A list from YAML is welcome; the value kept is a tuple, so that a question can be hashed.
        for name in ("labels", "examples"):
            given = cast("object", getattr(self, name))
            if isinstance(given, list):
                object.__setattr__(self, name, tuple(cast("list[object]", given)))
        _check_types(self)
        _check_labels(self)
        _check_mode(self)

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Question:
        """Build a question from settings by name; an unknown name raises `ConfigError` with the nearest known one."""
        known = {field.name for field in fields(cls)}
        for name in mapping:
            if name not in known:
                raise ConfigError(f"Unknown question setting {name!r}{nearest_name(name, known)}.")
        for name in ("extract", "mode"):
            if name not in mapping:
                raise ConfigError(f"The question needs {name!r}.")
        values = dict(mapping)
        values["examples"] = tuple(_example(item) for item in cast("list[Any]", values.get("examples") or ()))
        return cls(**values)

    @property
    def window_units(self) -> int:
        """Units in one call, 0 for the whole segment."""
        return _UNITS_PER_WINDOW[self.mode] if self.units_per_window is None else self.units_per_window

    def same_key(self, text: str) -> str:
        """Return the form in which keys are compared, as far as variants are to be the same key."""
        if self.nfc:
            text = unicodedata.normalize("NFC", text)
        return text.casefold() if self.ignore_case else text

    def advice(self) -> str:
        """A sentence when another setting is known to do better, else an empty string."""
        if self.mode == "counts" and self.labels:
            return (
                "mode 'counts' lets the model count, and no small model measured got one tally right; "
                "with a closed set of labels, mode 'labels' lets code count."
            )
        return ""


def extraction_version(question: Question, settings: Mapping[str, Any]) -> str:
    """Hash everything but the text that decides a segment's records.

    Args:
        question: what is asked.
        settings: the backend's `settings()` (num_ctx, temperature, seed, …) and, when known, the model's digest.

    Returns:
        12 hexadecimal digits; different whenever question, settings, prompt or decoder changed.
    """
    content = {
        "question": asdict(question),
        "settings": dict(settings),
        "prompt": PROMPT_VERSION,
        "decoder": DECODER_VERSION,
    }
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _example(item: object) -> Example:
    if isinstance(item, Example):
        return item
    if not isinstance(item, Mapping):
        raise ConfigError(f"An example has 'text' and 'reply', not {item!r}.")
    entry = cast("Mapping[str, object]", item)
    for name in entry:
        if name not in ("text", "reply"):
            raise ConfigError(f"Unknown example setting {name!r}{nearest_name(name, ('text', 'reply'))}.")
    text, reply = entry.get("text"), entry.get("reply")
    if not isinstance(text, str) or not isinstance(reply, str):
        raise ConfigError("An example needs 'text' and 'reply', both text.")
    return Example(text=text, reply=reply)


def _check_types(question: Question) -> None:
    if not isinstance(cast("object", question.extract), str) or not question.extract.strip():
        raise ConfigError("'extract' says what to look for; it is empty.")
    if question.mode not in get_args(Mode):
        choices = ", ".join(get_args(Mode))
        raise ConfigError(
            f"Unknown mode {question.mode!r}{nearest_name(str(question.mode), get_args(Mode))}; {choices}."
        )
    if question.grounding not in get_args(Grounding):
        choices = get_args(Grounding)
        near = nearest_name(str(question.grounding), choices)
        raise ConfigError(f"Unknown grounding {question.grounding!r}{near}: choose {', '.join(choices)}.")
    if not isinstance(cast("object", question.cue), str) or "\n" in question.cue:
        raise ConfigError(f"'cue' is one line of text, not {question.cue!r}.")
    for name in ("values", "ignore_case", "nfc", "canary"):
        if not isinstance(cast("object", getattr(question, name)), bool):
            raise ConfigError(f"{name!r} is true or false, not {getattr(question, name)!r}.")
    for name, least in (("units_per_window", 0), ("max_records_per_unit", 1)):
        value = cast("object", getattr(question, name))
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < least):
            raise ConfigError(f"{name!r} is a whole number from {least}, not {value!r}.")
    share = cast("object", question.max_rejected)
    if not isinstance(share, int | float) or isinstance(share, bool) or not 0 <= share < 1:
        raise ConfigError(f"'max_rejected' is a share from 0 to below 1, not {share!r}.")
    if not all(isinstance(cast("object", example), Example) for example in question.examples):
        raise ConfigError("'examples' holds entries with 'text' and 'reply'.")


def _check_labels(question: Question) -> None:
    if isinstance(cast("object", question.labels), str):
        raise ConfigError(f"'labels' is a list, not the single text {question.labels!r}.")
    seen: dict[str, str] = {}
    for label in cast("tuple[object, ...]", question.labels):
        if not isinstance(label, str):
            raise ConfigError(f"A label is text, not {label!r}; put it in quotes.")
        if not label.strip() or label != label.strip() or any(character in label for character in "\t\r\n"):
            raise ConfigError(f"A label is one line without surrounding spaces or tabs, not {label!r}.")
        if any("\ud800" <= character <= "\udfff" for character in label):
            raise ConfigError(
                f"The label {label!r} is no whole text: it holds half a surrogate pair. Write it as UTF-8."
            )
        folded = question.same_key(label)
        if folded in seen:
            raise ConfigError(f"Labels {seen[folded]!r} and {label!r} are the same label.")
        seen[folded] = label


def _check_mode(question: Question) -> None:
    if question.mode == "labels":
        if len(question.labels) < 2:
            raise ConfigError("mode 'labels' chooses between labels: give at least two, for example labels: [yes, no].")
        for example in question.examples:
            if example.reply not in question.labels:
                raise ConfigError(
                    f"An example's reply {example.reply!r} is none of the labels"
                    f"{nearest_name(example.reply, question.labels)}."
                )
    if question.mode != "records":
        if question.values or question.max_records_per_unit is not None:
            raise ConfigError("'values' and 'max_records_per_unit' belong to mode 'records'.")
        if question.grounding != "none":
            raise ConfigError("'grounding' belongs to mode 'records'; 'labels' is grounded by its closed set.")
    if question.mode == "labels" and question.canary:
        raise ConfigError("'canary' belongs to modes 'records' and 'counts'; a label's reply has no room for it.")
