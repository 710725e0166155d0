"""Codecs that a format does not have are refused when a table is made or altered, not when a row is written."""

from __future__ import annotations

import pytest

from paimon_py import Catalog, OptionError, Schema, SetOption, UnsupportedError

COLUMNS = Schema({"k": "INT NOT NULL", "v": "ARRAY<STRING>"})


@pytest.fixture
def catalog(tmp_path):
    catalog = Catalog.open(tmp_path)
    catalog.create_database("d")
    return catalog


@pytest.mark.parametrize(
    "options",
    [
        {"file.compression": "nonsense"},
        {"file.compression": "gzip", "file.format": "orc"},
        {"file.compression.per.level": "0:zstd,5:nonsense"},
        {"file.compression": "zlib", "file.format": "orc", "file.format.per.level": "0:avro"},
        {"changelog-file.compression": "bzip9"},
        {"changelog-file.compression": "zstd", "file.compression": "snapy"},
        {"avro.codec": "nonsense", "file.format": "avro"},
        {"orc.compress": "nonsense", "file.format": "orc"},
        {"manifest.compression": "nonsense"},
        {"manifest.compression": "nonsense", "manifest.format": "orc"},
    ],
    ids=str,
)
def test_a_table_is_not_made_and_not_altered(catalog, options):
    said = "not a codec of|not supported for Avro metadata"
    with pytest.raises((OptionError, UnsupportedError), match=said):
        catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1", **options})
    assert catalog.tables("d") == []
    table = catalog.create_table("d.t", COLUMNS, primary_key=["k"], options={"bucket": "1"})
    with pytest.raises((OptionError, UnsupportedError), match=said):
        table.alter(*[SetOption(name, text) for name, text in options.items()])
    assert table.refresh().options == {"bucket": "1"}


@pytest.mark.parametrize("options", [{"file.compression": "lzo"}, {"file.compression": "none"}, {"file.compression.per.level": "0:lz4,1:zstd"}, {"manifest.compression": "snappy"}])
def test_codecs_of_other_writers_and_our_own_are_taken(catalog, options):
    assert catalog.create_table("d.t", COLUMNS, options=options).options.items() >= options.items()
