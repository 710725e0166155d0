"""The columns that hold BLOBs, and where their bytes are stored. Pure.

Source: format.md §26; Java `BlobType`, `CoreOptions.blobField`, `SchemaValidation`.
"""

from __future__ import annotations

import enum

from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import contains
from paimon_py.spec.types import ArrayType, Atomic, DataType, Field, MapType, Root

BLOB_KEYS = frozenset((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.CHAR, Root.VARCHAR))
"""The allowed key types of a MAP of BLOBs."""

PACK_SUFFIX = ".managed.blob"
"""The end of the names of packs."""

REFERENCES_SUFFIX = ".blobref"
"""The end of the name of an extra file that lists the packs of a data file."""

PACKING_ENGINES = ("deduplicate", "partial-update", "first-row")
"""The merge engines of primary-key tables with BLOBs."""

AS_DESCRIPTOR = "blob-as-descriptor"
"""The option of readers that return references instead of bytes."""


class BlobPlace(enum.Enum):
    """The location of the bytes of a column: in separate files, in packs next to the files of a primary-key table, at
    the place that a reference in the rows names, or in a column of another table.

    Rows contain references to the bytes in packs, too.
    """

    OWN_FILES = "own files"
    PACK = "pack"
    REFERENCE = "reference"
    VIEW = "view"


def is_blob(kind: DataType) -> bool:
    """Whether a type is BLOB itself."""
    return isinstance(kind, Atomic) and kind.root is Root.BLOB


def holds_blobs(kind: DataType) -> bool:
    """Whether a column of a type holds BLOBs in a supported form: BLOB, ARRAY of BLOB, or MAP to BLOB."""
    if isinstance(kind, ArrayType):
        return is_blob(kind.element)
    if isinstance(kind, MapType):
        return is_blob(kind.value) and isinstance(kind.key, Atomic) and kind.key.root in BLOB_KEYS
    return is_blob(kind)


def mentions_blobs(kind: DataType) -> bool:
    """Whether BLOB occurs anywhere in a type."""
    return contains(kind, is_blob)


def blob_place(schema: TableSchema, field: Field) -> BlobPlace | None:
    """The location of the bytes of a column; None if it holds no BLOBs."""
    if not holds_blobs(field.type):
        return None
    options = Options(schema.options)
    if field.name in options.get_list("blob-view-field"):
        return BlobPlace.VIEW
    if field.name in options.get_list("blob-descriptor-field"):
        return BlobPlace.REFERENCE
    return BlobPlace.PACK if schema.primary_keys else BlobPlace.OWN_FILES


def fields_apart(schema: TableSchema) -> tuple[Field, ...]:
    """The columns whose bytes are stored in separate `.blob` files."""
    return tuple(field for field in schema.fields if blob_place(schema, field) is BlobPlace.OWN_FILES)


def packed_fields(schema: TableSchema) -> tuple[Field, ...]:
    """The columns whose bytes are stored in packs."""
    return tuple(field for field in schema.fields if blob_place(schema, field) is BlobPlace.PACK)
