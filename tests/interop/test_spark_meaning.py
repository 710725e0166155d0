"""Conditions mean in our verbs what they mean in the WHERE of the same session of Spark."""

from __future__ import annotations

import datetime
import random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from spark_sessions import MARKS, local_session

import paimon_py
from paimon_py import Catalog, Schema, UsageError, col, lit, sql

pytest.importorskip("pyspark", reason="the Spark adapter needs pyspark")
pytestmark = MARKS

UTC = datetime.timezone.utc
ZONE = "spark.sql.session.timeZone"
TURNS = {
    "America/New_York": ["2024-03-10", "2024-11-03", "1883-11-18"],
    "Europe/Berlin": ["2024-03-31", "2024-10-27"],
    "America/Sao_Paulo": ["2018-11-04", "2018-02-18"],
    "Pacific/Apia": ["2011-12-30", "2012-04-01"],
    "Australia/Lord_Howe": ["2024-04-07", "2024-10-06"],
    "America/Toronto": ["1919-03-31"],
    "Asia/Kathmandu": ["1986-01-01"],
    "+05:30": ["2024-01-01"],
    "PST": ["2024-03-10"],
    "UTC": ["2024-01-01"],
    "America/Los_Angeles": ["2150-03-08", "0002-01-01"],
}
"""Zones, and days on which their clocks are turned."""


@pytest.fixture(scope="module")
def spark():
    yield from local_session()


@pytest.fixture
def new_york(spark):
    before = spark.conf.get(ZONE)
    spark.conf.set(ZONE, "America/New_York")
    yield spark
    spark.conf.set(ZONE, before)


@pytest.fixture
def db(tmp_path):
    made = Catalog.open(str(tmp_path))
    made.create_database("db")
    return made


