"""Finds INT96 columns with times that no 64-bit number of nanoseconds holds, before a file with them is imported.

Spark, Hive and Impala write INT96 for all times, so that a file may contain the year 9999. A table would keep such a
column as TIMESTAMP(9), whose values nothing could read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from paimon_py.errors import UnsupportedError
from paimon_py.formats.base import decoding
from paimon_py.formats.parquet.footer import MAGIC, int96_to_fixed, read_footer, tail
from paimon_py.formats.parquet.int96 import NANOS_FEATURE, is_finer_than_micros
from paimon_py.imports.result import UnfitFile
from paimon_py.imports.source_files import SourceFile
from paimon_py.spec.types import Atomic

_MICROS = 6


def check_times(file: SourceFile) -> SourceFile | UnfitFile:
    """The file; with columns of TIMESTAMP(6), that are only copied, in place of INT96 columns beyond nanoseconds.

    Cost: decodes the INT96 columns, whose footers do not say what they contain.
    Raises: CorruptionError for a damaged file.
    """
    far = [name for name in file.int96 if _is_far(file, name)]
    if not far:
        return file
    problem = f"column {far[0]!r} contains INT96 times outside the years 1677 to 2262"
    kinds = {field.name: field.type for field in file.fields}
    if not all(isinstance(kinds[name], Atomic) for name in far) or _is_finer(file, far):
        return UnfitFile(file.path, f"{problem}, which are nested or finer than microseconds: no type keeps them")
    fields = tuple(
        msgspec.structs.replace(field, type=msgspec.structs.replace(field.type, precision=_MICROS))
        if field.name in far and isinstance(field.type, Atomic)
        else field
        for field in file.fields
    )
    return msgspec.structs.replace(file, fields=fields, only_copied=f"{problem}; copy=True keeps them as TIMESTAMP(6)")


def _is_far(file: SourceFile, name: str) -> bool:
    try:
        for _ in file.batches([name]):
            pass
    except UnsupportedError as error:
        if error.feature != NANOS_FEATURE:
            raise
        return True
    return False


def _is_finer(file: SourceFile, names: Sequence[str]) -> bool:
    with file.store.open_read(file.path) as source, decoding(file.path):
        metadata = pq.read_metadata(pa.BufferReader(MAGIC + tail(int96_to_fixed(read_footer(source)))))
        batches = pq.ParquetFile(source, metadata=metadata, pre_buffer=False).iter_batches(columns=list(names))
        return any(is_finer_than_micros(column) for batch in batches for column in batch.columns)
