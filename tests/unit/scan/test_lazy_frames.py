"""Queries of polars, DuckDB and pyarrow over a scan: the same rows as over all rows in memory, and little is read."""

from __future__ import annotations

import datetime
import decimal
import pickle

import pyarrow as pa
import pyarrow.acero
import pyarrow.compute as pc
import pyarrow.dataset
import pytest
from unit.public import new_catalog

from paimon_py import Schema, UnsupportedError, UsageError, col
from paimon_py.expr.foreign import ForeignColumns
from paimon_py.expr.from_arrow import condition_from_arrow
from paimon_py.scan.scan import Scan

polars = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

NAN = float("nan")
UTC = datetime.timezone.utc
COLUMNS = [
    ("id", "BIGINT"), ("s", "STRING"), ("f", "DOUBLE"), ("g", "FLOAT"), ("d", "DATE"), ("t", "TIMESTAMP(6)"), ("b", "BOOLEAN"),
    ("r", "ROW<x INT, y STRING>"), ("n", "DECIMAL(10, 2)"), ("z", "TIMESTAMP(3) WITH LOCAL TIME ZONE"), ("i.j", "INT"),
]  # fmt: skip
DAYS = [datetime.datetime(2020, 1, day) for day in (1, 2, 3, 4)]
ROWS = [
    {
        "id": 1, "s": "x", "f": 1.5, "g": 0.1, "d": DAYS[0].date(), "t": DAYS[0], "b": True, "r": {"x": 1, "y": "a"},
        "n": decimal.Decimal("1.00"), "z": DAYS[0].replace(tzinfo=UTC), "i.j": 1,
    },
    {
        "id": 2, "s": "xy", "f": NAN, "g": 1.0, "d": DAYS[1].date(), "t": DAYS[1], "b": False, "r": {"x": 2, "y": "b"},
        "n": decimal.Decimal("2.50"), "z": DAYS[1].replace(tzinfo=UTC), "i.j": 2,
    },
    {"id": 3, "s": None, "f": -0.0, "g": NAN, "r": {"x": None, "y": "c"}},
    {"id": None, "s": "y", "f": 0.0, "g": -0.0, "b": True, "r": None, "t": DAYS[3]},
]  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    table = new_catalog(str(tmp_path_factory.mktemp("w"))).create_table("d.t", Schema(COLUMNS))
    for rows in (ROWS[:2], ROWS[2:]):
        table.write_arrow(rows)
    return table


@pytest.fixture
def asked(monkeypatch):
    """What scans were asked for: (columns, condition)."""
    found = []
    narrowed = Scan._narrow

    def noting(self, columns, where):
        found.append((columns, where))
        return narrowed(self, columns, where)

    monkeypatch.setattr(Scan, "_narrow", noting)
    return found


