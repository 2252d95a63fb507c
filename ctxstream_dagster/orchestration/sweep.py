"""Builds the assets of one sweep: corpus -> manifest -> extraction -> records, tally -> answer."""

import dagster as dg

from ctxstream_dagster.orchestration.assets.answer import build_answer
from ctxstream_dagster.orchestration.assets.corpus import build_corpus
from ctxstream_dagster.orchestration.assets.extraction import build_extraction
from ctxstream_dagster.orchestration.assets.manifest import build_manifest
from ctxstream_dagster.orchestration.assets.tally import build_tally
from ctxstream_dagster.orchestration.automation import build_automation
from ctxstream_dagster.orchestration.checks import build_plan_consistency
from ctxstream_dagster.orchestration.resources import OllamaResource
from ctxstream_dagster.orchestration.spec import SweepSpec


def build_sweep(spec: SweepSpec) -> dg.Definitions:
    """Return everything Dagster needs to run a sweep. Reads settings only: no corpus, no server.

    The code location must provide the resources ``ollama`` and ``sweep_tables``; `location.load_sweeps` does.
    """
    version = OllamaResource().version(spec)
    return dg.Definitions(
        assets=[
            build_corpus(spec),
            build_manifest(spec),
            build_extraction(spec, version=version),
            build_tally(spec),
            build_answer(spec),
        ],
        asset_checks=[build_plan_consistency(spec)],
        **build_automation(spec),
    )
