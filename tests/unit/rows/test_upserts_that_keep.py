"""`upsert` under a primary key whose data lack columns: rows that exist keep them, new rows get the default or NULL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from unit.public import new_catalog, reopened

from paimon_py import AddColumn, Catalog, CommitConflictError, Schema, SchemaError, UpdateColumnDefault, UsageError
from paimon_py.lookup.lookups import Lookups
from paimon_py.rows.keeping import KeepingUpsert
from paimon_py.rows.missing_columns import missing_columns

SCHEMA = pa.schema([
    pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("a", pa.int64()),
    ("b", pa.string()), ("g", pa.int64()),
])  # fmt: skip
PARTIAL = {"merge-engine": "partial-update"}
GROUP = {**PARTIAL, "fields.g.sequence-group": "a"}


@pytest.fixture
def catalog(tmp_path):
    return new_catalog(tmp_path / "w")


def make(catalog, count=6, defaults=None, required=(), **options):
    schema = pa.schema([field.with_nullable(field.nullable and field.name not in required) for field in SCHEMA])
    table = catalog.create_table(
        "d.t", schema, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "2", **options}
    )
    if defaults:
        table.alter(*(UpdateColumnDefault(name, text) for name, text in defaults.items()))
    table.write_arrow([{"p": k % 2, "k": k, "a": k, "b": f"b{k}", "g": 10} for k in range(count)])
    return table


def row(table, k):
    found = reopened(table).scan(where=f"k = {k}").to_arrow().to_pylist()
    assert len(found) <= 1
    return found[0] if found else None


@pytest.fixture
def lookups(monkeypatch):
    """The columns that were looked up, one tuple for each time."""
    asked = []
    looking = Lookups.found_at

    def noted(self, snapshot, schema, keys, fields):
        asked.append(tuple(field.name for field in fields))
        return looking(self, snapshot, schema, keys, fields)

    monkeypatch.setattr(Lookups, "found_at", noted)
    return asked


def test_rows_that_exist_keep_what_the_data_lack_and_new_rows_get_the_default(catalog, lookups):
    table = make(catalog, defaults={"b": "new"})
    done = table.upsert([{"k": 1, "p": 1, "a": 100}, {"k": 77, "p": 1, "a": 700}])
    assert (done.updated, done.inserted, done.deleted, done.upserted) == (1, 1, 0, 0)
    assert done.before == 1 and done.snapshot_id == 2
    assert row(table, 1) == {"p": 1, "k": 1, "a": 100, "b": "b1", "g": 10}
    assert row(table, 77) == {"p": 1, "k": 77, "a": 700, "b": "new", "g": None}
    assert lookups == [("b", "g")]


def test_data_with_all_columns_are_a_plain_write(catalog, lookups):
    table = make(catalog)
    whole = [{"p": 1, "k": 1, "a": None, "b": None, "g": None}]
    assert table.upsert(whole).upserted == 1
    assert row(table, 1) == whole[0] and not lookups


def test_a_null_in_the_data_is_a_null(catalog):
    table = make(catalog, defaults={"b": "new"})
    table.upsert(pa.table({"p": pa.array([1, 1], pa.int32()), "k": [1, 99], "b": pa.nulls(2, pa.string())}))
    assert (row(table, 1)["b"], row(table, 1)["a"]) == (None, 1)
    assert row(table, 99)["b"] == "new"


def test_the_last_row_of_a_key_counts(catalog):
    table = make(catalog)
    rows = [{"p": 1, "k": key, "a": at} for at in range(5) for key in (1, 88)]
    done = table.upsert(rows)
    assert (done.updated, done.inserted) == (1, 1)
    assert (row(table, 1)["a"], row(table, 1)["b"], row(table, 88)["a"]) == (4, "b1", 4)


def test_kinds_of_rows_go_on_working_and_a_row_after_a_delete_is_new(catalog):
    table = make(catalog)
    kinds = [(1, "-D"), (3, "-D"), (3, "+I"), (5, "-U"), (5, "+U"), (71, "-D"), (73, "+I")]
    done = table.upsert([{"p": 1, "k": k, "a": 7, "_row_kind": kind} for k, kind in kinds])
    assert (done.deleted, done.updated, done.inserted) == (1, 2, 1)
    assert row(table, 1) is None and row(table, 71) is None
    assert row(table, 3) == {"p": 1, "k": 3, "a": 7, "b": None, "g": None}
    assert row(table, 5) == {"p": 1, "k": 5, "a": 7, "b": "b5", "g": 10}


def test_a_column_of_kinds_that_the_data_lack_stays_or_says_plus(catalog):
    table = make(catalog, **{"rowkind.field": "b"}, count=0)
    table.write_arrow([{"p": 1, "k": 1, "a": 1, "b": "+U", "g": 1}])
    table.upsert([{"p": 1, "k": 1, "a": 2}, {"p": 1, "k": 2, "a": 3}])
    assert row(table, 1) == {"p": 1, "k": 1, "a": 2, "b": "+U", "g": 1}
    assert row(table, 2) == {"p": 1, "k": 2, "a": 3, "b": "+I", "g": None}


def test_a_new_row_that_lacks_a_not_null_column_is_refused_by_name_and_nothing_is_written(catalog):
    table = make(catalog, required=("b",))
    assert table.upsert([{"p": 1, "k": 1, "a": 9}]).updated == 1
    assert row(table, 1)["b"] == "b1"
    with pytest.raises(UsageError, match=r"lack column 'b', and the row with p=1, k=99 is new: the column is NOT NULL") as raised:
        table.upsert([{"p": 1, "k": 1, "a": 10}, {"p": 1, "k": 99, "a": 9}])
    assert raised.value.fields == ("b",)
    assert row(table, 1)["a"] == 9 and reopened(table).snapshot().id == 2
    assert table.upsert([{"p": 1, "k": 1, "a": 9}], on=["p", "k"]).updated == 1
    with pytest.raises(SchemaError, match="b: missing"):
        table.upsert([{"p": 1, "k": 1, "a": 10}, {"p": 1, "k": 99, "a": 9}], on=["p", "k"])
    assert row(table, 1)["a"] == 9 and reopened(table).snapshot().id == 3
    assert not table.remove_orphans(dry_run=True).files


def test_a_null_in_a_column_that_is_given_is_told_with_its_row(catalog):
    table = make(catalog, required=("b",))
    rows = pa.table({"p": pa.array([1] * 3, pa.int32()), "k": [1, 3, 5], "b": ["x", "y", None]})
    with pytest.raises(SchemaError, match=r"b.*row 2|row 2.*b"):
        table.upsert(rows)


def test_unknown_columns_and_missing_keys_are_refused_as_before(catalog, lookups):
    table = make(catalog)
    with pytest.raises(SchemaError, match="is it 'a'"):
        table.upsert([{"p": 1, "k": 1, "A": 3}])
    with pytest.raises(SchemaError, match="k: missing"):
        table.upsert([{"p": 1, "a": 3}])
    assert not lookups


def test_generators_frames_and_numbers_are_taken(catalog):
    table = make(catalog)
    batches = (pa.record_batch({"p": pa.array([k % 2], pa.int32()), "k": [k], "a": [k * 10]}) for k in range(4))
    assert table.upsert(batches, user="u", identifier=3).updated == 4
    again = table.upsert([{"p": 1, "k": 1, "a": -1}], user="u", identifier=3)
    assert again.already_committed and row(table, 1)["a"] == 10
    with pytest.raises(UsageError):
        table.upsert([{"p": 1, "k": 1, "a": -1}], user="u", identifier=2)


def test_what_does_not_fit_in_memory_goes_to_disk(catalog):
    table = make(catalog, count=3000, **{"write-buffer-size": "10 kb"})
    told = []
    done = table.upsert(
        pa.table({"p": pa.array([k % 2 for k in range(1, 6000, 2)], pa.int32()), "k": range(1, 6000, 2), "a": [0] * 3000}),
        progress=lambda *call: told.append(call),
    )
    assert (done.updated, done.inserted) == (1500, 1500)
    found = reopened(table).to_arrow()
    assert found.num_rows == 4500 and found["b"].null_count == 1500
    assert told[-1] == (3000, 3000, "rows")


def test_an_empty_table_and_no_rows(catalog):
    table = make(catalog, count=0)
    assert table.upsert(pa.table({"p": pa.array([], pa.int32()), "k": pa.array([], pa.int64())})).snapshot_id is None
    assert table.upsert([{"p": 1, "k": 1}]).inserted == 1
    assert row(table, 1) == {"p": 1, "k": 1, "a": None, "b": None, "g": None}


def test_a_column_that_was_added_since_the_row_was_written_stays_what_it_reads(catalog):
    table = make(catalog)
    table.alter(AddColumn("n", "INT"))
    table.upsert([{"p": 1, "k": 1, "n": 5}])
    table.upsert([{"p": 1, "k": 1, "a": 50}])
    assert row(table, 1) == {"p": 1, "k": 1, "a": 50, "b": "b1", "g": 10, "n": 5}


def test_fields_inside_a_row_are_part_of_it(catalog):
    kind = pa.struct([("x", pa.int64()), ("y", pa.string())])
    schema = pa.schema([("k", pa.int64()), ("t", kind), ("v", pa.int64())])
    table = catalog.create_table("d.s", schema, primary_key=["k"], options={"bucket": "1"})
    table.write_arrow([{"k": 1, "t": {"x": 1, "y": "y"}, "v": 1}])
    table.upsert([{"k": 1, "v": 2}])
    assert row(table, 1) == {"k": 1, "t": {"x": 1, "y": "y"}, "v": 2}
    table.upsert(pa.table({"k": [1], "t": pa.array([{"x": 5}], pa.struct([("x", pa.int64())]))}))
    assert row(table, 1) == {"k": 1, "t": {"x": 5, "y": None}, "v": 2}


# -- merge engines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "defaults", "given", "copied"), [
    ({}, {}, "a", "bg"), ({}, {}, "ag", "b"), ({}, {}, "abg", ""),
    (PARTIAL, {}, "a", ""), (PARTIAL, {"b": "x"}, "a", "b"), (PARTIAL, {"b": "x"}, "b", ""),
    (GROUP, {}, "b", ""), (GROUP, {}, "g", "a"), (GROUP, {}, "a", "g"), (GROUP, {}, "abg", ""),
    ({**GROUP, "fields.a.aggregate-function": "sum"}, {}, "g", ""),
    ({**GROUP, "fields.a.aggregate-function": "last_value"}, {}, "g", "a"),
    ({**GROUP, "fields.a.aggregate-function": "first_value"}, {}, "g", "a"),
    ({"merge-engine": "first-row"}, {}, "a", ""),
])  # fmt: skip
def test_only_columns_that_the_engine_does_not_keep_are_looked_up(catalog, options, defaults, given, copied):
    table = make(catalog, defaults=defaults, **options)
    if options.get("merge-engine") == "first-row":
        with pytest.raises(UsageError, match="first-row"):
            table.upsert([{"p": 1, "k": 1, "a": 3}])
        return
    found = missing_columns(table.schema, {"p", "k", *given})
    assert "".join(one.field.name for one in found if one.is_copied) == copied


def test_a_partial_update_writes_what_it_is_given_without_a_lookup(catalog, lookups):
    table = make(catalog, **PARTIAL)
    assert table.upsert([{"p": 1, "k": 1, "a": 5}]).upserted == 1
    assert row(table, 1) == {"p": 1, "k": 1, "a": 5, "b": "b1", "g": 10} and not lookups


def test_a_default_is_not_added_to_a_sum(catalog):
    table = make(catalog, **GROUP, **{"fields.a.aggregate-function": "sum"}, defaults={"a": "1000"})
    table.upsert([{"p": 1, "k": 1, "g": 11}, {"p": 1, "k": 99, "g": 11}])
    assert (row(table, 1)["a"], row(table, 99)["a"]) == (1, 1000)


def test_a_not_null_sum_has_to_be_given(catalog):
    table = make(catalog, **GROUP, **{"fields.a.aggregate-function": "sum"}, required=("a",))
    with pytest.raises(SchemaError, match="'a', which is NOT NULL and aggregated"):
        table.upsert([{"p": 1, "k": 1, "g": 11}])


def test_a_row_with_a_smaller_sequence_changes_nothing(catalog):
    table = make(catalog, **{"sequence.field": "g"})
    table.upsert([{"p": 1, "k": 1, "g": 9, "a": 5}, {"p": 1, "k": 3, "g": 11, "a": 5}, {"p": 1, "k": 5, "a": 5}])
    assert [row(table, k)["a"] for k in (1, 3, 5)] == [1, 5, 5]
    assert [row(table, k)["g"] for k in (1, 3, 5)] == [10, 11, 10]


def test_waiting_rows_cannot_be_kept(catalog):
    table = catalog.create_table("d.w", SCHEMA, primary_key=["p", "k"], options={"bucket": "-2"})
    with pytest.raises(UsageError, match="postponed buckets"):
        table.upsert([{"p": 1, "k": 1, "a": 5}])
    table.upsert([{"p": 1, "k": 1, "a": 5, "b": "x", "g": 1}])


def test_a_row_that_moves_takes_its_columns_along_and_stays_where_it_is_without_its_partition(catalog):
    schema = pa.schema([pa.field("p", pa.int32()), *list(SCHEMA)[1:]])
    table = catalog.create_table("d.m", schema, primary_key=["k"], partition_by=["p"], options={"bucket": "-1"})
    table.write_arrow([{"p": k % 2, "k": k, "a": k, "b": f"b{k}", "g": 1} for k in range(4)])
    assert table.upsert([{"p": 7, "k": 1, "a": 10}, {"p": 7, "k": 9, "a": 90}]).updated == 1
    table.upsert([{"k": 2, "a": 20}])
    assert row(table, 1) == {"p": 7, "k": 1, "a": 10, "b": "b1", "g": 1}
    assert row(table, 2) == {"p": 0, "k": 2, "a": 20, "b": "b2", "g": 1}
    assert row(table, 9) == {"p": 7, "k": 9, "a": 90, "b": None, "g": None}


def test_a_changelog_of_the_input_tells_whole_rows(catalog):
    table = make(catalog, **{"changelog-producer": "input"})
    table.upsert([{"p": 1, "k": 1, "a": 5}, {"p": 1, "k": 99, "a": 6}])
    told = table.changes(1, 2).to_arrow().to_pylist()
    assert {each["k"]: (each["_row_kind"], each["a"], each["b"]) for each in told} == {1: ("+U", 5, "b1"), 99: ("+I", 6, None)}


# -- others at the same time --------------------------------------------------------------------------------------------


@pytest.fixture
def beside(monkeypatch):
    """Calls what it is given once the next evaluations have looked rows up, before they commit."""
    calls = []
    evaluate = KeepingUpsert.evaluate

    def disturbed(self, snapshot):
        found = evaluate(self, snapshot)
        if calls:
            calls.pop(0)()
        return found

    monkeypatch.setattr(KeepingUpsert, "evaluate", disturbed)
    return calls


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}, {"bucket": "-1"}, {"write-only": "true"}], ids=str)
def test_a_row_that_others_change_meanwhile_is_looked_up_again(catalog, beside, lookups, options):
    table = make(catalog, **options)
    other = reopened(table)
    beside.append(lambda: other.upsert([{"p": 1, "k": 1, "b": "theirs"}]))
    done = table.upsert([{"p": 1, "k": 1, "a": 50}])
    assert done.rounds == 2 and (done.updated, done.before) == (1, done.snapshot_ids[0] - 1)
    assert row(table, 1) == {"p": 1, "k": 1, "a": 50, "b": "theirs", "g": 10}
    assert not table.remove_orphans(dry_run=True).files


def test_a_new_row_that_others_add_meanwhile_keeps_their_columns(catalog, beside):
    table = make(catalog)
    other = reopened(table)
    beside.append(lambda: other.write_arrow([{"p": 1, "k": 99, "a": 1, "b": "theirs", "g": 3}]))
    done = table.upsert([{"p": 1, "k": 99, "a": 50}])
    assert (done.updated, done.inserted) == (1, 0)
    assert row(table, 99) == {"p": 1, "k": 99, "a": 50, "b": "theirs", "g": 3}


def test_rows_of_other_keys_and_compactions_cost_no_second_lookup(catalog, beside, lookups):
    table = make(catalog)
    other = reopened(table)
    theirs = [
        lambda: other.write_arrow([{"p": 1, "k": 5, "a": 1, "b": "theirs", "g": 3}]),
        lambda: other.compact(full=True),
    ]
    beside.append(lambda: [call() for call in theirs])
    done = table.upsert([{"p": 1, "k": 1, "a": 50}])
    assert row(table, 1)["b"] == "b1" and row(table, 5)["b"] == "theirs" and row(table, 1)["a"] == 50
    assert len(lookups) == 1 and done.rounds == 2


def test_a_row_that_is_deleted_meanwhile_is_new(catalog, beside):
    table = make(catalog)
    beside.append(lambda: reopened(table).delete("k = 1"))
    assert table.upsert([{"p": 1, "k": 1, "a": 50}]).inserted == 1
    assert row(table, 1) == {"p": 1, "k": 1, "a": 50, "b": None, "g": None}


def test_a_row_of_a_table_that_is_overwritten_meanwhile_is_looked_up_again(catalog, beside):
    """Such a commit does not tell which keys it changed."""
    table = make(catalog)
    beside.append(lambda: reopened(table).write_arrow([{"p": 1, "k": 1, "a": 1, "b": "theirs", "g": 3}], overwrite={}))
    assert table.upsert([{"p": 1, "k": 1, "a": 50}, {"p": 1, "k": 3, "a": 51}]).updated == 1
    assert row(table, 1) == {"p": 1, "k": 1, "a": 50, "b": "theirs", "g": 3}
    assert row(table, 3) == {"p": 1, "k": 3, "a": 51, "b": None, "g": None}


def test_who_is_overtaken_every_time_is_told_and_leaves_nothing(catalog, beside):
    table = make(catalog)
    other = reopened(table)
    beside.extend([lambda: other.upsert([{"p": 1, "k": 1, "b": "theirs", "a": 0, "g": 0}])] * 50)
    with pytest.raises(CommitConflictError):
        table.upsert([{"p": 1, "k": 1, "a": 50}])
    assert row(table, 1)["b"] == "theirs" and not table.remove_orphans(dry_run=True).files


def test_writers_of_different_columns_lose_nothing_of_each_other(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])
    table = catalog.create_table("d.t", schema, primary_key=["k"], options={"bucket": "2"})

    def write(column):
        own = Catalog.open(str(tmp_path)).table("d.t")
        for number in range(6):
            keys = range(number, number + 4)
            own.upsert(pa.table({"k": list(keys), column: [number * 10 + key for key in keys]}))

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(write, "abc")) == [None] * 3
    for found in table.refresh().to_arrow().to_pylist():
        last = min(found["k"], 5) * 10 + found["k"]
        assert (found["a"], found["b"], found["c"]) == (last, last, last)


@pytest.mark.parametrize("options", [{}, {"sequence.field": "v"}, {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"}], ids=str)
def test_deletes_by_key_alone_need_no_values_of_columns_that_are_not_null(tmp_path, options):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    columns = Schema({"k": "BIGINT NOT NULL", "v": "INT NOT NULL", "w": "STRING"})
    table = catalog.create_table("d.t", columns, primary_key=["k"], options={"bucket": "2", **options})
    table.write_arrow([{"k": k, "v": k, "w": "x"} for k in range(6)])
    gone = table.upsert([{"k": k, "_row_kind": "-D"} for k in (9, 1, 4, 4, 11)])
    assert (gone.deleted, gone.inserted, gone.updated) == (2, 0, 0)
    assert sorted(table.to_arrow()["k"].to_pylist()) == [0, 2, 3, 5]
    assert table.upsert([{"k": 9, "_row_kind": "-D"}]).snapshot_id is None
    both = [{"k": 2, "v": 7, "_row_kind": "-D"}, {"k": 2, "v": 8, "_row_kind": "+I"}]
    table.upsert(both)
    assert table.lookup([2]).to_pylist() == [{"k": 2, "v": 8, "w": None}]
    with pytest.raises(SchemaError, match=r"the data lack column 'v', and the row with k=3 is new"):
        table.upsert([{"k": 3, "_row_kind": "-D"}, {"k": 3, "_row_kind": "+I"}])
    with pytest.raises(SchemaError, match="v: missing, INT NOT NULL needed"):
        table.write_arrow([{"k": 3, "_row_kind": "-D"}])
