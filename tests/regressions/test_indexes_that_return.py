"""File indexes that are made, dropped and made again: no file may look deleted because it was so once."""

from __future__ import annotations

import pytest
from regressions.test_rollbacks import opened, rows, store_with

from paimon_py import RemoveOption, SetOption

INDEX = "file-index.bloom-filter.columns"


@pytest.mark.parametrize("place", ["500 b", "1 b"], ids=["in the entry", "beside the file"])
@pytest.mark.parametrize("key", [(), ("k",)], ids=["append", "keyed"])
def test_rows_stay_while_indexes_come_and_go(key, place):
    store = store_with({**({"bucket": "1"} if key else {}), "file-index.in-manifest-threshold": place}, key=key)
    opened(store, "a").write_arrow(rows([1, 2], 1))
    opened(store, "b").write_arrow(rows([3], 1))
    for turn, change in enumerate([SetOption(INDEX, "v"), RemoveOption(INDEX)] * 2):
        opened(store, f"alter{turn}").alter(change)
        opened(store, f"index{turn}-").rewrite_file_index()
        assert sorted(opened(store, f"reader{turn}").scan().to_arrow()["k"].to_pylist()) == [1, 2, 3]
