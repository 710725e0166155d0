"""Dates, timestamps, intervals and the current time in texts: the times that DuckDB computes, and which files they skip."""

from __future__ import annotations

import calendar
import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from unit.commit.support import Clock

from paimon_py import Catalog, Schema, col, sql
from paimon_py.env import Env, SerialPool
from paimon_py.errors import UsageError
from paimon_py.expr.bind import bind
from paimon_py.expr.literal import DateValue
from paimon_py.expr.predicate import Compare
from paimon_py.expr.sql import parse_where
from paimon_py.expr.sql_intervals import parse_interval, shift
from paimon_py.spec.types import Atomic, Field, Root

DAY = 86_400_000


class Noon(Clock):
    """Noon of 2024-03-31 in UTC, two hours later on the wall."""

    def millis(self):
        return 1_711_886_400_000

    def local_millis(self):
        return self.millis() + 7_200_000


def literal(text):
    found = parse_where(f"c > {text}", Noon())
    assert isinstance(found, Compare)
    return found.literal


@pytest.mark.parametrize("begin", [
    "DATE '2024-01-31'", "DATE '2024-02-29'", "TIMESTAMP '2024-03-31 23:59:59.999999'", "TIMESTAMP '1969-12-31 00:00:00'",
])  # fmt: skip
@pytest.mark.parametrize("length", [
    "INTERVAL '1' DAY", "INTERVAL 3 DAYS", "INTERVAL 1 MONTH", "INTERVAL '13 months'", "INTERVAL 1 YEAR", "INTERVAL '2' WEEK",
    "INTERVAL '1 day 2 hours 3 minutes'", "INTERVAL 90 SECOND", "INTERVAL '5 milliseconds'", "INTERVAL 1 QUARTER",
    "INTERVAL '-1 month 1 day'", "INTERVAL '7 microseconds'", "INTERVAL 1 MONTH - INTERVAL 1 DAY",
])  # fmt: skip
@pytest.mark.parametrize("sign", "+-")
def test_times_are_those_of_duckdb(begin, length, sign):
    duckdb = pytest.importorskip("duckdb")
    text = f"{begin} {sign} {length}"
    ((wanted,),) = duckdb.sql(f"SELECT epoch_us(CAST({text} AS TIMESTAMP))").fetchall()
    found = literal(text)
    assert found.seconds * 1_000_000 + found.nanos // 1_000 == wanted and not found.zoned


EPOCH = datetime.datetime(1970, 1, 1)
FIRST, LAST = datetime.datetime.min, datetime.datetime.max.replace(microsecond=0)
LENGTHS = {
    "1 day": (0, 1, 0), "31 days": (0, 31, 0), "366 days": (0, 366, 0), "1 month": (1, 0, 0), "11 months": (11, 0, 0), "1 year": (12, 0, 0),
    "1 second": (0, 0, 1), "24 hours": (0, 0, 86_400), "1 month -1 day": (1, -1, 0), "-1 month 31 days": (-1, 31, 0), "1 day -1 second": (0, 1, -1),
    "9998 years": (119_976, 0, 0), "9999 years": (119_988, 0, 0), "999999999 seconds": (0, 0, 999_999_999), "-999999999 days": (0, -999_999_999, 0),
}  # fmt: skip


