"""Questions to the deduplicate engine: does the newest version win, and do ignored deletes not count?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from paimon_py.lsm.engines.deduplicate import Deduplicate
from paimon_py.lsm.groups import Groups

INSERT, BEFORE, AFTER, DELETE = range(4)


def kept(keys, **settings):
    """The number of the version that stands for each key, whose versions have these kinds."""
    kinds = [kind for key in keys for kind in key]
    starts = np.concatenate([[True] + [False] * (len(key) - 1) for key in keys])
    firsts = np.flatnonzero(starts)
    columns = {"_VALUE_KIND": pa.chunked_array([pa.array(kinds, pa.int8())])}
    result = Deduplicate(**settings)(Groups(np.arange(len(kinds)), starts), columns)
    assert not result.columns
    return (result.rows - firsts).tolist()


@pytest.mark.parametrize(("key", "newest", "counting"), [
    ([INSERT], 0, 0), ([INSERT, AFTER], 1, 1), ([INSERT, DELETE], 1, 0), ([INSERT, BEFORE, AFTER], 2, 2),
    ([INSERT, AFTER, BEFORE, DELETE], 3, 1), ([DELETE, INSERT, DELETE], 2, 1), ([DELETE, BEFORE], 1, 1), ([DELETE], 0, 0),
])  # fmt: skip
def test_the_newest_version_wins_and_ignored_deletes_do_not_count(key, newest, counting):
    others = [[INSERT], [INSERT, INSERT]]
    assert kept([key, *others]) == [newest, 0, 1] == [kept([*others, key])[-1], 0, 1]
    assert kept([key, *others], ignore_delete=True) == [counting, 0, 1]
    assert kept([*others, key], ignore_delete=True) == [0, 1, counting]
