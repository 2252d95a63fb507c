"""The model server as a Dagster resource: a sweep's own settings first, then the resource's, then the environment's."""

import os

import dagster as dg
from pydantic import Field

from ctxstream_dagster.extraction.ollama import OllamaBackend
from ctxstream_dagster.extraction.options import OllamaOptions
from ctxstream_dagster.extraction.question import extraction_version
from ctxstream_dagster.orchestration.spec import SweepSpec


class OllamaResource(dg.ConfigurableResource):
    """One Ollama server for every sweep that names no other."""

    url: str = Field(default="", description="Server address as in OLLAMA_HOST; empty for that variable.")
    model: str = Field(default="", description="Model name; empty for CTXSTREAM_MODEL, else the client's default.")

    def options(self, spec: SweepSpec) -> OllamaOptions:
        """Return the client's settings for a sweep; raises `ConfigError`."""
        shared = {"url": self.url, "model": self.model or os.environ.get("CTXSTREAM_MODEL", "")}
        return OllamaOptions.from_mapping({**{name: value for name, value in shared.items() if value}, **spec.ollama})

    def version(self, spec: SweepSpec) -> str:
        """Return the version of question, decoder, options and model: the code version of every extraction."""
        options = self.options(spec)
        return extraction_version(spec.question, {**options.settings(), "model": options.model})

    def backend(self, spec: SweepSpec) -> OllamaBackend:
        """Return a client of its own for one run."""
        return OllamaBackend(self.options(spec))
