"""Finding equal keys: against a dictionary."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from paimon_py.rows.matches import Probe

RANGES = {"near": 50, "far": 2**40, "everything": 2**62}


def column(rng, kind, count, spread):
    if kind == "text":
        return pa.array([None if rng.random() < 0.1 else f"t{rng.randrange(spread)}" for _ in range(count)], pa.string())
    return pa.array([None if rng.random() < 0.1 else rng.randrange(-spread, spread) for _ in range(count)], pa.int64())


@pytest.mark.parametrize("spread", RANGES.values(), ids=RANGES)
@pytest.mark.parametrize("kinds", [("number",), ("text",), ("number", "text"), ("number", "number", "number")])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_groups_are_those_of_a_dictionary(kinds, spread, count):
    rng = random.Random(f"{kinds}{spread}{count}")
    source = [column(rng, kind, count, spread) for kind in kinds]
    target = [pa.concat_arrays([column(rng, kind, 200, spread), c.take(pa.array(range(0, count, 2), pa.int64()))]) for kind, c in zip(kinds, source)]
    probe = Probe(source)
    known: dict = {}
    for row, key in enumerate(zip(*(c.to_pylist() for c in source))):
        if None not in key:
            known.setdefault(key, []).append(row)
        else:
            assert probe.groups[row] == -1
    assert len(probe.counts) == len(known)
    for rows in known.values():
        group = probe.groups[rows[0]]
        assert set(probe.groups[rows]) == {group}
        assert (probe.firsts[group], probe.counts[group]) == (rows[0], len(rows))
    for key, group in zip(zip(*(c.to_pylist() for c in target)), probe.find(target)):
        assert group == (probe.groups[known[key][0]] if key in known else -1)
