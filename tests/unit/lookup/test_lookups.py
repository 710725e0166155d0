"""Looking rows up by primary key, against scans and dicts."""

from __future__ import annotations

import pickle
import random
from datetime import date, datetime
from decimal import Decimal

import msgspec
import pyarrow as pa
import pytest
from unit.scan.build import opened, table

import paimon_py
from paimon_py.errors import CorruptionError, SchemaError, SnapshotExpiredError, UsageError
from paimon_py.spec.layout import snapshot_path

KEY_TYPES = {
    "BOOLEAN": [True, False],
    "TINYINT": [-3, 0, 5, 127],
    "SMALLINT": [-300, 0, 5, 32767],
    "INT": list(range(-50, 50, 7)),
    "BIGINT": [-(2**62), 0, 1, 2**40, 2**62],
    "FLOAT": [-1.5, -0.0, 0.0, 1.25, float("inf"), float("nan")],
    "DOUBLE": [-1.5, -0.0, 0.0, 1.25, float("inf"), float("nan")],
    "DECIMAL(9, 2)": [Decimal("-1.25"), Decimal("0.00"), Decimal("99.10")],
    "DECIMAL(30, 4)": [Decimal("-1.2500"), Decimal("0.0001"), Decimal("99999999999999999999.1234")],
    "STRING": ["", "a", "ab", "abc", "b", "ä", "zz" * 20],
    "VARCHAR(8)": ["", "x", "xyz"],
    "BYTES": [b"", b"\x00", b"\x00\xff", b"\xff"],
    "DATE": [date(1969, 12, 31), date(2024, 2, 29), date(2030, 1, 1)],
    "TIMESTAMP(3)": [datetime(1969, 12, 31), datetime(2024, 1, 1, 12, 0, 0, 5000)],
    "TIMESTAMP(6)": [datetime(1969, 12, 31), datetime(2024, 1, 1, 12, 0, 0, 5)],
    "TIMESTAMP(9)": [datetime(1969, 12, 31), datetime(2024, 1, 1, 12, 0, 0, 5)],
}


def keyed(options=None, fields=(("k", "INT NOT NULL"), ("v", "STRING"), ("n", "BIGINT")), **kwargs):
    kwargs.setdefault("primary_key", ("k",))
    return table(list(fields), options={"bucket": "2", "write-only": "true", **(options or {})}, **kwargs)


def schema_of(table):
    return pa.schema(table.scan().schema)


def write(table, rows):
    fields = schema_of(table)
    if "_row_kind" in rows[0]:
        fields = fields.append(pa.field("_row_kind", pa.string()))
    table.write_arrow(pa.Table.from_pylist(rows, schema=fields))


def repeated(value):
    """A value that equals itself also if it is NaN, and is told from the other zero."""
    return str(value)


def shown(rows):
    """Rows to compare: nanoseconds come as pandas' timestamps, and NaN is not NaN."""
    return [[str(value) for value in row.values()] for row in rows]


def by_key(table):
    names = table.schema.primary_keys
    return {tuple(repeated(row[name]) for name in names): row for row in table.scan().to_arrow().to_pylist()}


def check(table, keys, columns=None):
    """A lookup gives what a scan gives."""
    names = table.schema.primary_keys
    rows = by_key(table)
    wanted = [rows.get(tuple(repeated(key[name]) for name in names)) for key in keys]
    names = columns or list(table.schema.names)
    found = table.lookup(keys, columns=columns)
    expected = [{name: row[name] for name in names} for row in wanted if row is not None]
    assert shown(found.to_pylist()) == shown(expected)
    assert found.schema == table.scan(columns=columns).schema
    filled = table.lookup(keys, columns=columns, missing="null")
    empty = dict.fromkeys(table.schema.names)
    expected = [
        {name: (row or {**empty, **key})[name] for name in names} for row, key in zip(wanted, keys, strict=True)
    ]
    assert shown(filled.to_pylist()) == shown(expected)


