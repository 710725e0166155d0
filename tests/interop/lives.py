"""Random small lives of tables, each from one seed: columns of all types, keys, partitions, options, writes, filters."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

STRINGS = ["", "a", "abc", "hello paimon", "12345678", "中文字", "éèê", "z" * 40, "a\U0001f600b", "Zz ", " lead", "null", "%_\\x"]
BYTES = ["", "00", "ff", "0102030405060708", "7f" * 20, "c3a9"]
DATES = ["1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31", "1969-12-31", "2024-05-14"]
TIMES = ["00:00:00", "23:59:59.999", "12:34:56.789", "00:00:00.001"]
MODERN = ["2024-01-02T03:04:05", "1970-01-01T00:00:00", "2038-01-19T03:14:08", "2000-02-29T23:59:59", "1995-06-07T08:09:10"]
INTS = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}


@dataclass
class Life:
    """One table and what happens to it, in the oracle's notation."""

    seed: int
    columns: list
    primary_key: list[str]
    partition_by: list[str]
    options: dict[str, str]
    writes: list[list[dict]]
    filters: list[list]
    about: str = field(default="")


def value(rng: random.Random, kind, deep: int = 0):
    """A random value of a type, extremes included, never null."""
    if isinstance(kind, dict):
        return _nested(rng, kind, deep)
    text = kind.replace(" NOT NULL", "")
    root = text.split("(")[0].strip()
    args = [int(x) for x in text.split("(")[1].split(")")[0].split(",")] if "(" in text else []
    if root in INTS:
        high = 2 ** INTS[root]
        return rng.choice([0, 1, -1, 7, high - 1, -high, rng.randrange(-high, high)])
    if root == "BOOLEAN":
        return rng.random() < 0.5
    if root == "FLOAT":
        return rng.choice([0.0, 1.5, -2.25, "NaN", "Infinity", "-Infinity", -0.0, 3.0e10])
    if root == "DOUBLE":
        return rng.choice([0.0, 1.5, -2.25, 1e300, 5e-324, "NaN", "Infinity", -0.0, 0.1])
    if root == "DECIMAL":
        precision, scale = args
        unscaled = rng.choice([0, 1, -1, 128, -128, 32768, 10**precision - 1, -(10**precision) + 1, rng.randrange(10**precision)])
        sign, digits = "-" if unscaled < 0 else "", str(abs(unscaled) % 10**precision).rjust(scale + 1, "0")
        return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else f"{sign}{digits}"
    if root in ("STRING", "VARCHAR", "CHAR"):
        limit = args[0] if args else 100
        return rng.choice([s for s in STRINGS if len(s) <= limit and not (root == "CHAR" and s.endswith(" "))])
    if root in ("BYTES", "VARBINARY", "BINARY"):
        limit = args[0] if args else 100
        return rng.choice([b for b in BYTES if len(b) // 2 <= limit])
    if root == "DATE":
        return rng.choice(DATES)
    if root == "TIME":
        return rng.choice(TIMES)
    digits = args[0] if args else 6
    fraction = "".join(rng.choice("0123456789") for _ in range(digits))
    return rng.choice(MODERN) + (f".{fraction}" if digits else "")


def _nested(rng: random.Random, kind: dict, deep: int):
    root = kind["type"].split(" ")[0]
    if root == "ARRAY":
        return [maybe(rng, kind["element"], deep + 1) for _ in range(rng.randrange(4))]
    if root == "MULTISET":
        items = {str(v): v for v in (value(rng, kind["element"]) for _ in range(rng.randrange(3)))}
        return [[v, rng.randrange(1, 5)] for v in items.values()]
    if root == "MAP":
        keys = {str(k): k for k in (value(rng, kind["key"]) for _ in range(rng.randrange(4)))}
        return [[k, maybe(rng, kind["value"], deep + 1)] for k in keys.values()]
    return {f["name"]: maybe(rng, f["type"], deep + 1) for f in kind["fields"]}


def maybe(rng: random.Random, kind, deep: int = 0):
    """A random value or, for nullable types, sometimes null."""
    text = kind if isinstance(kind, str) else kind["type"]
    if "NOT NULL" not in text and rng.random() < 0.2:
        return None
    return value(rng, kind, deep)


def value_types(fmt: str) -> list:
    """Types of value columns that a format takes."""
    row = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 0, "name": "y", "type": "STRING"}]}
    flat = [
        "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "CHAR(5)", "VARCHAR(12)", "STRING",
        "BINARY(4)", "VARBINARY(9)", "BYTES", "DECIMAL(4, 2)", "DECIMAL(18, 6)", "DECIMAL(38, 10)", "DATE", "TIME(3)",
        "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
        "TIMESTAMP(3) WITH LOCAL TIME ZONE",
    ]  # fmt: skip
    nested = [
        {"type": "ARRAY", "element": "INT"}, {"type": "ARRAY", "element": "STRING"},
        {"type": "MAP", "key": "STRING NOT NULL", "value": "BIGINT"}, {"type": "MAP", "key": "INT NOT NULL", "value": "STRING"},
        {"type": "MULTISET", "element": "STRING NOT NULL"}, row, {"type": "ARRAY", "element": row},
    ]  # fmt: skip
    if fmt != "avro":
        flat += ["TIMESTAMP(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE"]
    return flat + nested