P = polars.col
OF_POLARS = {
    "greater": (P("id") > 1, 'col("id") > 1'),
    "turned": (polars.lit(1) < P("id"), 'col("id") > 1'),
    "and": ((P("id") > 1) & (P("s") == "xy"), '(col("id") > 1) & (col("s") == "xy")'),
    "or": ((P("id") == 1) | (P("s") == "y"), '(col("id") == 1) | (col("s") == "y")'),
    "not": (~(P("id") == 1), 'col("id") != 1'),
    "isin": (P("id").is_in([1, 5]), 'col("id").isin([1, 5])'),
    "not in": (~P("id").is_in([1, 5]), "None"),
    "isin NULL": (P("id").is_in([1, None], nulls_equal=True), 'col("id").is_null() | col("id").isin([1])'),
    "between": (P("id").is_between(1, 2, closed="left"), '(col("id") >= 1) & (col("id") < 2)'),
    "null": (P("id").is_null(), 'col("id").is_null()'),
    "not null": (P("id").is_not_null(), 'col("id").is_not_null()'),
    "NaN is greater": (P("f") > 1.0, 'col("f") > 1.0'),
    "zeros are equal": (P("f") == 0.0, 'col("f").isin([0.0, -0.0])'),
    "zeros and less": (P("f") <= -0.0, 'col("f") <= 0.0'),
    "zeros and more": (P("f") >= 0.0, 'col("f") >= -0.0'),
    "no zero": (P("f") != 0.0, 'col("f").is_not_null()'),
    "is NaN": (P("f") == NAN, "None"),
    "not of floats": (~(P("f") > 1.0), 'col("f") <= 1.0'),
    "single": (P("g") == 0.1, 'col("g") == 0.10000000149011612'),
    "single zero": (P("g") < 0.0, 'col("g") < 0.0'),
    "date": (P("d") > DAYS[0].date(), 'col("d") > date("2020-01-01")'),
    "time": (P("t") >= DAYS[1], 'col("t") >= timestamp("2020-01-02 00:00:00")'),
    "instant": (P("z") > DAYS[0].replace(tzinfo=UTC), 'col("z") > timestamp("2020-01-01 00:00:00Z")'),
    "bool": (P("b"), 'col("b") == True'),
    "not bool": (~P("b"), '~(col("b") == True)'),
    "prefix": (P("s").str.starts_with("x"), 'col("s").starts_with("x")'),
    "part": (P("s").str.contains("y", literal=True), 'col("s").contains("y")'),
    "regex": (P("s").str.contains("^x.$"), "None"),
    "field": (P("r").struct.field("x") == 2, 'col("r", "x") == 2'),
    "decimal": (P("n") > decimal.Decimal("1.5"), 'col("n") > Decimal("1.5")'),
    "arithmetic": (P("id") * 2 > 3, "None"),
    "half of and": ((P("id") * 2 > 3) & (P("s") == "xy"), 'col("s") == "xy"'),
    "half of or": ((P("id") * 2 > 3) | (P("s") == "y"), "None"),
    "not of half": (~((P("id") * 2 > 3) & (P("s") == "xy")), "None"),
    "fraction": (P("id") > 1.5, "None"),
    "a name with a dot": (P("i.j") == 2, 'col("i.j") == 2'),
    "missing": (P("id").eq_missing(1), "None"),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_POLARS)
def test_polars_finds_what_it_finds_in_memory(table, asked, name):
    condition, pushed = OF_POLARS[name]
    scan = table.scan()
    whole = scan.to_polars()
    found = scan.to_polars(lazy=True).filter(condition).collect()
    assert found.equals(whole.filter(condition), null_equal=True)
    assert [repr(where) for _, where in asked] == [pushed]
    for engine in ("streaming", "in-memory"):
        frame = scan.to_polars(lazy=True).filter(condition).select("s").head(1)
        assert frame.collect(engine=engine).equals(whole.filter(condition).select("s").head(1))


def test_polars_reads_the_columns_that_a_query_needs(table, asked):
    lazy = table.scan().to_polars(lazy=True)
    assert lazy.select("s").head(2).collect()["s"].to_list() == ["x", "xy"]
    assert lazy.select(polars.len()).collect().item() == 4
    assert lazy.filter(P("id") > 1).select("s").collect()["s"].to_list() == ["xy", None]
    (first, _), (second, _), (third, _) = asked
    assert first == ["s"] and len(second) == 1 and set(third) == {"id", "s"}


def test_a_limit_goes_before_a_filter_that_comes_later(table):
    lazy = table.scan().to_polars(lazy=True)
    assert lazy.head(2).filter(P("id") == 3).collect().height == 0
    assert lazy.filter(P("id") == 3).head(2).collect().height == 1
    assert lazy.tail(1).select("s").collect()["s"].to_list() == ["y"]
    assert lazy.slice(1, 2).select("id").collect()["id"].to_list() == [2, 3]


def test_filters_stay_outside_of_a_scan_with_a_limit(table, asked):
    scan = table.scan(limit=2)
    assert scan.to_polars(lazy=True).filter(P("id") == 3).collect().height == 0
    assert scan.to_dataset().to_table(filter=pc.field("id") == 3).num_rows == 0
    assert scan.to_dataset().to_table(filter=pc.field("id") == 2, columns=["s"]).to_pylist() == [{"s": "xy"}]
    first = table.scan(limit=3, order_by="id", columns=["id", "s"])
    assert first.to_polars(lazy=True).filter(P("id") > 1).collect()["id"].to_list() == [2, 3]


def test_a_condition_of_the_scan_stays(table):
    scan = table.scan(where=col("id") > 1, columns=["s", "id"])
    assert scan.to_polars(lazy=True).filter(P("id") < 3).collect().to_dicts() == [{"s": "xy", "id": 2}]
    assert scan.to_dataset().count_rows(filter=pc.field("id") < 3) == 1


