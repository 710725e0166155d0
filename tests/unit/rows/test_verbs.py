"""Deleting, updating, upserting and merging rows through the public verbs: results, snapshots, and what is refused."""

from __future__ import annotations

from datetime import date, time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.public import files, new_catalog, reopened

from paimon_py import CommitConflictError, CorruptionError, PaimonError, SchemaError, UnsupportedError, UsageError, col
from paimon_py.rows import verbs

SCHEMA = pa.schema(
    [pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.string()), ("n", pa.int32()),
     ("d", pa.decimal128(6, 2)), ("r", pa.struct([("x", pa.int32())]))]
)  # fmt: skip
VECTORS = {"deletion-vectors.enabled": "true"}


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


def make(catalog, **settings):
    table = catalog.create_table("d.t", SCHEMA, **settings)
    fill(table, range(6))
    fill(table, range(6, 12))
    return table


def keyed(catalog, **options):
    return make(catalog, primary_key=["p", "k"], options={"bucket": "1", **options})


def fill(table, keys):
    rows = [{"p": k % 2, "k": k, "v": f"v{k}", "n": k, "d": None, "r": {"x": k}} for k in keys]
    table.write_arrow(pa.Table.from_pylist(rows, SCHEMA))


def values(table, name="n"):
    read = reopened(table).scan().to_arrow().to_pydict()
    return dict(sorted(zip(read["k"], read[name])))


def kinds(table):
    return [snapshot.commit_kind.value for snapshot in table.snapshots()]


# -- what is committed ------------------------------------------------------------------------------------------------


def test_a_delete_rewrites_only_the_files_it_touches(catalog):
    table = make(catalog)
    before = {e.file.name for e in live(table)}
    result = table.delete("k = 7")
    after = {e.file.name for e in live(table)}
    assert (result.deleted, result.files_added, result.files_removed, result.snapshot_id, result.rounds) == (1, 1, 1, 3, 1)
    assert len(before & after) == 1
    assert kinds(table) == ["APPEND", "APPEND", "OVERWRITE"]
    assert (latest(table).operation, table.snapshot().total_record_count) == ("DELETE", 11)


def test_with_deletion_vectors_no_file_is_rewritten(catalog):
    table = make(catalog, options=VECTORS)
    before = {e.file.name for e in live(table)}
    result = table.delete("k IN (1, 7)")
    assert {e.file.name for e in live(table)} == before
    assert (result.files_added, result.files_removed) == (0, 0)
    assert kinds(table)[-1] == "OVERWRITE"
    assert sorted(values(table)) == [0, 2, 3, 4, 5, 6, 8, 9, 10, 11]
    table.delete("k = 8")
    assert table.update("k = 9", {"n": 90}).files_added == 1
    assert len(table._root.manifests.read_index(latest(table).index_manifest)) == 1
    assert values(table)[9] == 90


@pytest.mark.parametrize("options", [{}, VECTORS])
def test_a_file_without_rows_goes_as_a_whole(catalog, options):
    table = make(catalog, options=options)
    table.delete("k = 1")
    assert table.delete("k < 6").files_removed == 1
    assert len(live(table)) == 1
    assert not latest(table).index_manifest or not table._root.manifests.read_index(latest(table).index_manifest)
    assert table.delete(col("k") >= 0).deleted == 6
    assert live(table) == []


def test_overwrites_take_deletion_vectors_with_them(catalog):
    table = make(catalog, partition_by=["p"], options=VECTORS)
    table.delete("k < 4")

    def marks():
        return {entry.partition for entry in table._root.manifests.read_index(latest(table).index_manifest)}

    assert len(marks()) == 2
    table.write_arrow(pa.Table.from_pylist([{"p": 1, "k": 1}], SCHEMA), overwrite={"p": 1})
    assert len(marks()) == 1
    assert sorted(values(table)) == [1, 4, 6, 8, 10]
    table.drop_partitions([{"p": 0}])
    assert latest(table).index_manifest is None or not marks()
    assert sorted(values(table)) == [1]


