"""Which format a name or a file belongs to.

Source: format.md §1.1; Java `FileFormat.fromIdentifier`.
"""

from __future__ import annotations

from paimon_py.errors import CorruptionError, OptionError, UnsupportedError
from paimon_py.formats.avro import AvroFormat
from paimon_py.formats.base import FileFormat
from paimon_py.formats.orc import OrcFormat
from paimon_py.formats.parquet import ParquetFormat

_FORMATS: dict[str, FileFormat] = {
    "parquet": ParquetFormat(),
    "orc": OrcFormat(),
    "avro": AvroFormat(),
}
_OTHERS = frozenset({"csv", "json", "text", "lance", "blob", "row", "mosaic", "vortex"})


def format_of(name: str) -> FileFormat:
    """The format with the id `name`, in any case.

    Raises:
        UnsupportedError: a format of Paimon that is not offered here.
        OptionError: not a format at all.
    """
    word = name.strip().lower()
    found = _FORMATS.get(word)
    if found is not None:
        return found
    if word in _OTHERS:
        raise UnsupportedError(f"data files of format {word} are not supported", feature=f"file.format={word}")
    allowed = ", ".join(_FORMATS)
    raise OptionError(f"{name!r} is not a file format; allowed are {allowed}", option="file.format", value=name)


def by_extension(file_name: str) -> FileFormat:
    """The format of an existing data file: the text after the last dot decides, not a table option.

    Raises:
        UnsupportedError: a format of Paimon that is not offered here.
        CorruptionError: the name has no known extension.
    """
    word = file_name.rpartition(".")[2]
    try:
        return format_of(word)
    except OptionError as error:
        raise CorruptionError(f"{file_name} has no extension of a known format", path=file_name) from error
