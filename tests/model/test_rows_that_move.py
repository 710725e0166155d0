"""Rows of append tables whose partition is set by `update`, `upsert` and `merge`, beside a dict."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unit.public import new_catalog, reopened

COLUMNS = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("p", pa.string())])
KINDS = {
    "rewritten": {},
    "vectors": {"deletion-vectors.enabled": "true"},
    "buckets": {"bucket": "2", "bucket-key": "k"},
    "bucketed by what changes": {"bucket": "3", "bucket-key": "v"},
    "buckets with vectors": {"bucket": "2", "bucket-key": "k", "deletion-vectors.enabled": "true"},
}


def state(table):
    rows = reopened(table).to_arrow().to_pylist()
    found = {row["k"]: (row["v"], row["p"]) for row in rows}
    assert len(found) == len(rows), rows
    by_partition = [row for p in sorted({row["p"] for row in rows}) for row in table.scan(where=f"p = '{p}'").to_arrow().to_pylist()]
    assert sorted(row["k"] for row in by_partition) == sorted(found)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_move_to_the_partition_that_is_set(tmp_path, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    table = new_catalog(str(tmp_path)).create_table("d.t", COLUMNS, partition_by=["p"], options=KINDS[kind])
    known: dict[int, tuple[int, str]] = {}
    for step in range(12):
        rows = {rng.randrange(30): (step, rng.choice("abc")) for _ in range(rng.randrange(1, 6))}
        data = pa.Table.from_pylist([{"k": k, "v": v, "p": p} for k, (v, p) in rows.items()], COLUMNS)
        verb = rng.choice(("upsert", "update", "merge", "merge some", "compact"))
        if verb == "upsert":
            result = table.upsert(data, on=["k"])
            assert (result.updated, result.inserted) == (len(rows.keys() & known.keys()), len(rows.keys() - known.keys()))
            known |= rows
        elif verb == "update":
            target, place = rng.randrange(30), rng.choice("abcd")
            table.update(f"k < {target}", {"p": place, "v": step})
            known |= {k: (step, place) for k in known if k < target}
        elif verb.startswith("merge"):
            table.merge(data, on=["k"], when_matched_update={"p": "source.p"} if verb == "merge some" else True, when_not_matched_insert=True)
            known |= {k: (known[k][0], p) if k in known and verb == "merge some" else (v, p) for k, (v, p) in rows.items()}
        else:
            table.compact()
        assert state(table) == known, (step, verb)
