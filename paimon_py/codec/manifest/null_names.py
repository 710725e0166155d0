"""Manifests whose lists of names may hold NULL by their schema, as Avro allows, brought under Java's schema."""

from __future__ import annotations

import io

import msgspec

from paimon_py.codec.avro_data import DataFileEncoder, DataFileReader, plain_schema
from paimon_py.codec.manifest.schemas import MANIFEST

_RECORDS = 1024


def without_null_names(data: bytes, path: str) -> bytes:
    """The same manifest under the schema of Java, which has every name as a text.

    Raises: CorruptionError if a name is NULL.
    """
    schema = msgspec.json.decode(MANIFEST)
    reader = DataFileReader(io.BytesIO(data), path, len(data))
    records = [record for part in reader.records(plain_schema(schema), _RECORDS) for record in part]
    return DataFileEncoder(schema, "null", 1).encode(records)
