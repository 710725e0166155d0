"""What a new user tries and gets wrong: an error of ours that says what to do, or the answer that was meant."""

from __future__ import annotations

import uuid
from datetime import datetime, timezone

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from paimon_py import (
    Catalog,
    DatabaseNotFoundError,
    NotFoundError,
    SchemaError,
    SnapshotNotFoundError,
    TableNotFoundError,
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
    with pytest.raises(SchemaError, match=r"amount: 40000 \(row 1 of a batch, int64\) does not fit SMALLINT"):
        getattr(orders, verb)(rows, **more)
    assert orders.snapshot() is None


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
        (lambda c: c.table("sales.order"), TableNotFoundError, "no table 'sales.order'; did you mean 'sales.orders'?"),
        (lambda c: c.table("sales.ORDERS"), TableNotFoundError, "did you mean 'sales.orders'?"),
        (lambda c: c.drop_table("sales.ordres"), TableNotFoundError, "did you mean 'sales.orders'?"),
        (lambda c: c.table("sale.orders"), DatabaseNotFoundError, "no database 'sale'; did you mean 'sales'?"),
        (lambda c: c.tables("seles"), DatabaseNotFoundError, "did you mean 'sales'?"),
        (lambda c: c.table("sales.xyz"), TableNotFoundError, "no table 'sales.xyz'"),
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
    with pytest.raises(NotFoundError, match="no warehouse"):
        Catalog.open(tmp_path / "file", create=False)
    assert (tmp_path / "file").read_text() == "x"