def by_calendar(begin, months, days, seconds):
    """A time moved by months, then by days and seconds; None where Python's calendar ends."""
    year, month = divmod(begin.year * 12 + begin.month - 1 + months, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        return None
    begin = begin.replace(year=year, month=month + 1, day=min(begin.day, calendar.monthrange(year, month + 1)[1]))
    try:
        return begin + datetime.timedelta(days=days, seconds=seconds)
    except OverflowError:
        return None


@pytest.mark.parametrize("text", LENGTHS)
@pytest.mark.parametrize("sign", [1, -1])
def test_times_near_both_ends_of_the_calendar_are_those_of_python(text, sign):
    days = [0, 1, 30, 31, 58, 59, 364, 365, 366]
    begins = [end + side * datetime.timedelta(days=day) for end, side in ((FIRST, 1), (LAST, -1)) for day in days]
    for begin in [*begins, datetime.datetime(2024, 2, 29), datetime.datetime(2023, 12, 31), datetime.datetime(1970, 1, 1)]:
        wanted = by_calendar(begin, *(sign * part for part in LENGTHS[text]))
        moment = literal(f"TIMESTAMP '{begin:%Y-%m-%d %H:%M:%S}'" if begin.year > 999 else f"TIMESTAMP '{begin.isoformat(' ')}'")
        found = shift(moment, parse_interval(text), sign)
        assert (None if found is None else EPOCH + datetime.timedelta(seconds=found.seconds)) == wanted, begin


@pytest.mark.parametrize("digits", range(1, 12))
@pytest.mark.parametrize("sign", ["", "+", "-"])
def test_numbers_of_an_interval_have_at_most_nine_digits(digits, sign):
    found = parse_interval(f"{sign}{'9' * digits} days")
    assert found is None if digits > 9 else found.days == int(f"{sign}{'9' * digits}")


class At:
    """A clock that stands still, and the offset of its zone."""

    def __init__(self, millis, offset):
        self._millis, self._offset = millis, offset

    def millis(self):
        return self._millis

    def local_millis(self):
        return self._millis + self._offset


@pytest.mark.parametrize("offset", range(-12, 15))
def test_the_day_is_that_of_the_wall_clock(offset):
    for hour in range(24):
        clock = At(1_711_843_200_000 + hour * 3_600_000, offset * 3_600_000)
        wall = EPOCH + datetime.timedelta(milliseconds=clock.local_millis())
        for function in ("today", "current_date"):
            assert parse_where(f"c > {function}()", clock).literal == DateValue((wall - EPOCH).days)
        assert parse_where("c > localtimestamp()", clock).literal == literal(f"TIMESTAMP '{wall}'")
        assert parse_where("c > now()", clock).literal.seconds * 1000 == clock.millis()


def test_days_are_added_to_dates():
    assert literal("DATE '2024-02-28' + 2") == literal("TIMESTAMP '2024-03-01 00:00:00'")
    assert literal("DATE '2024-03-01' - 1") == literal("TIMESTAMP '2024-02-29 00:00:00'")


def test_the_time_is_that_of_the_clock():
    assert literal("now()") == literal("TIMESTAMP '2024-03-31 12:00:00Z'") == literal("CURRENT_TIMESTAMP()")
    assert literal("localtimestamp()") == literal("TIMESTAMP '2024-03-31 14:00:00'")
    assert literal("today()") == literal("current_date()") == literal("DATE '2024-03-31'")
    assert literal("now() - INTERVAL '1' MONTH") == literal("TIMESTAMP '2024-02-29 12:00:00Z'")


@pytest.mark.parametrize(("text", "told"), [
    ("d > INTERVAL 1 DAY", "is added to a date or timestamp, as in ts"), ("5 + INTERVAL 1 DAY < ts", "is added to a date or"),
    ("d IN (today() - 1, d)", "IN takes literals"), ("cast(d AS STRING) = 'a'", "cast to DATE only"),
    ("d > DATE '2024-01-01' + INTERVAL 'soon'", "a number and a unit"), ("d > today() + INTERVAL 1 FORTNIGHT", "a number and a unit"),
    ("d > today() + INTERVAL 9999 YEAR", "years 1 to 9999"), ("d > DATE '2024-01-01' - 999999", "years 1 to 9999"),
    ("d > now(1)", "expected )"),
])  # fmt: skip
def test_what_is_not_a_time_is_refused_with_the_way_out(text, told):
    with pytest.raises(UsageError) as found:
        parse_where(text, Noon())
    assert told in str(found.value) and "^" in str(found.value)


def test_values_without_a_table_have_no_clock():
    assert repr(sql("now()")) == "now()"
    assert repr(sql("DATE '2024-01-01' + INTERVAL 1 DAY")) != repr(sql("DATE '2024-01-01'"))
    with pytest.raises(UsageError, match=r"now\(\) is not known here; write the time"):
        bind(sql("now()") > col("z"), [Field(0, "z", Atomic(Root.TIMESTAMP_LTZ, precision=3))])


def test_columns_may_have_these_names():
    assert {"interval", "now", "today"} == {
        found.column.path[0] for found in (parse_where(f"{name} > 1") for name in ("interval", "now", "today"))
    }


@pytest.fixture
def table(tmp_path):
    catalog = Catalog.open(tmp_path / "w", {"fs.local.fsync": "false"}, env=Env(Noon(), None, SerialPool()))
    catalog.create_database("d")
    kinds = {"d": "DATE", "ts": "TIMESTAMP(6)", "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE"}
    table = catalog.create_table("d.t", Schema(kinds))
    for back in range(5):
        utc = datetime.datetime(2024, 3, 31, 12, tzinfo=datetime.timezone.utc) - datetime.timedelta(days=back)
        wall = utc.replace(tzinfo=None) + datetime.timedelta(hours=2)
        table.write_arrow(pa.table({"d": [wall.date()], "ts": [wall], "z": [utc]}))
    return table


@pytest.mark.parametrize(("where", "count"), [
    ("z > now() - INTERVAL '1' DAY", 1), ("z >= now() - INTERVAL '1' DAY", 2), ("ts >= localtimestamp() - INTERVAL 36 HOURS", 2),
    ("d > today() - 2", 2), ("d >= current_date() - INTERVAL 2 DAY", 3), ("d = DATE '2024-03-28' + INTERVAL 3 DAY", 1),
    ("d BETWEEN today() - 3 AND today() - 1", 3), ("d > today() - INTERVAL 36 HOURS", 2),
])  # fmt: skip
def test_rows_and_files_are_chosen_by_time(table, where, count):
    scan = table.scan(where=where)
    assert scan.count() == count and sum(len(split.files) for split in scan.splits()) == count


def test_rows_are_deleted_and_updated_by_time(table):
    table.update("z < now() - INTERVAL 3 DAY", {"ts": datetime.datetime(2000, 1, 1)})
    assert table.scan(where="ts = TIMESTAMP '2000-01-01 00:00:00'").count() == 1
    table.delete("z < now() - INTERVAL 1 DAY")
    assert table.count() == 2
    assert table.scan(where=sql("z") > sql("now() - INTERVAL 1 DAY")).count() == 1
    with pytest.raises(UsageError, match=r"column 'current_date' does not exist; write current_date\(\) for the current time"):
        table.scan(where="d = current_date").count()
    with pytest.raises(UsageError, match=r"localtimestamp\(\) for now\(\)"):
        table.scan(where="ts > now()").count()


def test_now_is_a_value_and_chooses_partitions_and_rows_of_system_tables(table, tmp_path):
    table.update("d = today()", {"ts": sql("localtimestamp() - INTERVAL 1 HOUR"), "z": sql("now()")})
    found = table.scan(where="d = today()").to_arrow().to_pylist()
    utc = datetime.datetime(2024, 3, 31, 12, tzinfo=datetime.timezone.utc)
    assert found == [{"d": datetime.date(2024, 3, 31), "ts": datetime.datetime(2024, 3, 31, 13), "z": utc}]
    table.merge(
        pa.table({"d": [datetime.date(2024, 3, 31)]}), on=["d"],
        when_matched_update=("target.z <= now()", {"ts": sql("localtimestamp()")}),
    )  # fmt: skip
    assert table.scan(where="ts = localtimestamp()").count() == 1
    assert table.system("snapshots").scan(where="commit_time <= localtimestamp()").count() >= 1
    catalog = Catalog.open(tmp_path / "w", env=Env(Noon(), None, SerialPool()))
    assert catalog.table("sys.tables").scan(where="now() > TIMESTAMP '2024-01-01 00:00:00Z'").count() == 1
    days = catalog.create_table("d.days", Schema({"d": "DATE", "a": "INT"}), partition_by=["d"])
    rows = [{"d": datetime.date(2024, 3, 31 - back), "a": 1} for back in range(3)]
    for _ in range(2):
        days.write_arrow(rows)
    assert days.compact(full=True, where="d < today() - INTERVAL 1 DAY").file_count == 1


@pytest.mark.parametrize(("values", "told"), [
    ({"ts": "now()"}, r'pass a datetime.datetime, not .*; sql\("localtimestamp\(\)"\) is the current time'),
    ({"z": "CURRENT_TIMESTAMP"}, r'sql\("now\(\)"\) is the current time'), ({"d": "today()"}, r'sql\("today\(\)"\) is the'),
    ({"ts": sql("now()")}, r'sql\("localtimestamp\(\)"\) is the current time for this column'),
    ({"d": sql("now()")}, r'sql\("today\(\)"\) is the current time for this column'),
])  # fmt: skip
def test_the_current_time_as_text_or_in_another_type_is_refused_with_that_of_the_column(table, values, told):
    with pytest.raises(UsageError, match=told):
        table.update("true", values)


ADDED = ("1 day", "-3 hours", "1 month", "-1 month", "13 months", "1 month -1 day", "7 microseconds", "1 quarter")


@pytest.fixture
def moments(tmp_path):
    """Twelve files around ends of months, before and after 1970; `n` is the same in all rows of a file."""
    catalog = Catalog.open(tmp_path / "w", {"fs.local.fsync": "false"}, env=Env(Noon(), None, SerialPool()))
    catalog.create_database("d")
    kinds = {"id": "INT", "ts": "TIMESTAMP(6)", "d": "DATE", "n": "INT", "p": "DECIMAL(6, 2)"}
    table = catalog.create_table("d.t", Schema(kinds), options={"bucket": "-1"})
    begins = [datetime.datetime(year, month, 27, 11) for year in (1969, 2023, 2024) for month in (1, 2, 10, 12)]
    rows = []
    for number, begin in enumerate(begins):
        both = [begin + datetime.timedelta(days=4), begin + datetime.timedelta(days=3, hours=20, microseconds=1)]
        rows += [
            {"id": 2 * number + at, "ts": ts, "d": ts.date(), "n": number - 6, "p": Decimal(number) / 4}
            for at, ts in enumerate(both)
        ]
        table.write_arrow([*rows[-2:], {"id": -1, "n": number - 6, "p": Decimal(number) / 4}])
    return table


@pytest.mark.parametrize("text", [
    *(f"ts + INTERVAL '{length}' {operator} TIMESTAMP '2023-11-29 22:00:00'" for length in ADDED for operator in ("<", ">")),
    *(f"ts - INTERVAL '{length}' BETWEEN TIMESTAMP '2023-01-27 00:00:00' AND TIMESTAMP '2023-03-01 07:00:00'" for length in ADDED),
    *(f"date_trunc('{unit}', ts) = TIMESTAMP '2024-01-01 00:00:00'" for unit in ("year", "quarter", "month")),
    "CAST(ts AS DATE) = DATE '1969-02-28'", "CAST(ts AS DATE) < DATE '1969-03-03'", "date_trunc('week', d) > DATE '2024-12-20'",
    "date_trunc('hour', ts) < TIMESTAMP '1969-01-31 08:00:00'", "d + 4 = DATE '2024-03-05'", "d - INTERVAL 1 DAY > DATE '2024-11-01'",
    "INTERVAL 1 DAY + ts < TIMESTAMP '1969-02-01 12:00:00'", "date_trunc('month', ts + INTERVAL '1 month') = TIMESTAMP '2023-02-01 00:00:00'",
    "n + 1 > 5", "5 - n > 9", "-n > 4", "n * 2 IN (4, 6)", "n * -3 < -9", "n / -2 > 2", "p + 1 < 1.5", "p * 4 > 10", "floor(p) = 2",
    "n - 2 > 2 AND p * 2 > 5", "NOT n + 1 > -3", "n + 1 > p * 8", "d IN (DATE '1969-01-01' + INTERVAL 30 DAY, DATE '1969-01-31')",
    "n + 1 IS NULL", "ts + INTERVAL 1 DAY IS NULL",
])  # fmt: skip
def test_files_are_skipped_by_values_that_grow_with_a_column(moments, text):
    found = rows_of_duckdb(moments, text)
    needed, planned = len({n for _, n in found}), files_of(moments, text)
    assert needed <= planned <= needed + (2 if "month" in text or "quarter" in text else 0)


@pytest.mark.parametrize("text", [
    "CASE WHEN n > 2 THEN 1 ELSE 2 END + 1 = 2", "n + n > 9", "n * 0 = 1", "n % 2 = 1", "round(p) = 2", "2 / (n + 20) > 0.1",
])  # fmt: skip
def test_values_of_other_shapes_skip_no_file(moments, text):
    rows_of_duckdb(moments, text)
    assert files_of(moments, text) == 12


def rows_of_duckdb(table, text):
    """The rows of the condition, after a comparison with those of DuckDB."""
    duckdb = pytest.importorskip("duckdb")
    wanted = duckdb.from_arrow(table.to_arrow()).filter(text).project("id, n").fetchall()
    found = [(row["id"], row["n"]) for row in table.scan(where=text).to_arrow().to_pylist()]
    assert sorted(found) == sorted(wanted)
    return found


def files_of(table, text):
    return sum(len(split.files) for split in table.scan(where=text).splits())
