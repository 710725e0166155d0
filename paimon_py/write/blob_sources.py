"""BLOB sources outside the rows: paths, open files and references, read a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import SEEK_END
from typing import Any

import pyarrow as pa

from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
from paimon_py.errors import UsageError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.blobs import BlobPlace, blob_place, mentions_blobs
from paimon_py.spec.types import Field
from paimon_py.storage.refreshing_store import open_related
from paimon_py.write.listed_rows import rows_of

_CHUNK_BYTES = 32 << 20
_KEPT: dict[BlobPlace | None, type[BlobRef | BlobViewRef]] = {BlobPlace.REFERENCE: BlobRef, BlobPlace.VIEW: BlobViewRef}
"""The values that columns of references take."""


def bytes_of_sources(table: OpenTable, data: object) -> object:
    """The same rows with bytes in place of paths, open files and references, if they are mappings that contain any.

    Columns of references take `BlobRef`s unchanged, and columns of views `BlobViewRef`s.

    Memory: rows with about 32 MB of bytes at a time, or one larger row.
    Raises: while rows are read, UsageError for a file that does not return bytes; StorageError; as `rows_of`.
    """
    schema = table.schema
    places = {field.name: blob_place(schema, field) for field in schema.fields if mentions_blobs(field.type)}
    names = list(places)
    if not isinstance(data, (list, tuple)) or not data:
        return data
    if not all(isinstance(row, Mapping) for row in data):
        return data
    if not any(_has_source(row.get(name)) for row in data for name in names):
        return data
    kept = {name: _KEPT[place] for name, place in places.items() if place in _KEPT}
    return _chunks(table.root, table.schema.fields, names, kept, data)


def _chunks(
    root: TableRoot, fields: Sequence[Field], names: Sequence[str], kept: Mapping[str, type[BlobRef | BlobViewRef]],
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[pa.Table]:  # fmt: skip
    columns = list(dict.fromkeys(name for row in rows for name in row))
    held: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        found = {name: row.get(name) for name in columns}
        for name in names:
            value = found.get(name)
            if name in kept and isinstance(value, kept[name]):
                found[name] = bytes(value)
            elif name in kept and _is_source(value):
                raise UsageError(f"column {name!r} takes {kept[name].__name__}(…) or NULL, not {value!r:.100}")
            elif name in found:
                found[name] = _in_bytes(root, found[name])
                size += _size(found[name])
        held.append(found)
        if size >= _CHUNK_BYTES:
            yield rows_of(held, fields)
            held, size = [], 0
    if held:
        yield rows_of(held, fields)


def _is_source(value: object) -> bool:
    if isinstance(value, type):
        return False
    return isinstance(value, (BlobRef, BlobViewRef)) or hasattr(value, "__fspath__") or hasattr(value, "read")


def _has_source(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_is_source, value.values()))
    if isinstance(value, (list, tuple)):
        return any(_is_source(item[1] if isinstance(item, tuple) and len(item) > 1 else item) for item in value)
    return _is_source(value)


def _in_bytes(root: TableRoot, value: Any) -> Any:
    """A value, or a list or mapping of values, with sources replaced by bytes."""
    if isinstance(value, Mapping):
        return {key: _in_bytes(root, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_bytes(root, item) for item in value]
    if isinstance(value, tuple):
        return tuple(_in_bytes(root, item) for item in value)
    if isinstance(value, BlobRef):
        return _read(root, value)
    if isinstance(value, BlobViewRef):
        raise UsageError(f"{value!r:.200} is for columns that the option 'blob-view-field' lists")
    if hasattr(value, "__fspath__"):
        return _read(root, BlobRef(value.__fspath__()))
    if not _is_source(value):
        return value
    try:
        start = value.tell() if hasattr(value, "seekable") and value.seekable() else None
        data = value.read()
        if start is not None:
            value.seek(start)  # a commit that has to be tried again reads it again
    except ValueError as error:  # such as a closed file
        raise UsageError(f"a BLOB cannot be read from {value!r:.100}: {error}") from error
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise UsageError(f"a BLOB is read from files that give bytes; open {value!r:.100} with mode 'rb'")
    return bytes(data)


def _read(root: TableRoot, ref: BlobRef) -> bytes:
    """The bytes of a reference from the caller, which may refer to any location."""
    store, path = open_related(root.store, ref.uri, root.files.options, root.env)
    with store.open_read(path) as source:
        rest = source.seek(0, SEEK_END) - ref.offset
        if rest < (ref.length or 0):
            raise UsageError(f"{ref.uri} has no {ref.length or 0} bytes from {ref.offset} on")
        source.seek(ref.offset)
        data = source.read() if ref.length is None else source.read(ref.length)
    return bytes(data)


def _size(value: object) -> int:
    if isinstance(value, Mapping):
        return sum(map(_size, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(_size, value))
    return len(value) if isinstance(value, bytes) else 0
