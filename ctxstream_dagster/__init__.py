"""Ask a counting question of a corpus far larger than a model's window; code plans, checks, counts and answers.

The names of the specification are importable from here. None of them loads Dagster.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ctxstream_dagster.extraction.backend import Completion
    from ctxstream_dagster.extraction.decode import parse_records
    from ctxstream_dagster.extraction.guard import looks_truncated
    from ctxstream_dagster.extraction.ollama import OllamaOptions, complete
    from ctxstream_dagster.extraction.question import Question
    from ctxstream_dagster.extraction.records import Record, SegmentResult
    from ctxstream_dagster.extraction.stream import PipelineOptions, stream
    from ctxstream_dagster.planning.codebase import plan_codebase
    from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
    from ctxstream_dagster.planning.codegraph.summary import graph_summary
    from ctxstream_dagster.planning.codegraph.values import CodeGraph
    from ctxstream_dagster.planning.manifest import Manifest, ManifestOptions, Segment, plan, segment_text
    from ctxstream_dagster.reduction.answer import Answer, construct
    from ctxstream_dagster.reduction.tally import Tally, tally

__all__ = [
    "Answer",
    "CodeGraph",
    "Completion",
    "Manifest",
    "ManifestOptions",
    "OllamaOptions",
    "PipelineOptions",
    "Question",
    "Record",
    "ScanOptions",
    "Segment",
    "SegmentResult",
    "Tally",
    "complete",
    "construct",
    "graph_summary",
    "looks_truncated",
    "parse_records",
    "plan",
    "plan_codebase",
    "scan_repo",
    "segment_text",
    "stream",
    "tally",
]

__version__ = version("ctxstream-dagster")

_HOMES = {
    "Answer": "reduction.answer",
    "CodeGraph": "planning.codegraph.values",
    "Completion": "extraction.backend",
    "Manifest": "planning.manifest",
    "ManifestOptions": "planning.manifest",
    "OllamaOptions": "extraction.ollama",
    "PipelineOptions": "extraction.stream",
    "Question": "extraction.question",
    "Record": "extraction.records",
    "ScanOptions": "planning.codegraph.scan",
    "Segment": "planning.manifest",
    "SegmentResult": "extraction.records",
    "Tally": "reduction.tally",
    "complete": "extraction.ollama",
    "construct": "reduction.answer",
    "graph_summary": "planning.codegraph.summary",
    "looks_truncated": "extraction.guard",
    "parse_records": "extraction.decode",
    "plan": "planning.manifest",
    "plan_codebase": "planning.codebase",
    "scan_repo": "planning.codegraph.scan",
    "segment_text": "planning.manifest",
    "stream": "extraction.stream",
    "tally": "reduction.tally",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: `import ctxstream_dagster` alone stays quick and free of tree-sitter, Arrow and Dagster.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
