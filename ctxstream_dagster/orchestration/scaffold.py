"""``dg scaffold defs <component> NAME``: the same commented file that ``ctxstream init`` writes."""

from typing import Literal

import dagster as dg
from pydantic import BaseModel, Field

from ctxstream_dagster.errors import UsageError
from ctxstream_dagster.storage import write_bytes


class SweepParams(BaseModel):
    """What a new sweep is made from; left out, words that show where to write."""

    corpus: str = Field("README.md", description="A file, a glob or a directory, from the project's root.")
    extract: str = Field("Say here what to look for.", description="What to look for, in plain words.")
    labels: str = Field("yes,no", description="The closed set, separated by commas; empty to let the model name keys.")
    cue: str = Field("", description="Words that end the question, as in the text; empty for the default.")
    answer: Literal["least", "most", "total", "list"] = Field("list", description="What code concludes from the tally.")


class SweepScaffolder(dg.Scaffolder[SweepParams]):
    """Writes a commented ``defs.yaml``."""

    @classmethod
    def get_scaffold_params(cls) -> type[SweepParams]:
        """Return what `dg scaffold` asks for."""
        return SweepParams

    def scaffold(self, request: dg.ScaffoldRequest[SweepParams]) -> None:
        """Write the file; raises `UsageError` for another format or where a file would be overwritten."""
        # The declaration reads the component, which names this class.
        from ctxstream_dagster.orchestration.declaration import new_sweep, sweep_yaml

        file = request.target_path / "defs.yaml"
        if request.scaffold_format != "yaml" or request.append or file.exists():
            raise UsageError(f"A new sweep is a new {file}; in Python, call ctxstream_dagster's build_sweep instead.")
        given = request.params
        attributes = new_sweep(
            corpus=[given.corpus], extract=given.extract, labels=given.labels, answer=given.answer, cue=given.cue
        )
        write_bytes(file, sweep_yaml(attributes).encode("utf-8"))
