"""The vectors that are stored in files of their own. Pure.

Source: format.md §8.8, §26; Java `VectorStoreUtils`.
"""

from __future__ import annotations

from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.types import Field, VectorType

VECTOR_FORMAT = "vector.file.format"
"""The option of tables whose vectors are stored in separate files: their format."""


def vectors_apart(schema: TableSchema) -> tuple[Field, ...]:
    """The columns of vectors that new rows store in separate files, all of a row in the same one."""
    options = Options(schema.options)
    if not options.find_str(VECTOR_FORMAT) or not options.get_bool("data-evolution.enabled"):
        return ()
    return tuple(field for field in schema.fields if isinstance(field.type, VectorType))