def test_a_merge_can_take_its_source_from_the_table_itself(catalog):
    table = make(catalog, options=VECTORS)
    result = table.merge(table.scan(columns=["k", "n"], where="k > 9"), ["k"], when_matched_update={"n": lambda rows: pc.negate(rows["source.n"])})
    assert (result.updated, values(table)[11], values(table)[9]) == (2, -11, 9)


def test_a_source_that_fails_while_it_is_read_says_so_itself(catalog, monkeypatch):
    monkeypatch.setattr(verbs, "_SOURCE_MAX", 10)

    def batches():
        yield from pa.table({"k": range(100)}).to_batches()
        raise OSError("the source broke")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("k", pa.int64())]), batches())
    table = make(catalog)
    before = files(table.location)
    with pytest.raises(OSError, match="the source broke"):
        table.merge(reader, ["k"], when_matched_delete=True)
    assert files(table.location) == before


def test_nothing_to_change_makes_no_snapshot_and_no_file(catalog):
    table = make(catalog)
    before = files(table.location)
    assert table.delete("k = 100").snapshot_id is None
    assert table.update("k = 100", {"n": 1}).snapshot_id is None
    assert table.merge(SCHEMA.empty_table(), ["k"], when_matched_delete=True).snapshot_id is None
    assert files(table.location) == before


def test_operations_work_on_an_empty_table(catalog):
    table = catalog.create_table("d.t", SCHEMA)
    assert table.delete("true").snapshot_id is None
    row = pa.Table.from_pylist([{"p": 1, "k": 1}], pa.schema(list(SCHEMA)[:2]))
    assert table.upsert(row, on=["k"]).inserted == 1
    assert values(table) == {1: None}


def test_a_delete_of_a_keyed_table_writes_deletes(catalog):
    table = keyed(catalog)
    result = table.delete("n BETWEEN 3 AND 4")
    assert (result.deleted, result.files_removed) == (2, 0)
    assert kinds(table)[:3] == ["APPEND"] * 3
    assert [e.file.delete_row_count for e in live(table)].count(2) == 1
    assert sorted(values(table)) == [0, 1, 2, 5, 6, 7, 8, 9, 10, 11]


def test_a_column_that_holds_the_kinds_tells_of_a_delete(catalog):
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("kind", pa.string())])
    table = catalog.create_table("d.t", schema, primary_key=["k"], options={"bucket": "1", "rowkind.field": "kind"})
    table.write_arrow(pa.table({"k": [1, 2], "kind": ["+I", "+I"]}))
    table.delete("k = 1")
    assert values(table, "kind") == {2: "+I"}


# -- values -----------------------------------------------------------------------------------------------------------


def test_values_are_literals_columns_or_functions(catalog):
    table = make(catalog)
    table.update("k = 1", {"n": None, "v": "literal", "d": 3, "r": {"x": 5}})
    table.update(col("k") == 2, {"n": col("r", "x"), "v": pa.scalar("scalar")})
    table.update("k >= 10", {"n": lambda rows: pc.multiply(rows["n"], 2), "v": lambda rows: pa.scalar("same")})
    read = {row["k"]: row for row in table.scan().to_arrow().to_pylist()}
    assert (read[1]["n"], read[1]["v"], str(read[1]["d"]), read[1]["r"]) == (None, "literal", "3.00", {"x": 5})
    assert (read[2]["n"], read[2]["v"]) == (2, "scalar")
    assert (read[10]["n"], read[11]["n"], read[11]["v"], read[9]["n"]) == (20, 22, "same", 9)


BAD_VALUES = [
    ({"n": "text"}, SchemaError, "n"), ({"n": 1.5}, SchemaError, "n"), ({"n": 2**31}, SchemaError, "n"),
    ({"n": True}, SchemaError, "n"), ({"r": {"x": 1.5}}, SchemaError, "r"), ({"d": True}, SchemaError, "d"), ({"v": 1}, SchemaError, "v"), ({"d": "x"}, SchemaError, "d"),
    ({"n": col("v")}, SchemaError, "n"), ({"n": col("nobody")}, UsageError, "nobody"), ({"n": col("r", "y")}, UsageError, "y"),
    ({"nobody": 1}, UsageError, "nobody"), ({"n": lambda rows: rows["v"]}, SchemaError, "n"),
    ({"n": lambda rows: [1]}, UsageError, "n"), ({"n": lambda rows: pa.array([1, 2, 3])}, UsageError, "n"),
    ({}, UsageError, "columns"), ([("n", 1)], UsageError, "columns"), (None, UsageError, "columns"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "error", "word"), BAD_VALUES)
