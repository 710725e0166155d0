"""Row operations on files of many row groups, some of whose rows are dead, against a dict."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from unit.public import new_catalog, reopened

from paimon_py import col

SCHEMA = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64()), ("v", pa.string())])
ROWS = 4000
LAYOUTS = {
    "rewritten": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "long vectors": {"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
    "vectors in buckets": {"deletion-vectors.enabled": "true", "bucket": "2", "bucket-key": "k"},
    "vectors beside ORC": {"deletion-vectors.enabled": "true", "file.format": "orc"},
}


def rows(keys, n):
    return pa.table({"k": keys, "n": np.full(len(keys), n), "v": [f"value {key}" for key in keys.tolist()]}, SCHEMA)


def read(table):
    found = reopened(table).scan(columns=["k", "n"]).to_arrow()
    assert len(set(found["k"].to_pylist())) == found.num_rows
    return dict(zip(found["k"].to_pylist(), found["n"].to_pylist(), strict=True))


def chosen(rng):
    """Some keys: neighbours in a row group or two, or any."""
    if rng.random() < 0.5:
        start = int(rng.integers(ROWS))
        return np.arange(start, min(start + int(rng.integers(1, 700)), ROWS))
    return np.sort(rng.choice(ROWS, int(rng.integers(1, 200)), replace=False))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seed", range(2))
def test_operations_change_the_rows_they_name_and_no_others(tmp_path, layout, seed):
    rng = np.random.default_rng(seed)
    options = {"parquet.block.size": "8192", **LAYOUTS[layout]}
    table = new_catalog(tmp_path / "w").create_table("d.t", SCHEMA, options=options)
    known = {}
    for part in np.array_split(np.arange(ROWS), 2):
        table.write_arrow(rows(part, 0))
        known |= dict.fromkeys(part.tolist(), 0)
    for step in range(1, 9):
        keys = chosen(rng)
        together = len(keys) == keys[-1] - keys[0] + 1
        where = col("k").between(int(keys[0]), int(keys[-1])) if together else col("k").isin(keys.tolist())
        present = [key for key in keys.tolist() if key in known]
        if step % 3 == 0:
            done = table.merge(rows(keys, step), ["k"], when_matched_update=True, when_not_matched_insert=True)
            assert (done.updated, done.inserted) == (len(present), len(keys) - len(present))
            known |= dict.fromkeys(keys.tolist(), step)
        elif step % 3 == 1:
            assert table.delete(where).deleted == len(present)
            known = {key: n for key, n in known.items() if key not in set(present)}
        else:
            assert table.update(where, {"n": step}).updated == len(present)
            known |= dict.fromkeys(present, step)
        assert read(table) == known
