"""Where the files of a split lie."""

from __future__ import annotations

from paimon_py.codec.binary_row import decode
from paimon_py.codec.partition_text import partition_texts
from paimon_py.spec.layout import partition_path
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


def partition_directory(schema: TableSchema, partition: bytes) -> str:
    """The directory of a partition (a serialized BinaryRow) below the table; "" without partition keys."""
    fields = schema.partition_fields
    if not fields:
        return ""
    options = Options(schema.options)
    legacy = options.get_bool("partition.legacy-name")
    columns = decode([partition], [field.type for field in fields])
    texts = [
        partition_texts(column, field.type, legacy=legacy)[0].as_py()
        for column, field in zip(columns, fields, strict=True)
    ]
    return partition_path(schema.partition_keys, texts, options.get_str("partition.default-name"))
