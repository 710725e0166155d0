"""Partitions of one table expire by us and by Java, each of a copy, with the same clock: the same ones go and stay."""

from __future__ import annotations

import random
import shutil
from datetime import datetime, timedelta

import pytest
from pair import Kind, Pair
from unit.commit.support import Clock
from values import arrow_rows

from paimon_py import Table
from paimon_py.env import Env, SerialPool

pytestmark = [pytest.mark.java, pytest.mark.filterwarnings("ignore:.*commits drop no partitions")]

EPOCH = datetime(1970, 1, 1)
NOW = datetime(2024, 3, 1, 12, 30)
VERSIONS = {"2.0.0": range(60), "1.4.2": range(60, 80), "0.9.0": range(80, 100)}

FORMATS = {
    None: ("%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%-m-%-d", "%Y-%-m-%-d %-H:%-M:%-S.5", "%Y-%-m-45", "%Y%m%d"),
    "yyyyMMdd": ("%Y%m%d", "%Y%m31", "%Y%m00", "%Y-%m-%d", "%Y%m%d0"),
    "yyyy-MM-dd'T'HH:mm": ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT24:00", "%Y-%m-%dT25:00"),
    "d.M.uuuu HH": ("%-d.%-m.%Y %H", "%d.%m.%Y %H", "%-d.%-m.%Y"),
    "yMMddHHmmss": ("%Y%m%d%H%M%S", "%Y%m30%H%M%S", "%Y%m%d%H60%S"),
    "y/M/d": ("%Y/%-m/%-d", "%Y/%m/%d", "%Y/02/31"),
}
MODES = (
    ([], {}), (["n"], {"bucket": "2"}), (["n"], {}), (["n"], {"bucket": "1", "deletion-vectors.enabled": "true"}),
    ([], {"deletion-vectors.enabled": "true"}), (["n"], {"bucket": "1", "file.format": "orc", "changelog-producer": "input"}),
)  # fmt: skip
"""More of a primary key than the partition keys, and options."""
ODD = ("", "no day", None, "-1", "2024", "__DEFAULT_PARTITION__")


def at(path, moment: datetime) -> Table:
    """The table as of a time of the clock on the wall."""
    millis = (moment - EPOCH) // timedelta(milliseconds=1)
    return Table.open(str(path), env=Env(Clock(millis), None, SerialPool()))


def ages(rng: random.Random) -> list[datetime]:
    """Moments around a week before now."""
    steps = [0, 1, 59, 60, 3600, 86_400, 604_799, 604_800, 604_801, 86_400 * 40]
    return [NOW - timedelta(seconds=rng.choice(steps) + rng.choice([0, 0, 86_400 * 7]) - rng.randrange(2)) for _ in range(12)]


def by_values(rng: random.Random) -> tuple[list, dict[str, str], list[dict]]:
    """Columns, options and values of partitions whose values say a time."""
    how = rng.randrange(4)
    formatter = rng.choice(list(FORMATS))
    texts = [moment.strftime(rng.choice(FORMATS[formatter])) for moment in ages(rng)]
    texts += rng.sample(ODD, 2)
    if how == 0:
        columns, options = [["p", "STRING"]], {"partition.timestamp-formatter": formatter}
        rows = [{"p": text} for text in texts]
    elif how == 1:
        columns, options = [["z", "INT"], ["p", "STRING"]], {
            "partition.timestamp-formatter": formatter, "partition.timestamp-pattern": rng.choice(["$p", "${p}", "p$p"])}
        rows = [{"z": rng.randrange(3), "p": text} for text in texts]
    elif how == 2:
        columns = [["day", rng.choice(["INT", "BIGINT", "STRING"])], ["hour", "INT"]]
        options = {"partition.timestamp-formatter": "yyyyMMdd H", "partition.timestamp-pattern": "$day $hour"}
        rows = [{"day": moment.strftime("%Y%m%d"), "hour": moment.hour} for moment in ages(rng)]
        rows += [{"day": "20240230", "hour": 24}, {"day": "20240101", "hour": 24}, {"day": "20240101", "hour": None}]
        rows = [{**row, "day": int(row["day"])} for row in rows] if columns[0][1] != "STRING" else rows
    else:  # not TIMESTAMP: Java 2.0 cannot drop what it finds
        columns, options = [["p", "DATE"]], rng.choice([{}, {"partition.timestamp-formatter": "d"}])
        rows = [{"p": moment.date().isoformat()} for moment in ages(rng)]
    return columns, {name: value for name, value in options.items() if value is not None}, rows


