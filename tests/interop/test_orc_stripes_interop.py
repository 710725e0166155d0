"""Stripes of ORC files that Java wrote: those without a match are left out, and every match is found."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from paimon_py import Table, col

pytestmark = pytest.mark.java

ROWS = 20_000
OPTIONS = {
    "bucket": "-1", "file.format": "orc", "orc.stripe.size": "65536", "orc.compress.size": "4096",
    "orc.rows.between.memory.checks": "1000", "orc.write.batch-size": "1000",
}  # fmt: skip
COLUMNS = [
    ["k", "INT"], ["v", "BIGINT"], ["s", "STRING"], ["d", "DECIMAL(9, 2)"], ["dt", "DATE"], ["x", "DOUBLE"], ["c", "CHAR(8)"],
    ["n", "INT"],
]  # fmt: skip
DAY = datetime.date(2000, 1, 1)


def row(at):
    return {
        "k": at - 500, "v": at * 10**9, "s": f"{at:06}é", "d": f"{at / 100:.2f}", "x": float(at), "c": f"{at:06}",
        "dt": str(DAY + datetime.timedelta(days=at // 10)), "n": None if at < 5000 else at,
    }  # fmt: skip


@pytest.mark.parametrize("version", ["2.0.0", "0.9.0"])
def test_stripes_of_java_are_left_out_by_their_statistics(java, version, tmp_path):
    steps = [
        {"op": "create", "table": "db.t", "columns": COLUMNS, "tableOptions": OPTIONS},
        {"op": "write", "table": "db.t", "rows": [row(at) for at in range(ROWS)], "id": 1},
    ]
    java(version).run(str(tmp_path), steps)
    made = Table.open(str(tmp_path / "db.db" / "t"))
    for where, count, prunes in (
        (col("k") == 12_345, 1, True),
        (col("k").between(-500, -491), 10, True),
        (col("v") > (ROWS - 10) * 10**9, 9, True),
        (col("s") >= f"{ROWS - 10:06}", 10, True),
        (col("s").starts_with("0123"), 100, True),
        (col("d").between(Decimal("1.00"), Decimal("2.00")), 101, True),
        (col("dt") == DAY + datetime.timedelta(days=2), 10, True),
        (col("n").is_not_null() & (col("n") < 5005), 5, True),
        (col("n").is_null(), 5000, True),
        (col("x") > ROWS - 10, 9, False),
        (col("c") == "000100", 1, False),
    ):
        done = made.scan(where=where).explain(analyze=True).analysis
        assert done.rows_returned == count == made.scan(where=where).count(), where
        assert done.row_groups.all > 5 and done.row_groups_read == done.row_groups.read, where
        assert (done.row_groups.statistics > 0) is prunes, where
        assert (done.rows_read < ROWS) is prunes, where
