"""The house rules that a tool can check: exports, import direction, no Dagster in the rooms below orchestration."""

import subprocess
import sys

import pytest

import ctxstream_dagster


def test_every_exported_name_exists_and_every_home_is_exported() -> None:
    assert sorted(ctxstream_dagster._HOMES) == ctxstream_dagster.__all__
    for name in ctxstream_dagster.__all__:
        assert getattr(ctxstream_dagster, name).__name__ == name


NAMES = ", ".join(ctxstream_dagster.__all__)


@pytest.mark.parametrize("statement", ["import ctxstream_dagster", f"from ctxstream_dagster import {NAMES}"])
def test_the_specification_s_names_load_no_dagster(statement: str) -> None:
    # An import contract does not see what a package's __init__ executes, so ask a fresh interpreter.
    code = f"{statement}; import sys; print([name for name in sys.modules if name.split('.')[0] == 'dagster'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tallly'"):
        _ = ctxstream_dagster.tallly
