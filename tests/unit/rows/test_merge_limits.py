"""What merges refuse before they touch a file, and what they leave unread."""

from __future__ import annotations

import pyarrow as pa
import pytest
from unit.public import files, new_catalog, reopened

from paimon_py import Schema, SchemaError, Table, UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.rows import verbs
from paimon_py.testing.counting_store import CountingStore

VECTORS = {"deletion-vectors.enabled": "true"}
SETTINGS = [
    {}, {"options": VECTORS}, {"options": {"bucket": "2", "bucket-key": "k"}}, {"primary_key": ["p", "k"], "options": {"bucket": "1"}},
    {"primary_key": ["p", "k"], "options": {"bucket": "-1"}},
]  # fmt: skip
SCHEMA = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string())])
ENGINE = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32()), ("g", pa.int32())])


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


def counted(table):
    """The table over a store that counts."""
    root = table._root
    store = CountingStore(root.store)
    return Table(TableRoot(store, root.path, root.env), table._schema, table.name), store


def rows_of(table):
    return sorted(reopened(table).scan().to_arrow().to_pylist(), key=repr)


def make(catalog, *, options=None, **settings):
    """Rows in three partitions; writers write at once."""
    small = {"write-buffer-size": "1 kb", "write-buffer-spillable": "false", "target-file-size": "1 kb", **(options or {})}
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], options=small, **settings)
    for low in (0, 6):
        rows = [{"p": k % 3, "k": k, "v": f"v{k}"} for k in range(low, low + 6)]
        table.write_arrow(pa.Table.from_pylist(rows, SCHEMA))
    return table


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("clauses", [
    {"when_matched_update": {"v": "source.v"}}, {"when_matched_delete": "source.v = 'b'"},
    {"when_not_matched_insert": True, "when_matched_update": {"v": lambda rows: rows["source.v"]}},
], ids=["update", "delete", "insert"])  # fmt: skip
def test_an_ambiguous_merge_is_refused_before_anything_is_written(catalog, settings, clauses):
    table, store = counted(make(catalog, **settings))
    source = pa.table({"p": pa.array([0, 2, 2], pa.int32()), "k": [0, 8, 8], "v": ["a" * 9_999, "b", "c"]})
    with pytest.raises(UsageError, match="2 rows of the source want to change the row with p=2, k=8"):
        table.merge(source, ["p", "k"], **clauses)
    assert not {verb for verb in store.calls if "write" in verb or "put" in verb or "create" in verb or "delete" in verb}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_new_rows_with_one_key_are_refused_before_others_are_changed(catalog, settings):
    table, store = counted(make(catalog, **settings))
    source = pa.table({"p": pa.array([0, 7, 7], pa.int32()), "k": [0, 8, 8], "v": ["a" * 9_999, "b", "c"]})
    with pytest.raises(UsageError, match="the source has 2 rows with p=7, k=8"):
        table.upsert(source, on=["p", "k"])
    assert not {verb for verb in store.calls if "write" in verb or "put" in verb or "create" in verb or "delete" in verb}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_new_rows_of_two_clauses_may_not_share_a_key_either(catalog, settings):
    table, store = counted(make(catalog, **settings))
    source = pa.table({"p": pa.array([7, 7], pa.int32()), "k": [8, 8], "v": ["b", "c"]})
    clauses = [("source.v = 'b'", True), True]
    if "primary_key" in settings:
        with pytest.raises(UsageError, match="the source has 2 rows with p=7, k=8"):
            table.merge(source, ["p", "k"], when_not_matched_insert=clauses)
        assert not {verb for verb in store.calls if "write" in verb or "put" in verb or "create" in verb or "delete" in verb}
    else:
        assert table.merge(source, ["p", "k"], when_not_matched_insert=clauses).inserted == 2


def read_partitions(store):
    return {part for verb, path in store.paths for part in path.split("/") if part.startswith("p=") and verb.startswith("open")}


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_files_of_other_partitions_are_not_read(catalog, settings):
    table, store = counted(make(catalog, **settings))
    source = pa.table({"p": pa.array([1], pa.int32()), "k": [4], "v": ["x"]})
    assert table.merge(source, ["p", "k"], when_matched_update={"v": "source.v"}, when_not_matched_insert=True).updated == 1
    assert read_partitions(store) <= {"p=1"}
    store.reset()
    found = table.merge(
        source, ["p", "k"], when_not_matched_by_source_delete="target.p = 1 AND k > 4", when_matched_update={"v": "y"},
        when_not_matched_by_source_update=("p = k", {"v": "pk"}),
    )  # fmt: skip
    assert (found.deleted, found.updated) == (2, 4)
    store.reset()
    table.merge(source, ["p", "k"], when_not_matched_by_source_delete="target.p = 1 AND v != 'y'")
    assert read_partitions(store) <= {"p=1"}
    assert {(row["k"], row["v"]) for row in rows_of(table) if row["p"] == 1} == {(4, "y")}
    assert [row["v"] for row in rows_of(table) if row["p"] == 0] == ["pk", "v3", "v6", "v9"]


