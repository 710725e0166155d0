"""Every type in every format: written by us and read, filtered and compacted by Java, and the other way round."""

from __future__ import annotations

import pytest
from pair import Kind, Pair, play, same_metadata
from type_families import FAMILIES, columns_of, filters_of, rows_of
from values import canonical_rows, difference

pytestmark = pytest.mark.java

FORMATS = ("parquet", "orc", "avro")


def check(pair: Pair, columns: list, rows: list[dict], filtered: list = (), java_errs: tuple[str, ...] = ()) -> None:
    want = canonical_rows(columns, rows)
    assert difference(columns, want, pair.agree()) is None
    if filtered:
        pair.check_filters(filters_of(filtered, rows), want, java_errs)


def padded(columns: list, fmt: str) -> tuple[str, ...]:
    """Columns by which Java filters its own ORC files wrongly: it compares blank-padded bounds with plain values."""
    return tuple(name for name, kind in columns if fmt == "orc" and str(kind).startswith("CHAR"))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fmt", FORMATS)
def test_a_type_comes_back_from_both_sides_with_the_same_statistics(fmt, family, java, tmp_path):
    columns = columns_of(family, fmt)
    rows = rows_of(columns, fmt, seed=len(family))
    kind = Kind(columns, ["k"], options={"bucket": "1", "file.format": fmt, "write-only": "true"})
    pairs = play(java("2.0.0"), tmp_path, kind, [("write", rows), ("write", rows[3:6])], turns=("o", "j"))
    check(pairs["o"], columns, rows, columns)
    check(pairs["j"], columns, rows, columns, padded(columns, fmt))
    same_metadata(pairs)

    pairs["o"].step("compact", options={"write-only": "false"})
    check(pairs["o"], columns, rows)


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize(
    ("version", "fmt"),
    [*(("1.4.2", fmt) for fmt in FORMATS), ("0.9.0", "orc"), *(pytest.param("0.9.0", fmt, marks=pytest.mark.full) for fmt in ("parquet", "avro"))],
)  # fmt: skip
def test_older_javas_share_every_type(version, fmt, nested, java, tmp_path):
    flat = ("numbers", "decimals", "strings", "binaries", "dates", "timestamps", "local-timestamps")
    families = ("arrays", "maps", "rows") if nested else flat
    kinds = [kind for family in families for _, kind in columns_of(family, fmt)[1:]]
    if version == "0.9.0":
        # It cannot read back digits 7 to 9 of far years nor rows in rows of Parquet, not even its own.
        kinds = [k for k in kinds if not str(k).startswith(("TIMESTAMP(7", "TIMESTAMP(8", "TIMESTAMP(9")) and k != FAMILIES["rows"][2]]
    columns = [["k", "INT NOT NULL"], *([f"v{i}", kind] for i, kind in enumerate(kinds))]
    rows = rows_of(columns, fmt, seed=9)
    pairs = play(java(version), tmp_path, Kind(columns, options={"file.format": fmt}), [("write", rows[:7]), ("write", rows[7:])], turns=("o", "j"))
    # 1.4 compares bytes as signed ones (#8237); 0.9 dies on filters of small integers and of tables with nested columns.
    bad = ("BINARY", "VARBINARY", "BYTES", "TINYINT", "SMALLINT")
    filtered = [] if nested and version == "0.9.0" else [c for c in columns if not str(c[1]).startswith(bad)]
    check(pairs["o"], columns, rows, filtered)
    check(pairs["j"], columns, rows, filtered, padded(columns, fmt))