def by_change(rng: random.Random) -> tuple[list, dict[str, str], list[dict]]:
    """Columns, options and values of partitions whose last change counts."""
    kind = rng.choice(["STRING", "INT", "BOOLEAN", "DECIMAL(6, 2)"])
    values = {"STRING": ["a", "b c", "x/y", None, "ü"], "INT": [1, -1, 20, 3, None], "BOOLEAN": [True, False],
              "DECIMAL(6, 2)": ["1.50", "-0.01", "10.00"]}[kind]  # fmt: skip
    rows = [{"p": value, "q": rng.choice(["x", "y"])} for value in values for _ in range(2)]
    return [["p", kind], ["q", "STRING"]], {"partition.expiration-strategy": "update-time"}, rows


def texts(partitions) -> list[list[str]]:
    """Values of partitions as Java shows them."""
    shown = {None: "__DEFAULT_PARTITION__", True: "true", False: "false"}
    return [[str(shown.get(value, value) if value is None or isinstance(value, bool) else value) for value in one.values()] for one in partitions]


@pytest.mark.parametrize(
    ("version", "seed"),
    [
        pytest.param(version, seed, marks=() if seed in (0, 1, 2, 5, 60, 80) else pytest.mark.full)
        for version, seeds in VERSIONS.items()
        for seed in seeds
    ],
)
def test_the_same_partitions_go(version, seed, java, tmp_path):
    rng = random.Random(seed)
    columns, options, rows = (by_change if seed % 3 == 2 else by_values)(rng)
    keys, more = MODES[seed % len(MODES)] if version == "2.0.0" else MODES[0]
    options |= {"bucket": "-1", "write-only": "true", "partition.expiration-time": "7 d", **more}
    old = version == "0.9.0"  # in no order, all at once, and stops at NULL
    if old:
        rows = [row for row in rows if None not in row.values()]
    if rng.random() < 0.5 and not old:
        options["partition.expiration-max-num"] = str(rng.randrange(1, 6))
    if rng.random() < 0.5 and version == "2.0.0":
        options["partition.expiration-batch-size"] = str(rng.randrange(1, 4))
    made = Pair(java(version), tmp_path / "made", "t")
    names = [name for name, _ in columns]
    kind = Kind([*columns, ["n", "INT"]], keys and [*names, *keys], names, options)
    made.create(kind, "o" if version == "2.0.0" else "j")
    for number, moment in enumerate(sorted(ages(rng))):
        part = [{**row, "n": number} for row in rng.sample(rows, rng.randrange(1, len(rows)))]
        part = [row for row in part if not keys or None not in row.values()]
        at(made.path, moment).write_arrow(arrow_rows(made.table().schema, made.columns(), part, kinds=bool(keys)))
    for name in ("ours", "theirs"):
        shutil.copytree(made.warehouse, tmp_path / name)
    ours, theirs = (Pair(java(version), tmp_path / name, "t") for name in ("ours", "theirs"))
    for wait in (0, 0, 3):
        now = NOW + timedelta(days=wait)
        result = at(ours.path, now).expire_partitions()
        gone = theirs.step("expirePartitions", now=now.isoformat()) or []
        went, theirs_went = texts(result.partitions), [list(one.values()) for one in gone]
        assert went == (sorted(theirs_went, key=",".join) if old else theirs_went), (options, result)
        assert ours.agree() == theirs.agree()
        kinds = [[(one.id, one.commit_kind, one.value.total_record_count) for one in pair.table().snapshots()] for pair in (ours, theirs)]
        assert kinds[0] == kinds[1]
