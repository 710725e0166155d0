"""Manifests whose values lie in other bytes than Java's, as Avro allows, brought under Java's schema.

Lists may hold NULL where Java's hold none, or the other way round, and unions may have more branches.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.codec.avro_data import DataFileEncoder, DataFileReader, plain_schema
from paimon_py.codec.avro_shape import Shape, field_names, shape_of
from paimon_py.codec.flipped import check_names
from paimon_py.codec.manifest.schemas import MANIFEST

_RECORDS = 1024


def is_other_layout(shape: Shape, known: Shape) -> bool:
    """Whether a field that Java writes lies in other bytes: the items of a list, or the branches of a union.

    Args:
        shape: of a record, nullable or not.
        known: what Java writes.
    """
    parts = dict(zip((shape.nullable or shape).names, (shape.nullable or shape).parts, strict=True))
    return any(
        _differs(parts[name], part) for name, part in zip(known.names, known.parts, strict=True) if name in parts
    )


def under_java_schema(data: bytes, path: str, shape: Shape) -> bytes:
    """The same manifest under the schema of Java, without the fields that it does not have.

    Args:
        shape: the file's.
    Raises: CorruptionError if a value is none that Java's schema has, as a NULL among names.
    """
    check_names(field_names(shape), field_names(shape_of(MANIFEST, path)), path, 4)
    schema = _present(msgspec.json.decode(MANIFEST), shape.nullable or shape)
    reader = DataFileReader(io.BytesIO(data), path, len(data))
    records = [record for part in reader.records(plain_schema(schema), _RECORDS) for record in part]
    return DataFileEncoder(schema, "null", 1).encode(records)


def _differs(shape: Shape, known: Shape) -> bool:
    shape, known = shape.nullable or shape, known.nullable or known
    if shape.kind == "record" and known.kind == "record":
        return is_other_layout(shape, known)
    if shape.kind == "array" and known.kind == "array":
        return shape.parts != known.parts
    return shape.kind == "union"


def _present(schema: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """The schema of a record, with the fields that a file has."""
    parts = dict(zip(shape.names, shape.parts, strict=True))
    fields: Sequence[Mapping[str, Any]] = schema["fields"]
    kept = []
    for field in fields:
        kind = field["type"]
        if field["name"] in parts:
            part = parts[field["name"]].nullable or parts[field["name"]]
            inner = isinstance(kind, dict) and kind.get("type") == "record" and part.kind == "record"
            kept.append({**field, "type": _present(kind, part) if inner else kind})
    return {**schema, "fields": kept}
