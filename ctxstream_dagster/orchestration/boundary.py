"""Where the rooms' errors become Dagster's: one sentence on the run's page, and no retry of what cannot succeed."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from ctxstream_dagster.errors import CtxstreamError


@contextmanager
def failures() -> Iterator[None]:
    """Turn an error of this package into a `dg.Failure` with its sentence."""
    try:
        yield
    except CtxstreamError as error:
        raise dg.Failure(str(error), metadata={"kind": type(error).__name__}, allow_retries=False) from error