@pytest.mark.parametrize("kind", KEY_TYPES)
def test_keys_of_every_type_are_found_in_all_runs_and_others_are_not(kind):
    values = KEY_TYPES[kind]
    store = keyed(fields=[("k", f"{kind} NOT NULL"), ("v", "STRING")])
    write(store, [{"k": value, "v": f"old {value}"} for value in values])
    write(store, [{"k": value, "v": f"new {value}"} for value in values[::2]])
    write(store, [{"k": value, "v": None, "_row_kind": "-D"} for value in values[1::3]])
    check(store, [{"k": value} for value in reversed(values)])
    check(store, [{"k": values[0]}, {"k": values[-1]}, {"k": values[0]}], columns=["v"])


@pytest.mark.parametrize("kind", ["STRING", "DECIMAL(30, 4)", "DOUBLE", "BYTES"])
def test_composite_keys_are_found_part_by_part(kind):
    draw = random.Random(3)
    values = KEY_TYPES[kind]
    fields = [("a", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("b", f"{kind} NOT NULL"), ("v", "BIGINT")]
    store = keyed(fields=fields, primary_key=("b", "p", "a"), partition_by=("p",))
    keys = [{"a": a, "p": p, "b": b} for a in range(4) for p in "xyz" for b in values]
    for version in range(4):
        write(store, [{**key, "v": version} for key in draw.sample(keys, 20)])
        check(store, draw.sample(keys, 30))
    check(store, keys, columns=["v", "b"])


ENGINES = {
    "deduplicate": {},
    "sequence": {"sequence.field": "n"},
    "ignore-delete": {"ignore-delete": "true"},
    "partial-update": {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
    "aggregation": {
        "merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true"
    },
    "first-row": {"merge-engine": "first-row", "ignore-delete": "true", "write-only": "false"},
    "deletion-vectors": {"deletion-vectors.enabled": "true", "write-only": "false"},
    "lookup": {"force-lookup": "true", "write-only": "false", "sequence.field": "n"},
    "orc": {"file.format": "orc"},
    "avro": {"file.format": "avro"},
    "dynamic": {"bucket": "-1"},
    "bloom": {"file-index.bloom-filter.columns": "k"},
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
def test_lookups_equal_scans_for_every_engine_layout_and_snapshot(name):
    draw = random.Random(f"lookup {name}")
    store = keyed(ENGINES[name])
    deletes = name not in ("first-row",)
    for step in range(8):
        keys = draw.sample(range(60), 25)
        rows = [{"k": key, "v": draw.choice([None, f"{step}"]), "n": draw.randrange(9)} for key in keys]
        kinds = draw.choices(["+I", "+I", "-D"], k=len(rows)) if deletes else ["+I"] * len(rows)
        write(store, [{**row, "_row_kind": kind} for row, kind in zip(rows, kinds, strict=True)])
        if step in (3, 6):
            store.compact(full=step == 6)
        check(store, [{"k": key} for key in draw.choices(range(70), k=40)])
        check(store, [{"k": draw.randrange(60)}], columns=["n"])


def test_rows_of_old_files_have_the_current_columns():
    store = keyed()
    write(store, [{"k": key, "v": f"v{key}", "n": key} for key in range(20)])
    store.lookup([3])
    store.alter(
        paimon_py.RenameColumn("v", "text"), paimon_py.UpdateColumnType("n", "DOUBLE"), paimon_py.AddColumn("x", "INT"),
        paimon_py.RenameColumn("k", "id"),
    )  # fmt: skip
    write(store, [{"id": 3, "text": "new", "n": 0.5, "x": 1}])
    check(store, [{"id": key} for key in (3, 4, 21)])


def test_a_key_without_its_partition_is_looked_up_in_all_partitions():
    fields = [("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "INT")]
    store = keyed({"bucket": "-1"}, fields=fields, partition_by=("p",), primary_key=("p", "k"))
    write(store, [{"k": key, "p": "abc"[key % 3], "v": key} for key in range(12)])
    across = type(store)(store._root, msgspec.structs.replace(store.schema, primary_keys=("k",)), "across")
    check(across, [{"k": key} for key in (13, 5, 0, 11, 5)])


def test_keys_can_be_given_in_many_forms():
    store = keyed()
    write(store, [{"k": key, "v": f"v{key}", "n": key} for key in range(5)])
    expected = store.lookup([{"k": 3}, {"k": 1}])
    assert expected.column("n").to_pylist() == [3, 1]
    shapes = [[3, 1], pa.array([3, 1]), pa.chunked_array([[3], [1]]), pa.table({"k": [3, 1]}), [(3,), (1,)]]
    assert all(store.lookup(shape) == expected for shape in shapes)
    assert store.lookup({"k": 3}).num_rows == 1
    assert store.lookup([]).num_rows == 0 and store.lookup([], missing="null").num_rows == 0
    pandas = pytest.importorskip("pandas")
    assert store.lookup(pandas.DataFrame({"k": [3, 1]})) == expected


def test_an_empty_table_has_no_keys():
    store = keyed()
    assert store.lookup([1]).num_rows == 0
    assert store.lookup([1], missing="null").to_pylist() == [{"k": 1, "v": None, "n": None}]


@pytest.mark.parametrize(
    ("keys", "error", "words"),
    [
        ([{"k": None, "p": "a"}], SchemaError, "'k' holds NULL"),
        ([{"k": 1}], UsageError, "keys lack 'p'"),
        ([{"k": 1, "p": "a", "v": "x"}], UsageError, "keys have 'v'"),
        ([{"k": "one", "p": "a"}], SchemaError, "pass a whole number, not 'one'"),
        (pa.table({"k": ["1"], "p": ["a"]}), SchemaError, "key column k: string given"),
        (pa.table({"k": [2**40], "p": ["a"]}), SchemaError, "column k: 1099511627776"),
        ([1], UsageError, "a key is"),
        ([(1, 2, 3)], UsageError, "a key is"),
        (pa.array([1]), UsageError, "a column for each"),
        (7, UsageError, "lookup takes keys as"),
    ],
)
def test_input_that_is_not_a_key_is_refused_by_name(keys, error, words):
    store = keyed(fields=[("k", "INT NOT NULL"), ("p", "STRING NOT NULL"), ("v", "STRING")], primary_key=("k", "p"))
    with pytest.raises(error, match=words):
        store.lookup(keys)


def test_columns_that_a_lookup_cannot_return_are_refused_by_name():
    store = keyed()
    with pytest.raises(UsageError, match="column 'w' does not exist"):
        store.lookup([1], columns=["w"])
    with pytest.raises(UsageError, match="missing"):
        store.lookup([1], missing="raise")
    with pytest.raises(UsageError, match="primary key"):
        table([("k", "INT")]).lookup([1])


def test_a_repeated_lookup_opens_no_file_and_a_new_snapshot_only_its_own():
    store = keyed({"bucket": "1"})
    write(store, [{"k": key, "v": "a", "n": key} for key in range(100)])
    first = store.lookup(list(range(0, 100, 9)))
    store._root.store.reset()
    assert store.lookup(list(range(0, 100, 9))) == first
    assert opened(store) == []
    assert len(store._root.store.paths) <= 4
    write(store, [{"k": 9, "v": "b", "n": 0}])
    store._root.store.reset()
    assert store.lookup([9, 18]).column("v").to_pylist() == ["b", "a"]
    assert len(set(opened(store))) == 1


def test_only_files_that_may_contain_the_key_are_opened():
    store = keyed({"bucket": "1"})
    for start in range(0, 100, 10):
        write(store, [{"k": key, "v": "a", "n": key} for key in range(start, start + 10)])
    store._root.store.reset()
    assert store.lookup([35]).num_rows == 1
    assert len(set(opened(store))) == 1
    store._root.store.reset()
    assert store.lookup([1000]).num_rows == 0
    assert opened(store) == []


def test_values_are_read_only_of_the_newest_run_if_it_wins():
    store = keyed({"bucket": "1"})
    for version in range(5):
        write(store, [{"k": key, "v": f"{version}", "n": key} for key in range(50)])
    store._root.store.reset()
    assert store.lookup([7]).column("v").to_pylist() == ["4"]
    assert len(set(opened(store))) == 1


@pytest.mark.parametrize("limit", ["0 b", "3 kb", "20 kb", "1 mb"])
def test_the_cache_stays_within_its_limit_for_any_lookup(limit):
    store = keyed({"lookup.cache-max-memory-size": limit, "merge-engine": "partial-update"})
    draw = random.Random(limit)
    for step in range(6):
        write(store, [{"k": key, "v": "x" * 20, "n": step} for key in draw.sample(range(300), 80)])
    for _ in range(6):
        check(store, [{"k": key} for key in draw.sample(range(320), 50)])
        assert store._lookups.nbytes <= int(limit.split()[0]) * {"b": 1, "kb": 1024, "mb": 1 << 20}[limit.split()[1]]


def test_a_pickled_table_contains_no_cache():
    store = keyed()
    write(store, [{"k": 1, "v": "a", "n": 1}])
    store.lookup([1])
    assert store._lookups.nbytes
    assert pickle.loads(pickle.dumps(store))._lookups.nbytes == 0


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true", "write-only": "false"}])
def test_a_snapshot_id_reused_after_a_rollback_returns_no_old_rows(options):
    store = keyed({"bucket": "1", **options})
    write(store, [{"k": key, "v": "old", "n": key} for key in range(20)])
    kept = store.snapshot().id

    def go_on(keys, value):
        write(store, [{"k": key, "v": value, "n": 0} for key in keys])
        return store.snapshot().id

    last = go_on(range(5), "gone")
    assert store.lookup(list(range(20))).column("v").to_pylist() == ["gone"] * 5 + ["old"] * 15
    for number in range(kept + 1, last + 1):
        store._root.store.delete(snapshot_path(store.location, number))
    store._root.store.put(f"{store.location}/snapshot/LATEST", str(kept).encode())
    assert go_on(range(15, 20), "new") == last
    for _ in range(3):
        assert store.lookup(list(range(20))).column("v").to_pylist() == ["old"] * 15 + ["new"] * 5


def test_the_index_of_a_bucket_follows_its_files_and_is_evicted_before_rows():
    store = keyed({"bucket": "1", "lookup.cache-max-memory-size": "12 kb"})
    for version in range(3):
        write(store, [{"k": key, "v": f"{version}", "n": key} for key in range(0, 60, version + 1)])
    keys = list(range(60))
    for _ in range(3):
        check(store, [{"k": key} for key in keys], columns=["n"])
    (index,) = store._lookups._frames._indexes.values()
    assert index.row_count == 60 + 30 + 20
    store.compact(full=True)
    for _ in range(3):
        check(store, [{"k": key} for key in keys], columns=["n"])
    (index,) = store._lookups._frames._indexes.values()
    assert index.row_count == 60
    for version in range(12):
        write(store, [{"k": key, "v": f"{version}" * 40, "n": key} for key in range(50)])
        check(store, [{"k": key} for key in keys])
        assert store._lookups.nbytes <= 12 << 10


def test_a_missing_file_is_corruption_while_its_snapshot_exists_and_expiry_afterwards(monkeypatch):
    store = keyed({"bucket": "1"})
    write(store, [{"k": 1, "v": "a", "n": 1}])
    files = store._root.store
    (path,) = {path for split in store.scan().splits() for path in [f"{store.location}/bucket-0/{split.files[0].name}"]}
    files.delete(path)
    with pytest.raises(CorruptionError, match="does not exist, but snapshot"):
        store.lookup([1])
    latest = store._root.snapshots.latest()
    files.delete(snapshot_path(store.location, 1))
    monkeypatch.setattr(type(store._root.snapshots), "latest", lambda _: latest)
    with pytest.raises(SnapshotExpiredError):
        store.lookup([1])
