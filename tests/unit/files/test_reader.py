import msgspec
import pytest
from unit.files.build import DIRECTORY, batch, fields, read, schema, write

from paimon_py.errors import CorruptionError, SchemaError, UnsupportedError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.sql import parse_where
from paimon_py.files.physical import KIND_FIELD
from paimon_py.files.reader import FileReader
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.store import FileMissingError

TABLE = schema((0, "a", "INT"), (1, "s", "STRING"), (2, "d", "DOUBLE"))
KEYED = schema((0, "k", "INT NOT NULL"), (1, "v", "STRING"), keys=["k"])
FORMATS = ["parquet", "orc", "avro"]


def stored(name="parquet", count=5, **options):
    store = MemoryStore()
    rows = batch(
        TABLE, a=range(count), s=[f"t{number}" for number in range(count)], d=[number / 2 for number in range(count)]
    )
    (file,) = write(store, TABLE, rows, **{"file.format": name, **options})
    return store, file


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_read_in_the_schema_of_today(name):
    store, file = stored(name)
    today = fields((2, "dd", "STRING"), (7, "new", "DATE"), (0, "a", "BIGINT"))
    rows = read(store, file, TABLE, today, batch_rows=2)
    assert rows[:2] == [{"dd": "0.0", "new": None, "a": 0}, {"dd": "0.5", "new": None, "a": 1}]
    assert len(rows) == 5


@pytest.mark.parametrize("name", FORMATS)
def test_the_format_of_a_file_is_its_extension_whatever_the_table_says(name):
    store, file = stored(name)
    other = msgspec.structs.replace(TABLE, options={"file.format": "orc" if name != "orc" else "avro"})
    assert len(read(store, file, other)) == 5


def test_system_columns_come_where_they_are_asked_for():
    store = MemoryStore()
    rows = batch(KEYED, _SEQUENCE_NUMBER=[4, 5], _VALUE_KIND=[0, 3], k=[1, 2], v=["x", None])
    (file,) = write(store, KEYED, rows)
    wanted = (KEYED.fields[1], KIND_FIELD)
    assert read(store, file, KEYED, wanted) == [{"v": "x", "_VALUE_KIND": 0}, {"v": None, "_VALUE_KIND": 3}]


def test_a_file_that_has_none_of_the_columns_is_not_even_opened():
    _, file = stored()
    rows = read(MemoryStore(), file, TABLE, fields((9, "n", "INT")), batch_rows=2)
    assert rows == [{"n": None}] * 5


class CountingStore(MemoryStore):
    """Counts what is open."""

    open_files = 0

    def open_read(self, path):
        source = super().open_read(path)
        type(self).open_files += 1
        close = source.close

        def closing():
            if not source.closed:
                type(self).open_files -= 1
            close()

        source.close = closing
        return source


@pytest.mark.parametrize("name", FORMATS)
def test_positions_are_those_in_the_file_also_when_row_groups_are_skipped(name):
    store, file = stored(name, count=300_000)
    wanted = bind(col("a") >= 299_990, TABLE.fields)
    path = f"{DIRECTORY}/{file.name}"
    seen = list(FileReader(store, path, file, TABLE, TABLE.fields[:1]).positions(predicate=wanted))
    assert all(rows.column("a")[0].as_py() == position for position, rows in seen)
    assert seen[-1][0] + seen[-1][1].num_rows == 300_000
    if name == "parquet":
        assert seen[0][0] > 0


def test_a_predicate_on_a_renamed_and_widened_column_still_prunes_and_one_on_a_new_column_does_not():
    store, file = stored(count=300_000)
    today = fields((0, "x", "BIGINT"), (9, "n", "INT"))
    last = read(store, file, TABLE, today, predicate=bind(col("x") > 299_998, today))
    assert last[-1]["x"] == 299_999 and len(last) < 300_000
    assert len(read(store, file, TABLE, today, predicate=bind(col("n").is_null(), today))) == 300_000


def test_another_number_of_rows_than_the_manifest_says_is_corruption():
    store, file = stored()
    with pytest.raises(CorruptionError, match="has 5 rows, its manifest entry says 6") as caught:
        read(store, msgspec.structs.replace(file, row_count=6), TABLE)
    assert caught.value.path == f"{DIRECTORY}/{file.name}"


def test_a_missing_file_is_reported_as_missing():
    _, file = stored()
    with pytest.raises(FileMissingError):
        read(MemoryStore(), file, TABLE)


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_bytes_are_corruption_and_leave_nothing_open(name):
    store, file = stored(name)
    broken = CountingStore()
    path = f"{DIRECTORY}/{file.name}"
    data = store.get(path)
    broken.put(path, data[: len(data) // 2])
    with pytest.raises(CorruptionError) as caught:
        read(broken, file, TABLE)
    assert caught.value.path == path
    assert CountingStore.open_files == 0


def test_a_bad_value_names_the_file():
    store, file = stored()
    with pytest.raises(SchemaError, match="column s") as caught:
        read(store, file, TABLE, fields((1, "s", "INT")))
    assert caught.value.path == f"{DIRECTORY}/{file.name}"


def test_an_external_path_is_where_the_file_lies():
    store, file = stored()
    moved = "/elsewhere/file.parquet"
    store.put(moved, store.get(f"{DIRECTORY}/{file.name}"))
    store.delete(f"{DIRECTORY}/{file.name}")
    assert len(read(store, msgspec.structs.replace(file, external_path=moved), TABLE)) == 5


def test_files_with_some_columns_of_their_rows_are_refused():
    store, file = stored()
    with pytest.raises(UnsupportedError, match="only some columns"):
        read(store, msgspec.structs.replace(file, write_columns=("a",)), TABLE)


def test_unread_columns_may_have_types_that_are_not_handled():
    store, file = stored()
    with_variant = msgspec.structs.replace(TABLE, fields=(*TABLE.fields, *fields((5, "x", "VARIANT"))))
    assert [row["a"] for row in read(store, file, with_variant, TABLE.fields[:1])] == [0, 1, 2, 3, 4]


def test_an_abandoned_reader_closes_its_file():
    store, file = stored(count=10)
    counting = CountingStore()
    path = f"{DIRECTORY}/{file.name}"
    counting.put(path, store.get(path))
    reader = FileReader(counting, path, file, TABLE, TABLE.fields).positions(batch_rows=2)
    next(reader)
    assert CountingStore.open_files == 1
    del reader
    assert CountingStore.open_files == 0


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("where", ["a > 7", "a < 3", "p.x > 7", "p.x < 3 AND a >= 1", "n IS NULL", "p IS NULL", "a + p.x > 15"])
def test_no_row_that_matches_is_skipped_by_bounds_of_plain_and_nested_columns(name, where):
    kind = schema((0, "a", "INT"), (1, "p", "ROW<x INT, y STRING>"), (2, "n", "INT"))
    store, parts = MemoryStore(), [None if at == 4 else {"x": at, "y": "z"} for at in range(10)]
    (file,) = write(store, kind, batch(kind, a=range(10), p=parts, n=[None] * 10), **{"file.format": name})
    found = {row["a"] for row in read(store, file, kind, predicate=bind(parse_where(where), kind.fields))}
    expected = {
        "a > 7": {8, 9}, "a < 3": {0, 1, 2}, "p.x > 7": {8, 9}, "p.x < 3 AND a >= 1": {1, 2}, "n IS NULL": set(range(10)),
        "p IS NULL": {4}, "a + p.x > 15": {8, 9},
    }[where]  # fmt: skip
    assert expected <= found
