"""Creates tables whose metadata reference millions of files that do not exist: for planning, not for reading."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from paimon_py.spec.data_file import FileKind, ManifestEntry
from paimon_py.spec.manifest import ManifestFile
from paimon_py.table.table import Table

FILES_PER_MANIFEST = 10_000
_ODD = 0x9E3779B97F4A7C15F39CC0605CEDC835


def name_files(table: Table, count: int, *, deleted: int = 0) -> None:
    """Add a snapshot with `count` files, which are copies, under new names, of entries of the latest snapshot.

    Args:
        deleted: the number of additional files that are added, and deleted again by the last manifest.

    Cost: 25 µs a file.
    """
    root = table._root
    latest = root.latest()
    assert latest is not None, "the table needs a file to take as a pattern"
    patterns = root.manifests.live_entries(latest).entries()
    types = [field.type for field in table.schema.partition_fields]
    written: list[ManifestFile] = []
    gone: list[ManifestEntry] = []
    for entries in _with_names(patterns, count + deleted):
        written.append(root.manifests.write_manifest(entries, types))
        gone += entries[: deleted - len(gone)]
    if gone:
        gone = [msgspec.structs.replace(entry, kind=FileKind.DELETE) for entry in gone]
        written.append(root.manifests.write_manifest(gone, types))
    base, base_bytes = root.manifests.write_list(written)
    delta, delta_bytes = root.manifests.write_list([])
    stored = json.loads(root.store.get(f"{root.path}/snapshot/snapshot-{latest.id}"))
    stored |= {"id": latest.id + 1, "baseManifestList": base, "baseManifestListSize": base_bytes}
    stored |= {"deltaManifestList": delta, "deltaManifestListSize": delta_bytes}
    root.store.put(f"{root.path}/snapshot/snapshot-{latest.id + 1}", json.dumps(stored).encode())
    root.store.put(f"{root.path}/snapshot/LATEST", str(latest.id + 1).encode())


def _with_names(patterns: list[ManifestEntry], count: int) -> Iterator[list[ManifestEntry]]:
    """Entries like the patterns, with new names."""
    for number, first in enumerate(range(0, count, FILES_PER_MANIFEST)):
        pattern = patterns[number % len(patterns)]
        yield [
            msgspec.structs.replace(pattern, file=msgspec.structs.replace(pattern.file, name=file_name(each)))
            for each in range(first, min(first + FILES_PER_MANIFEST, count))
        ]


def file_name(number: int) -> str:
    """The name of the file with this number, which compresses as little as that of a real file."""
    return f"data-{number * _ODD % (1 << 128):032x}-0.parquet"
