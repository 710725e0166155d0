"""What a new user tries and gets wrong: an error of ours that says what to do, or the answer that was meant."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from paimon_py import (
    AddColumn,
    Catalog,
    DatabaseNotFoundError,
    DropColumn,
    NotFoundError,
    OptionError,
    PaimonWarning,
    RenameColumn,
    SchemaError,
    SetOption,
    SnapshotNotFoundError,
    Table,
    TableNotFoundError,
    UpdateColumnType,
    UsageError,
    col,
)

BIG = 2**53 + 1


@pytest.fixture
def catalog():
    made = Catalog.open(f"memory://surprises-{uuid.uuid4()}")
    made.create_database("sales")
    return made


@pytest.fixture
def orders(catalog):
    columns = pa.schema([pa.field("id", pa.int32(), nullable=False), ("amount", pa.int16()), ("price", pa.float32())])
    return catalog.create_table("sales.orders", columns, primary_key=["id"], options={"bucket": "1"})


@pytest.mark.parametrize("kind", [pa.Table.from_pylist, pd.DataFrame, pl.DataFrame], ids=["arrow", "pandas", "polars"])
def test_numbers_of_python_are_written_upserted_and_merged(orders, kind):
    orders.write_arrow(kind([{"id": 1, "amount": 7, "price": 1.5}, {"id": 2, "amount": 8, "price": 0.1}]))
    orders.upsert(kind([{"id": 2, "amount": 9, "price": 2.5}]))
    orders.upsert(kind([{"id": 3, "amount": 10}]), on=["id"])
    orders.merge(kind([{"id": 1, "amount": 11}]), on=["id"], when_matched_update={"amount": col("source", "amount")})
    orders.update("id = 3", {"amount": 12})
    found = orders.to_arrow().sort_by("id").to_pylist()
    assert [row["amount"] for row in found] == [11, 9, 12]


@pytest.mark.parametrize("verb", ["write_arrow", "upsert", "merge"])
def test_a_number_that_does_not_fit_is_named_with_its_row(orders, verb):
    rows = pd.DataFrame({"id": [1, 2], "amount": [7, 40_000]})
    more = {"on": ["id"], "when_matched_update": True, "when_not_matched_insert": True} if verb == "merge" else {}
    with pytest.raises(SchemaError, match=r"amount: 40000 \(row 1( of a batch)?, int64\) does not fit SMALLINT"):
        getattr(orders, verb)(rows, **more)
    assert orders.snapshot() is None


@pytest.mark.parametrize("form", ["chunks", "generator", "large"])
def test_rows_are_counted_over_all_parts_of_what_is_given(orders, form):
    count = 300_000 if form == "large" else 30
    whole = pa.table({"id": range(count), "amount": [*[7] * (count - 1), 40_000]})
    parts = [whole.slice(at, count // 3) for at in range(0, count, count // 3)]
    given = {"chunks": lambda: pa.concat_tables(parts), "generator": lambda: iter(parts), "large": lambda: whole.combine_chunks()}
    with pytest.raises(SchemaError, match=rf"column amount: 40000 \(row {count - 1}, int64\) does not fit SMALLINT"):
        orders.write_arrow(given[form]())
    assert orders.snapshot() is None


def test_sums_of_duckdb_and_decimals_of_every_scale_are_taken(catalog):
    duckdb = pytest.importorskip("duckdb")
    table = catalog.create_table("sales.sums", pa.schema([("n", pa.int64()), ("d", pa.decimal128(10, 2))]))
    connection = duckdb.connect()
    table.write_arrow(connection.sql("SELECT sum(x) AS n, sum(1.25 * 2.0) AS d FROM range(5) t(x)"))
    table.write_arrow(pd.DataFrame({"d": [Decimal("1.500"), Decimal(12)]}))
    assert table.to_arrow().to_pylist() == [
        {"n": 10, "d": Decimal("12.50")}, {"n": None, "d": Decimal("1.50")}, {"n": None, "d": Decimal("12.00")},
    ]  # fmt: skip
    with pytest.raises(SchemaError, match=r"column n: 9223372036854775808 \(row 0, decimal128\(38, 0\)\) does not fit BIGINT"):
        table.write_arrow(connection.sql("SELECT 9223372036854775808::HUGEINT AS n"))


def test_integers_beside_null_stay_exact_in_pandas(catalog):
    table = catalog.create_table("sales.t", pa.schema([("k", pa.int64()), ("v", pa.int64()), ("s", pa.string()), ("b", pa.int8())]))
    table.write_arrow(pa.table({"k": [1, 2], "v": [BIG, None], "s": ["a", None], "b": pa.array([None, 5], pa.int8())}))
    frame = table.to_pandas()
    assert list(frame.columns) == ["k", "v", "s", "b"]
    assert frame["v"][0] == BIG and frame["v"].isna().tolist() == [False, True]
    assert [str(kind) for kind in frame.dtypes[["k", "v", "b"]]] == ["int64", "Int64", "Int8"]
    assert table.scan().to_pandas()["v"].sum() == BIG
    mapped = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert str(mapped["v"].dtype) == "int64[pyarrow]" and mapped["v"][0] == BIG
    assert str(table.scan(columns=["k"]).to_pandas()["k"].dtype) == "int64"


@pytest.mark.parametrize(
    "moment",
    ["2100-01-01", "2100-01-01T10:00:00", "2100-01-01T10:00:00+02:00", " 2100-01-01T10:00:00Z ", pd.Timestamp("2100-01-01"),
     pd.Timestamp("2100-01-01", tz="Europe/Berlin"), datetime(2100, 1, 1, tzinfo=timezone.utc), 4_102_444_800_000],
    ids=str,
)  # fmt: skip
def test_times_may_be_texts_and_those_of_pandas(orders, moment):
    orders.write_arrow(pa.table({"id": [1]}))
    assert orders.scan(timestamp=moment).count() == 1


def test_times_mean_the_same_in_every_form():
    from paimon_py.scan.moments import millis_of

    zoned = datetime(2024, 1, 31, 10, tzinfo=timezone.utc)
    assert millis_of("t", zoned) == 1_706_695_200_000
    for same in ("2024-01-31T10:00:00Z", "2024-01-31T12:00:00+02:00", pd.Timestamp(zoned), pd.Timestamp("2024-01-31T10:00:00.0000009Z")):
        assert millis_of("t", same) == 1_706_695_200_000
    local = datetime(2024, 1, 31, 10)  # noqa: DTZ001 - local time is meant
    assert millis_of("t", local) == millis_of("t", pd.Timestamp(local)) == millis_of("t", "2024-01-31T10:00:00")


@pytest.mark.parametrize("moment", ["yesterday", "", pd.NaT, 1.5, True, None.__class__], ids=str)
def test_what_is_no_time_is_refused(orders, moment):
    with pytest.raises(UsageError, match="timestamp"):
        orders.scan(timestamp=moment)


def test_a_time_before_the_first_snapshot_is_told_with_dates(orders):
    orders.write_arrow(pa.table({"id": [1]}))
    with pytest.raises(SnapshotNotFoundError, match=r"at 1970-01-01T00:00:00.005Z \(5\): the oldest one is 1, of 20\d\d-"):
        orders.scan(timestamp=5).count()


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda c: c.table("sales.order"), TableNotFoundError, "table 'sales.order' does not exist; did you mean 'sales.orders'?"),
        (lambda c: c.table("sales.ORDERS"), TableNotFoundError, "did you mean 'sales.orders'?"),
        (lambda c: c.drop_table("sales.ordres"), TableNotFoundError, "did you mean 'sales.orders'?"),
        (lambda c: c.table("sale.orders"), DatabaseNotFoundError, "database 'sale' does not exist; did you mean 'sales'?"),
        (lambda c: c.tables("seles"), DatabaseNotFoundError, "did you mean 'sales'?"),
        (lambda c: c.table("sales.xyz"), TableNotFoundError, "table 'sales.xyz' does not exist"),
    ],
)
def test_names_that_are_nearly_right_are_answered_with_the_right_one(catalog, orders, ask, error, words):
    with pytest.raises(error) as caught:
        ask(catalog)
    assert words in str(caught.value) and ("did you mean" in words) == ("did you mean" in str(caught.value))


def test_a_column_of_the_data_that_is_nearly_right_is_answered_with_the_right_one(orders):
    with pytest.raises(SchemaError, match=r"amont: int64 given, the table has no such column; is it 'amount'\?"):
        orders.write_arrow(pa.table({"id": [1], "amont": [2]}))
    with pytest.raises(SchemaError, match=r"colour: .*AddColumn.*table.refresh\(\)"):
        orders.write_arrow(pa.table({"id": [1], "colour": ["red"]}))


def test_a_warehouse_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file: a warehouse is a directory"):
        Catalog.open(tmp_path / "file")
    with pytest.raises(NotFoundError, match="warehouse .* does not exist"):
        Catalog.open(tmp_path / "file", create=False)
    assert (tmp_path / "file").read_text() == "x"


@pytest.fixture
def parted(catalog):
    columns = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False)])
    table = catalog.create_table("sales.parted", columns, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
    table.write_arrow(pa.table({"p": [1, 2], "k": [1, 2]}))
    return table


@pytest.mark.parametrize("absent", [[{"p": 7}], [{"p": 1}, {"p": 7}]], ids=["one", "one-of-two"])
def test_dropping_a_partition_that_is_not_there_says_so_and_commits_nothing(parted, absent):
    with pytest.raises(NotFoundError, match=r"nothing was dropped: .* has no partition \{'p': 7\}; table.partitions\(\)"):
        parted.drop_partitions(absent)
    assert [snapshot.id for snapshot in parted.snapshots()] == [1] and parted.count() == 2
    parted.drop_partitions([{"p": 1}])
    assert parted.to_arrow()["p"].to_pylist() == [2]
    with pytest.raises(NotFoundError):
        parted.drop_partitions([{"p": 1}])
    parted.truncate()
    assert [snapshot.id for snapshot in parted.snapshots()] == [1, 2, 3]


@pytest.mark.parametrize("bucket", ["2", "-2"])
def test_a_key_without_its_partition_is_warned_of_when_the_table_is_made(catalog, bucket):
    columns = pa.schema([("p", pa.int32()), ("q", pa.int32()), ("k", pa.int64())])
    with pytest.warns(PaimonWarning, match=r"the primary key \(k, q\) lacks the partition key 'p'.*Set 'bucket' to '-1'") as told:
        catalog.create_table(
            "sales.t", columns, primary_key=["k", "q"], partition_by=["p", "q"], options={"bucket": bucket}
        )  # fmt: skip
    assert [warning.filename for warning in told] == [__file__]
    table = catalog.table("sales.t")
    if bucket == "2":
        table.write_arrow(pa.table({"p": [1, 2], "q": [0, 0], "k": [7, 7]}))
        assert table.to_arrow()["k"].to_pylist() == [7, 7], "as the warning says"


@pytest.mark.parametrize(
    ("key", "partition", "bucket"),
    [(["k"], ["p"], "-1"), (["p", "k"], ["p"], "2"), (["k"], [], "2"), ([], ["p"], "-1")],
)
def test_a_key_that_is_unique_is_not_warned_of(catalog, key, partition, bucket):
    columns = pa.schema([("p", pa.int32()), ("k", pa.int64())])
    options = {"bucket": bucket}
    catalog.create_table("sales.t", columns, primary_key=key, partition_by=partition, options=options)


def test_a_table_that_is_there_or_refused_is_not_warned_of(catalog, orders):
    columns = pa.schema([("p", pa.int32()), ("k", pa.int64())])
    bad = {"bucket": "2", "sequence.field": "k"}
    with pytest.raises(OptionError, match=r"sequence\.field"):
        catalog.create_table("sales.t", columns, primary_key=["k"], partition_by=["p"], options=bad)
    good = {"bucket": "2"}
    same = catalog.create_table("sales.orders", columns, primary_key=["k"], partition_by=["p"], options=good, exist_ok=True)
    assert same.schema.partition_keys == ()


AFTER_A_DROP = {
    "alter": lambda t, _: t.alter(SetOption("bucket-append-ordered", "true")),
    "analyze": lambda t, _: t.analyze(),
    "backfill": lambda t, _: t.backfill({"v": 1}),
    "branch": lambda t, _: t.branch("b"),
    "branches": lambda t, _: t.branches(),
    "changes": lambda t, _: t.changes(1).to_arrow(),
    "commit": lambda t, held: t.commit(held["changes"]),
    "committed": lambda t, _: t.committed("me"),
    "compact": lambda t, _: t.compact(full=True),
    "compaction_tasks": lambda t, _: t.compaction_tasks(full=True),
    "compact_manifests": lambda t, _: t.compact_manifests(),
    "consumers": lambda t, _: t.consumers(),
    "count": lambda t, _: t.count(),
    "create_branch": lambda t, _: t.create_branch("b"),
    "create_tag": lambda t, _: t.create_tag("x"),
    "delete": lambda t, _: t.delete("k = 1"),
    "delete_branch": lambda t, _: t.delete_branch("b"),
    "delete_consumer": lambda t, _: t.delete_consumer("c"),
    "delete_tag": lambda t, _: t.delete_tag("x"),
    "rename_tag": lambda t, _: t.rename_tag("x", "y"),
    "replace_tag": lambda t, _: t.replace_tag("x"),
    "doctor": lambda t, _: t.doctor(),
    "drop_partitions": lambda t, _: t.drop_partitions([{"p": 1}]),
    "expire_changelogs": lambda t, _: t.expire_changelogs(retain_min=1, retain_max=1),
    "expire_consumers": lambda t, _: t.expire_consumers(timedelta(1)),
    "expire_partitions": lambda t, _: t.expire_partitions(older_than=timedelta(1), timestamp_pattern="2000-01-0$p"),
    "expire_snapshots": lambda t, _: t.expire_snapshots(retain_min=1, retain_max=1),
    "expire_tags": lambda t, _: t.expire_tags(),
    "fast_forward": lambda t, _: t.fast_forward("b"),
    "filter_committed": lambda t, _: t.filter_committed("me", [1]),
    "export": lambda t, _: t.export(f"memory://exported-{uuid.uuid4()}/out"),
    "head": lambda t, _: t.head(),
    "history": lambda t, _: t.history(),
    "iceberg": lambda t, _: t.iceberg(),
    "levels": lambda t, _: t.levels(),
    "load_files": lambda t, held: t.load_files(held["file"]),
    "lookup": lambda t, _: t.lookup(pa.table({"p": [1], "k": [1]})),
    "mark_partitions_done": lambda t, _: t.mark_partitions_done([{"p": 1}]),
    "merge": lambda t, _: t.merge(pa.table({"p": [1], "k": [1]}), ["p", "k"], when_not_matched_insert=True),
    "partitions": lambda t, _: t.partitions(),
    "publish_iceberg": lambda t, _: t.publish_iceberg(),
    "purge_files": lambda t, _: t.purge_files(),
    "refresh": lambda t, _: t.refresh(),
    "remove_orphans": lambda t, _: t.remove_orphans(),
    "remove_unexisting_files": lambda t, _: t.remove_unexisting_files(),
    "rename_branch": lambda t, _: t.rename_branch("b", "c"),
    "rescale": lambda t, _: t.rescale(2),
    "reset_consumer": lambda t, _: t.reset_consumer("c", 1),
    "restore": lambda t, _: t.restore(1),
    "rollback_to": lambda t, _: t.rollback_to(1),
    "scan": lambda t, _: t.scan().to_arrow(),
    "scan of a snapshot": lambda t, _: t.scan(snapshot_id=1).to_arrow(),
    "scan of a tag": lambda t, _: t.scan(tag="x").to_arrow(),
    "scan at a time": lambda t, _: t.scan(timestamp="2030-01-01").to_arrow(),
    "scan from before": lambda _, held: held["scan"].to_arrow(),
    "snapshot": lambda t, _: t.snapshot(),
    "snapshot of an id": lambda t, _: t.snapshot(1),
    "snapshots": lambda t, _: t.snapshots(),
    "statistics": lambda t, _: t.statistics(),
    "stream": lambda t, _: t.stream().poll(),
    "system": lambda t, _: t.system("files").scan().to_arrow(),
    "system snapshots": lambda t, _: t.system("snapshots").scan().to_arrow(),
    "tags": lambda t, _: t.tags(),
    "to_arrow": lambda t, _: t.to_arrow(),
    "to_pandas": lambda t, _: t.to_pandas(),
    "to_polars": lambda t, _: t.to_polars(),
    "truncate": lambda t, _: t.truncate(),
    "update": lambda t, _: t.update("k = 1", {"v": 1}),
    "update_rows": lambda t, _: t.update_rows(pa.table({"_ROW_ID": [1], "v": [1]})),
    "upsert": lambda t, _: t.upsert(pa.table({"p": [1], "k": [1]})),
    "write_arrow": lambda t, _: t.write_arrow(pa.table({"p": [1], "k": [1]})),
}


@pytest.mark.parametrize("verb", AFTER_A_DROP)
def test_after_a_drop_every_verb_says_that_the_table_is_gone(catalog, verb, tmp_path):
    columns = pa.schema([pa.field("p", pa.int32(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
    table = catalog.create_table("sales.gone", columns, primary_key=["p", "k"], partition_by=["p"], options={"bucket": "1"})
    table.write_arrow(pa.table({"p": [1], "k": [1]}))
    with table.writer() as writer:
        writer.write_arrow(pa.table({"p": [1], "k": [2]}))
        file = tmp_path / "rows.csv"
        file.write_text("p,k,v\n1,1,1\n", encoding="utf-8")
        held = {"scan": table.scan(), "changes": writer.changes(), "file": str(file)}
    catalog.drop_table("sales.gone")
    with pytest.raises(TableNotFoundError, match="gone"):
        AFTER_A_DROP[verb](table, held)


HELD = {
    "a stream": lambda t: (t.stream(from_="earliest"), lambda stream: None, lambda stream, _: stream.poll()),
    "a stream on its way": lambda t: (t.stream(from_="earliest"), lambda stream: stream.poll(), lambda stream, _: stream.poll()),
    "a branch": lambda t: (t.branch("b"), lambda branch: None, lambda branch, _: branch.to_arrow()),
    **{
        f"${name}": lambda t, name=name: (t.system(name), lambda made: None, lambda made, _: made.scan().to_arrow())
        for name in ("options", "files", "partitions", "audit_log", "ro")
    },
}


@pytest.mark.parametrize("name", HELD)
def test_what_was_held_before_a_drop_says_that_the_table_is_gone(catalog, name):
    columns = pa.schema([pa.field("k", pa.int64(), nullable=False), ("v", pa.int64())])
    table = catalog.create_table("sales.gone", columns, primary_key=["k"], options={"bucket": "1"})
    table.write_arrow(pa.table({"k": [1]}))
    table.create_tag("x")
    table.create_branch("b", from_="x")
    of, before, ask = HELD[name](table)
    held = before(of)
    catalog.drop_table("sales.gone")
    with pytest.raises(TableNotFoundError, match="gone"):
        ask(of, held)


def test_every_verb_of_a_table_is_tried_after_a_drop():
    no_store = {"open", "run_compaction", "rewrite_file_index", "writer", "writer_numbers", "name", "schema", "options", "location", "comment"}
    verbs = {name for name in dir(Table) if not name.startswith("_") and callable(getattr(Table, name))}
    assert verbs - no_store <= set(AFTER_A_DROP)


class SparkFrame:
    """What a DataFrame of Spark looks like from outside."""


SparkFrame.__module__ = "pyspark.sql.dataframe"


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda t: t.scan(where=col("amount") == pd.NA), UsageError, r'col\("amount"\).is_null\(\)'),
        (lambda t: t.scan(where=col("amount") == pd.NaT), UsageError, r'col\("amount"\).is_null\(\)'),
        (lambda t: t.write_arrow(SparkFrame()), UsageError, r"paimon_py.convert_from_spark\(df\)"),
        (lambda t: t.write_arrow(7), UsageError, "is not Arrow data"),
        (lambda t: t.alter(AddColumn("x", int)), SchemaError, "a type of pyarrow or of paimon_py, not <class 'int'>"),
        (lambda t: t.alter(AddColumn("x", pa.uint64())), SchemaError, r"use decimal128\(20, 0\)"),
        (lambda t: t.alter(AddColumn("pos.z", "INT")), SchemaError, r"AddColumn\(\['pos', 'z'\], …\) for a field .* AddColumn\(\['pos.z'\], …\)"),
        (lambda t: t.alter(RenameColumn("pos.x", "y")), SchemaError, r"column 'pos.x' does not exist; .*; write \['pos', 'x'\] for a field inside pos"),
        (lambda t: t.alter(UpdateColumnType("pos.x", "BIGINT")), SchemaError, r"write \['pos', 'x'\] for a field inside pos"),
        (lambda t: t.alter(DropColumn("pos.x")), SchemaError, r"write \['pos', 'x'\] for a field inside pos"),
        (lambda t: t.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}), UsageError, r"types_mapper=\{…\}\.get"),
        (lambda t: t.head(-1), UsageError, r"a whole number of rows from 0, not -1"),
        (lambda t: t.alter(AddColumn("price", "INT")), SchemaError, r"already is a column 'price'; table.refresh\(\)"),
        (lambda t: t.update("id = 1", {"price": "source.price"}), UsageError, r'write col\("price"\)'),
        (lambda t: t.update("id = 1", {"price": col("price") / 0}), SchemaError, r"price: 1.5 / 0 \(row 0 of a batch\) divides by zero"),
        (lambda t: t.scan(columns="id"), UsageError, r"columns=\['id'\]"),
        (lambda t: t.scan(columns=["prise"]).to_arrow(), UsageError, "did you mean 'price'"),
    ],
)
def test_what_is_tried_wrongly_is_answered_by_what_is_right(catalog, ask, error, words):
    columns = pa.schema([pa.field("id", pa.int32(), nullable=False), ("amount", pa.int64()), ("price", pa.float32()),
                         ("pos", pa.struct([("x", pa.int32())]))])  # fmt: skip
    table = catalog.create_table("sales.tried", columns, primary_key=["id"], options={"bucket": "1"})
    table.write_arrow([{"id": 1, "price": 1.5}])
    with pytest.raises(error, match=words):
        ask(table)
    assert [snapshot.id for snapshot in table.snapshots()] == [1] and table.refresh().schema.id == 0


def test_types_of_arrow_and_columns_with_dots_can_be_added(catalog):
    table = catalog.create_table("sales.typed", pa.schema([("id", pa.int64()), ("pos", pa.struct([("x", pa.int32())]))]))
    table.alter(
        AddColumn("n", pa.decimal128(12, 2)), AddColumn(["pos", "z"], pa.float64()), AddColumn(["pos.z"], pa.list_(pa.string())),
        UpdateColumnType("n", pa.decimal128(14, 2)),
    )  # fmt: skip
    table.write_arrow([{"id": 1, "n": 2, "pos": {"x": 1, "z": 0.5}, "pos.z": ["a"]}])
    assert str(table.to_arrow().schema.field("n").type) == "decimal128(14, 2)"
    assert table.to_arrow()["pos"].to_pylist() == [{"x": 1, "z": 0.5}] and table.to_arrow()["pos.z"].to_pylist() == [["a"]]


def test_null_of_pandas_is_null(orders):
    orders.write_arrow(pa.table({"id": [1], "amount": [5]}))
    orders.update("id = 1", {"amount": pd.NA})
    assert orders.to_arrow()["amount"].to_pylist() == [None]
    assert orders.scan(where=col("id").isin([1, pd.NA])).count() == 1


def test_an_upsert_keeps_what_is_not_given(orders):
    orders.write_arrow(pa.table({"id": [1], "amount": [5], "price": [1.5]}))
    orders.upsert(pa.table({"id": [1], "amount": [6]}), on=["id"])
    assert orders.to_arrow().to_pylist() == [{"id": 1, "amount": 6, "price": 1.5}]
    orders.upsert(pa.table({"id": [1], "amount": [7]}))
    assert orders.to_arrow().to_pylist() == [{"id": 1, "amount": 7, "price": 1.5}]
    orders.write_arrow(pa.table({"id": [1], "amount": [8]}))
    assert orders.to_arrow().to_pylist() == [{"id": 1, "amount": 8, "price": None}]


@pytest.mark.parametrize("ask", [lambda t: t.scan(where="added = 1").count(), lambda t: t.update("id = 1", {"added": 1}),
                                 lambda t: t.write_arrow([{"id": 1, "added": 2}])], ids=["where", "update", "write"])  # fmt: skip
def test_a_stale_table_names_refresh(catalog, orders, ask):
    catalog.table("sales.orders").alter(AddColumn("added", "INT"))
    with pytest.raises(UsageError, match=r"table.refresh\(\)"):
        ask(orders)
    orders.refresh().update("id = 1", {"added": 1})