def test_a_column_of_kinds_stays_what_it_is(catalog):
    table = catalog.create_table(
        "d.t", pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("kind", pa.string())]),
        primary_key=["k"], options={"bucket": "1", "rowkind.field": "kind"},
    )  # fmt: skip
    table.write_arrow(pa.table({"k": [1, 2], "v": ["a", "b"], "kind": ["+I", "+U"]}))
    for refused in (
        lambda: table.update("k = 1", {"kind": "-D"}),
        lambda: table.merge(pa.table({"k": [1], "kind": ["-D"]}), ["k"], when_matched_update=True),
        lambda: table.merge(pa.table({"k": [9], "kind": ["-D"]}), ["k"], when_not_matched_insert=True),
    ):
        before = files(table.location)
        with pytest.raises(UsageError, match="'kind'.*contains the kinds"):
            refused()
        assert files(table.location) == before
    source = pa.table({"k": [2, 3], "v": ["B", "C"]})
    result = table.merge(source, ["k"], when_matched_update=True, when_not_matched_insert=True)
    assert (result.updated, result.inserted) == (1, 1)
    assert [(row["k"], row["v"]) for row in rows_of(table)] == [(1, "a"), (2, "B"), (3, "C")]


def test_values_reach_into_rows_of_the_source(catalog):
    table = catalog.create_table("d.t", ENGINE)
    table.write_arrow(pa.table({"k": [1, 2]}))
    source = pa.table({"k": [1], "s": pa.array([{"a": {"b": 7}, "t": "x"}]), "s.t": ["literally"]})
    at = pa.schema([source.schema.field("k"), ("s", pa.struct([("a", pa.struct([("b", pa.int32())])), ("t", pa.string())])), ("s.t", pa.string())])
    table.merge(source.cast(at), ["k"], when_matched_update={"n": "source.s.a.b", "v": "source.s.t"})
    assert rows_of(table)[0] == {"k": 1, "v": "literally", "n": 7, "g": None}


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda t: t.merge(pa.table({"k": [1]}), ["k"], when_matched_update={}), UsageError, "when_matched_update sets nothing"),
    (lambda t: t.update("true", {"r.x": 1}), UsageError, "'r.x'.*a ROW is set as a whole"),
    (lambda t: t.merge(pa.table({"k": [1], "w": pa.array([1], pa.uint8())}), ["k"], when_matched_delete="source.w = 1"), SchemaError, "source.w.*uint8"),
    (lambda t: t.delete("blob = blob"), UsageError, "column 'blob' does not exist"),
], ids=range(4))  # fmt: skip
def test_mistakes_are_named(catalog, call, error, words):
    table = catalog.create_table("d.t", Schema([("k", "BIGINT"), ("r", "ROW<x INT>")]))
    with pytest.raises(error, match=words):
        call(table)
    assert table.snapshots() == []


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_reader_is_read_once_however_often_the_merge_is_evaluated(catalog, settings):
    table = make(catalog, **settings)
    other, calls = reopened(table), []

    def slow(rows):
        calls.append(rows.num_rows)
        if len(calls) == 1:
            other.write_arrow(pa.Table.from_pylist([{"p": 1, "k": 4, "v": "again"}], SCHEMA))
        return rows["source.v"]

    batches = [pa.record_batch({"p": pa.array([1], pa.int32()), "k": [k], "v": [f"new {k}"]}) for k in (4, 7, 70)]
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, iter(batches))
    result = table.merge(reader, ["p", "k"], when_matched_update={"v": slow}, when_not_matched_insert=True)
    twice = not table.schema.primary_keys
    assert (result.rounds, result.updated, result.inserted) == (2, 3 if twice else 2, 1)
    found = [row["v"] for row in rows_of(table) if row["k"] in (4, 7, 70)]
    assert sorted(found) == ["new 4"] * (2 if twice else 1) + ["new 7", "new 70"]


@pytest.mark.parametrize("limit", [10, 1 << 20])
def test_sources_of_any_arrow_types_can_be_merged(catalog, monkeypatch, limit):
    monkeypatch.setattr(verbs, "_SOURCE_MAX", limit)
    table = catalog.create_table("d.t", pa.schema([("k", pa.string()), ("r", pa.struct([("x", pa.list_(pa.string()))])), ("b", pa.binary())]))
    table.write_arrow(pa.table({"k": ["a", "b"]}))
    inner = pa.struct([("x", pa.large_list(pa.string_view()))])
    schema = pa.schema([("k", pa.string_view()), ("r", inner), ("b", pa.binary_view()), ("w", pa.dictionary(pa.int8(), pa.string()))])
    batches = [
        pa.record_batch([pa.array([key], pa.string_view()), pa.array([{"x": [key * 20]}], inner), pa.array([b"y"], pa.binary_view()),
                         pa.array([key]).dictionary_encode().cast(schema.field("w").type)], schema=schema)
        for key in "acb"
    ]  # fmt: skip
    values = {"r": "source.r", "b": "source.b"}
    result = table.merge(
        pa.RecordBatchReader.from_batches(schema, iter(batches)), ["k"], when_matched_update=("source.w = target.k", values),
        when_not_matched_insert={"k": "source.w", **values},
    )  # fmt: skip
    assert (result.updated, result.inserted) == (2, 1)
    assert rows_of(table) == [{"k": key, "r": {"x": [key * 20]}, "b": b"y"} for key in "abc"]
