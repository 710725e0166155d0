"""Columns of every type and rows that hold their extremes, nulls at every depth and random values."""

from __future__ import annotations

import random

from lives import maybe, value


def _array(element) -> dict:
    return {"type": "ARRAY", "element": element}


def _map(key: str, item) -> dict:
    return {"type": "MAP", "key": f"{key} NOT NULL", "value": item}


def _row(*types) -> dict:
    return {"type": "ROW", "fields": [{"id": 0, "name": f"f{i}", "type": kind} for i, kind in enumerate(types)]}


DECIMALS = [(1, 0), (2, 2), (9, 0), (9, 9), (10, 2), (18, 0), (18, 18), (19, 0), (19, 5), (28, 10), (38, 0), (38, 10), (38, 38)]
LIMIT = 16
_FLAT = ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(24, 4)", "DATE",
         "TIME(3)", "STRING", "VARCHAR(9)", "BYTES", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE"]  # fmt: skip
_DEEP = _array(_map("STRING", _row("INT", _array(_row("STRING", "DECIMAL(24, 4)")), "TIMESTAMP(6)")))

FAMILIES: dict[str, list] = {
    "numbers": ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"],
    "decimals": [f"DECIMAL({p}, {s})" for p, s in DECIMALS],
    "strings": ["CHAR(1)", "CHAR(5)", "CHAR(40)", "VARCHAR(1)", "VARCHAR(12)", "VARCHAR(1000)", "STRING"],
    "binaries": ["BINARY(1)", "BINARY(4)", "VARBINARY(1)", "VARBINARY(9)", "BYTES"],
    "dates": ["DATE", "TIME(0)", "TIME(1)", "TIME(3)"],
    "timestamps": [f"TIMESTAMP({p})" for p in range(10)],
    "local-timestamps": [f"TIMESTAMP({p}) WITH LOCAL TIME ZONE" for p in range(10)],
    "arrays": [_array(kind) for kind in _FLAT],
    "maps": [_map("STRING", kind) for kind in _FLAT] + [_map(kind, "STRING") for kind in ("INT", "BIGINT", "DATE")],
    "multisets": [{"type": "MULTISET", "element": "STRING NOT NULL"}, _array({"type": "MULTISET", "element": "STRING NOT NULL"})],
    "rows": [_row(*_FLAT), _row("INT NOT NULL", "STRING"), _row(_row("INT", _row("STRING")), "BIGINT")],
    "deep": [_DEEP, _map("INT", _array(_array("INT"))), _row(_map("STRING", _map("STRING", "DOUBLE")), _DEEP)],
    "not-null": [f"{kind} NOT NULL" for kind in _FLAT] + [{"type": "ARRAY NOT NULL", "element": "INT NOT NULL"}],
}

EDGES = {
    "DATE": ["0001-01-01", "9999-12-31", "1582-10-04", "1582-10-15"],
    "TIME": ["00:00:00", "23:59:59"],
    "BOOLEAN": [False, True],
}
_YEARS = {"parquet": ("0001-01-01T00:00:00", "9999-12-31T23:59:59"), "avro": ("0001-01-01T00:00:00", "9999-12-31T23:59:59"),
          "orc": ("1700-01-01T00:00:00", "2262-01-01T23:59:59")}  # fmt: skip
"""Java's own ORC writer shifts timestamps before October 1582; int64 nanoseconds end in 2262, digits 7 to 9 with them."""


def columns_of(family: str, fmt: str) -> list:
    """[["k", INT], ["v0", …], …]: one key and a column per type that the format takes."""
    kinds = [k for k in FAMILIES[family] if fmt != "avro" or not isinstance(k, str) or not _beyond_micros(k)]
    return [["k", "INT NOT NULL"], *([f"v{i}", kind] for i, kind in enumerate(kinds))]


def rows_of(columns: list, fmt: str, seed: int, count: int = 14) -> list[dict]:
    """Rows with keys 0, 1, …: all null, both ends, then random ones."""
    rng = random.Random(seed)
    rows = [{"k": k, **{name: maybe(rng, kind) for name, kind in columns[1:]}} for k in range(count)]
    for at in range(3):
        for name, kind in columns[1:]:
            ends = edges(kind, fmt)
            if at < 2 and ends:
                rows[at][name] = ends[at % len(ends)]
            elif at == 2 and "NOT NULL" not in str(kind if isinstance(kind, str) else kind["type"]):
                rows[at][name] = None
    return rows


def edges(kind, fmt: str) -> list:
    """The smallest and largest value of a flat type, where it has one."""
    if not isinstance(kind, str):
        return []
    text = kind.replace(" NOT NULL", "")
    root = text.split("(")[0]
    if root in EDGES:
        return EDGES[root]
    if root == "DECIMAL":
        precision, scale = (int(part) for part in text[8:-1].split(","))
        digits = "9" * (precision - scale) or "0"
        top = f"{digits}.{'9' * scale}" if scale else digits
        return [f"-{top}", top]
    if root in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}[root]
        return [-(2**bits), 2**bits - 1]
    if root == "TIMESTAMP":
        digits = int(text.split("(")[1].split(")")[0])
        low, high = _YEARS["orc" if digits > 6 else fmt]
        return [low, f"{high}.{'9' * digits}" if digits else high]
    return []


def _beyond_micros(kind: str) -> bool:
    return kind.startswith("TIMESTAMP(") and int(kind.split("(")[1].split(")")[0]) > 6


def filters_of(columns: list, rows: list[dict]) -> list:
    """Some filters on every flat column, by values that occur and by values that do not."""
    rng = random.Random(len(columns))
    filters = []
    for name, kind in columns:
        if not isinstance(kind, str):
            filters += [["isNull", name], ["isNotNull", name]]
            continue
        seen = [row[name] for row in rows if row.get(name) is not None]
        one, other = rng.choice(seen), value(rng, kind)
        if kind.startswith("BOOLEAN"):
            filters += [["=", name, True], ["!=", name, True]]
            continue
        filters += [["=", name, one], ["<", name, one], [">=", name, other], ["in", name, [one, other]], ["isNull", name]]
        filters += [["notIn", name, [one, other]], ["between", name, one, seen[0]]]
        if kind.split("(")[0] in ("STRING", "VARCHAR", "CHAR"):
            filters += [["startsWith", name, one[:2]], ["endsWith", name, one[-1:]], ["contains", name, one[1:2]]]
    return rng.sample(filters, min(len(filters), LIMIT))
