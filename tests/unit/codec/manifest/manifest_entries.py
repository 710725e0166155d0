"""Manifest entries for tests, and the same entries as fastavro reads them."""

from __future__ import annotations

import datetime
import io
import random
import struct

import fastavro

from paimon_py.errors import CorruptionError
from paimon_py.spec.data_file import EMPTY_ROW, DataFile, FileKind, FileSource, ManifestEntry, Stats, identifier

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def fold(entries):
    """Reduce entries, in order, to the ADDs that live and the DELETEs that met no ADD.

    Raises:
        CorruptionError: a file is added twice.
    """
    alive = {}
    for entry in entries:
        key = identifier(entry)
        if entry.kind is FileKind.ADD:
            if key in alive:
                raise CorruptionError(f"file {entry.file.name} is added twice", path=entry.file.name)
            alive[key] = entry
        elif key in alive and alive[key].kind is FileKind.ADD:
            del alive[key]
        else:
            alive[key] = entry
    return list(alive.values())


def row(*values: int) -> bytes:
    """A serialized BinaryRow of BIGINTs."""
    header = bytes(8 * ((len(values) + 63 + 8) // 64))
    return struct.pack(">i", len(values)) + header + b"".join(struct.pack("<q", value) for value in values)


def entry(number: int, **changes) -> ManifestEntry:
    """An entry that differs from others in every field that can differ."""
    draw = random.Random(number)
    low, high = row(number * 1000), row(number * 1000 + 999)
    values = [draw.randrange(10**draw.randrange(1, 15)) for _ in range(5)]
    counts = [(0,) * 5, (0, 1, None, 2, 3), (draw.randrange(10**6),) * 5, None, (63, 64, 0, 0, 0)][draw.randrange(5)]
    top = {name: changes.pop(name) for name in ("kind", "partition", "bucket", "total_buckets") if name in changes}
    file = {
        "name": f"data-{draw.getrandbits(128):032x}-{number}.parquet",
        "size_bytes": draw.randrange(10**9),
        "row_count": draw.randrange(10**6),
        "min_key": low,
        "max_key": high,
        "key_stats": Stats(low, high, (0,)),
        "value_stats": Stats(row(*values), row(*(value + 5 for value in values)), counts),
        "min_sequence": number * 100,
        "max_sequence": number * 100 + 99,
        "schema_id": draw.randrange(3),
        "level": draw.randrange(6),
        "extra_files": draw.choice([(), (), ("a.index",), ("a.index", "b" * 200)]),
        "creation_time_millis": draw.choice([None, 1_795_234_796_351 + number]),
        "delete_row_count": draw.choice([None, 0, 7]),
        "embedded_index": draw.choice([None, b"", bytes(range(200))]),
        "source": draw.choice([None, FileSource.APPEND, FileSource.COMPACT]),
        "value_stats_columns": draw.choice([None, (), ("a", "b"), ("ä", "some longer name")]),
        "external_path": draw.choice([None, "s3://bucket/dir/ö.parquet"]),
        "first_row_id": draw.choice([None, number * 1000]),
        "write_columns": draw.choice([None, ("a",)]),
    }
    file.update(changes)
    whole = {
        "kind": FileKind(draw.random() < 0.2),
        "partition": draw.choice([EMPTY_ROW, row(draw.randrange(100))]),
        "bucket": draw.randrange(-2, 300),
        "total_buckets": draw.choice([-2, -1, 300]),
    }
    whole.update(top)
    return ManifestEntry(**whole, file=DataFile(**file))


def added(number: int, **changes) -> ManifestEntry:
    """An ADD of a plain file in bucket 0 at level 0 of an unpartitioned table."""
    plain = {
        "kind": FileKind.ADD,
        "partition": EMPTY_ROW,
        "bucket": 0,
        "total_buckets": 1,
        "level": 0,
        "extra_files": (),
        "embedded_index": None,
        "external_path": None,
        "first_row_id": None,
    }
    return entry(number, **(plain | changes))


def by_fastavro(data: bytes) -> list[ManifestEntry]:
    """The entries of a manifest as an independent reader sees them."""
    return [_entry(record) for record in fastavro.reader(io.BytesIO(data))]


def stats_by_fastavro(record: dict) -> Stats:
    return Stats(record["_MIN_VALUES"], record["_MAX_VALUES"], _tuple(record["_NULL_COUNTS"]))


def _tuple(values: list | None) -> tuple | None:
    return None if values is None else tuple(values)


def _entry(record: dict) -> ManifestEntry:
    file = record["_FILE"]
    created = file["_CREATION_TIME"]
    source = file["_FILE_SOURCE"]
    return ManifestEntry(
        kind=FileKind(record["_KIND"]),
        partition=record["_PARTITION"],
        bucket=record["_BUCKET"],
        total_buckets=record["_TOTAL_BUCKETS"],
        file=DataFile(
            name=file["_FILE_NAME"],
            size_bytes=file["_FILE_SIZE"],
            row_count=file["_ROW_COUNT"],
            min_key=file["_MIN_KEY"],
            max_key=file["_MAX_KEY"],
            key_stats=stats_by_fastavro(file["_KEY_STATS"]),
            value_stats=stats_by_fastavro(file["_VALUE_STATS"]),
            min_sequence=file["_MIN_SEQUENCE_NUMBER"],
            max_sequence=file["_MAX_SEQUENCE_NUMBER"],
            schema_id=file["_SCHEMA_ID"],
            level=file["_LEVEL"],
            extra_files=tuple(file["_EXTRA_FILES"]),
            creation_time_millis=None if created is None else (created - EPOCH) // datetime.timedelta(milliseconds=1),
            delete_row_count=file["_DELETE_ROW_COUNT"],
            embedded_index=file["_EMBEDDED_FILE_INDEX"],
            source=None if source is None else FileSource(source),
            value_stats_columns=_tuple(file.get("_VALUE_STATS_COLS")),
            external_path=file.get("_EXTERNAL_PATH"),
            first_row_id=file.get("_FIRST_ROW_ID"),
            write_columns=_tuple(file.get("_WRITE_COLS")),
        ),
    )
