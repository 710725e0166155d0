"""WHERE texts over rows with NULL, NaN and both cases: the rows that match, by SQL's logic of three values."""

import datetime

import pyarrow as pa
import pytest

from paimon_py import Catalog, Schema, col
from paimon_py.errors import UsageError

NAN = float("nan")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    catalog = Catalog.open(str(tmp_path_factory.mktemp("warehouse")))
    catalog.create_database("d")
    table = catalog.create_table("d.t", Schema({"id": "INT", "name": "STRING", "f": "DOUBLE", "b": "BOOLEAN"}))
    names, flags = ["Ann", "bob", None, "ÄRA\nX"], [True, False, None, True]
    table.write_arrow(pa.table({"id": [1, 2, 3, 4], "name": names, "f": [1.0, NAN, -1.0, None], "b": flags}))
    return table


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("name ILIKE 'a%'", [1]), ("name NOT ILIKE 'a%'", [2, 4]), ("name ILIKE 'ANN'", [1]), ("name ILIKE 'är%'", [4]),
        ("name ILIKE '%'", [1, 2, 4]), ("name ILIKE 'a_n'", [1]), ("name ILIKE ''", []),
        ("b IS TRUE", [1, 4]), ("b IS NOT TRUE", [2, 3]), ("b IS FALSE", [2]), ("b IS NOT FALSE", [1, 3, 4]),
        ("b IS UNKNOWN", [3]), ("b IS NOT UNKNOWN", [1, 2, 4]), ("NOT b IS TRUE", [2, 3]),
        ("f = NaN", [2]), ("f <> NaN", [1, 3]), ("f = 'nan'", [2]), ("f < Infinity", [1, 3]), ("f > '-Infinity'", [1, 2, 3]),
        ("isnan(f)", [2]), ("NOT isnan(f)", [1, 3]), ("f IS NAN", [2]), ("f IS NOT NAN", [1, 3, 4]),
        ("1 = 1 AND id < 3", [1, 2]), ("1 = 2 OR 'a' || 'b' = 'ab'", [1, 2, 3, 4]), ("5 IN (1, NULL)", []), ("NOT 2 > 3", [1, 2, 3, 4]),
        ("isnan(f * 2)", [2]), ("f * 2 < Infinity", [1, 3]), ("f + 1 = NaN", [2]), ("round(f - 0.6) = 0", [1]), ("id % 2 = 1", [1, 3]), ("(-id) % 3 = -1", [1, 4]), ("f % 2 = 1", [1]), ("id % -1 = 0", [1, 2, 3, 4]), ("f * 0 = 0", [1, 3]),
        ("starts_with(name, 'A')", [1]), ("contains(name, 'n')", [1]), ("NOT ends_with(name, 'b')", [1, 4]),
    ],
)  # fmt: skip
def test_rows_that_match(table, where, ids):
    scan = table.scan(where=where)
    assert (scan.to_arrow()["id"].to_pylist(), scan.count()) == (ids, len(ids))


def test_no_file_is_skipped_by_the_case_of_its_bounds(table):
    assert table.scan(where=col("name").ilike("ANN")).count() == 1
    assert table.scan(where=~col("name").ilike("zzz")).count() == 3


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("id IS TRUE", "not BOOLEAN"), ("id IS UNKNOWN", "not BOOLEAN"), ("id = 'NaN'", "pass a number"),
        ("name = NaN", "single quotes"), ("f IS 3", "NULL, TRUE, FALSE, UNKNOWN, NAN or DISTINCT FROM"),
        ("name + 1 = 2", r"\+ takes numbers, not string; .*\|\|"), ("lower(name) = 5", r'lower\(col\("name"\)\) is VARCHAR and cannot be compared with 5'),
        ("length(name)", "is not BOOLEAN"), ("id / 0 = 1", r"1 / 0 .* divides by zero; write a / nullif\(b, 0\)"),
        ("coalesce(name, id) = 'x'", "no type in common"), ("coalesce(NULL, NULL) = 1", "is always NULL"), ("uper(name) = 'x'", "did you mean upper"),
        ("id % 0 = 1", r"1 % 0 .* divides by zero; write a % nullif"), ("name::INT = 1", "unexpected ':'"), ("b && id = 1", "unexpected '&'; write AND"), ("!b", "write NOT"), ("[id] = 1", "quoted as `a b`"), ("year(name) = 1", r"the functions are abs.*catalog\.sql"),
        ("cast(id AS STRING) = '1'", r"catalog\.sql\(.SELECT … WHERE ….\) has the functions of DuckDB"), ("mod(id, 2) = 1", "write a % b"),
        ("name RLIKE 'a'", "LIKE 'a%' or ILIKE"),
        ("id ILIKE '1%'", "text columns only"), ("contains(name, 5)", "expected 'text'"), ("starts_with(name)", "expected ,"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_way_out(table, where, message):
    with pytest.raises(UsageError, match=message):
        table.scan(where=where).to_arrow()


def test_a_column_may_have_the_name_of_a_test_or_a_number(tmp_path):
    catalog = Catalog.open(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", {"contains": "INT", "nan": "DOUBLE", "f": "DOUBLE"})
    table.write_arrow(pa.table({"contains": [1, 2], "nan": [1.0, NAN], "f": [1.0, 2.0]}))
    assert table.scan(where="contains = 1").count() == 1
    assert table.scan(where="f = nan").count() == 1  # the column


@pytest.mark.parametrize("age", ["1w", "PT1H", "yesterday"])
def test_an_age_that_is_none_is_refused_with_one_that_is(table, age):
    with pytest.raises(UsageError, match=r"an age such as '7d', '12h' or timedelta\(days=7\), or a time"):
        table.expire_snapshots(older_than=age, dry_run=True)
    assert table.expire_snapshots(older_than=datetime.timedelta(days=7), dry_run=True).snapshot_ids == ()
