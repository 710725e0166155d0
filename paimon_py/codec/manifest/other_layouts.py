"""Converts manifests with a different Avro encoding from Java's to Java's schema.

List items may be nullable where Java's are not, or the other way round, and unions may have more branches.
"""

from __future__ import annotations

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.avro.container import Header, header_bytes, inflater, read_blocks, write_container
from paimon_py.codec.avro.shape import Shape, encode, field_names, least_bytes, read_records, shape_of
from paimon_py.codec.damaged_names import check_names
from paimon_py.codec.manifest.schemas import MANIFEST


def is_other_layout(shape: Shape, known: Shape) -> bool:
    """Whether a field that Java writes is encoded differently: the items of a list, or the branches of a union.

    Args:
        shape: the shape of a record, nullable or not.
        known: the shape that Java writes.
    """
    parts = dict(zip((shape.nullable or shape).names, (shape.nullable or shape).parts, strict=True))
    return any(
        _differs(parts[name], part) for name, part in zip(known.names, known.parts, strict=True) if name in parts
    )


def under_java_schema(data: bytes, path: str, header: Header) -> bytes:
    """Convert a manifest to Java's schema: unknown fields are dropped, missing ones are NULL.

    Raises: CorruptionError if it is damaged, or a value is invalid in Java's schema, such as a NULL among names.
    """
    shape, known = shape_of(header.schema, path), shape_of(MANIFEST, path)
    check_names(field_names(shape), field_names(known), path, 4)
    blocks = []
    for block in read_blocks(data, header, path, inflater(header.codec, path), least_bytes(shape)):
        with decoding_metadata(path):
            records = [encode(known, record) for record in read_records(block.payload, block.records, shape)]
            blocks.append((len(records), b"".join(records)))
    return write_container(header_bytes(MANIFEST, "null"), blocks)


def _differs(shape: Shape, known: Shape) -> bool:
    shape, known = shape.nullable or shape, known.nullable or known
    if shape.kind == "record" and known.kind == "record":
        return is_other_layout(shape, known)
    if shape.kind == "array" and known.kind == "array":
        return shape.parts != known.parts
    return shape.kind == "union"
