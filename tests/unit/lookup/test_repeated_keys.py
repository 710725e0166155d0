"""Files that hold a key twice, as pypaimon 1.4 wrote them: read as Java reads them, by every verb, and never made unreadable."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from paimon_py import Catalog, CorruptionError, PaimonError, Table
from paimon_py.lookup.files import RepeatedKeyError, RowRange, _check_order

PLAIN = {"bucket": "1", "write-only": "true", "file.format": "avro", "file.compression": "null"}
SCHEMA = pa.schema([pa.field("k", pa.string(), nullable=False), ("v", pa.int64()), ("l", pa.list_(pa.int64()))])


def twice(table):
    """Take the key `b` of the newest file for `a`: the file then has the keys a, a, c."""
    path = max(Path(table.location).glob("bucket-0/data-*.avro"), key=lambda path: path.stat().st_mtime_ns)
    data = path.read_bytes()
    assert data.count(b"key-b")
    path.write_bytes(data.replace(b"key-b", b"key-a"))
    return Table.open(table.location)


def made(tmp_path, **options):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    return catalog.create_table("d.t", SCHEMA, primary_key=["k"], options={**PLAIN, **options})


def write(table, **values):
    table.write_arrow([{"k": f"key-{k}", "v": v, "l": [v]} for k, v in values.items()])


def pairs(found):
    return sorted((k.removeprefix("key-"), v) for k, v in zip(found["k"].to_pylist(), found["v"].to_pylist()))


@pytest.fixture
def table(tmp_path):
    """Rows (a, 1), (a, 2), (c, 3) in the one file."""
    table = made(tmp_path)
    write(table, a=1, b=2, c=3)
    return twice(table)


def test_both_rows_are_read_and_looked_up(table):
    assert pairs(table.to_arrow()) == [("a", 1), ("a", 2), ("c", 3)]
    assert table.count() == 3
    found = table.lookup([{"k": "key-c"}, {"k": "key-a"}, {"k": "key-x"}])
    assert found["k"].to_pylist() == ["key-c", "key-a", "key-a"] and found["v"].to_pylist() == [3, 1, 2]
    found = table.lookup([{"k": "key-x"}, {"k": "key-a"}], columns=["v", "l"], missing="null")
    assert found.to_pylist() == [{"v": None, "l": None}, {"v": 1, "l": [1]}, {"v": 2, "l": [2]}]
    assert table.lookup([{"k": "key-x"}]).num_rows == 0


def test_a_newer_row_takes_the_place_of_the_first_as_in_java(table):
    write(table, a=9)
    assert pairs(table.to_arrow()) == [("a", 2), ("a", 9), ("c", 3)]
    assert pairs(table.lookup([{"k": "key-a"}])) == [("a", 9)]  # the newest row; no older file is asked
    write(table, a=10, d=4)
    table.compact(full=True)
    assert pairs(table.to_arrow()) == [("a", 2), ("a", 10), ("c", 3), ("d", 4)]
    write(table, a=11)
    assert pairs(Table.open(table.location).to_arrow()) == [("a", 2), ("a", 11), ("c", 3), ("d", 4)]


VERBS = {
    "write": lambda table: write(table, a=7, z=8),
    "upsert": lambda table: table.upsert([{"k": "key-a", "v": 7}]),
    "delete": lambda table: table.delete("k = 'key-a'"),
    "update": lambda table: table.update("k = 'key-a'", {"v": 70}),
    "merge": lambda table: table.merge(pa.table({"k": ["key-a"], "v": [5]}), on=["k"], when_matched_update=True),
    "compact": lambda table: table.compact(),
    "full": lambda table: table.compact(full=True),
    "rescale": lambda table: table.rescale(2),
    "anew": lambda table: table.write_arrow(table.scan().to_reader(), overwrite={}),
}
LIVES = {"plain": {}, "lookup": {"changelog-producer": "lookup", "write-only": "false"}, "full": {"changelog-producer": "full-compaction"},
         "vectors": {"deletion-vectors.enabled": "true"}, "eager": {"write-only": "false", "num-sorted-run.compaction-trigger": "2"},
         "small": {"target-file-size": "1 kb"}}  # fmt: skip


SECOND = [pytest.param(verb, marks=() if verb in ("write", "full") else pytest.mark.full) for verb in VERBS]


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", VERBS)
@pytest.mark.parametrize("life", LIVES)
def test_no_verb_makes_the_table_unreadable(tmp_path, life, first, second):
    """A verb may refuse what it cannot do by key; whatever was acknowledged can be read, and written anew."""
    table = made(tmp_path, **LIVES[life])
    write(table, a=1, b=2, c=3)
    table = twice(table)
    for verb in (first, second):
        before = pairs(table.to_arrow()) if life != "vectors" else None
        try:
            VERBS[verb](table)
        except PaimonError:
            assert before is None or pairs(Table.open(table.location).to_arrow()) == before
        table = Table.open(table.location)
        rows = table.to_arrow()
        assert table.scan().count() == rows.num_rows
        assert "key-c" in rows["k"].to_pylist() or life == "vectors"
    table.write_arrow(table.scan().to_reader(), overwrite={})
    assert len(set(table.to_arrow()["k"].to_pylist())) == table.count()


def test_the_doctor_finds_repeated_keys_when_it_reads_the_files(table):
    assert table.doctor() == []
    (found,) = table.doctor(deep=True)
    assert (found.code, found.severity, found.figure) == ("repeated-keys", "problem", 1)
    table.write_arrow(table.scan().to_reader(), overwrite={})
    assert table.doctor(deep=True) == []


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("keys", ["abcdefg", "aabcdef", "abccdef", "abcdeff", "abcaefg", "abcdegf"])
def test_keys_are_checked_within_and_between_ranges_of_rows(keys, size):
    """However a file is divided: a key twice is found, and so is one that is smaller than the one before."""
    parts = [pa.record_batch({"k": [ord(key) for key in keys[at : at + size]]}) for at in range(0, len(keys), size)]
    ranges = [RowRange(at * size, rows) for at, rows in enumerate(parts)]
    found = set()
    for before, one in zip([None, *ranges], ranges, strict=False):
        try:
            _check_order(one, before, "f")
        except PaimonError as error:
            found.add(type(error))
    wanted = CorruptionError if list(keys) != sorted(keys) else RepeatedKeyError if len(set(keys)) < len(keys) else None
    assert found == {wanted} - {None}
