"""Aggregate functions at the ends of their types: equal to Java's, value by value and error by error."""

from __future__ import annotations

import random

import pytest
from engine_play import settled
from pair import Kind, Pair
from unit.codec.test_roaring import single_64
from values import difference

from paimon_py import PaimonError
from paimon_py.codec.roaring import union_64

pytestmark = pytest.mark.java

ENDS = {"TINYINT": 2**7, "SMALLINT": 2**15, "INT": 2**31, "BIGINT": 2**63}
FLOATS = [0.0, -0.0, 0.1, -3.3, 7.0, "NaN", "Infinity", "-Infinity"]
WORDS = ["", " ", "a", "a\0", "ab", "b,a", ",", "é", "\ue000", "\U0001f600", "\u00a0", "\u2003", "abcdefgh", "abcdefghi"]
PAIRS = {"type": "MAP", "key": "INT NOT NULL", "value": {"type": "ROW", "fields": [
    {"id": 0, "name": "t", "type": "STRING"}, {"id": 0, "name": "v", "type": "INT"}]}}  # fmt: skip
LAST = {**PAIRS, "value": {"type": "ROW", "fields": PAIRS["value"]["fields"][::-1]}}
TABLE = {"type": "ARRAY", "element": {"type": "ROW", "fields": [
    {"id": 0, "name": "i", "type": "INT"}, {"id": 0, "name": "s", "type": "STRING"}, {"id": 0, "name": "f", "type": "DOUBLE"}]}}  # fmt: skip


def decimal(precision, scale):
    def make(rng):
        digits = rng.choice((1, precision - 1, precision))
        text = str(rng.randrange(10**digits)).rjust(scale + 1, "0")
        return rng.choice(("", "-")) + (f"{text[:-scale]}.{text[-scale:]}" if scale else text)

    return make


def rows_of_a_table(rng):
    return [
        None
        if rng.random() < 0.1
        else {"i": rng.choice((1, 2, None)), "s": rng.choice(("x", None)), "f": rng.choice((0.0, 1.5, None))}
        for _ in range(rng.randrange(4))
    ]


def entries(rng):
    return [
        [key, None if rng.random() < 0.2 else {"t": rng.choice(("1", "2", "\ue000", "\U0001f600", None)), "v": rng.randrange(9)}]
        for key in rng.sample(range(4), rng.randrange(4))
    ]


def choice(*values):
    return lambda rng: rng.choice(values)


def listed(*values):
    return lambda rng: [rng.choice(values) for _ in range(rng.randrange(4))]


def column(kind, make, function, **options):
    return kind, make, function, {name.replace("_", "-"): value for name, value in options.items()}


SETS = {
    "numbers": [
        *(column(kind, choice(0, 1, -1, 3, 9), function) for kind in ENDS for function in ("sum", "min", "max")),
        *(column(kind, choice(*FLOATS), function) for kind in ("FLOAT", "DOUBLE") for function in ("sum", "product", "min", "max")),
        *(column(f"DECIMAL({p}, {s})", decimal(p, s), function) for p, s in ((4, 2), (18, 0), (19, 4), (38, 10)) for function in ("sum", "min", "max")),
        *(column(f"DECIMAL({p}, {s})", decimal(p, s), "product") for p, s in ((18, 2), (38, 10))),
    ],
    "texts": [
        *(column("STRING", choice(*WORDS), function) for function in ("min", "max", "listagg", "last_non_null_value", "first_value")),
        column("STRING", choice(*WORDS), "listagg", distinct="true"),
        column("STRING", choice(*WORDS), "listagg", list_agg_delimiter="", distinct="true"),
        column("STRING", choice(*WORDS), "listagg", list_agg_delimiter="ab"),
        column("STRING", choice("x", "xa", "ax", "aa", "y"), "listagg", list_agg_delimiter="aa", distinct="true"),
        column("BYTES", choice("", "00", "7f", "80", "ff", "ff00"), "max"),
        column("BYTES", choice("", "00", "7f", "80", "ff", "ff00"), "min"),
    ],
    "nested": [
        column(TABLE, rows_of_a_table, "nested_update"),
        column(TABLE, rows_of_a_table, "nested_update", count_limit="2"),
        column(TABLE, rows_of_a_table, "nested_update", nested_key="i"),
        column(TABLE, rows_of_a_table, "nested_update", nested_key="i,s", nested_key_null_strategy="ignore", count_limit="2"),
        column(TABLE, rows_of_a_table, "nested_update", nested_key="i", nested_sequence_field="f,s"),
        column(TABLE, rows_of_a_table, "nested_partial_update", nested_key="s"),
        column(TABLE, rows_of_a_table, "nested_partial_update", nested_key="i", nested_key_null_strategy="ignore"),
        column(LAST, entries, "merge_map_with_keytime"),
        column(PAIRS, entries, "merge_map_with_keytime", ts_field="t"),
        column({"type": "ARRAY", "element": "DOUBLE"}, listed(*FLOATS), "collect"),
        column({"type": "ARRAY", "element": "STRING"}, listed(*WORDS), "collect", distinct="true"),
        column({"type": "ARRAY", "element": TABLE}, listed([{"i": 1, "s": None, "f": 0.5}], []), "collect"),
    ],
}  # fmt: skip
TAKE_BACK = {"sum", "last_value", "last_non_null_value", "nested_update", "collect"}
"""Functions whose retracts are tried; products have their own test, and Java cannot compare nested elements."""


