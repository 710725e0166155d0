"""Finds the format for a name or a file.

Source: format.md §1.1; Java `FileFormat.fromIdentifier`.
"""

from __future__ import annotations

import functools

from paimon_py.errors import CorruptionError, OptionError, UnsupportedError
from paimon_py.formats.base import FileFormat
from paimon_py.formats.parquet.format import ParquetFormat

_NAMES = ("parquet", "orc", "avro", "row", "json", "text", "vortex", "lance", "mosaic")
_OTHERS = frozenset({"csv", "blob"})
_STREAM_CODECS = frozenset({"gz", "deflate", "zst", "bz2", "snappy", "lz4", "lzo"})
"""Last extensions of files of lines that are compressed as a whole."""


def format_of(name: str) -> FileFormat:
    """The format with the id `name`, in any case.

    Raises:
        UnsupportedError: a format of Paimon that is not supported here.
        OptionError: not a format.
    """
    word = name.strip().lower()
    if word in _NAMES:
        return _format(word)
    if word in _OTHERS:
        raise UnsupportedError(f"data files of format {word} are not supported", feature=f"file.format={word}")
    allowed = ", ".join(_NAMES)
    raise OptionError(f"{name!r} is not a file format; allowed are {allowed}", option="file.format", value=name)


def by_extension(file_name: str) -> FileFormat:
    """The format of an existing data file, by its extension, not by a table option.

    Raises:
        UnsupportedError: a format of Paimon that is not supported here.
        CorruptionError: the name has no known extension.
    """
    word = file_name.rpartition(".")[2]
    if word in _STREAM_CODECS:
        word = file_name.split(".")[-2]
    try:
        return format_of(word)
    except OptionError as error:
        raise CorruptionError(f"{file_name} has no extension of a known format", path=file_name) from error


@functools.cache
def _format(word: str) -> FileFormat:
    if word == "parquet":
        return ParquetFormat()
    if word == "orc":
        from paimon_py.formats.orc.format import OrcFormat

        return OrcFormat()
    if word == "row":
        from paimon_py.formats.row.format import RowFormat

        return RowFormat()
    if word in ("json", "text"):
        from paimon_py.formats.lines.format import LinesFormat

        return LinesFormat(word)
    if word == "vortex":
        from paimon_py.formats.packaged.vortex import VortexFormat

        return VortexFormat()
    if word == "lance":
        from paimon_py.formats.packaged.lance import LanceFormat

        return LanceFormat()
    if word == "mosaic":
        from paimon_py.formats.packaged.mosaic import MosaicFormat

        return MosaicFormat()
    from paimon_py.formats.avro.format import AvroFormat

    return AvroFormat()