@pytest.mark.parametrize("options", [{}, VECTORS])
def test_values_that_do_not_fit_are_refused_and_nothing_is_left(catalog, given, error, word, options):
    table = make(catalog, options=options)
    before = files(table.location)
    with pytest.raises(error, match=word):
        table.update("k = 1", given)
    assert files(table.location) == before


@pytest.mark.parametrize("call", [
    lambda t: t.delete(None), lambda t: t.delete(""), lambda t: t.delete("nobody = 1"), lambda t: t.delete(col("k")),
    lambda t: t.delete("k = 'x'"), lambda t: t.delete(True), lambda t: t.update("k =", {"n": 1}),
])  # fmt: skip
def test_conditions_that_do_not_fit_are_refused(catalog, call):
    table = make(catalog)
    with pytest.raises(UsageError):
        call(table)
    assert len(table.snapshots()) == 2


@pytest.mark.parametrize("name", ["p", "k"])
def test_columns_that_say_where_a_row_lies_cannot_be_set(catalog, name):
    table = make(catalog, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
    source = pa.table({"k": [1], "p": pa.array([1], pa.int32())})
    for call in (
        lambda: table.update("k = 1", {name: 1}),
        lambda: table.merge(source, ["p", "k"], when_matched_update={name: 1}),
        lambda: table.merge(source, ["p", "k"], when_not_matched_by_source_update={name: 1}),
    ):
        with pytest.raises(UsageError, match=f"cannot set '{name}'"):
            call()
    with pytest.raises(UsageError, match="cannot set 'p'"):
        table.merge(source, ["k"], when_matched_update=True)


@pytest.mark.parametrize("settings", [{}, {"options": VECTORS}, {"primary_key": ["p", "k"], "options": {"bucket": "1"}}])
def test_conditions_on_partitions_alone_and_on_nothing(catalog, settings):
    table = make(catalog, partition_by=["p"], **settings)
    table.delete("k = 1")
    assert table.update("p = 1", {"n": -1}).updated == 5
    assert table.delete("p = 0").deleted == 6
    assert values(table) == dict.fromkeys((3, 5, 7, 9, 11), -1)
    assert table.update("true", {"n": 0}).updated == 5
    assert table.delete("false").deleted == 0
    assert table.delete("true").deleted == 5
    assert values(table) == {}


# -- merge engines ----------------------------------------------------------------------------------------------------

FIRST_ROW = {"merge-engine": "first-row"}
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}
PARTIAL = {"merge-engine": "partial-update"}


@pytest.mark.parametrize(("options", "verb", "word"), [
    (FIRST_ROW, "delete", "merge-engine=first-row"), (FIRST_ROW, "update", "merge-engine=first-row"),
    (FIRST_ROW, "merge", "merge-engine=first-row"), (FIRST_ROW, "upsert", "merge-engine=first-row"),
    (SUMS, "delete", "aggregation.remove-record-on-delete"), (SUMS, "update", "merge-engine=aggregation"),
    (SUMS, "merge", "merge-engine=aggregation"), (PARTIAL, "delete", "partial-update.remove-record-on-delete"),
    ({"ignore-delete": "true"}, "delete", "ignore-delete"),
])  # fmt: skip
def test_operations_that_a_merge_engine_has_not_are_refused_by_name(catalog, options, verb, word):
    table = keyed(catalog, **options)
    calls = {
        "delete": lambda: table.delete("k = 1"),
        "update": lambda: table.update("k = 1", {"n": 1}),
        "merge": lambda: table.merge(pa.table({"p": pa.array([1], pa.int32()), "k": [1]}), ["p", "k"], when_matched_update={"n": 1}),
        "upsert": lambda: table.upsert(pa.table({"p": pa.array([1], pa.int32()), "k": [1]})),
    }
    before = files(table.location)
    with pytest.raises(UsageError, match=word):
        calls[verb]()
    assert files(table.location) == before


