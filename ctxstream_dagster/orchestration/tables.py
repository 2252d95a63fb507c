"""Loads a sweep's tables into your own assets, as the type you annotate: a pandas DataFrame or an Arrow table."""

from pathlib import Path

import dagster as dg
import pandas as pd
import pyarrow as pa

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.orchestration.home import Project
from ctxstream_dagster.storage import SweepStore, read_table


class SweepTables(dg.ConfigurableIOManager):
    """Reads ``<sweep>/tally`` (`tally.TALLY_SCHEMA`) and ``<sweep>/records`` (`records.RECORDS_SCHEMA`).

    Whole numbers come as int64 in pandas, other values as exact `Decimal`; Arrow keeps ``decimal128(38, 9)``.

    Attributes:
        root: the project's directory.
    """

    root: str

    def load_input(self, context: dg.InputContext) -> pd.DataFrame | pa.Table:
        """Return the last good table; raises `dg.Failure` before the first one, or for another annotation."""
        sweep, table = context.asset_key.path
        store = SweepStore(Project(Path(self.root)).data_home, sweep)
        try:
            loaded = read_table(store.tally if table == "tally" else store.records)
        except StorageError as error:
            raise dg.Failure(f"{sweep}/{table} has no good result yet: {error}", allow_retries=False) from error
        wanted = context.dagster_type.typing_type
        if wanted is pa.Table:
            return loaded
        if wanted in (pd.DataFrame, object) or wanted.__name__ == "Any":
            return to_pandas(loaded)
        raise dg.Failure(
            f"{sweep}/{table} can be loaded as pandas.DataFrame or pyarrow.Table, not as {wanted}. "
            "Change the annotation of the input.",
            allow_retries=False,
        )

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Refuse: sweeps write their own tables, whole or not at all."""
        raise dg.Failure("SweepTables only reads; give your own assets another IO manager.", allow_retries=False)


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a DataFrame whose whole-number decimal columns are int64."""
    frame: pd.DataFrame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_decimal(field.type) and all(value == int(value) for value in frame[field.name]):
            frame[field.name] = frame[field.name].astype("int64")
    return frame
