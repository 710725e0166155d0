"""Columns and values that merge engines meet: which function takes which types, and small values that do not overflow."""

from __future__ import annotations

import random

ROW = {"type": "ROW", "fields": [{"id": 0, "name": "id", "type": "INT"}, {"id": 0, "name": "x", "type": "STRING"}, {"id": 0, "name": "n", "type": "BIGINT"}]}
STAMPED = {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 0, "name": "ts", "type": "STRING"}]}
INTS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
NUMBERS = (*INTS, "DECIMAL(10, 2)", "DECIMAL(24, 4)", "FLOAT", "DOUBLE")
ORDERED = (*NUMBERS, "STRING", "VARCHAR(12)", "DATE", "TIME(3)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", "BYTES")
FLAT = (*ORDERED, "BOOLEAN")
ROWS = {"type": "ARRAY", "element": ROW}
LISTS = ({"type": "ARRAY", "element": "INT"}, {"type": "ARRAY", "element": "STRING"}, ROWS)
MAPS = ({"type": "MAP", "key": "STRING NOT NULL", "value": "BIGINT"}, {"type": "MAP", "key": "INT NOT NULL", "value": "STRING"})
KEYTIMES = ({"type": "MAP", "key": "STRING NOT NULL", "value": STAMPED},)
ANY = (*FLAT, *LISTS, *MAPS, ROW)
SKETCH = ("BYTES",)

FUNCTIONS: dict[str, tuple] = {
    "sum": NUMBERS, "product": NUMBERS, "max": ORDERED, "min": ORDERED, "last_value": ANY, "last_non_null_value": ANY,
    "first_value": ANY, "first_non_null_value": ANY, "listagg": ("STRING",), "bool_and": ("BOOLEAN",), "bool_or": ("BOOLEAN",),
    "collect": LISTS, "merge_map": MAPS, "merge_map_with_keytime": KEYTIMES, "nested_update": (ROWS,), "nested_partial_update": (ROWS,),
    "theta_sketch": SKETCH, "hll_sketch": SKETCH, "rbm32": SKETCH, "rbm64": SKETCH,
}  # fmt: skip
"""The types that Java takes for each function."""

RETRACTABLE = {"sum", "product", "collect", "merge_map", "nested_update", "last_value", "last_non_null_value"}

SKETCHES = {
    "theta_sketch": ("02030300001acc93030000000000803f15f97dcbbd86a105c397fc1281709d1eba40b3c1da06695d",
                     "02030300001acc93040000000000803f40de2ee1c9db3d08fe162113fb98bc10bd3273724691cc14ba40b3c1da06695d"),
    "hll_sketch": ("0201070c030803002bf2fb06862ff90d75816607", "0201070c030804007581660781bc5d067b65e608fc2d420a"),
    "rbm32": ("3a300000010000000000020010000000010003000500", "3a3000000100000000000000100000000700"),
    "rbm64": (
        "010300000000000000000300030000000003020104000000000000010000000000000000000004000000000000020000010000000000000004"
        "000000000000030000020000000000000001000000fe0300000001020100000003000102010000000600010201000000090003000000000000"
        "000000000002000000",
        "010400000000000000000400030000000605040304000000000000030000000000000000000004000000000000040000010000000000000004"
        "000000000000050000020000000000000004000000000000060000030000000000000001000000fe0400000001020100000009000102010000"
        "000c000102010000000f00010201000000120004000000000000000000000003000000",
    ),
}  # fmt: skip
"""Two serialized sketches each, as Java's own libraries made them."""

WORDS = ("", " ", "a", "b", "abc", "a,b", "b;a", "zebra crossing", "é中", "\U0001f600", "Zz")
CLOCKS = ("00:00:00", "23:59:59.999", "12:34:56.789")
DAYS = ("1970-01-01", "2024-02-29", "1969-12-31", "9999-12-31")
TIMES = ("2024-01-02T03:04:05", "1970-01-01T00:00:00", "2038-01-19T03:14:08", "1995-06-07T08:09:10.5")
BYTES = ("", "00", "ff", "0102030405060708", "7f" * 9)


def value(rng: random.Random, kind, function: str | None = None):
    """A value of a type, never null, as the function likes it."""
    if function in SKETCHES:
        return rng.choice(SKETCHES[function])
    if isinstance(kind, dict):
        return _nested(rng, kind)
    root = kind.split("(")[0].split(" ")[0]
    few = function == "product"
    if root in INTS:
        return rng.choice((1, 1, 1, -1, 2) if few else (0, 1, 2, 3, 5, -1, -4, 7))
    if root in ("FLOAT", "DOUBLE"):
        return rng.choice((1.0, 0.5, 2.0, -1.0) if few else (0.0, 0.25, 1.5, -2.75, 1024.0))
    if root == "DECIMAL":
        digits = int(kind.split(",")[1].strip(" )"))
        whole = rng.choice(("1", "2", "-1") if few else ("0", "1", "-3", "12", "77"))
        return f"{whole}.{'0' * digits if few else rng.choice(('5', '0', '25')).ljust(digits, '0')[:digits]}"
    pools = {"STRING": WORDS, "VARCHAR": tuple(w for w in WORDS if len(w) < 12), "DATE": DAYS, "TIME": CLOCKS, "BYTES": BYTES, "BOOLEAN": (True, False)}
    return rng.choice(pools.get(root, TIMES))


def _nested(rng: random.Random, kind: dict):
    root = kind["type"]
    if root == "ROW":
        if kind is STAMPED:
            return {"x": maybe(rng, "INT"), "ts": None if rng.random() < 0.2 else f"2024-01-0{rng.randrange(1, 9)}"}
        return {"id": rng.randrange(3), "x": maybe(rng, "STRING"), "n": maybe(rng, "BIGINT")}
    if root == "ARRAY":
        return [value(rng, kind["element"]) for _ in range(rng.randrange(4))]
    keys = list(dict.fromkeys(value(rng, kind["key"].replace(" NOT NULL", "")) for _ in range(rng.randrange(4))))
    return [[key, maybe(rng, kind["value"])] for key in keys]


def maybe(rng: random.Random, kind, function: str | None = None, nulls: float = 0.25):
    """A value or, now and then, null."""
    return None if rng.random() < nulls else value(rng, kind, function)