def test_aggregations_lose_rows_where_their_options_say_so(catalog):
    table = keyed(catalog, **SUMS, **{"aggregation.remove-record-on-delete": "true"})
    table.delete("k < 10")
    assert values(table) == {10: 10, 11: 11}


@pytest.mark.parametrize("options", [
    {"merge-engine": "partial-update"}, {"merge-engine": "partial-update", "fields.n.sequence-group": "v"}, {"sequence.field": "n"},
], ids=str)
@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_rows_of_partitions_with_the_same_keys_are_changed_together(catalog, options, bucket):
    settings = {"primary_key": ["p", "k"], "partition_by": ["p"], "options": {"bucket": bucket, **options}}
    table = catalog.create_table("d.t", SCHEMA, **settings)
    rows = [{"p": p, "k": k, "v": "v", "n": k, "d": None, "r": None} for p in range(3) for k in range(4)]
    table.write_arrow(pa.Table.from_pylist(rows, SCHEMA))
    assert table.update("k > 0", {"n": lambda rows: pc.add(rows["n"], rows["p"])}).updated == 9
    found = reopened(table).scan().to_arrow().to_pylist()
    assert {(row["p"], row["k"]): row["n"] for row in found} == {(p, k): k + p * (k > 0) for p in range(3) for k in range(4)}


@pytest.mark.parametrize(("options", "given", "column"), [
    ({"sequence.field": "n"}, {"n": 0}, "n"), (PARTIAL, {"v": None}, "v"),
    ({**PARTIAL, "fields.g.sequence-group": "n", "fields.n.aggregate-function": "sum"}, {"n": 5, "v": "x"}, "n"),
])  # fmt: skip
def test_an_update_that_the_merge_engine_would_undo_is_refused(catalog, options, given, column):
    schema = pa.schema([*SCHEMA, ("g", pa.int32())])
    table = catalog.create_table("d.t", schema, primary_key=["p", "k"], options={"bucket": "1", **options})
    table.write_arrow(pa.table({"p": pa.array([1], pa.int32()), "k": [1], "v": ["a"], "n": pa.array([3], pa.int32()), "g": pa.array([1], pa.int32())}))
    before = files(table.location)
    with pytest.raises(UsageError, match=f"column '{column}' would not have the value"):
        table.update("k = 1", given)
    assert files(table.location) == before
    assert values(table, "v") == {1: "a"}


# -- merge ------------------------------------------------------------------------------------------------------------

SOURCE = pa.table({"k": [1, 2, 50], "v": ["one", "two", "fifty"], "n": pa.array([100, 200, 500], pa.int32()), "x": [True, False, True]})


def test_clauses_say_what_becomes_of_rows(catalog):
    table = make(catalog)
    result = table.merge(
        SOURCE, on=["k"],
        when_matched_delete=col("source", "x") == True,  # noqa: E712
        when_matched_update={"v": "source.v", "n": col("source", "n"), "d": 1},
        when_not_matched_insert={"k": "source.k", "p": 0, "v": lambda rows: pc.utf8_upper(rows["source.v"])},
        when_not_matched_by_source_delete="target.k > 9",
        when_not_matched_by_source_update=("k = 9", {"v": "nine"}),
    )  # fmt: skip
    assert (result.deleted, result.updated, result.inserted) == (3, 2, 1)
    assert values(table, "v") == {0: "v0", 2: "two", **{k: f"v{k}" for k in range(3, 9)}, 9: "nine", 50: "FIFTY"}
    assert values(table)[2] == 200
    assert latest(table).operation == "MERGE"


def test_null_keys_match_nothing(catalog):
    table = catalog.create_table("d.t", pa.schema([("a", pa.int64()), ("b", pa.string())]))
    table.write_arrow(pa.table({"a": [None, 1], "b": ["x", None]}))
    result = table.upsert(pa.table({"a": pa.array([None, None, 1], pa.int64()), "b": ["y", "z", "w"]}), on=["a"])
    assert (result.updated, result.inserted) == (1, 2)
    assert sorted(map(str, table.scan().to_arrow().to_pylist())) == sorted(
        map(str, [{"a": None, "b": "x"}, {"a": 1, "b": "w"}, {"a": None, "b": "y"}, {"a": None, "b": "z"}])
    )


