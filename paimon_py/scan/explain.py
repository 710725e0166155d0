"""The plan of a scan, as a value that prints as text."""

from __future__ import annotations

import msgspec

from paimon_py.html import preformat
from paimon_py.scan.split import Split


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of manifests and files that a scan skips, by reason.

    `manifests` of `all_manifests` were not read; of `all_files` files in the others, `partition`, `bucket`, `key`,
    `stats` and `index` (file indexes in manifests) say how many cannot hold a matching row.
    `uncompacted` files are left out because their rows are not visible before a compaction (tables with deletion
    vectors, those of the first-row engine, and postponed buckets). `choice` files are of another level, bucket or time
    than the scan asks for, or of partitions that another branch gives. `same` files hold the same rows in both states
    that are compared. `limit` files follow those that hold enough rows for the limit.
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
    choice: int = 0
    same: int = 0
    limit: int = 0

    def plus(self, other: Skipped) -> Skipped:
        """The sum of both."""
        mine, others = msgspec.structs.asdict(self), msgspec.structs.asdict(other)
        return Skipped(**{name: count + others[name] for name, count in mine.items()})

    @property
    def files(self) -> int:
        """The number of files skipped for any reason."""
        chosen = self.uncompacted + self.choice + self.same + self.limit
        return self.partition + self.bucket + self.key + self.stats + self.index + chosen


class Pushed(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the predicate that are applied before rows are merged, as text; all of it is applied at the end."""

    partition: str | None = None
    bucket: bool = False
    key: str | None = None
    stats: str | None = None


class RowGroups(msgspec.Struct, frozen=True, kw_only=True):
    """Row groups of Parquet files and stripes of ORC files that will be opened; Avro files have none.

    Of `all` row groups, `statistics` cannot contain a matching row by the footer, and `index` of the others contain
    none of the rows selected by file indexes.
    """

    all: int = 0
    statistics: int = 0
    index: int = 0

    @property
    def skipped(self) -> int:
        """Row groups that are not decoded."""
        return self.statistics + self.index

    @property
    def read(self) -> int:
        """Row groups that are decoded, unless the limit is reached before."""
        return self.all - self.skipped


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """The measured work of a scan.

    Attributes:
        files_opened: data files opened, of the files in the plan. Not opened were:
            files_by_index: those without a matching live row according to their indexes;
            files_by_key: those after the last matching key of their run;
            files_by_order: those that cannot contain one of the first rows (`order_by`);
            files_by_limit: those after the limit was reached;
            files_by_metadata: files from which only the row count was needed.
            row_groups: of the opened files, as planned while reading: top-N narrows the predicate as it proceeds.
        row_groups_read: row groups from which rows were read; fewer than `row_groups.read` if the scan ended early.
        rows_read: rows read from files, including dead ones, before merging and filtering.
        rows_merged: rows left after merging equal keys and dropping dead rows, before filtering.
        rows_returned: rows of the result.
        bytes_read: bytes of data files, their indexes and deletion vectors; not of metadata.
    """

    files_opened: int
    files_by_index: int
    files_by_key: int
    files_by_order: int
    files_by_limit: int
    files_by_metadata: int
    row_groups: RowGroups
    row_groups_read: int
    rows_read: int
    rows_merged: int
    rows_returned: int
    bytes_read: int

    def _repr_html_(self) -> str:
        return preformat(str(self))

    def __str__(self) -> str:
        groups = self.row_groups
        others = _counts_text(
            index=self.files_by_index, key=self.files_by_key, order=self.files_by_order, limit=self.files_by_limit,
            metadata=self.files_by_metadata,
        )  # fmt: skip
        lines = [f"files      {self.files_opened} opened{', not: ' + others if others else ''}"]
        if groups.all:
            lines.append(f"row groups {self.row_groups_read} of {groups.all} read{_because(groups)}")
        lines += [
            f"rows       {self.rows_read} read, {self.rows_merged} after merging, {self.rows_returned} returned",
            f"bytes      {self.bytes_read} read",
        ]
        return "\n".join(lines)


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a scan. `print` it, or read its attributes.

    Of the files in the splits, `index_files` are skipped because of their indexes; `index_rows` is the number of live
    rows that indexes skip, including those in these files. `row_groups` are those of the files that will be opened.
    `analysis` is the measured work, if the scan was run. `since`: the rows are the changes after this snapshot.
    """

    table: str
    snapshot_id: int | None
    since: int | None = None
    schema_id: int
    columns: tuple[str, ...]
    predicate: str | None
    limit: int | None
    order_by: str | None = None
    splits: tuple[Split, ...]
    pushed: Pushed
    skipped: Skipped
    index_files: int = 0
    index_rows: int = 0
    row_groups: RowGroups = RowGroups()
    analysis: Analysis | None = None

    @property
    def file_count(self) -> int:
        """Data files of the splits."""
        return sum(len(split.files) for split in self.splits)

    @property
    def row_count(self) -> int:
        """Rows in these files, before merging and filtering, including dead ones."""
        return sum(split.row_count for split in self.splits)

    @property
    def size_bytes(self) -> int:
        """The size of these files in bytes."""
        return sum(split.size_bytes for split in self.splits)

    @property
    def deletion_count(self) -> int:
        """The number of these files with deletion vectors."""
        return sum(len(split.deletions) for split in self.splits)

    def _repr_html_(self) -> str:
        return preformat(str(self))

    def __str__(self) -> str:
        skipped, pushed = self.skipped, self.pushed
        more = (
            ("index", skipped.index), ("limit", skipped.limit), ("not compacted", skipped.uncompacted),
            ("not chosen", skipped.choice), ("same in both", skipped.same),
        )  # fmt: skip
        others = "".join(f", {name} {count}" for name, count in more if count)
        snapshot = "none (empty table)" if self.snapshot_id is None else str(self.snapshot_id)
        if self.since is not None:
            snapshot = f"changes after {self.since} up to {snapshot}"
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
                lines.append("    bucket     selected by the bucket key")
        if self.order_by is not None:
            lines.append(f"  order      {self.order_by}")
        if self.limit is not None:
            lines.append(f"  limit      {self.limit}")
        lines += [
            f"  manifests  {skipped.all_manifests - skipped.manifests} read, {skipped.manifests} skipped",
            f"  files      {self.file_count} read, {skipped.files} skipped (partition {skipped.partition}, "
            f"bucket {skipped.bucket}, key {skipped.key}, statistics {skipped.stats}{others})",
            f"  rows       {self.row_count} in files, {self.size_bytes} bytes",
            f"  splits     {len(self.splits)}, {sum(split.raw for split in self.splits)} of them without merging",
        ]
        groups = self.row_groups
        if groups.all:
            lines.append(f"  row groups {groups.read} of {groups.all} read{_because(groups)}")
        if self.index_files or self.index_rows:
            lines.append(f"  indexes    skip {self.index_files} of these files and {self.index_rows} of their rows")
        if self.deletion_count:
            lines.append(f"  deletions  {self.deletion_count} files have deletion vectors")
        if self.analysis is not None:
            lines += ["carried out", *(f"  {line}" for line in str(self.analysis).splitlines())]
        return "\n".join(lines)

    __repr__ = __str__


def _because(groups: RowGroups) -> str:
    return f", skipped: {_counts_text(statistics=groups.statistics, index=groups.index)}" if groups.skipped else ""


def _counts_text(**counts: int) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items() if count)
