import msgspec
import pyarrow as pa
import pytest
from unit.files.build import batch, fields, schema, write

from paimon_py.codec.manifest.entries import read_manifests, write_manifest
from paimon_py.errors import CorruptionError
from paimon_py.expr.bind import bind
from paimon_py.expr.column import col
from paimon_py.expr.prune import may_match
from paimon_py.files.casts.types import keeps_order
from paimon_py.files.stats_evolution import evolved_bounds
from paimon_py.spec.data_file import FileKind, ManifestEntry
from paimon_py.spec.type_text import parse_type
from paimon_py.storage.memory_store import MemoryStore

TABLE = schema(
    (0, "a", "INT"), (1, "s", "VARCHAR(5)"), (2, "l", {"type": "ARRAY", "element": "INT"}), (3, "t", "STRING")
)


def entries(table=TABLE, *rows, **changes):
    files = [file for one in rows for file in write(MemoryStore(), table, one)]
    made = [
        ManifestEntry(
            kind=FileKind.ADD, partition=b"", bucket=0, total_buckets=1, file=msgspec.structs.replace(file, **changes)
        )
        for file in files
    ]
    return read_manifests([("m", write_manifest(made))])


def two_files():
    return entries(
        TABLE,
        batch(TABLE, a=[1, 5], s=["a", "b"], l=[[1], None], t=["1", "9"]),
        batch(TABLE, a=[None, None], s=["c", None], l=[None, None], t=["10", "11"]),
    )


def test_bounds_follow_ids_through_renames_and_widened_types():
    today = fields((0, "x", "BIGINT"), (1, "s", "STRING"))
    bounds = evolved_bounds(two_files(), TABLE.fields, TABLE.fields, today)
    assert bounds["x"].min.type == pa.int64()
    assert (bounds["x"].min.to_pylist(), bounds["x"].max.to_pylist()) == ([1, None], [5, None])
    assert bounds["x"].null_count.to_pylist() == [0, 2]
    assert (bounds["s"].min.to_pylist(), bounds["s"].max.to_pylist()) == (["a", "c"], ["b", "c"])


def test_a_column_that_files_lack_is_null_everywhere():
    today = fields((9, "n", "INT"), (0, "a", "INT"))
    bounds = evolved_bounds(two_files(), TABLE.fields, TABLE.fields, today)
    assert bounds["n"].null_count.to_pylist() == [2, 2]
    rows = pa.array([2, 2])
    assert may_match(bind(col("n") > 1, today), bounds, rows).tolist() == [False, False]
    assert may_match(bind(col("n").is_null(), today), bounds, rows).tolist() == [True, True]
    assert may_match(bind(col("a") > 4, today), bounds, rows).tolist() == [True, False]


def test_a_change_of_type_that_turns_order_around_leaves_the_column_unknown():
    today = fields((3, "t", "INT"), (0, "a", "STRING"))
    assert evolved_bounds(two_files(), TABLE.fields, TABLE.fields, today) == {}


def test_a_nested_column_has_no_bounds_but_a_null_count_where_one_is_stored():
    bounds = evolved_bounds(two_files(), TABLE.fields, TABLE.fields, TABLE.fields[2:3])
    assert bounds["l"].min.null_count == 2
    assert len(bounds["l"].null_count) == 2


def test_dense_statistics_cover_only_the_columns_they_name():
    dense = schema((3, "t", "STRING"), (0, "a", "INT"))
    columns = entries(dense, batch(dense, t=["p", "q"], a=[4, 8]), value_stats_columns=("t", "a"))
    bounds = evolved_bounds(columns, dense.fields, TABLE.fields, TABLE.fields)
    assert set(bounds) == {"a", "t"}
    assert (bounds["a"].min.to_pylist(), bounds["t"].max.to_pylist()) == ([4], ["q"])


def test_key_statistics_are_bounds_too():
    keyed = schema((0, "k", "INT NOT NULL"), (1, "v", "INT"), keys=["k"])
    columns = entries(keyed, batch(keyed, _SEQUENCE_NUMBER=[0, 1], _VALUE_KIND=[0, 0], k=[3, 8], v=[1, 2]))
    today = fields((0, "key", "INT NOT NULL"))
    bounds = evolved_bounds(columns, keyed.key_fields, keyed.fields, today, which="key")
    assert (bounds["key"].min.to_pylist(), bounds["key"].max.to_pylist()) == ([3], [8])


def test_statistics_of_another_width_are_corruption():
    with pytest.raises(CorruptionError):
        evolved_bounds(two_files(), TABLE.fields[:2], TABLE.fields, TABLE.fields)


def test_bounds_that_the_new_type_cannot_hold_are_unknown():
    times = schema((0, "t", "TIMESTAMP(3)"))
    columns = entries(times, batch(times, t=[-62_135_596_800_000, 0]))
    bounds = evolved_bounds(columns, times.fields, times.fields, fields((0, "t", "TIMESTAMP(9)")))
    assert bounds["t"].min.to_pylist() == [None]


@pytest.mark.parametrize(
    ("source", "target", "kept"),
    [
        ("TINYINT", "INT", True),
        ("BIGINT", "INT", False),
        ("INT", "DOUBLE", True),
        ("DOUBLE", "FLOAT", False),
        ("DOUBLE", "INT", False),
        ("FLOAT", "DOUBLE", True),
        ("INT", "DECIMAL(10, 0)", True),
        ("INT", "DECIMAL(11, 2)", False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 4)", True),
        ("DECIMAL(10, 2)", "DECIMAL(12, 5)", False),
        ("DECIMAL(10, 2)", "DECIMAL(12, 1)", False),
        ("VARCHAR(5)", "STRING", True),
        ("STRING", "VARCHAR(5)", False),
        ("VARCHAR(5)", "CHAR(9)", False),
        ("STRING", "INT", False),
        ("INT", "STRING", False),
        ("TIMESTAMP(3)", "TIMESTAMP(6) WITH LOCAL TIME ZONE", True),
        ("TIMESTAMP(6)", "TIMESTAMP(3)", False),
        ("DATE", "TIMESTAMP(0)", True),
        ("INT", "INT NOT NULL", True),
    ],
)
def test_which_casts_keep_the_order(source, target, kept):
    assert keeps_order(parse_type(source), parse_type(target)) is kept


def test_bounds_of_blank_padded_values_hold_the_values_without_blanks():
    char = schema((0, "c", "CHAR(3)"))
    padded = entries(char, *(batch(char, c=[low, high]) for low, high in (("   ", "a  "), ("a\t ", "a  "), ("a b", "z"))))
    bounds = evolved_bounds(padded, char.fields, char.fields, char.fields)
    assert bounds["c"].min.to_pylist() == ["", "a", "a b"]
    assert bounds["c"].max.to_pylist() == ["a  ", "a  ", "z"]
    # the values read are "" and "a", "a" and "a\t", "a b" and "z"
    rows = pa.array([2, 2, 2])
    assert may_match(bind(col("c") == "", char.fields), bounds, rows).tolist() == [True, False, False]
    assert may_match(bind(col("c") <= "a", char.fields), bounds, rows).tolist() == [True, True, False]
    assert may_match(bind(col("c") >= "a\t", char.fields), bounds, rows).tolist() == [True, True, True]