KINDS = [
    ("k", "INT NOT NULL"), ("ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("ltz3", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
    ("ntz", "TIMESTAMP(6)"), ("d", "DATE"), ("f", "FLOAT"), ("x", "DOUBLE"), ("i", "INT"), ("n", "DECIMAL(12, 2)"),
    ("r", {"type": "ROW", "fields": [{"id": 0, "name": "at", "type": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}]}),
]  # fmt: skip
FLOATS = [0.0, -0.0, 0.1, 0.5, 1e-40, -1.5, 16777217.0, 3.4e38, float("nan"), float("inf"), float("-inf"), None]


def moments(rng, days, count):
    """Wall times near some days, mostly on round minutes."""
    found = []
    for _ in range(count):
        day = datetime.datetime.fromisoformat(rng.choice(days))
        minutes = rng.choice([rng.randrange(-120, 360), 15 * rng.randrange(-8, 24), 1440 + rng.randrange(-90, 90)])
        found.append(day + datetime.timedelta(minutes=minutes, microseconds=rng.choice([0, 0, 0, 1, 500_000])))
    return found


def rows_near(rng, days, count=120):
    """Rows whose times lie near turned clocks, as instants (in the zone) and as wall times."""
    rows = []
    for key, wall in enumerate(moments(rng, days, count)):
        shift = datetime.timedelta(minutes=15 * rng.randrange(-56, 60))
        instant = (wall + shift).replace(tzinfo=UTC)
        row = {
            "k": key, "ltz": instant, "ltz3": instant.replace(microsecond=0), "ntz": wall, "d": wall.date(),
            "f": rng.choice(FLOATS), "x": rng.choice(FLOATS), "i": rng.randrange(-3, 4), "n": None, "r": {"at": instant},
        }  # fmt: skip
        for name in ("ltz", "ntz", "d"):
            if rng.random() < 0.05:
                row[name] = None
        rows.append(row)
    return rows


def literal(rng, days):
    wall = moments(rng, days, 1)[0]
    text = wall.isoformat(sep=rng.choice("T "))
    zoned = rng.choice(["Z", "-05:00", "+01:00"])
    return rng.choice([
        f"TIMESTAMP '{text}'", f"TIMESTAMP '{text}'", f"TIMESTAMP '{text}{zoned}'", f"DATE '{wall.date()}'", f"'{text}'",
        f"'{wall.date()}'",
    ])  # fmt: skip


def numeral(rng):
    return rng.choice(["0", "0.0", "-0.0", "0.1", "0.5", "16777217", "16777216", "3.4e38", "1e39", "-1e39", "1e-40", "-1.5"])


def condition(rng, days):
    """A condition over one column, or two, that both understand."""
    operator = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    if rng.random() < 0.25:
        name = rng.choice(["f", "x", "X"])
        if rng.random() < 0.3:
            return f"{name} {operator} {rng.choice(['f', 'x', 'i'])}"
        return f"NOT ({name} {operator} {numeral(rng)})" if rng.random() < 0.3 else f"{name} {operator} {numeral(rng)}"
    name = rng.choice(["ltz", "LTZ", "ltz3", "ntz", "d", "r.at"])
    one, two = literal(rng, days), literal(rng, days)
    while name == "ntz" and ("Z'" in one + two or "0'" in (one + two)[-7:]) and not one.startswith("TIMESTAMP"):
        one, two = literal(rng, days), literal(rng, days)
    shape = rng.random()
    if shape < 0.5:
        return f"{name} {operator} {one}"
    if shape < 0.65:
        return f"NOT ({name} {operator} {one} OR k < 3)"
    if shape < 0.8:
        return f"{name} BETWEEN {one} AND {two}"
    if shape < 0.9:
        return f"{name} IN (TIMESTAMP '{moments(rng, days, 1)[0]}', TIMESTAMP '{moments(rng, days, 1)[0]}')"
    return f"{name} NOT IN (TIMESTAMP '{moments(rng, days, 1)[0]}', NULL)" if shape < 0.93 else f"ntz {operator} d"


def compare(spark, db, zone, seed, count):
    """Rows that Spark finds by many conditions, beside those that we find. Returns: how many conditions were read."""
    from paimon_py.spark.meaning import Meaning

    rng = random.Random(seed)
    days = TURNS[zone]
    spark.conf.set(ZONE, zone)
    table = db.create_table(f"db.t{seed}", Schema(KINDS), options={"bucket": "-1"})
    table.write_arrow(pa.Table.from_pylist(rows_near(rng, days), schema=table.scan().schema))
    texts = [condition(rng, days) for _ in range(count)]
    read, known = [], []
    for text in texts:
        try:
            read.append((text, table.scan(columns=["k"], where=Meaning.of(spark).condition(text, table.schema.fields))))
        except UsageError as error:  # what is not read is refused
            assert "without zone" in str(error), (zone, text, error)  # noqa: PT017
    df = paimon_py.convert_to_spark(table, spark)
    asked = df.select("k", *[spark_condition(text, at) for at, (text, _) in enumerate(read)]).collect()
    for at, (text, scan) in enumerate(read):
        theirs = sorted(row["k"] for row in asked if row[f"c{at}"])
        ours = sorted(scan.to_arrow()["k"].to_pylist())
        assert ours == theirs, (zone, seed, text, scan)
        known.append(bool(ours))
    assert sum(known) > len(known) / 4
    return len(read)


def spark_condition(text, at):
    from pyspark.sql import functions

    return functions.expr(text).alias(f"c{at}")


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Apia"])
def test_conditions_find_the_rows_that_sparks_own_where_finds(spark, db, zone):
    assert compare(spark, db, zone, 1, 60) > 50


@pytest.mark.full
@pytest.mark.parametrize("ansi", ["false", "true"])
def test_conditions_of_all_zones_find_the_rows_that_sparks_own_where_finds(spark, db, ansi):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        assert sum(compare(spark, db, zone, seed, 150) for seed, zone in enumerate(TURNS)) > 1500
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_wall_times_stay_what_they_are_where_literals_are_wall_times(spark, db):
    from paimon_py.spark.meaning import Meaning

    spark.conf.set(ZONE, "America/New_York")
    table = db.create_table("db.t", Schema([("ntz", "TIMESTAMP(6)"), ("ltz", "TIMESTAMP(6) WITH LOCAL TIME ZONE")]))
    skipped, instant = datetime.datetime(2024, 3, 10, 2, 30), datetime.datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    table.write_arrow(pa.Table.from_pylist([{"ntz": skipped, "ltz": instant}], schema=table.scan().schema))
    found = {}
    for kind in ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
        spark.conf.set("spark.sql.timestampType", kind)
        for text in ("ntz = TIMESTAMP '2024-03-10 03:30:00'", "ltz = TIMESTAMP '2024-03-10 03:30:00'"):
            meant = Meaning.of(spark).condition(text, table.schema.fields)
            ours, theirs = table.scan(where=meant).count(), paimon_py.convert_to_spark(table, spark).where(text).count()
            assert ours == theirs
            found[kind, text[:3]] = ours
    spark.conf.unset("spark.sql.timestampType")
    assert list(found.values()) == [1 if spark.version < "4" else 0, 1, 0, 1]


# -- the verbs --------------------------------------------------------------------------------------------------------

HOURS = "ts < TIMESTAMP '2024-07-01 00:00:00'"


def hours(spark, db, name="db.hours", **options):
    """Twelve rows, an hour apart, of which the first six are before July in New York; the first two in UTC."""
    columns = Schema([("k", "INT NOT NULL"), ("ts", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("note", "STRING")])
    table = db.create_table(name, columns, primary_key=["k"], options={"bucket": "1", **options})
    first = datetime.datetime(2024, 6, 30, 22, tzinfo=UTC)
    rows = [{"k": k, "ts": first + datetime.timedelta(hours=k), "note": "old"} for k in range(12)]
    table.write_arrow(pa.Table.from_pylist(rows, schema=table.scan().schema))
    return table


def keys(table, where=None):
    return sorted(table.scan(columns=["k"], where=where).to_arrow()["k"].to_pylist())


def test_the_verbs_read_times_in_the_zone_of_the_session(new_york, db):
    spark, table = new_york, hours(new_york, db)
    assert keys(table, HOURS) == [0, 1]  # without Spark times are in UTC
    theirs = sorted(row.k for row in paimon_py.convert_to_spark(table, spark).where(HOURS).collect())
    assert theirs == [0, 1, 2, 3, 4, 5]
    for asked in ({"source": table.scan(where=HOURS)}, {"source": table, "where": HOURS}):
        assert sorted(row.k for row in paimon_py.convert_to_spark(spark=spark, **asked).collect()) == theirs
    moment = datetime.datetime(2024, 7, 1)  # noqa: DTZ001
    for same in ("TS < DATE '2024-07-01'", "ts < '2024-07-01'", col("ts") < moment):
        assert sorted(row.k for row in paimon_py.convert_to_spark(table, spark, where=same).collect()) == theirs
    done = paimon_py.update_spark(table, "ts < TIMESTAMP '2024-06-30 19:00:00' AND K > 0", {"NOTE": "new"}, spark=spark)
    assert (done.updated, keys(table.refresh(), "note = 'new'")) == (0, [])
    done = paimon_py.update_spark(table, "ts <= TIMESTAMP '2024-06-30 19:00:00' AND K > 0", {"NOTE": "new"}, spark=spark)
    assert (done.updated, keys(table.refresh(), "note = 'new'")) == (1, [1])
    assert paimon_py.delete_spark(table, HOURS, spark=spark).deleted == 6
    assert keys(table.refresh()) == [6, 7, 8, 9, 10, 11]


def test_values_that_are_set_are_read_in_the_zone_of_the_session(new_york, db):
    spark, table = new_york, hours(new_york, db)
    midnight = datetime.datetime(2024, 7, 1, 4, tzinfo=UTC)
    naive = midnight.astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None)
    given = [
        naive, "2024-07-01 00:00:00", naive.date(), lit(naive), sql("TIMESTAMP '2024-07-01 00:00:00'"), midnight,
        sql("CASE WHEN ts < TIMESTAMP '2024-07-01 00:00:00' THEN DATE '2024-07-01' ELSE ts END"),
        sql("coalesce(nullif(TS, ts), TIMESTAMP '2024-07-01 00:00:00')"),
    ]  # fmt: skip
    for value in given:
        start = {"ts": midnight - datetime.timedelta(hours=1)}
        paimon_py.update_spark(table, "k = 1", start, spark=spark)
        paimon_py.update_spark(table, "k = 1", {"ts": value}, spark=spark)
        assert table.refresh().scan(where="k = 1").to_arrow()["ts"].to_pylist() == [midnight], value


def test_clauses_of_a_merge_are_read_in_the_session(new_york, db):
    spark, table = new_york, hours(new_york, db)
    source = spark.sql(
        "SELECT CAST(id AS INT) AS K, TIMESTAMP '2024-07-01 00:00:00' AS At, 'new' AS Note FROM range(4, 14)"
    )
    done = paimon_py.merge_spark(
        table, source, ["k"],
        when_matched_delete="source.at <= target.TS AND target.ts < TIMESTAMP '2024-07-01 01:00:00'",
        when_matched_update=("target.ts < TIMESTAMP '2024-07-01 00:00:00'", {"Note": "source.note"}),
        when_not_matched_insert=(
            "source.At = TIMESTAMP '2024-07-01 00:00:00'", {"k": "source.k", "TS": "2024-07-01 00:00:00", "note": lit("x")}
        ),
        when_not_matched_by_source_delete=col("target.ts") < "2024-06-30 19:00:00",
    )  # fmt: skip
    assert (done.deleted, done.updated, done.inserted) == (2, 2, 2)
    rows = {row["k"]: row for row in table.refresh().to_arrow().to_pylist()}
    assert sorted(rows) == [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13]
    assert [k for k, row in rows.items() if row["note"] == "new"] == [4, 5]
    assert rows[12]["ts"] == rows[13]["ts"] == datetime.datetime(2024, 7, 1, 4, tzinfo=UTC)


def test_views_and_partitions_are_chosen_in_the_session(new_york, db):
    spark = new_york
    hours(spark, db)
    lake = paimon_py.register(spark, db, ["db"])
    assert lake.view("db.hours", where=HOURS, as_="some").count() == 6
    parts = db.create_table("db.parts", Schema([("d", "DATE"), ("v", "INT")]), partition_by=["d"])
    for _ in range(2):
        parts.write_arrow(pa.table({"d": [datetime.date(2024, 6, 30), datetime.date(2024, 7, 1)], "v": pa.array([1, 2], pa.int32())}))
    done = paimon_py.compact_spark(parts, full=True, where="D < TIMESTAMP '2024-07-01 00:00:00'", spark=spark)
    assert done.snapshot_ids
    assert parts.refresh().system("files").scan().count() == 3


def test_names_in_another_case_are_other_names_where_the_session_says_so(new_york, db):
    spark, table = new_york, hours(new_york, db)
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        for call in (
            lambda: paimon_py.delete_spark(table, "K = 1", spark=spark),
            lambda: paimon_py.update_spark(table, "k = 1", {"NOTE": "x"}, spark=spark),
            lambda: paimon_py.convert_to_spark(table, spark, where="K = 1"),
        ):
            with pytest.raises(UsageError, match="'k'|'note'|NOTE"):
                call()
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
    both = db.create_table("db.both", Schema([("v", "INT"), ("V", "INT"), ("Ab", "INT"), ("aB", "INT")]))
    both.write_arrow(pa.table({name: pa.array([at, 5], pa.int32()) for at, name in enumerate(both.schema.names)}))
    with pytest.raises(UsageError, match="'AB' may be 'Ab' and 'aB'"):
        paimon_py.delete_spark(both, "AB = 1", spark=spark)
    assert paimon_py.delete_spark(both, "V = 1", spark=spark).deleted == 1  # as it is written


def test_a_step_of_a_stream_says_so_where_its_condition_has_no_zone(new_york, db):
    spark, table = new_york, hours(new_york, db)
    step = next(table.stream(from_="earliest", where=HOURS, until="now"))
    with pytest.raises(UsageError, match="with their zone"):
        paimon_py.convert_to_spark(step, spark)
    zoned = next(table.stream(from_="earliest", where="ts < TIMESTAMP '2024-07-01 04:00:00Z'", until="now"))
    assert paimon_py.convert_to_spark(zoned, spark).count() == 6
