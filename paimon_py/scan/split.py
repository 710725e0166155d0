"""A split: everything that a reader needs to produce some rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar

import msgspec

from paimon_py.errors import UsageError
from paimon_py.spec.bounds import BucketNumber, Count
from paimon_py.spec.data_file import DataFile, anchor_of
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.manifest import DeletionPlace
from paimon_py.spec.serializable import Serializable

Run = Annotated[tuple[DataFile, ...], msgspec.Meta(min_length=1)]


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """Files of one bucket whose key range overlaps no other section.

    `runs`: sorted runs, oldest first; files of a run do not overlap. `raw`: the rows of the files are the rows of the
    table: one run without −U or −D. In append tables every file is a separate section. `aligned`: each run is a file
    with some columns of the same rows.
    """

    runs: tuple[Run, ...]
    raw: bool
    aligned: bool = False

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files, run by run."""
        return tuple(file for run in self.runs for file in run)

    @property
    def counted_files(self) -> tuple[DataFile, ...]:
        """The files whose rows are counted, and whose deletion vectors apply: one among files of the same rows."""
        return (anchor_of(self.files),) if self.aligned else self.files


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Two states of some keys, whose difference forms the rows of a split.

    Attributes:
        before, after: sorted runs, each a split of one bucket; a key is in at most one run of a state.
        removals: whether deleted keys are returned, as −D; if not, other rows have the kinds they are stored with.
        old_rows: whether changed rows are also returned with their old values, as −U, before all new ones.
        identified: rows are identified by their row ids, and only these columns may differ; None: by key, or by value.
    """

    before: tuple[Split, ...]
    after: tuple[Split, ...]
    removals: bool
    old_rows: bool = False
    identified: tuple[str, ...] | None = None


class Split(Serializable, frozen=True, kw_only=True):
    """A part of a scan that can be read independently, in any process.

    Files are stored without keys, and with short statistics only if a condition is evaluated: planning has already used
    them. `bytes(split)` encodes a split; `from_bytes` decodes it.

    Attributes:
        snapshot_id: the snapshot it was planned from.
        schema_id: the schema in which its rows are returned.
        partition: serialized BinaryRow of the partition.
        bucket: number of the bucket.
        total_buckets: buckets of the partition, −1 without fixed buckets.
        sections: what to read, in key order in primary-key tables, in the order of writing in append tables.
        deletions: deletion vectors by name of data file; files without one have no dead rows.
        since: the rows are changes after this snapshot up to and including `snapshot_id`: every stored row, file by
            file, with its kind in the column `_row_kind`. None: the rows are rows of the table.
        compared: the rows are the difference of two states; there are no sections.
        branch: the branch of the table that the rows belong to.
        chained: rows of chain tables that are merged from several partitions and branches: sections, each as splits of
            one partition of one branch; there are no other sections. Their rows get the values of `partition`.
        moving: changes of a table whose keys move between partitions: for each snapshot, a split per bucket; there are
            no other sections.
    """

    kind: ClassVar[str] = "split"
    edition: ClassVar[int] = 9
    called: ClassVar[str] = "a split"
    again: ClassVar[str] = "plan the scan"
    inner: ClassVar[frozenset[str]] = frozenset(
        ("chained", "compared", "dead_rows", "deletions", "moving", "only", "raw", "runs", "sections")
    )

    snapshot_id: Count
    schema_id: Count
    partition: bytes
    bucket: BucketNumber
    total_buckets: BucketNumber
    sections: tuple[Section, ...]
    deletions: Mapping[str, DeletionPlace] = {}
    since: Count | None = None
    compared: Compared | None = None
    branch: str = MAIN_BRANCH
    chained: tuple[tuple[Split, ...], ...] = ()
    moving: tuple[tuple[Split, ...], ...] = ()

    @property
    def runs(self) -> tuple[Split, ...]:
        """The splits whose files are read: those that are compared or merged, or the split itself."""
        if self.chained or self.moving:
            return tuple(part for parts in self.chained or self.moving for part in parts)
        return (self,) if self.compared is None else (*self.compared.before, *self.compared.after)

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All data files to be read."""
        return tuple(file for run in self.runs for section in run.sections for file in section.files)

    @property
    def row_count(self) -> int:
        """Rows in the files; merging and deletion vectors may leave fewer."""
        counted = (file for run in self.runs for section in run.sections for file in section.counted_files)
        return sum(file.row_count for file in counted)

    def dead_rows(self, name: str) -> int:
        """The known number of dead rows of a data file; 0 without a deletion vector or a recorded count."""
        place = self.deletions.get(name)
        return place.cardinality or 0 if place is not None else 0

    @property
    def size_bytes(self) -> int:
        """The size of the files in bytes."""
        return sum(file.size_bytes for file in self.files)

    @property
    def raw(self) -> bool:
        """Whether no merge is needed, so that `row_count` less the dead rows is exact."""
        if self.chained or self.moving:
            return False
        return self.compared is None and all(section.raw for section in self.sections)

    def only(self, sections: Sequence[Section]) -> Split:
        """The split with some of its sections."""
        if len(sections) == len(self.sections):
            return self
        names = {file.name for section in sections for file in section.files}
        deletions = {name: place for name, place in self.deletions.items() if name in names}
        return msgspec.structs.replace(self, sections=tuple(sections), deletions=deletions)

    def __repr__(self) -> str:
        return (
            f"Split(snapshot_id={self.snapshot_id}, bucket={self.bucket}, files={len(self.files)}, "
            f"rows={self.row_count}, raw={self.raw})"
        )


def may_delete(splits: Iterable[Split]) -> bool:
    """Whether the files of some splits may contain deletes."""
    return any(file.delete_row_count != 0 for split in splits for file in split.files)


def split_from(value: object) -> Split:
    """A split, given as such or as bytes.

    Raises: UsageError for another value, CorruptionError for damaged bytes.
    """
    if not isinstance(value, (Split, bytes)):
        raise UsageError(f"read takes one of scan.splits(), or its bytes, not {type(value).__name__}")
    return value if isinstance(value, Split) else Split.from_bytes(value)


def require_split_of(split: Split, schema_id: int, branch: str) -> None:
    """Refuse a split of another scan.

    Raises: UsageError
    """
    if split.chained:
        raise UsageError("the split merges branches of a chain table: read a split with the scan that made it")
    if (split.schema_id, split.branch) != (schema_id, branch):
        raise UsageError(
            f"the split returns rows of schema {split.schema_id} of branch {split.branch!r}, this scan those of schema "
            f"{schema_id} of {branch!r}: read a split with the scan that made it"
        )