KEYS = [
    (pa.string(), ["a", "b", "c", ""]), (pa.decimal128(10, 2), ["1.00", "2.50", "3.00", "-1.00"]), (pa.bool_(), [True, False]),
    (pa.date32(), [date(1970, 1, 1), date(2024, 5, 1), date(1969, 1, 1)]), (pa.timestamp("ns"), [0, 1, 2**60, -5]), (pa.float64(), [0.0, -0.0, float("nan"), 1.5]),
    (pa.int8(), [-128, 0, 127]), (pa.int64(), [-(2**63), 0, 2**63 - 1]), (pa.binary(), [b"", b"\x00", b"\xff"]), (pa.time32("ms"), [time(0), time(23, 59, 59)]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "keys"), KEYS, ids=[str(kind) for kind, _ in KEYS])
def test_rows_are_found_by_keys_of_every_type(catalog, kind, keys):
    table = catalog.create_table("d.t", pa.schema([("a", kind), ("n", pa.int32())]))
    column = pa.array(keys).cast(kind)
    table.write_arrow(pa.table({"a": column, "n": pa.array(range(len(keys)), pa.int32())}))
    result = table.merge(
        pa.table({"a": column.slice(1), "n": pa.array(range(100, 99 + len(keys)), pa.int32())}), ["a"], when_matched_update=True
    )
    assert result.updated == len(keys) - 1
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [0, *range(100, 99 + len(keys))]


def test_two_source_rows_for_one_row_are_refused_before_anything_is_touched(catalog):
    table = make(catalog)
    before = files(table.location)
    twice = pa.table({"k": [3, 50, 50, 3], "v": ["a", "b", "c", "d"]})
    with pytest.raises(UsageError, match="2 rows of the source want to change the row with k=3"):
        table.merge(twice, ["k"], when_matched_update=True)
    assert files(table.location) == before
    assert table.merge(twice.slice(1, 2), ["k"], when_matched_update=True).snapshot_id is None
    with pytest.raises(UsageError, match="2 rows with k=50"):
        table.upsert(pa.table({"p": pa.array([1, 1], pa.int32()), "k": [50, 50]}), on=["k"])
    assert table.merge(twice.set_column(1, "p", pa.array([0] * 4, pa.int32())), ["k"], when_not_matched_insert=True).inserted == 2
    keyed_table = catalog.create_table("d.k", pa.schema([pa.field("k", pa.int64(), nullable=False)]), primary_key=["k"], options={"bucket": "1"})
    with pytest.raises(UsageError, match="2 rows with k=3"):
        keyed_table.merge(twice.select(["k"]), ["k"], when_not_matched_insert=True)


def test_it_does_not_matter_which_of_several_rows_a_row_goes_for(catalog):
    table = make(catalog)
    assert table.merge(pa.table({"k": [3, 3, 50, 50, 4]}), ["k"], when_matched_delete=True).deleted == 2
    with pytest.raises(UsageError, match="2 rows of the source"):
        table.merge(pa.table({"k": [5, 5], "x": [True, False]}), ["k"], when_matched_delete="source.x")


def test_of_several_clauses_the_first_that_applies_counts(catalog):
    table = make(catalog)
    source = pa.table({"k": [0, 1, 2, 3, 60, 61], "at": [0.0, 0.5, 2.5, None, 4.0, 70.0]})
    result = table.merge(
        source, on={"k": "k"},
        when_matched_delete=["source.at = target.n", col("target", "n") == 11],
        when_matched_update=[(col("source", "at") > col("target", "n"), {"v": "newer"}), {"v": "older"}],
        when_not_matched_insert=[("source.at < source.k", {"k": "source.k", "p": 0}), {"k": "source.k", "p": 1}],
        when_not_matched_by_source_update=[("n > 10", {"v": "high"}), ("n BETWEEN 9 AND k", {"v": "same"})],
    )  # fmt: skip
    assert (result.deleted, result.updated, result.inserted) == (1, 6, 2)
    assert {k: v for k, v in values(table, "v").items() if v != f"v{k}"} == {
        1: "older", 2: "newer", 3: "older", 9: "same", 10: "same", 11: "high", 60: None, 61: None,
    }  # fmt: skip
    assert {k: p for k, p in values(table, "p").items() if k > 50} == {60: 0, 61: 1}