def test_queries_see_one_state(tmp_path):
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema([("k", "INT")]))
    table.write_arrow([{"k": 1}])
    scan = table.scan()
    lazy, connection = scan.to_polars(lazy=True), duckdb.connect()
    scan.to_duckdb(connection, "v")
    assert lazy.collect().height == connection.sql("select count(*) from v").fetchall()[0][0] == 1
    table.write_arrow([{"k": 2}])
    assert lazy.collect().height == connection.sql("select count(*) from v").fetchall()[0][0] == 1


def test_fields_inside_rows_keep_their_place(table, asked):
    scan = table.scan(columns=["r.x", "id"])
    assert scan.to_polars(lazy=True).filter(P("r.x") == 2).collect().to_dicts() == [{"r.x": 2, "id": 2}]
    assert repr(asked[-1][1]) == 'col("r", "x") == 2'
    assert scan.to_dataset().to_table(filter=pc.field("r.x") == 2).to_pylist() == [{"r.x": 2, "id": 2}]


def test_changes_and_system_tables_are_lazy_too(table):
    changes = table.changes(1, 2).to_polars(lazy=True)
    assert changes.filter(P("_row_kind") == "+I").select("id").collect()["id"].to_list() == [3, None]
    snapshots = table.system("snapshots").scan().to_polars(lazy=True)
    assert snapshots.filter(P("snapshot_id") == 2).select("commit_kind").collect().to_dicts() == [{"commit_kind": "APPEND"}]
    assert table.system("snapshots").scan().to_dataset().count_rows(filter=pc.field("snapshot_id") > 1) == 1


OF_DUCKDB = {
    "id > 1 and s = 'xy'": True, "id in (1, 2, 5)": True, "f > 1.0": False, "f = 0": True, "f <= 0.0": True, "f = 'nan'": False,
    "d >= date '2020-01-02' and t < timestamp '2021-01-01'": True, "b": False, "s like 'x%'": False, "s like '%y'": False,
    "id is null or id > 2": True, "r.x = 1": True, "z > timestamptz '2019-01-01'": True, "n > 1.5": True, "id <> 2": True,
    "not (id = 1)": True, "\"i.j\" = 2": True, "s >= 'xx' and s < 'y'": True, "id % 2 = 0 and id > 0": True, "g = 0.1::float": True,
}  # fmt: skip


@pytest.mark.parametrize("where", OF_DUCKDB)
def test_duckdb_finds_what_it_finds_in_memory(table, asked, where):
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    scan = table.scan()
    scan.to_duckdb(connection, "lazy")
    connection.register("whole", scan.to_arrow())
    query = "select id, s, f, r from {} where " + where
    assert repr(connection.sql(query.format("lazy")).fetchall()) == repr(connection.sql(query.format("whole")).fetchall())
    assert all(set(columns) <= {"id", "s", "f", "r", *"gdtbnz", "i.j"} for columns, _ in asked)
    assert not OF_DUCKDB[where] or asked[0][1] is not None


def test_duckdb_joins_counts_and_stops_early(table, asked):
    connection = duckdb.connect()
    relation = table.scan().to_duckdb(connection, "v")
    assert connection.sql("select count(*) from v").fetchall() == [(4,)]
    assert connection.sql("select a.s from v a join v b using (id) where a.id = 2").fetchall() == [("xy",)]
    assert len(connection.sql("select s from v limit 1").fetchall()) == 1
    assert relation.filter("id > 2").project("f").fetchall() == [(-0.0,)]
    assert [columns for columns, _ in asked if columns == ["s"]] == [["s"]]


def test_a_dataset_does_what_datasets_do(table):
    dataset = table.scan().to_dataset()
    whole = table.scan().to_arrow()
    assert dataset.schema == whole.schema and isinstance(dataset, pyarrow.dataset.Dataset)
    assert dataset.to_table(columns=["s", "id"]).equals(whole.select(["s", "id"]))
    assert dataset.to_table(columns={"twice": pc.field("id") * 2}, filter=pc.field("s") == "x").to_pylist() == [{"twice": 2}]
    assert dataset.head(3, columns=["id"])["id"].to_pylist() == [1, 2, 3]
    assert dataset.head(0).num_rows == 0
    assert dataset.take([3, 0], columns=["s"])["s"].to_pylist() == ["y", "x"]
    assert dataset.count_rows() == 4
    assert sum(batch.num_rows for batch in dataset.to_batches(filter=~pc.field("id").isin([1]))) == 3
    assert pickle.loads(pickle.dumps(dataset)).count_rows() == 4
    assert polars.scan_pyarrow_dataset(dataset).filter(P("id") > 1).select("s").collect().height == 2


