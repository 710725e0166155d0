"""Files of lines: damage is named, memory stays bounded, and what Java cannot read back is refused."""

from __future__ import annotations

import gzip
import io
import zlib

import pytest

from paimon_py import CorruptionError, OptionError, UnsupportedError
from paimon_py.files.variant_parts import cast_array
from paimon_py.formats.base import ReadSettings
from paimon_py.formats.registry import by_extension
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

COLUMNS = {"a": "INT", "b": "STRING"}


def read(name: str, data: bytes, columns: dict[str, str] = COLUMNS, delimiter: str = "\n", rows: int = 1000) -> list[dict]:
    fields = tuple(Field(at, each, parse_type(kind)) for at, (each, kind) in enumerate(columns.items()))
    settings = ReadSettings(stored=fields, cast=cast_array, line_delimiter=delimiter)
    opened = by_extension(name).open(io.BytesIO(data), name, fields, len(data), settings)
    found, place = [], 0
    for position, batch in opened.positioned_batches(list(columns), batch_rows=rows):
        assert position == place
        place += batch.num_rows
        found += batch.to_pylist()
    return found


def test_a_row_is_a_line():
    data = b'{"a":"1","b":"x\\ny"}|{"b":null}|{"a":-2,"b":""}'
    want = [{"a": 1, "b": "x\ny"}, {"a": None, "b": None}, {"a": -2, "b": ""}]
    assert read("f.json", data, delimiter="|") == read("f.json", data + b"|", delimiter="|", rows=1) == want


@pytest.mark.parametrize("pack, ending", [(gzip.compress, "gz"), (zlib.compress, "deflate")])
def test_a_file_is_unpacked_bit_by_bit(pack, ending):
    data = b"".join(b'{"a":"%d","b":"%s"}\n' % (number, b"x" * 300) for number in range(20_000))
    found = read(f"f.json.{ending}", pack(data))
    assert [row["a"] for row in found] == list(range(20_000))
    for damaged in (pack(data)[:-9], pack(data) + b"more", b"no" + pack(data)):
        with pytest.raises(CorruptionError, match="unpacked|compressed data"):
            read(f"f.json.{ending}", damaged)


@pytest.mark.parametrize("line", [b"", b"[1]", b"{", b'{"a":"x"}', b'{"a":[1]}', b'{"b":{}}', b'{"a":"99999999999"}', b"\xff"])
def test_a_damaged_line_is_named(line):
    with pytest.raises(CorruptionError, match=r"f\.json"):
        read("f.json", b'{"a":"1"}\n' + line + b"\n")


def test_texts_are_one_column_of_strings():
    assert read("f.text", "ü\n\nlast".encode(), {"t": "STRING"}) == [{"t": "ü"}, {"t": ""}, {"t": "last"}]
    for columns in (COLUMNS, {"t": "INT"}, {"t": "ARRAY<STRING>"}):
        with pytest.raises(UnsupportedError, match="one column of strings"):
            read("f.text", b"x", columns)
    with pytest.raises(OptionError, match=r"text\.line-delimiter"):
        read("f.text", b"x", {"t": "STRING"}, delimiter="")


@pytest.mark.parametrize("ending", ["zst", "bz2", "snappy", "lz4"])
def test_other_codecs_are_refused(ending):
    with pytest.raises(UnsupportedError, match=ending):
        read(f"f.json.{ending}", b"")


def test_no_columns_are_rows_all_the_same():
    opened = by_extension("f.json").open(io.BytesIO(b"{}\n{}\n"), "f.json", (), 6, ReadSettings(cast=cast_array))
    assert sum(batch.num_rows for _, batch in opened.positioned_batches([], batch_rows=10)) == 2
