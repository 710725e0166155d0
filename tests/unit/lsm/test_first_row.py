"""Questions to the first-row engine: is it the oldest add that wins, and are retracts refused or ignored?"""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from unit.lsm import engine_models as model

from paimon_py.errors import UsageError
from paimon_py.lsm.engines.first_row import FirstRow
from paimon_py.lsm.groups import Groups


def merged(engine, keys):
    """The version that the engine keeps of every key."""
    rows = [row for key in keys for row in key]
    starts = np.concatenate([[True] + [False] * (len(key) - 1) for key in keys])
    kinds = pa.chunked_array([pa.array([row.kind for row in rows], pa.int8())])
    result = engine(Groups(np.arange(len(rows)), starts), {"_VALUE_KIND": kinds})
    assert not result.columns
    return [rows[at] for at in result.rows.tolist()]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("ignore_delete", [False, True])
def test_the_oldest_add_wins(seed, ignore_delete):
    rand = random.Random(seed)
    kinds = [0, 1, 2, 3] if ignore_delete else [0, 2]
    keys = [[model.Row({}, rand.choice(kinds), at) for at in range(rand.choice([1, 2, 4]))] for _ in range(20)]
    kept = merged(FirstRow(ignore_delete=ignore_delete), keys)
    for key, row in zip(keys, kept, strict=True):
        wanted = model.reduce(lambda rows: model.first_row(rows, ignore_delete=ignore_delete), key)
        assert row is wanted or (wanted is None and row.kind in (1, 3))


@pytest.mark.parametrize("kinds", [[0, 3], [1, 0], [3, 3]])
def test_a_retract_that_meets_another_version_is_refused(kinds):
    with pytest.raises(UsageError, match="ignore-delete"):
        merged(FirstRow(), [[model.Row({}, kind) for kind in kinds], [model.Row({})]])


def test_a_retract_that_is_alone_is_returned_as_it_is():
    alone = model.Row({}, model.DELETE)
    assert merged(FirstRow(), [[alone], [model.Row({}), model.Row({})]])[0] is alone