@pytest.mark.parametrize(
    ("verb", "given"),
    [("filter", [pc.field("id") > 1]), ("get_fragments", []), ("join", [None]), ("join_asof", [None]), ("replace_schema", [None]), ("sort_by", ["id"])],
    ids=["filter", "get_fragments", "join", "join_asof", "replace_schema", "sort_by"],
)
def test_a_dataset_refuses_what_needs_files(table, verb, given):
    with pytest.raises(UnsupportedError, match=f"no {verb}: give filters"):
        getattr(table.scan().to_dataset(), verb)(*given)


def test_scanners_of_arrow_are_refused_and_crash_nothing(table, tmp_path):
    dataset = table.scan().to_dataset()
    node = pyarrow.acero.ScanNodeOptions(dataset)
    for read in (
        lambda: pyarrow.dataset.Scanner.from_dataset(dataset, columns=["id"]).to_table(),
        lambda: pyarrow.dataset.Scanner.from_dataset(dataset).count_rows(),
        lambda: pyarrow.acero.Declaration("scan", node).to_table(),
        lambda: pyarrow.dataset.Scanner.from_dataset(pickle.loads(pickle.dumps(dataset))).head(1),
    ):
        with pytest.raises(UnsupportedError, match=r"Arrow's own scanners cannot read the dataset of a scan: .* scan.to_reader"):
            read()
    with pytest.raises(UnsupportedError, match="no children: give filters"):
        _ = dataset.children
    with pytest.raises(UnsupportedError, match="no replace_schema: give filters"):
        pyarrow.dataset.dataset([dataset, dataset])
    pyarrow.dataset.write_dataset(table.scan().to_reader(), tmp_path / "files", format="parquet")
    assert pyarrow.dataset.dataset(tmp_path / "files").count_rows() == 4


def test_a_scan_taken_for_a_dataset_says_what_to_use(table):
    with pytest.raises(Exception, match=r"scan.to_dataset\(\)"):
        polars.scan_pyarrow_dataset(table.scan()).collect()
    with pytest.raises(AttributeError, match="no attribute 'colums'"):
        _ = table.scan().colums


def test_deep_and_unknown_expressions_have_no_claim():
    columns = ForeignColumns(pa.schema([("a", pa.int64()), ("b", pa.bool_())]), {"a": ("a",), "b": ("b",)})
    deep = pc.field("b")
    for _ in range(400):
        deep = ~deep
    assert condition_from_arrow(deep, columns).claim is None
    nothing = [pc.field("x") == 1, pc.field("a") == pc.field("a"), pc.add(pc.field("a"), 1) > 2, pc.field("a") == pa.scalar(None), pc.field("a") > 1.5]
    for expression in nothing:
        assert condition_from_arrow(expression, columns).claim is None
    both = condition_from_arrow((pc.field("a") > 1) & (pc.add(pc.field("a"), 1) > 2), columns)
    assert (repr(both.claim.predicate), both.claim.exact, both.columns) == ('col("a") > 1', False, {"a"})
    assert condition_from_arrow(pc.scalar(True) & (pc.scalar(3) < pc.field("a")), columns).claim.exact


@pytest.mark.parametrize("given", ["yes", "false", 2])
def test_lazy_is_a_flag(table, given):
    with pytest.raises(UsageError, match=f"lazy is True or False, not {given!r}"):
        table.scan().to_polars(lazy=given)


def test_a_library_that_is_absent_is_named(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "polars", None)
    monkeypatch.delitem(__import__("sys").modules, "paimon_py.scan.lazy_polars", raising=False)
    with pytest.raises(UsageError, match="pip install polars"):
        table.scan().to_polars(lazy=True)


@pytest.mark.parametrize("limit", [None, 0, 1, 3, 5, 100])
@pytest.mark.parametrize("most", [0, 1, 3, 5, 100])
def test_the_smaller_limit_counts(tmp_path, limit, most):
    """That of the scan, or that of the query."""
    table = new_catalog(str(tmp_path)).create_table("d.t", Schema([("id", "BIGINT")]))
    table.write_arrow(pa.table({"id": range(7)}))
    frame = table.scan(limit=limit).to_polars(lazy=True)
    wanted = min(7, most, 7 if limit is None else limit)
    assert [len(one.collect()) for one in (frame.head(most), frame.filter(polars.col("id") >= 0).head(most))] == [wanted] * 2
