"""Times before 1970 with fractions of a second in ORC: Java reads what we wrote, wherever in a file they lie."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair
from values import canonical_rows, difference

pytestmark = pytest.mark.java

ROW = {"type": "ROW", "fields": [{"id": 20, "name": "x", "type": "INT"}, {"id": 21, "name": "u", "type": "TIMESTAMP(9)"}]}
TYPES = {
    "k": "INT NOT NULL", "s": "TIMESTAMP(0)", "m": "TIMESTAMP(3)", "u": "TIMESTAMP(6)", "n": "TIMESTAMP(9)",
    "z": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "w": "TIMESTAMP(9) WITH LOCAL TIME ZONE", "r": ROW,
    "a": {"type": "ARRAY", "element": "TIMESTAMP(6)"}, "p": {"type": "MAP", "key": "INT NOT NULL", "value": ROW},
    "t": "STRING",
}  # fmt: skip
COLUMNS = [[name, kind] for name, kind in TYPES.items()]
EDGES = [
    "1969-12-31T23:59:59.999000000", "1969-12-31T23:59:59.500000000",
    "1969-12-31T23:59:59.001000000", "1969-12-31T23:59:59.000999999", "1969-12-31T23:59:59.000001000",
    "1969-12-31T23:59:59.000000000", "1969-12-31T23:59:58.999999999", "1969-12-31T23:59:58.001000000",
    "1969-12-31T23:59:58.000999999", "1969-12-31T23:59:58.000000000", "1970-01-01T00:00:00.000000000",
    "1970-01-01T00:00:00.000000001", "1970-01-01T00:00:01.999999999", "1960-01-01T00:00:00.123456789",
]  # fmt: skip
DIGITS = {"s": 0, "m": 3, "u": 6, "n": 9, "z": 6, "w": 9}
YEARS = {0: (1, 9999), 3: (1, 9999), 6: (1, 9999), 9: (1700, 2200)}


def time(dice, digits, early=True):
    if dice.random() < 0.15:
        return None
    if early and dice.random() < 0.3:
        text = dice.choice(EDGES)
    else:
        low, high = YEARS[digits] if early else (1970, 2100)
        fraction = dice.choice([dice.randrange(10**9), dice.randrange(1000) * 10**6, dice.randrange(10**6), 0])
        day = f"{dice.randint(low, high):04}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"
        text = f"{day}T{dice.randrange(24):02}:{dice.randrange(60):02}:{dice.randrange(60):02}.{fraction:09}"
    return text[: 20 + digits].rstrip(".")


def row(dice, key, early=True):
    inner = [dice.choice([None, {"x": key, "u": time(dice, 9, early)}]) for _ in range(3)]
    return {
        "k": key, "r": inner[0], "a": [time(dice, 6, early) for _ in range(dice.randrange(4))] if dice.random() < 0.9 else None,
        "p": [[place, each] for place, each in enumerate(inner[1:])], "t": f"{key:06}" * 5,
        **{name: time(dice, digits, early) for name, digits in DIGITS.items()},
    }  # fmt: skip


def rows(seed, first, last, early=True):
    dice = random.Random(seed)
    return [row(dice, key, early) for key in range(first, last)]


def pair_of(java, warehouse, primary_key, **options):
    pair = Pair(java, warehouse)
    pair.create(Kind(COLUMNS, primary_key, options={"file.format": "orc", **options}), "o")
    return pair


def check(pair, want):
    expected = canonical_rows(COLUMNS, want)
    assert difference(COLUMNS, expected, pair.our_rows(COLUMNS)) is None
    assert difference(COLUMNS, expected, pair.java_rows(COLUMNS)) is None
    return expected


def filters():
    """Every operator beside every edge, for every column of times."""
    trees = []
    for place, (name, digits) in enumerate(DIGITS.items()):
        for at, text in enumerate(EDGES):
            trees.append([("=", "<", ">=", ">", "<=")[(at + place) % 5], name, text[: 20 + digits].rstrip(".")])
    return trees


SMALL = {"orc.row.index.stride": "1000", "orc.compress.size": "65536", "orc.stripe.size": "200000"}


@pytest.mark.parametrize(("version", "codec"), [("2.0.0", "zstd"), ("0.9.0", "lz4"),
                                                  pytest.param("1.4.2", "none", marks=pytest.mark.full),
                                                  pytest.param("2.0.0", "snappy", marks=pytest.mark.full),
                                                  pytest.param("2.0.0", "zlib", marks=pytest.mark.full)])  # fmt: skip
def test_java_reads_old_times_of_ours_and_loses_none_by_their_statistics(java, version, codec, tmp_path):
    pair = pair_of(java(version), tmp_path, [], bucket="-1", **{"orc.compress": codec}, **SMALL)
    more = rows(1, 0, 1200, early=False) + rows(2, 1200, 2400)
    pair.our_write(more)
    everything = check(pair, more)
    pair.check_filters([*filters()[::7], ["=", "k", 2399], ["between", "k", 1198, 1203]], everything)


@pytest.mark.parametrize(("version", "legacy"), [
    ("2.0.0", "true"), ("0.9.0", "true"), pytest.param("2.0.0", "false", marks=pytest.mark.full),
    pytest.param("1.4.2", "false", marks=pytest.mark.full),
])  # fmt: skip
def test_a_keyed_table_that_both_fill_is_upserted_and_compacted_by_both(java, version, legacy, tmp_path):
    pair = pair_of(java(version), tmp_path, ["k"], bucket="1", **{"orc.timestamp-ltz.legacy.type": legacy})
    held = {}

    def written(by, seed, first, last, change=old_row):
        more = [change(each) for each in rows(seed, first, last)]
        pair.act(("write", more), by)
        held.update({each["k"]: each for each in more})
        return check(pair, list(held.values()))

    written("j", 1, 0, 300)
    written("o", 2, 100, 250)
    pair.act(("compact", True), "o")
    written("j", 3, 200, 400)
    pair.act(("compact", True), "j")
    written("o", 4, 0, 50, change=dict)  # what Java itself would shift when it writes
    pair.act(("compact", True), "o")
    everything = check(pair, list(held.values()))
    pair.check_filters(filters()[::4], everything)


def old_row(value):
    """A row whose times Java's own writer does not shift: none in the last second before 1970, none before 1600."""
    if isinstance(value, dict):
        return {name: old_row(each) for name, each in value.items()}
    if isinstance(value, list):
        return [old_row(each) for each in value]
    if isinstance(value, str) and "T" in value:
        return "1899" + value[4:] if value < "1600" or value.startswith("1969-12-31T23:59:59") else value
    return value
