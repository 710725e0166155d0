"""A merge whose source did not fit into memory came in blocks, each of which changed rows and then added its own. A later
block deleted what an earlier one had added with the same primary key, where rows were matched by other columns."""

from __future__ import annotations

import pytest
from faults.compaction_support import Scene, batch, built, content, table_on

FIRST = tuple((1, k, k, k) for k in range(200))
CASES = {
    "by a value": (["v"], False, tuple((1, k, 1000 + k, k) for k in range(200))),
    "by partition, and keys move": (["p", "k"], True, tuple((3, k, -k, k) for k in range(200))),
}


@pytest.mark.parametrize(("on", "moving", "source"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("memory", ["2 kb", "256 mb"])
def test_what_a_merge_adds_outlives_what_it_deletes_however_many_blocks_there_are(on, moving, source, memory):
    options = {"bucket": "-1", "write-only": "true", "file.format": "avro"}
    scene = Scene(loads=(FIRST,), partitioned=True, moving=moving, options=options)
    store = built(scene)[0]
    table = table_on(store, "merger", **{"write-buffer-size": memory})
    done = table.merge(batch(source), on, when_not_matched_insert=True, when_not_matched_by_source_delete=True)
    assert (done.deleted, done.inserted) == (200, 200)
    assert content(table_on(store, "reader"), scene) == {row[:2]: row[2:] for row in source}