def table(java, path, name, columns, **options):
    """A table of these columns with Java's and our view of it."""
    pair = Pair(java, path, name)
    kinds, given = [["k", "INT NOT NULL"]], {}
    for number, (kind, _, function, more) in enumerate(columns):
        kinds.append([f"c{number}", kind])
        for option, value in {"aggregate-function": function, **more}.items():
            given[f"fields.c{number}.{option}"] = value
    pair.create(Kind(kinds, ["k"], options={"bucket": "1", "write-only": "true", "merge-engine": "aggregation", **given, **options}), "j")
    return pair


def commits(seed, columns, kinds, count=5):
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        rows = []
        for _ in range(8):
            row = {"k": rng.randrange(4), "_kind": rng.choice(kinds)}
            row |= {f"c{number}": None if rng.random() < 0.25 else make(rng) for number, (_, make, _, _) in enumerate(columns)}
            rows.append(row)
        made.append(rows)
    return made


def compare(java, path, columns, batches, **options):
    """Java's rows of a table that Java wrote, ours of it, and both's of a table that we wrote, are the same."""
    unordered = frozenset(
        f"c{number}" for number, (_, _, function, more) in enumerate(columns) if function.startswith("nested") or (function == "collect" and "distinct" in more)
    )
    seen = []
    for by in "jo":
        pair = table(java, path, by, columns, **options)
        for rows in batches:
            pair.act(("write", rows), by)
        names = pair.columns()
        for reader in (pair.java_rows, pair.our_rows):
            seen.append((by, reader.__name__, settled(names, reader(names), unordered)))
    for by, reader, rows in seen[1:]:
        assert difference(names, seen[0][2], rows) is None, (by, reader)


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 12))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", SETS)
def test_added_values_come_to_the_same(family, seed, java, tmp_path):
    compare(java("2.0.0"), tmp_path, SETS[family], commits(f"{family} {seed}", SETS[family], ("+I", "+U")))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("remove", ["false", "true"])
