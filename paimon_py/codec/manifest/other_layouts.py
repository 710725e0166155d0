"""Manifests whose values lie in other bytes than Java's, as Avro allows, brought under Java's schema.

Lists may hold NULL where Java's hold none, or the other way round, and unions may have more branches.
"""

from __future__ import annotations

from paimon_py.arguments import decoding_metadata
from paimon_py.codec.avro.container import Header, header_bytes, inflater, read_blocks, write_container
from paimon_py.codec.avro.shape import Shape, encode, field_names, least_bytes, read_records, shape_of
from paimon_py.codec.flipped import check_names
from paimon_py.codec.manifest.schemas import MANIFEST


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


def under_java_schema(data: bytes, path: str, header: Header) -> bytes:
    """The same manifest under the schema of Java: fields that it does not have are left out, missing ones are NULL.

    Raises: CorruptionError if it is broken, or a value is none that Java's schema has, as a NULL among names.
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