@pytest.mark.parametrize(("on", "clauses", "error", "word"), [
    ([], {"when_matched_delete": True}, UsageError, "on="), (None, {"when_matched_delete": True}, UsageError, "on="),
    (["nobody"], {"when_matched_delete": True}, UsageError, "nobody"), (["d"], {"when_matched_delete": True}, UsageError, "'d'"),
    (["r"], {"when_matched_delete": True}, UsageError, "r"), ({"n": "v"}, {"when_matched_delete": True}, SchemaError, "v"),
    (["k"], {}, UsageError, "at least one"), (["k"], {"when_matched_update": {"nobody": 1}}, UsageError, "nobody"),
    (["k"], {"when_matched_update": {"n": "source.nobody"}}, UsageError, "nobody"),
    (["k"], {"when_matched_update": {"n": "source.v"}}, SchemaError, "n"),
    (["k"], {"when_matched_update": {"n": col("n")}}, UsageError, "source.n or target.n"),
    (["k"], {"when_matched_delete": "n > 1"}, UsageError, "source.n or target.n"),
    (["k"], {"when_matched_delete": "source.n > 'a'"}, UsageError, "n"),
    (["k"], {"when_matched_delete": {"n": 1}}, UsageError, "when_matched_delete"),
    (["k"], {"when_matched_update": "everything"}, UsageError, "when_matched_update"),
    (["k"], {"when_matched_update": True}, SchemaError, "'x'"),
    (["k"], {"when_not_matched_insert": {"k": "source.k"}}, SchemaError, "p"),
    (["k"], {"when_not_matched_insert": {"k": "source.k", "p": "target.p"}}, UsageError, "p"),
    (["k"], {"when_not_matched_by_source_update": True}, UsageError, "by_source_update"),
    (["k"], {"when_not_matched_by_source_delete": "source.n > 1"}, UsageError, "n"),
    (["k"], {"when_matched_update": [{"n": 1}, ("source.n > 1", {"n": 2})]}, UsageError, "no clause after it is reached"),
    (["k"], {"when_matched_delete": True, "when_matched_update": {"n": 1}}, UsageError, "no clause after it is reached"),
    (["k"], {"when_matched_update": []}, UsageError, "when_matched_update: a list"),
    (["k"], {"when_matched_delete": ["source.x", False]}, UsageError, "when_matched_delete: a list"),
    (["k"], {"when_matched_update": [("source.n > 1", {"nobody": 2}), {"n": 1}]}, UsageError, "nobody"),
    (["k"], {"when_matched_update": ("source.n > target.v", {"n": 2})}, UsageError, r"source.n.* is INT .*target.v.* STRING"),
    (["k"], {"when_matched_update": ("source.n > target.nobody", {"n": 2})}, UsageError, "nobody"),
    (["k"], {"when_not_matched_insert": ("source.n > target.n", {"k": "source.k", "p": 1})}, UsageError, "no column 'n'"),
])  # fmt: skip
def test_merges_that_make_no_sense_are_refused_by_name(catalog, on, clauses, error, word):
    table = make(catalog)
    before = files(table.location)
    with pytest.raises(error, match=word):
        table.merge(SOURCE, on, **clauses)
    assert files(table.location) == before


@pytest.mark.parametrize("source", [[5], None, pa.table({"k": [1], "_row_kind": ["+I"]}), pa.table([[1], [2]], names=["k", "k"])])
def test_sources_that_are_none_are_refused(catalog, source):
    with pytest.raises(UsageError):
        make(catalog).merge(source, ["k"], when_matched_delete=True)


