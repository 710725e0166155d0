"""A copy of a table whose files are changed, and what the changes need: files by kind, and sizes that agree again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from foreign import avro_bytes
from foreign.avro_bytes import Branch, Style

DATA_SUFFIXES = (".parquet", ".orc", ".avro")


class Place:
    """The directory of a table, and the numbers that draw what is changed."""

    def __init__(self, path: Path, draw: random.Random) -> None:
        self.path = path
        self.draw = draw

    # -- files ------------------------------------------------------------------------------------------------------

    def files(self, *kinds: str) -> list[Path]:
        """Files of some kinds: snapshot, schema, tag, changelog, consumer, statistics, hint, manifest, list, index, data."""
        return sorted(path for kind in kinds for path in self._files(kind))

    def _files(self, kind: str) -> list[Path]:
        if kind == "hint":
            return [path for path in self.path.rglob("*") if path.name in ("LATEST", "EARLIEST")]
        if kind == "data":
            parts = [path for path in self.path.rglob("*") if path.suffix in DATA_SUFFIXES]
            return [path for path in parts if path.parent.name.startswith("bucket-") and path.name.startswith("data-")]
        if kind in ("manifest", "list", "index"):
            prefix = {"manifest": "manifest-", "list": "manifest-list-", "index": "index-manifest-"}[kind]
            found = [path for path in self.path.glob(f"manifest/{prefix}*") if path.read_bytes()[:3] == b"Obj"]
            return [path for path in found if kind != "manifest" or not path.name.startswith("manifest-list-")]
        folder = {"statistics": "statistics"}.get(kind, kind)
        return [path for path in self.path.rglob(f"{folder}/*") if path.is_file() and path.name not in ("LATEST", "EARLIEST")]

    def one(self, *kinds: str) -> Path | None:
        """One of the files, the newest of them more often than others."""
        found = self.files(*kinds)
        if not found:
            return None
        newest = max(found, key=lambda path: (len(path.name), path.name))
        return newest if self.draw.random() < 0.4 else self.draw.choice(found)

    def json(self, path: Path) -> Any:
        return json.loads(path.read_text())

    # -- sizes ------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Write the sizes that files have now into what names them: entries, lists, snapshots and tags."""
        sizes = {path.name: path.stat().st_size for path in self.files("data")}
        for path in self.files("manifest"):
            container = avro_bytes.read(path.read_bytes())
            for record in container.records:
                file = record["_FILE"]
                if file["_FILE_NAME"] in sizes:
                    file["_FILE_SIZE"] = sizes[file["_FILE_NAME"]]
            self.keep(path, container.schema, container.records, Style(container.codec))
        self.settle_metadata()

    def settle_metadata(self) -> None:
        """The sizes of manifests in their lists, and of lists in snapshots."""
        sizes = {path.name: path.stat().st_size for path in self.files("manifest")}
        for path in self.files("list"):
            container = avro_bytes.read(path.read_bytes())
            for record in container.records:
                record["_FILE_SIZE"] = sizes.get(record["_FILE_NAME"], record["_FILE_SIZE"])
            self.keep(path, container.schema, container.records, Style(container.codec))
        self.settle_lists(self.files("list"))

    def settle_lists(self, lists: list[Path]) -> None:
        """The sizes of lists in snapshots, tags and changelogs."""
        sizes = {path.name: path.stat().st_size for path in lists}
        for path in self.files("snapshot", "tag", "changelog"):
            value = self.json(path)
            for key in ("baseManifestList", "deltaManifestList", "changelogManifestList"):
                if value.get(key + "Size") is not None and value.get(key) in sizes:
                    value[key + "Size"] = sizes[value[key]]
            path.write_text(json.dumps(value))

    @staticmethod
    def keep(path: Path, schema: Any, records: list, style: Style) -> None:
        path.write_bytes(avro_bytes.write(schema, records, style))


def plain(value: Any) -> Any:
    """A value without the branches of its unions."""
    return value.value if isinstance(value, Branch) else value
