"""Is the largest sequence number kept in snapshots, and do writers count on from it?"""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest
from unit.scan.build import rows, table

from paimon_py.errors import CorruptionError
from paimon_py.spec.schema_changes import RemoveOption, SetOption
from paimon_py.spec.sequence_property import SEQUENCE_PROPERTY, stored_maximum

MODE = "write.sequence-number-init-mode"


def keyed(**options):
    options = {"bucket": "2", "write-only": "true", **options}
    return table([("k", "INT NOT NULL"), ("v", "INT")], primary_key=["k"], options=options)


def put(made, *pairs, **more):
    return made.refresh().write_arrow(pa.table({"k": [k for k, _ in pairs], "v": [v for _, v in pairs]}), **more)


def maximum(made):
    return (made.refresh().snapshot().properties or {}).get(SEQUENCE_PROPERTY)


def test_every_commit_says_the_largest_number_so_far():
    made = keyed(**{MODE: "snapshot"})
    seen = []
    for k in (1, 0, 1):
        put(made, (k, k), (k, k + 1))
        seen.append(maximum(made))
    assert seen == ["1", "3", "5"]
    made.refresh().compact(full=True)
    assert made.refresh().snapshot().commit_kind.value == "COMPACT" and maximum(made) == "5"
    made.truncate()
    assert maximum(made) == "5"
    put(made, (1, 7), overwrite={})
    put(made, (1, 8))
    assert maximum(made) == "7" and rows(made.refresh().scan()) == [(1, 8)]


def test_a_table_that_gets_the_option_later_asks_its_files():
    made = keyed()
    put(made, *((1, n) for n in range(5)))
    assert maximum(made) is None
    made.alter(SetOption(MODE, "snapshot"))
    put(made, (0, 0))
    assert maximum(made) == "4"
    put(made, (0, 1))
    assert maximum(made) == "5"
    made.refresh().alter(RemoveOption(MODE))
    put(made, (0, 2))
    assert maximum(made) is None


def test_user_properties_are_kept_beside_it():
    made = keyed(**{MODE: "snapshot"})
    with made.writer() as writer:
        writer.write_arrow(pa.table({"k": [1], "v": [1]}))
        made.commit(writer.changes(), properties={"a": "b"})
    assert made.snapshot().properties == {"a": "b", SEQUENCE_PROPERTY: "0"}


def test_a_text_that_is_not_a_number_is_refused():
    made = keyed(**{MODE: "snapshot"})
    put(made, (1, 1))
    damaged = msgspec.structs.replace(made._root.snapshots.latest(), properties={SEQUENCE_PROPERTY: "x"})
    with pytest.raises(CorruptionError, match="not a number"):
        stored_maximum(damaged)
