"""Files are whole or not there, and a failure names the path and what to do."""

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest
from upath import UPath

from ctxstream_dagster.errors import StorageError
from ctxstream_dagster.storage import SweepStore, data_home, read_table, replies_path, write_bytes, write_table


def test_a_write_replaces_the_whole_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file.txt"
    write_bytes(target, b"first, and longer")
    write_bytes(target, b"second")
    assert target.read_bytes() == b"second"
    assert [path.name for path in target.parent.iterdir()] == ["file.txt"]


def test_a_full_disk_names_the_path_and_keeps_the_last_good_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "tally.parquet"
    write_bytes(target, b"good")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"tally\.parquet: No space left on device\. Free some space"):
        write_bytes(target, b"better")
    assert target.read_bytes() == b"good"
    assert [path.name for path in tmp_path.iterdir()] == ["tally.parquet"]


def test_a_cut_parquet_file_is_refused_by_name(tmp_path: Path) -> None:
    target = tmp_path / "cut.parquet"
    write_table(target, pa.table({"a": list(range(1000))}))
    target.write_bytes(target.read_bytes()[:-40])
    with pytest.raises(StorageError, match=r"cut\.parquet is not a whole Parquet file"):
        read_table(target)


def test_object_stores_hold_the_same_files() -> None:
    store = SweepStore(UPath("memory://bucket/home"), "census")
    write_table(store.tally, pa.table({"a": [1, 2]}))
    store.set_current_plan("p1")
    assert read_table(store.tally).to_pylist() == [{"a": 1}, {"a": 2}]
    assert store.current_plan() == store.plan_directory("p1")


def test_no_plan_before_the_first(tmp_path: Path) -> None:
    assert SweepStore(tmp_path, "census").current_plan() is None


def test_the_home_is_absolute_and_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTXSTREAM_HOME", "s3://bucket/x")
    assert str(data_home(tmp_path)) == "s3://bucket/x"
    assert replies_path(data_home(tmp_path), local=tmp_path) == tmp_path / "replies.sqlite"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CTXSTREAM_HOME", "state")
    assert data_home(Path("/elsewhere")) == tmp_path / "state"
    monkeypatch.delenv("CTXSTREAM_HOME")
    assert data_home(tmp_path) == tmp_path


def test_a_flipped_bit_never_reads_as_other_values(tmp_path: Path) -> None:
    target = tmp_path / "rows.parquet"
    table = pa.table({"key": [f"key {number}" for number in range(500)], "value": list(range(500))})
    write_table(target, table)
    values = [column.to_pylist() for column in table.columns]
    whole, caught = target.read_bytes(), 0
    for place in range(4, len(whole), 7):
        target.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert [column.to_pylist() for column in read_table(target).columns] == values, f"byte {place}"
        except StorageError:
            caught += 1
    assert caught