def test_retracted_values_come_to_the_same(remove, seed, java, tmp_path):
    columns = [
        one for family in SETS.values() for one in family
        if one[2] in TAKE_BACK and not (one[2] == "collect" and one[0]["element"] not in ("DOUBLE", "STRING"))
    ]  # fmt: skip
    options = {"aggregation.remove-record-on-delete": remove}
    compare(java("2.0.0"), tmp_path, columns, commits(f"retracts {seed}", columns, ("+I", "+I", "-U", "-D")), **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_before_a_removed_record_come_to_the_same(seed, java, tmp_path):
    columns = [one for family in SETS.values() for one in family if one[2] not in TAKE_BACK and one[2] != "product"]
    options = {"aggregation.remove-record-on-delete": "true"}
    compare(java("2.0.0"), tmp_path, columns, commits(f"removed {seed}", columns, ("+I", "+I", "+I", "-D")), **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_ignored_retracts_come_to_the_same(seed, java, tmp_path):
    columns = [
        (kind, make, function, {**more, "ignore-retract": "true"}) for kind, make, function, more in [*SETS["numbers"], *SETS["texts"]]
    ]
    compare(java("2.0.0"), tmp_path, columns, commits(f"ignored {seed}", columns, ("+I", "+I", "-U", "-D")))


def test_what_java_refuses_to_merge_we_refuse_too(java, tmp_path):
    """One table per case with two commits; reading must fail on both sides or on none."""
    cases = [
        (kind, function, values, kinds)
        for kind, end in (("TINYINT", 2**7), ("BIGINT", 2**63))
        for function, values, kinds in [
            ("sum", (end - 2, 1), ("+I", "+I")),
            ("sum", (end - 1, 1), ("+I", "+I")),
            ("sum", (-end, 1), ("+I", "-D")),
            ("sum", (0, -end), ("+I", "-D")),
            ("sum", (-1, -end), ("+I", "-D")),
            ("product", (-end, -1), ("+I", "+I")),
            ("product", (end // 2, 2), ("+I", "+I")),
            ("product", (-(end // 2), 2), ("+I", "+I")),
            ("product", (-end, -1), ("+I", "-D")),
            ("product", (7, 0), ("+I", "-D")),
            ("product", (-7, 2), ("+I", "-D")),
            ("max", (7, 0), ("+I", "-D")),
        ]
    ]
    cases += [
        ("DECIMAL(4, 2)", "product", values, ("+I", "-D"))
        for values in (("1.00", "3.00"), ("1.00", "8.00"), ("1.00", "0.00"), ("99.99", "0.01"))
    ]
    cases += [("DECIMAL(20, 2)", "product", values, ("+I", "-D")) for values in (("1.00", "3.00"), ("1.00", "8.00"), ("-1.00", "8.00"))]
    refused = 0
    for number, (kind, function, values, kinds) in enumerate(cases):
        pair = table(java("2.0.0"), tmp_path, f"t{number}", [(kind, None, function, {})])
        writes = [{"op": "write", "rows": [{"k": 1, "c0": value, "_kind": row_kind}]} for value, row_kind in zip(values, kinds, strict=True)]
        theirs = pair.steps([*writes, {"op": "read"}], check=False)[-1]
        try:
            ours = pair.our_rows()
        except PaimonError as error:
            assert "'c0'" in str(error)
            ours = None
        assert theirs["ok"] == (ours is not None), (kind, function, values, kinds, theirs, ours)
        refused += ours is None
        if ours is not None:
            assert difference(pair.columns(), pair.java_rows(), ours) is None, (kind, function, values, kinds)
    assert 15 < refused < len(cases)


def theta(rng, size):
    datasketches = pytest.importorskip("datasketches")
    sketch = datasketches.update_theta_sketch()
    for _ in range(size):
        sketch.update(rng.randrange(20_000))
    return sketch.compact().serialize().hex()


def hll(rng, size):
    datasketches = pytest.importorskip("datasketches")
    kind = rng.choice(list(datasketches.tgt_hll_type.__members__.values()))
    sketch = datasketches.hll_sketch(rng.choice((10, 12)), kind)
    for _ in range(size):
        sketch.update(rng.randrange(20_000))
    return sketch.serialize_compact().hex()


def bitmap(rng, size):
    from pyroaring import BitMap

    low = rng.randrange(2**18)
    return BitMap([*(rng.randrange(2**18) for _ in range(size)), *range(low, low + size)]).serialize().hex()


def bitmap_64(rng, size):
    """A few upper halves, some close together, with a few or many lower ones."""
    size //= 8
    values = [rng.randrange(2 * size + 1) << rng.choice((16, 16, 40)) | rng.randrange(1 << 16) for _ in range(size)]
    return union_64([single_64(value) for value in values] or [b"\0"]).hex()


@pytest.mark.parametrize("function", ["theta_sketch", "hll_sketch", "rbm32", "rbm64"])
def test_unions_of_any_size_have_javas_bytes(function, java, tmp_path):
    make = {"theta_sketch": theta, "hll_sketch": hll, "rbm32": bitmap, "rbm64": bitmap_64}[function]
    rng = random.Random(function)
    batches = [[{"k": k, "c0": make(rng, rng.choice(sizes))} for k, sizes in enumerate(
        ((0,), (1,), (1, 2), (5, 40), (300, 900), (1000, 9000), (0, 1, 9000)))] for _ in range(4)]  # fmt: skip
    compare(java("2.0.0"), tmp_path, [("BYTES", None, function, {})], batches)