KEY_TYPES = [
    "INT", "BIGINT", "STRING", "SMALLINT", "TINYINT", "DATE", "DECIMAL(10, 2)", "DECIMAL(24, 4)", "VARCHAR(12)", "CHAR(5)",
    "BYTES", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIME(3)", "BOOLEAN", "DOUBLE", "FLOAT",
]  # fmt: skip
PARTITION_TYPES = ["INT", "STRING", "DATE", "BIGINT", "SMALLINT", "BOOLEAN"]


def life(seed: int) -> Life:
    """The life of one seed."""
    rng = random.Random(seed)
    fmt = rng.choice(["parquet", "parquet", "orc", "avro"])
    keyed = rng.random() < 0.6
    options = {"file.format": fmt, "write-only": "true"}
    partition = [[f"p{i}", f"{rng.choice(PARTITION_TYPES)} NOT NULL"] for i in range(rng.choice([0, 0, 1, 1, 2]))]
    key = [[f"k{i}", f"{rng.choice(KEY_TYPES)} NOT NULL"] for i in range(rng.choice([1, 1, 2, 3]))] if keyed else []
    values = [[f"v{i}", kind] for i, kind in enumerate(rng.sample(value_types(fmt), rng.randrange(2, 8)))]
    columns = partition + key + values
    rng.shuffle(columns)
    if keyed:
        _key_options(rng, options, key, values, columns)
    elif rng.random() < 0.4:
        options |= {"bucket": str(rng.choice([1, 2, 5])), "bucket-key": _bucket_key(rng, values, columns)}
    writes = [_rows(rng, columns, keyed, rng.randrange(1, 14)) for _ in range(rng.randrange(2, 5))]
    writes = [[plain_zeros(row, fmt) for row in rows] for rows in writes]
    primary = [c[0] for c in partition + key] if keyed else []
    filters = [_filter(rng, columns, writes) for _ in range(4)]
    about = f"{'pk' if keyed else 'append'} {fmt} {options} {[c[1] for c in columns]}"
    return Life(seed, columns, primary, [c[0] for c in partition], options, writes, filters, about)


def _key_options(rng: random.Random, options: dict, key: list, values: list, columns: list) -> None:
    options["bucket"] = str(rng.choice([1, 2, 3, 5]))
    if len(key) == 1 and key[0][1].startswith(("INT", "BIGINT")) and rng.random() < 0.5:
        options["bucket-function.type"] = "mod"
    elif rng.random() < 0.15 and not any(k[1].startswith(("TIMESTAMP", "TIME", "DECIMAL(24")) for k in key):
        options["bucket-function.type"] = "hive"
    if rng.random() < 0.3:
        columns.append(["seq", rng.choice(["INT", "BIGINT"])])
        options["sequence.field"] = "seq"
        if rng.random() < 0.4:
            options["sequence.field.sort-order"] = "descending"
    if rng.random() < 0.2:
        options["ignore-delete"] = "true"


def _bucket_key(rng: random.Random, values: list, columns: list) -> str:
    columns.append(["b", rng.choice(["INT", "BIGINT", "STRING", "DECIMAL(24, 4)", "TIMESTAMP(6)", "DOUBLE"])])
    return "b"


def plain_zeros(row: dict, fmt: str) -> dict:
    """The row without −0.0 in ORC: Java reads a batch of nothing but −0.0 and 0.0 as the first of them, everywhere."""
    return {name: 0.0 if fmt == "orc" and value == 0 and isinstance(value, float) else value for name, value in row.items()}


def _rows(rng: random.Random, columns: list, keyed: bool, count: int) -> list[dict]:
    rows = []
    for _ in range(count):
        row = {name: maybe(rng, kind) for name, kind in columns}
        for name, _ in columns:
            if name == "seq" and row[name] is not None:
                row[name] = rng.randrange(8)
        if keyed and rng.random() < 0.4:
            row["_kind"] = rng.choice(["+I", "-D", "+U", "-U", "-D"])
        rows.append(row)
    for _ in range(count // 3 if keyed else 0):
        again = dict(rng.choice(rows))
        again |= {name: maybe(rng, kind) for name, kind in columns if name.startswith("v")}
        rows.append(again)
    return rows


def _filter(rng: random.Random, columns: list, writes: list) -> list:
    flat = [c for c in columns if isinstance(c[1], str)]
    name, kind = rng.choice(flat)
    seen = [row[name] for rows in writes for row in rows if row.get(name) is not None]
    pick = rng.choice(seen) if seen else value(rng, kind)
    other = rng.choice(seen) if seen else value(rng, kind)
    root = kind.split(" ")[0].split("(")[0]
    if root == "BOOLEAN":
        return ["=", name, pick]
    choices = [["=", name, pick], ["!=", name, pick], ["<", name, pick], [">=", name, pick], ["isNull", name],
               ["isNotNull", name], ["in", name, [pick, other]], ["notIn", name, [pick, other]]]  # fmt: skip
    first = rng.choice(choices)
    if rng.random() < 0.4:
        second = _filter(rng, columns, writes)
        return [rng.choice(["and", "or"]), first, second]
    return first
