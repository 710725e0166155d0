"""Finds files whose rows cannot be read, although their footers can, and the columns at fault.

An import by reference reads footers only, so that the first reader of the table would meet such damage.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon_py.errors import CorruptionError, SchemaError, UnsupportedError
from paimon_py.formats.base import decoding
from paimon_py.imports.source_files import SourceFile
from paimon_py.write.intact import check_values

_FAULTS = (CorruptionError, SchemaError, UnsupportedError)


def damage_of(file: SourceFile) -> str | None:
    """Why the rows of a file cannot be read, with the column at fault; None if all can.

    Cost: decodes all values.
    """
    names = [field.name for field in file.fields]
    whole = _fault_of(file, names)
    return None if whole is None else f"damaged: {faulty_column(file) or whole}"


def faulty_column(file: SourceFile) -> str | None:
    """The first column that cannot be read by itself, with the reason; None if each can. Cost: decodes all values."""
    for field in file.fields:
        fault = _fault_of(file, [field.name])
        if fault is not None:
            return f"column {field.name!r}: {fault}"
    return None


def _fault_of(file: SourceFile, names: Sequence[str]) -> str | None:
    try:
        with decoding(file.path):
            for batch in file.batches(names):
                for column in batch.columns:
                    check_values(column)
    except _FAULTS as error:
        return str(error).removeprefix(f"{file.path} is damaged: ")
    return None
