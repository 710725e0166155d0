"""Formats partitions, keys and bounds like Java's system tables.

Source: Java `RowToStringCastRule`, `Arrays.toString`, `FilesTable`, release 2.0; time zone UTC.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.binary_row import decode
from paimon_py.codec.columns import text_array
from paimon_py.codec.partition_text import partition_texts
from paimon_py.files.casts.cast import cast
from paimon_py.spec.layout import is_blank
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import STRING, Atomic, DataType, Field, Root

_BYTES = frozenset({Root.BINARY, Root.VARBINARY})
_NULL = "null"


def partition_row_texts(rows: pa.Array, schema: TableSchema) -> pa.Array:
    """`{2024-01-01, x}` of serialized partitions; null for values that are not partitions of this schema."""
    fields = schema.partition_fields
    arity = len(fields).to_bytes(4, "big")
    fits = pc.fill_null(pc.starts_with(rows, arity), False)
    columns = decode(rows.filter(fits), [field.type for field in fields])
    texts = [pc.fill_null(cast(column, field.type, STRING), _NULL) for column, field in _pairs(columns, fields)]
    found = _enclose("{", texts, "}", pc.sum(fits).as_py() or 0)
    return found if len(found) == len(rows) else pc.replace_with_mask(pa.nulls(len(rows), pa.string()), fits, found)


def partition_names(rows: pa.Array, schema: TableSchema, *, directory: bool) -> pa.Array:
    """`p=2024-01-01/q=x` of serialized partitions; with `directory` as in their directories, not escaped."""
    fields, options = schema.partition_fields, Options(schema.options)
    legacy, absent = options.get_bool("partition.legacy-name"), options.get_str("partition.default-name")
    texts = []
    for column, field in _pairs(decode(rows, [field.type for field in fields]), fields):
        words = partition_texts(column, field.type, legacy=legacy) if directory else cast(column, field.type, STRING)
        texts.append(pc.binary_join_element_wise(f"{field.name}=", _or_default(words, absent), ""))
    return pc.binary_join_element_wise(*texts, "/") if texts else text_array([""] * len(rows))


def _or_default(texts: pa.Array, absent: str) -> pa.Array:
    """The texts, with `absent` in place of null and blank ones."""
    distinct = texts.dictionary_encode()
    shown = text_array([absent if is_blank(text) else text for text in distinct.dictionary.to_pylist()])
    return pc.fill_null(shown.take(distinct.indices), absent)


def value_texts(column: pa.Array, kind: DataType) -> pa.Array:
    """Values as Java stores them: a DATE as days, a TIMESTAMP as ISO text; `null` for null.

    Bytes are hexadecimal digits; Java prints their memory address.
    """
    if column.null_count == len(column):
        return pa.array([_NULL], pa.string()).take(pa.array([0] * len(column), pa.int64()))
    if not isinstance(kind, Atomic):
        return pc.fill_null(cast(column, kind, STRING), _NULL)
    if kind.root in _BYTES:
        distinct = column.dictionary_encode()
        texts = text_array([value.hex() for value in distinct.dictionary.to_pylist()]).take(distinct.indices)
    else:
        texts = partition_texts(column, kind, legacy=True)
    return pc.fill_null(texts, _NULL)


def key_texts(columns: Sequence[pa.Array], fields: Sequence[Field]) -> pa.Array:
    """`[1, a]` of the columns of a key, of at least one column."""
    texts = [value_texts(column, field.type) for column, field in _pairs(columns, fields)]
    return _enclose("[", texts, "]", len(columns[0]))


def named_texts(texts: dict[str, pa.Array], count: int) -> pa.Array:
    """`{a=1, b=null}` of texts by column, in the order of the columns' names."""
    parts = [pc.binary_join_element_wise(f"{name}=", texts[name], "") for name in sorted(texts)]
    return _enclose("{", parts, "}", count)


def _enclose(opening: str, texts: Sequence[pa.Array], closing: str, count: int) -> pa.Array:
    if not texts:
        return text_array([opening + closing] * count)
    return pc.binary_join_element_wise(opening, pc.binary_join_element_wise(*texts, ", "), closing, "")


def _pairs(columns: Sequence[pa.Array], fields: Sequence[Field]) -> list[tuple[pa.Array, Field]]:
    return list(zip(columns, fields, strict=True))
