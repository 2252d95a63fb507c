"""The code location: every sweep under sweeps/, and your own assets beside them."""

from pathlib import Path

import dagster as dg

from ctxstream_dagster.orchestration.location import load_sweeps


@dg.definitions
def defs() -> dg.Definitions:
    """Load every sweep under sweeps/, YAML or Python. Reads settings only, never a corpus or a server."""
    return load_sweeps(Path(__file__).parent)
