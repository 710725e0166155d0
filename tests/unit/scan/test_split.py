"""Questions to `scan.split`: does a split survive a journey, and is junk refused?"""

from __future__ import annotations

import pickle

import pytest

from paimon_py.errors import CorruptionError
from paimon_py.scan.split import Section, Split
from paimon_py.spec.data_file import DataFile


def split():
    files = [
        DataFile(
            name=f"data-{n}.parquet", size_bytes=100 + n, row_count=n, min_sequence=0, max_sequence=n, schema_id=2,
            level=n, delete_row_count=None if n == 2 else 0,
        )
        for n in range(3)
    ]  # fmt: skip
    sections = (Section(runs=((files[0],),), raw=True), Section(runs=((files[1],), (files[2],)), raw=False))
    return Split(snapshot_id=5, schema_id=2, partition=b"\0\1", bucket=3, total_buckets=4, sections=sections)


def test_a_split_comes_back_from_bytes_and_pickles():
    assert Split.from_bytes(bytes(split())) == split()
    assert pickle.loads(pickle.dumps(split())) == split()


def test_sizes_add_up():
    assert (split().row_count, split().size_bytes, split().raw, len(split().files)) == (3, 303, False, 3)
    assert "files=3" in repr(split())


@pytest.mark.parametrize("data", [b"", b"junk", b"paimon-split-8:\xc1", bytes(16), b"paimon-split-2:\x80"])
def test_bytes_that_are_no_split_are_corrupt(data):
    with pytest.raises(CorruptionError):
        Split.from_bytes(data)
