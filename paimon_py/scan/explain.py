"""What a scan would read, as a value that prints well."""

from __future__ import annotations

import msgspec

from paimon_py.scan.split import Split


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """How many manifests and files were left out, and why.

    `manifests` of `all_manifests` were not read; of `all_files` files in the others, `partition`, `bucket`, `key`,
    `stats` and `index` (file indexes in manifests) say how many cannot hold a matching row, by what told so.
    `uncompacted` files are left out because their rows are not visible before a compaction (tables with deletion
    vectors, and those of the first-row engine). `limit` files follow those that hold enough rows for the limit.
    """

    all_manifests: int = 0
    manifests: int = 0
    all_files: int = 0
    partition: int = 0
    bucket: int = 0
    key: int = 0
    stats: int = 0
    index: int = 0
    uncompacted: int = 0
    limit: int = 0

    @property
    def files(self) -> int:
        """Files left out for any reason."""
        return self.partition + self.bucket + self.key + self.stats + self.index + self.uncompacted + self.limit


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """Which parts of the predicate act before rows are merged, as text; the whole predicate decides in the end."""

    partition: str | None = None
    bucket: bool = False
    key: str | None = None
    stats: str | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a scan. `print` it, or look at its attributes.

    Of the files of the splits, `index_files` will not be read because of their indexes; `index_rows` are the living
    rows that indexes leave out, those of these files included.
    """

    table: str
    snapshot_id: int | None
    schema_id: int
    columns: tuple[str, ...]
    predicate: str | None
    limit: int | None
    splits: tuple[Split, ...]
    pushed: Pushed
    skipped: Skipped
    index_files: int = 0
    index_rows: int = 0

    @property
    def file_count(self) -> int:
        """Data files of the splits."""
        return sum(len(split.files) for split in self.splits)

    @property
    def row_count(self) -> int:
        """Rows in these files, before merging and filtering, dead ones included."""
        return sum(split.row_count for split in self.splits)

    @property
    def size_bytes(self) -> int:
        """Bytes of these files."""
        return sum(split.size_bytes for split in self.splits)

    @property
    def deletion_count(self) -> int:
        """How many of these files have deletion vectors."""
        return sum(len(split.deletions) for split in self.splits)

    def __str__(self) -> str:
        skipped, pushed = self.skipped, self.pushed
        more = (("index", skipped.index), ("limit", skipped.limit), ("not compacted", skipped.uncompacted))
        others = "".join(f", {name} {count}" for name, count in more if count)
        snapshot = "none (empty table)" if self.snapshot_id is None else str(self.snapshot_id)
        lines = [
            f"Scan of {self.table}",
            f"  snapshot   {snapshot}, schema {self.schema_id}",
            f"  columns    {', '.join(self.columns)}",
        ]
        if self.predicate is not None:
            lines.append(f"  where      {self.predicate}")
            lines += [
                f"    {name:<11}{text}"
                for name, text in (("partition", pushed.partition), ("key", pushed.key), ("stats", pushed.stats))
                if text
            ]
            if pushed.bucket:
                lines.append("    bucket     pinned by the bucket key")
        if self.limit is not None:
            lines.append(f"  limit      {self.limit}")
        lines += [
            f"  manifests  {skipped.all_manifests - skipped.manifests} read, {skipped.manifests} skipped",
            f"  files      {self.file_count} read, {skipped.files} skipped (partition {skipped.partition}, "
            f"bucket {skipped.bucket}, key {skipped.key}, statistics {skipped.stats}{others})",
            f"  rows       {self.row_count} in files, {self.size_bytes} bytes",
            f"  splits     {len(self.splits)}, {sum(split.raw for split in self.splits)} of them without merging",
        ]
        if self.index_files or self.index_rows:
            lines.append(f"  indexes    skip {self.index_files} of these files and {self.index_rows} of their rows")
        if self.deletion_count:
            lines.append(f"  deletions  {self.deletion_count} files have deletion vectors")
        return "\n".join(lines)

    __repr__ = __str__
