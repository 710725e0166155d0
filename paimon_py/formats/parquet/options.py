"""Table options that configure the Parquet writer.

Options without an equivalent here (bloom filters, padding, size checks) affect only layout and are ignored.

Source: Java `RowDataParquetBuilder`, `ParquetOutputFormat`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from paimon_py.errors import OptionError, UnsupportedError
from paimon_py.formats.base import DEFAULT_BLOCK_BYTES, WriteSettings, flag_option, number_option
from paimon_py.formats.parquet.schema import LeafColumn, has_footer_bounds

_CODECS = {
    "none": "NONE",
    "uncompressed": "NONE",
    "snappy": "SNAPPY",
    "gzip": "GZIP",
    "lz4": "LZ4",
    "lz4_raw": "LZ4",
    "zstd": "ZSTD",
}
_UNREADABLE = ("brotli", "lzo")
_DICTIONARY = "parquet.enable.dictionary"
_TIME_FLAG = "write_time_adjusted_to_utc"


def codec_of(settings: WriteSettings) -> str:
    """pyarrow's name of the codec; `parquet.compression` takes precedence over `file.compression`.

    Raises:
        UnsupportedError: a codec that Java cannot read.
        OptionError: not a Parquet codec.
    """
    option = "parquet.compression" if "parquet.compression" in settings.options else "file.compression"
    name = settings.options.get("parquet.compression", settings.compression)
    word = name.strip().lower()
    if word in _CODECS:
        return _CODECS[word]
    if word in _UNREADABLE:
        raise UnsupportedError(f"Parquet files with {word} cannot be read by Paimon", feature=f"{option}={word}")
    raise OptionError(f"{name!r} is not a codec of Parquet; allowed: {', '.join(_CODECS)}", option=option, value=name)


def block_bytes(settings: WriteSettings) -> int:
    """The maximum size of a row group."""
    return settings.block_size_bytes or number_option(settings.options, "parquet.block.size", DEFAULT_BLOCK_BYTES)


def chosen_dictionaries(
    options: Mapping[str, str], leaves: Sequence[LeafColumn], estimated: Sequence[LeafColumn]
) -> list[str]:
    """Columns with a dictionary: by `parquet.enable.dictionary[#column]`, else the estimate."""
    wanted = set(estimated)
    default = options.get(_DICTIONARY)
    if default is not None and not flag_option(options, _DICTIONARY, default=True):
        wanted = set()
    for leaf in leaves:
        name = f"{_DICTIONARY}#{leaf.dotted_path}"
        if name in options:
            (wanted.add if flag_option(options, name, default=True) else wanted.discard)(leaf)
    return [leaf.dotted_path for leaf in leaves if leaf in wanted]


def writer_arguments(settings: WriteSettings, leaves: Sequence[LeafColumn]) -> dict[str, Any]:
    """Arguments of `pq.ParquetWriter`, except for dictionaries.

    DELTA and BYTE_STREAM_SPLIT encodings and version 2 pages are never written: some Java releases misread them.
    """
    codec = codec_of(settings)
    options = settings.options
    unbounded = {leaf.dotted_path for leaf in leaves if not has_footer_bounds(leaf.type)}
    arguments: dict[str, Any] = {
        "compression": codec,
        "store_schema": False,
        "store_decimal_as_integer": True,
        "data_page_version": "1.0",
        "version": "2.6",
        "write_page_checksum": True,
        "write_statistics": [leaf.dotted_path for leaf in leaves if leaf.dotted_path not in unbounded],
        "data_page_size": number_option(options, "parquet.page.size", 1 << 20),
        "dictionary_pagesize_limit": number_option(options, "parquet.dictionary.page.size", 1 << 20),
    }
    if codec == "ZSTD":
        level = "parquet.compression.codec.zstd.level"
        arguments["compression_level"] = number_option(options, level, settings.zstd_level)
    if _TIME_FLAG in (pq.ParquetWriter.__doc__ or ""):
        arguments[_TIME_FLAG] = True
    return arguments
