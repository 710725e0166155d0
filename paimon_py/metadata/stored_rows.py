"""The rows of a data file as they are stored, given the place of the file in its table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from paimon_py.codec.partition_text import partition_directory
from paimon_py.files.places import file_path
from paimon_py.files.reader import read_file
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field


def stored_rows(
    root: TableRoot, schema: TableSchema, place: tuple[bytes, int], file: DataFile, fields: Sequence[Field]
) -> Iterator[pa.RecordBatch]:
    """See `read_file`; nothing is merged, and no row is left out. `place`: the partition and bucket of the file."""
    partition, bucket = place
    path = file_path(root.path, schema, partition_directory(schema, partition), bucket, file)
    return read_file(root.files, path, file, root.schemas.get(file.schema_id), fields)
