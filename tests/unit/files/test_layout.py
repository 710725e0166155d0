"""Layouts of files: what options of a table say together, and what becomes of them where ORC cannot hold a time."""

from __future__ import annotations

import pytest
from unit.files.build import schema

from paimon_py.errors import UnsupportedError
from paimon_py.files.layout import changelog_layout, file_layout, vector_layout, whole_layout, write_again
from paimon_py.formats.base import LAST_SECOND_FEATURE, YEARS_FEATURE
from paimon_py.spec.data_file import FileSource

FORMATS = [
    {"file.format": "orc"}, {"file.format": "ORC"}, {"file.format.per.level": "0:orc,5:ORC"}, {"file.format.per.level": "5:orc"},
    {"changelog-file.format": "Orc"}, {"file.format": "avro", "file.format.per.level": "1:orc,2:parquet", "changelog-file.format": "orc"},
]  # fmt: skip
COMPRESSIONS = [
    {}, {"file.compression": "zlib"}, {"file.compression": "ZLIB"}, {"file.compression.per.level": "0:zlib,5:Zlib"},
    {"changelog-file.compression": "zlib"}, {"file.compression": "snappy", "changelog-file.compression": "ZLIB"},
]  # fmt: skip


def layouts(made):
    return [layout(made, level=level) for layout in (file_layout, changelog_layout) for level in range(6)]


@pytest.mark.parametrize("formats", FORMATS)
@pytest.mark.parametrize("compressions", COMPRESSIONS)
@pytest.mark.parametrize("feature", [LAST_SECOND_FEATURE, YEARS_FEATURE])
def test_rows_that_orc_cannot_hold_are_written_to_other_files_with_the_same_options(formats, compressions, feature):
    made = schema((0, "k", "INT NOT NULL"), (1, "v", "TIMESTAMP(9)"), keys=["k"], options={**formats, **compressions})
    was = layouts(made)
    asked = []

    def write(given):
        asked.append(given)
        found = layouts(given)
        if any(layout.format_name == "orc" for layout in found):
            raise UnsupportedError("a time", feature=feature)
        return found

    found = write_again(made, write)
    assert asked[0] is made and len(asked) == 2
    for before, after in zip(was, found, strict=True):
        assert after.encoder is not None  # the format takes its settings
        orc = before.format_name == "orc"
        assert after.format_name == ("parquet" if orc else before.format_name)
        assert after.fields == before.fields and after.modes == before.modes and after.target_size_bytes == before.target_size_bytes
        if before.settings.compression.lower() != "zlib":
            assert after.settings.compression == before.settings.compression


def test_other_failures_are_not_repeated():
    made, calls = schema((0, "k", "INT"), options={"file.format": "orc"}), []

    def write(given):
        calls.append(given)
        raise UnsupportedError("no", feature="something else")

    with pytest.raises(UnsupportedError, match="no"):
        write_again(made, write)
    assert calls == [made]


def evolving(**options):
    named = {name.replace("__", "-").replace("_", "."): text for name, text in options.items()}
    whole = {"row-tracking.enabled": "true", "data-evolution.enabled": "true", "vector.file.format": "parquet", **named}
    return schema((0, "k", "INT"), (1, "a", "VECTOR<FLOAT, 2>"), (2, "b", "VECTOR<FLOAT, 2>"), (3, "s", "STRING"), options=whole)


@pytest.mark.parametrize(("options", "rows", "vectors"), [
    ({}, 256 << 20, 2560 << 20), ({"target-file-size": "1 mb"}, 1 << 20, 10 << 20),
    ({"target-file-size": "1 mb", "vector.target-file-size": "3 mb"}, 1 << 20, 3 << 20),
])  # fmt: skip
def test_files_of_vectors_are_ten_times_as_large(options, rows, vectors):
    made = evolving(**{"file-index.bloom-filter.columns": "s", "target-file-row-num": "7"}, **options)
    layout = file_layout(made)
    assert (layout.target_size_bytes, layout.target_rows) == (rows, 7)
    assert layout.is_part and not layout.is_vectors and [field.name for field in layout.fields] == ["k", "s"]
    found = layout.vectors
    assert found == vector_layout(made) and found.is_vectors and found.is_part and found.indexes == ()
    assert found.target_size_bytes == vectors and found.target_rows > 1 << 60
    assert [field.name for field in found.fields] == ["a", "b"]
    some = vector_layout(made, columns={"b", "s"})
    assert [field.name for field in some.fields] == ["b"] and min(some.target_size_bytes, some.target_rows) > 1 << 60


