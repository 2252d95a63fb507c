"""An asset of your own downstream of a sweep: annotate the input, and the tally comes as that type."""

import dagster as dg
import pandas as pd


@dg.asset(ins={"tally": dg.AssetIn(["status_census", "tally"])}, group_name="reports", kinds={"pandas"})
def rarest_share(tally: pd.DataFrame) -> dg.MaterializeResult:
    """How many of all tickets have the rarest status. `pyarrow.Table` works as well; so does the input `records`."""
    share = tally["value"].min() / tally["value"].sum()
    rarest = tally.loc[tally["value"] == tally["value"].min(), "key"]
    return dg.MaterializeResult(metadata={"rarest": ", ".join(rarest), "share": float(share)})