@pytest.mark.parametrize("settings", [{}, {"options": VECTORS}, {"primary_key": ["p", "k"], "options": {"bucket": "2"}}])
def test_a_source_beyond_memory_is_parted_on_disk(catalog, monkeypatch, settings):
    table = make(catalog, **settings)
    keys = [*range(0, 2000, 2)]
    source = pa.table({"k": keys, "p": pa.array([k % 2 for k in keys], pa.int32()), "n": pa.array([-k for k in keys], pa.int32())})
    monkeypatch.setattr(verbs, "_SOURCE_MAX", 4_000)
    result = table.merge(
        source.to_reader(max_chunksize=50), ["p", "k"], when_matched_update=True, when_not_matched_insert=True,
        when_not_matched_by_source_update=("k > 8", {"n": 1}), when_not_matched_by_source_delete="k < 4",
    )  # fmt: skip
    assert (result.updated, result.inserted, result.deleted) == (8, 994, 2)
    assert values(table) == {**{k: -k for k in keys}, 5: 5, 7: 7, 9: 1, 11: 1}
    assert table.merge(source.to_reader(max_chunksize=50), ["p", "k"], when_matched_delete=True).deleted == 1000
    empty = pa.table({"p": pa.nulls(1000, pa.int32()), "k": pa.nulls(1000, pa.int64())})
    assert table.merge(empty, ["p", "k"], when_matched_delete=True).snapshot_id is None


# -- others -----------------------------------------------------------------------------------------------------------


def test_an_operation_follows_a_writer_that_was_faster(catalog, monkeypatch):
    table = make(catalog)
    other = reopened(table)

    def slow(rows):
        if len(table.snapshots()) == 2:
            fill(other, [1])
        return pc.add(rows["n"], 1)

    result = table.update("k = 1", {"n": slow})
    assert (result.updated, result.rounds, result.snapshot_id) == (2, 2, 4)
    assert [row["n"] for row in table.scan(where="k = 1").to_arrow().to_pylist()] == [2, 2]


def test_a_writer_of_other_rows_does_not_disturb(catalog):
    table = make(catalog, partition_by=["p"])
    other = reopened(table)

    def slow(rows):
        fill(other, [100])
        return rows["n"]

    assert table.update("p = 1", {"n": slow}).rounds == 1
    assert kinds(table) == ["APPEND"] * 4 + ["OVERWRITE"]


def test_rows_that_no_compaction_has_seen_are_changed_too(catalog):
    table = keyed(catalog, **VECTORS, **{"write-only": "true"})
    assert table.scan().count() == 0
    assert table.update("k = 1", {"v": "new"}).updated == 1
    table.compact(full=True)
    assert values(table)[1] == 1
    assert values(table, "v")[1] == "new"


@pytest.mark.parametrize("settings", [{}, {"primary_key": ["p", "k"], "options": {"bucket": "1"}}])
def test_a_file_that_should_be_there_is_corruption(catalog, settings):
    table = make(catalog, **settings)
    victim = next(name for name in sorted(files(table.location)) if "/data-" in f"/{name}")
    Path(table.location, victim).unlink()
    with pytest.raises(CorruptionError, match="does not exist, but snapshot"):
        table.update("k >= 0", {"n": 1})
    assert len(table.snapshots()) == 2


def test_errors_of_rows_leave_nothing(catalog):
    table = make(catalog, options=VECTORS)
    before = files(table.location)

    def wrong(rows):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        table.update("k IN (1, 7)", {"n": wrong})
    assert files(table.location) == before
    assert issubclass(CommitConflictError, PaimonError)
    assert issubclass(UnsupportedError, UsageError)


def live(table):
    root = reopened(table)._root
    return root.manifests.live_entries(root.snapshots.latest()).entries()


def latest(table):
    return reopened(table)._root.snapshots.latest()


def test_rows_of_many_small_files_are_changed_together(catalog):
    table = catalog.create_table("d.t", SCHEMA, partition_by=["p"], primary_key=["p", "k"], options={"bucket": "1"})
    rows = [{"p": k % 40, "k": k, "v": f"v{k}", "n": k, "d": None, "r": {"x": k}} for k in range(200)]
    table.write_arrow(pa.Table.from_pylist(rows, SCHEMA))
    sizes = []

    def doubled(batch):
        sizes.append(batch.num_rows)
        return pc.multiply(batch["n"], pa.scalar(2, pa.int32()))

    assert table.update("k >= 80", {"n": doubled}).updated == 120
    assert sum(sizes) == 120 and len(sizes) < 40
    assert values(table) == {k: 2 * k if k >= 80 else k for k in range(200)}