@pytest.mark.parametrize("columns", [None, {"k"}, {"s"}, {"k", "s"}, {"s", "a"}])
@pytest.mark.parametrize("inline", [(), ("a",), ("a", "b")])
def test_rewritten_files_have_no_limit_and_only_indexes_of_their_columns(columns, inline):
    made = evolving(**{"file-index.bloom-filter.columns": "s,k", "target-file-size": "1 mb", "target-file-row-num": "7"})
    found = whole_layout(made, source=FileSource.COMPACT, columns=columns, inline=inline)
    names = [name for name in ("k", "a", "b", "s") if (columns is None or name in columns) and (name in "ks" or name in inline)]
    assert [field.name for field in found.fields] == names
    assert [index.column for index in found.indexes] == [name for name in ("s", "k") if name in names]
    assert min(found.target_size_bytes, found.target_rows) > 1 << 60 and found.vectors is None and found.apart == ()
    assert found.is_part == (columns is not None or set(inline) != {"a", "b"})


@pytest.mark.parametrize("thin", ["true", "false"])
@pytest.mark.parametrize(("options", "kinds"), [
    ({}, ["truncate", "truncate", "truncate"]), ({"metadata.stats-mode": "none"}, ["none"] * 3),
    ({"metadata.stats-mode": "none", "fields.k.stats-mode": "full"}, ["full", "none", "none"]),
    ({"fields.k.stats-mode": "none", "fields.v.stats-mode": "counts"}, ["none", "truncate", "counts"]),
    ({"metadata.stats-mode": "counts"}, ["counts"] * 3),
])  # fmt: skip
@pytest.mark.parametrize("layout_of", [file_layout, changelog_layout])
def test_statistics_of_keys_in_thin_files_are_those_of_the_copies_of_keys(thin, options, kinds, layout_of):
    columns = ((0, "k", "INT NOT NULL"), (1, "l", "INT NOT NULL"), (2, "v", "INT"))
    found = layout_of(schema(*columns, keys=["k", "l"], options={"data-file.thin-mode": thin, **options}))
    wanted = dict(zip(("k", "l", "v"), kinds, strict=True))
    if thin == "true":
        wanted |= {name: found.key_mode.kind for name in "kl" if f"fields.{name}.stats-mode" not in options}
    assert {field.name: mode.kind for field, mode in zip(found.fields, found.modes, strict=True)} == wanted
    assert {name for name in found.settings.without_stats if not name.startswith("_")} == {name for name, kind in wanted.items() if kind == "none"}
    assert {"_SEQUENCE_NUMBER", "_VALUE_KIND"} <= found.settings.without_stats
    assert ("_KEY_k" in [field.name for field in found.file_fields]) == (thin == "false")


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 3])
def test_changelogs_are_limited_by_size_alone(number):
    made = schema((0, "k", "INT NOT NULL"), (1, "v", "INT"), keys=["k"], options={
        "target-file-row-num": str(number), "target-file-size": "1 mb", "file-index.bloom-filter.columns": "v", "changelog-file.stats-mode": "none",
    })  # fmt: skip
    rows, changes = file_layout(made), changelog_layout(made)
    assert rows.target_rows == max(1, number) and changes.target_rows > 1 << 60
    assert rows.target_size_bytes == changes.target_size_bytes == 1 << 20
    assert (len(rows.indexes), changes.indexes) == (1, ()) and (rows.is_changelog, changes.is_changelog) == (False, True)
    assert {mode.kind for mode in changes.modes} == {"none"} != {mode.kind for mode in rows.modes}
