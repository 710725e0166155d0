"""Partitions: values of every type, odd and missing ones, legacy and new names; the same directories from both sides."""

from __future__ import annotations

import pytest
from pair import Kind, Pair, play, same_histories, same_metadata
from values import canonical_rows, difference

pytestmark = pytest.mark.java

VALUES = {
    "STRING": ["a", "", "  ", None, "x/y=z", "%41", "100%", 'q"#\'*:?\\{}[]^', "中文 é", "\t\u007f"],
    "VARCHAR(30)": ["a b", None, "__DEFAULT_PARTITION__", "..", "+&,"],
    "CHAR(3)": ["abc", "a", None],
    "INT": [0, -1, 2147483647, None],
    "TINYINT": [-128, 127],
    "BIGINT": [-(2**63), 2**63 - 1, None],
    "BOOLEAN": [True, False, None],
    "DATE": ["2024-02-29", "1970-01-01", "1969-12-31", None],
    "DECIMAL(10, 2)": ["1.50", "-0.01", "0.00", "100.00", None],
    "DECIMAL(24, 4)": ["12345678901234567890.1234", "-128.0000", None],
    "DOUBLE": [1.5, 1e20, 1e-5, -0.0, 0.1, "NaN", "Infinity", None],
    "FLOAT": [1.5, 3.0e10, 1.0e-5, 0.1, None],
    "TIMESTAMP(0)": ["2024-01-02T03:04:00", "2024-01-02T03:04:05", None],
    "TIMESTAMP(3)": ["2024-01-02T03:04:00", "2024-01-02T03:04:05.500", "1960-01-02T03:04:05.001", None],
    "TIMESTAMP(6)": ["2024-01-02T03:04:05.000001", "2024-01-02T03:04:05.100000", None],
    "TIMESTAMP(9)": ["2024-01-02T03:04:05.000000001", "2024-01-02T00:00:00"],
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": ["2024-01-02T03:04:05.500", None],
    "TIME(3)": ["12:34:56.789", "00:00:00", None],
}
"""At most ten of each: Java gives other sequence numbers to files that it buffers because there are more writers."""


def directories(pair: Pair) -> list[str]:
    """Bucket directories, relative to the table."""
    return sorted(str(path.relative_to(pair.path)) for path in pair.path.glob("**/bucket-*") if path.is_dir())


def rows_for(values: list) -> list[dict]:
    return [{"p": value, "v": number} for number, value in enumerate(values)]


CASES = [(kind, legacy) for kind in VALUES for legacy in ("true", "false") if legacy == "true" or "LOCAL" not in kind]
"""New names of local timestamps are refused by us: Java takes the time zone of each process for them."""


@pytest.mark.parametrize(("kind", "legacy"), CASES)
def test_both_sides_name_and_read_partitions_alike(kind, legacy, java, tmp_path):
    rows = rows_for(VALUES[kind])
    columns = [["p", kind], ["v", "INT"]]
    table = Kind(columns, partition_by=["p"], options={"partition.legacy-name": legacy})
    pairs = play(java("2.0.0"), tmp_path, table, [("write", rows), ("write", rows[:2])])
    state = same_histories(pairs)
    same_metadata(pairs)
    assert difference(columns, canonical_rows(columns, rows + rows[:2]), state[2][1]) is None
    assert {turn: directories(pair) for turn, pair in pairs.items()} == dict.fromkeys(pairs, directories(pairs["j"]))
    filters = [["isNull", "p"], ["isNotNull", "p"], ["=", "p", rows[0]["p"]], [">", "p", rows[1]["p"] or rows[0]["p"]]]
    for turn in ("o", "j"):
        pairs[turn].check_filters(filters[:3] if kind == "BOOLEAN" else filters, state[2][1])


@pytest.mark.parametrize("version", ["1.4.2", "0.9.0"])
@pytest.mark.parametrize("kind", ["STRING", "DATE", "DECIMAL(10, 2)", "DOUBLE", "TIMESTAMP(3)"])
def test_older_javas_name_and_read_partitions_alike(kind, version, java, tmp_path):
    rows = rows_for(VALUES[kind])
    table = Kind([["p", kind], ["v", "INT"]], partition_by=["p"])
    pairs = play(java(version), tmp_path, table, [("write", rows), ("write", rows[:2])], turns=("o", "j", "oj"))
    same_histories(pairs)
    assert {turn: directories(pair) for turn, pair in pairs.items()} == dict.fromkeys(pairs, directories(pairs["j"]))


def test_primary_keys_in_several_partition_columns(java, tmp_path):
    columns = [["d", "DATE NOT NULL"], ["v", "STRING"], ["h", "STRING NOT NULL"], ["k", "BIGINT NOT NULL"]]
    kind = Kind(columns, ["d", "h", "k"], ["h", "d"], {"bucket": "3", "write-only": "true"})
    rows = [{"d": f"2024-05-{day:02d}", "h": hour, "k": k, "v": "x" * k} for day in (1, 2) for hour in ("a b", "é") for k in range(5)]
    again = [{**row, "v": "again"} for row in rows[::3]] + [{**row, "_kind": "-D"} for row in rows[1::3]]
    pairs = play(java("2.0.0"), tmp_path, kind, [("write", rows), ("write", again), ("write", rows[:2])])
    same_histories(pairs)
    same_metadata(pairs)
    assert directories(pairs["o"]) == directories(pairs["j"])
    for pair in pairs.values():
        pair.step("compact", options={"write-only": "false"}, partitions=[{"d": "2024-05-01"}])
        pair.agree()
