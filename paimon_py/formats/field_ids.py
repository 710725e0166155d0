"""The ids that Java assigns to every node of a file's schema.

A column or ROW field has its own id. Elements, keys and values have no id in the table's schema; theirs are derived
from the id of the enclosing column or ROW field and the number of containers in between.

Source: format.md §8.3; Java `SpecialFields`, `ParquetSchemaConverter`, `OrcTypeUtil`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from paimon_py.formats.reshape import map_parts
from paimon_py.spec.types import ArrayType, Atomic, DataType, Field, RowType, VectorType

_BASE = 536_870_911
_STEP = 1024

AtomicLayout = Callable[[Atomic], pa.DataType]


def identified_schema(fields: Sequence[Field], key: bytes, layout: AtomicLayout) -> pa.Schema:
    """The Arrow schema of a file: atomic types by `layout`, ids in the metadata entry `key` of every node.

    Raises:
        UnsupportedError: a type that cannot be represented in Arrow.
    """
    schema = _Schema(key, layout)
    return pa.schema([schema.field(field) for field in fields])


def element_id(owner_id: int, depth: int) -> int:
    """The id of the elements of a list, from the id of the enclosing field, and the depth of the list."""
    return _BASE + _STEP * owner_id + depth


class _Schema:
    def __init__(self, key: bytes, layout: AtomicLayout) -> None:
        self.key = key
        self.layout = layout

    def field(self, field: Field) -> pa.Field:
        return self._node(field.name, field.type, field.id, field.id, 0)

    def _node(self, name: str, kind: DataType, node_id: int, owner_id: int, depth: int) -> pa.Field:
        """`owner_id` is the id of the enclosing column or ROW field, `depth` the number of containers in between."""
        return pa.field(
            name, self._type(kind, owner_id, depth), kind.nullable, metadata={self.key: str(node_id).encode()}
        )

    def _type(self, kind: DataType, owner_id: int, depth: int) -> pa.DataType:
        if isinstance(kind, Atomic):
            return self.layout(kind)
        if isinstance(kind, RowType):
            return pa.struct([self.field(field) for field in kind.fields])
        depth += 1
        offset = _STEP * owner_id + depth
        if isinstance(kind, (ArrayType, VectorType)):
            return pa.list_(self._node("element", kind.element, _BASE + offset, owner_id, depth))
        key, value = map_parts(kind)
        return pa.map_(
            self._node("key", key, _BASE - offset, owner_id, depth).with_nullable(False),
            self._node("value", value, _BASE + offset, owner_id, depth),
        )
