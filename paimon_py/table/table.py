"""A Paimon table: identity, schema, options, store; and its methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, overload

import msgspec
import pyarrow as pa

from paimon_py.api_hints import ApiHints
from paimon_py.arguments import NameList, as_mapping, path_text
from paimon_py.codec.typed_changes import with_paimon_types
from paimon_py.commit.changes import Changes
from paimon_py.commit.result import CommitResult
from paimon_py.env import Env, env_of
from paimon_py.expr.column_list import ColumnList
from paimon_py.expr.predicate import Predicate
from paimon_py.html import join_values
from paimon_py.lazy import lazy_property
from paimon_py.metadata.branches import check_branch_options
from paimon_py.metadata.misplaced import schema_to_open
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.schemas import alter
from paimon_py.notebook import table_page
from paimon_py.progress import Progress
from paimon_py.rows.result import RowsResult
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.file_rules import names_codecs
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import RemoveOption, SchemaChange, SetOption
from paimon_py.spec.supported import check_readable, check_scannable
from paimon_py.storage.refreshing_store import open_refreshing
from paimon_py.table.branches import TableBranches
from paimon_py.table.cleanup import TableCleaning
from paimon_py.table.export import TableExport
from paimon_py.table.history import TableKeeping
from paimon_py.table.iceberg import TableIceberg
from paimon_py.table.inspection import TableHealth
from paimon_py.table.loading import TableLoading
from paimon_py.table.maintenance import TableCare
from paimon_py.table.partitions import TablePartitions
from paimon_py.table.reading import TableReading
from paimon_py.table.row_changes import TableRows
from paimon_py.table.snapshots import Snapshot
from paimon_py.table.statistics import TableStatistics
from paimon_py.table.streams import TableStreams
from paimon_py.table.verbs import at_table_door, commits, reads

if TYPE_CHECKING:
    from paimon_py.lookup.lookups import Lookups
    from paimon_py.scan.scan import Scan
    from paimon_py.system.metadata_table import MetadataTable
    from paimon_py.system.table import SystemTable
    from paimon_py.write.session import Writer


@at_table_door
class Table(
    TableBranches, TableCare, TableCleaning, TableExport, TableHealth, TableIceberg, TableKeeping, TableLoading,
    TablePartitions,
    TableReading, TableRows, TableStatistics, TableStreams, ApiHints,
):
    """A table in a warehouse or at a path.

    A table object keeps the schema it was opened with; `alter` switches it to the new one. It can be pickled (without
    secrets) and used from several threads as long as each has its own writer.
    """

    def __init__(self, root: TableRoot, schema: TableSchema, name: str) -> None:
        self._root = root
        self._schema = schema
        self._name = name

    @classmethod
    def open(cls, path: str, options: Mapping[str, str] | None = None, *, env: Env | None = None) -> Table:
        """Open the table in a directory, without a catalog.

        Args:
            path: directory or URL of the table.
            options: credentials and settings of the store, by Paimon's option names; `branch`: a branch of the table.
            env: clock, ids and threads to use instead of the machine's.

        Raises:
            TableNotFoundError: the table does not exist.
            CorruptionError: its schema does not match the format.
        """
        used, settings = env_of(env), as_mapping("options", options)
        store, location = open_refreshing(path_text(path), settings, used)
        root = TableRoot(store, location, used, settings)
        table = cls(root, schema_to_open(root), location.rstrip("/").rsplit("/", 1)[-1])
        branch = settings.get("branch", MAIN_BRANCH)
        return table if branch == MAIN_BRANCH else table.branch(branch)

    @property
    def name(self) -> str:
        """`database.table` in a catalog, otherwise the name of the directory."""
        return self._name

    @property
    def schema(self) -> TableSchema:
        """Columns with ids and types, keys, options and comment."""
        return self._schema

    @property
    def options(self) -> dict[str, str]:
        """The table's options as stored."""
        return dict(self._schema.options)

    @property
    def location(self) -> str:
        """Directory or URL of the table."""
        return self._root.path

    @property
    def comment(self) -> str | None:
        """The table's comment."""
        return self._schema.comment

    def alter(self, *changes: SchemaChange) -> TableSchema:
        """Apply all changes as one new schema, switch to it, and return it. Types are strings, or Paimon or Arrow
        types.

        If `changelog-producer` changes from or to `lookup` or `full-compaction`, or deletion vectors are switched on or
        off, all buckets of a table with a primary key are compacted first, under the old options: otherwise changes
        below the top level would be reported twice or never, or rows there would not be read.

        Raises:
            UsageError: Java's rules forbid a change; nothing is written.
            CommitRetriesExhaustedError: other processes changed the schema at every attempt, or kept writing rows.
            LockTimeoutError: another process holds the table's lock in the catalog; nothing is written.
        """
        options = [change for change in changes if isinstance(change, (SetOption, RemoveOption))]
        if bucket_mode(self._schema) is BucketMode.POSTPONED and any(option.name == "bucket" for option in options):
            from paimon_py.maintain.publish_postponed import require_none_waiting

            require_none_waiting(self._root)
        from paimon_py.metadata.idle_warning import warn_of_iceberg, warn_of_idle_options

        named = [change for change in options if isinstance(change, SetOption) and isinstance(change.name, str)]
        set_now = {change.name: change.value for change in named}
        gone = {change.name for change in options if isinstance(change, RemoveOption) and isinstance(change.name, str)}
        then = {name: text for name, text in {**self._schema.options, **set_now}.items() if name not in gone}
        check_branch_options(self._root, then)
        if names_codecs(set_now):
            from paimon_py.files.codecs import check_codecs

            check_codecs(msgspec.structs.replace(self._schema, options=then))
        warn_of_idle_options(self._root, set_now)
        root, given = self._root, with_paimon_types(changes)
        from paimon_py.maintain.level_rules import compact_lower_rows, warn_of_lower_rows

        before, known = compact_lower_rows(root, given), self._schema
        publish = partial(
            alter, root.schemas, given, has_snapshots=lambda: root.snapshots.latest_id() is not None,
            clock=root.env.clock,
        )  # fmt: skip
        self._schema = publish() if root.registration is None else root.registration.alter(root, given, publish)
        if before is not None:
            warn_of_lower_rows(OpenTable(root, before))
        warn_of_iceberg(OpenTable(root, self._schema), known)
        from paimon_py.maintain.observers import report, schema_event

        made = self._schema
        report(root, lambda: schema_event(root.event_place(), made, given))
        return made

    def _on(self, root: TableRoot) -> Table:
        name = self._name.partition("$")[0]
        shown = name if root.branch == MAIN_BRANCH else f"{name}$branch_{root.branch}"
        return Table(root, root.schemas.latest(), shown)

    def _now(self) -> Scan:
        return Table(self._root, self._root.require_same(self._schema), self._name).scan()

    # -- writing ----------------------------------------------------------------------------------------------------

    def writer(self, *, overwrite: bool = False, share: tuple[int, int] | None = None) -> Writer:
        """A writer for two-phase writes: write rows, take `changes()`, pass them to `commit`.

        Args:
            overwrite: the changes will replace the existing rows, so that existing files need not be read.
            share: `(2, 4)` creates the third of four writers that fill dynamic buckets at the same time; each must be
                given the rows that `writer_numbers` assigns to it. A share is refused, when it is given rows, if others
                would write the same bucket and readers of the table wait for its compaction; see "dynamic buckets".

        Raises:
            UsageError: a share of a table without dynamic buckets, or a number that is not below the number of writers.
            UnsupportedError: the table uses a feature that paimon_py cannot write; raised before any file is touched.
        """
        from paimon_py.table import writing

        return writing.writer(self._open_table, overwrite=overwrite, share=share)

    @reads
    def writer_numbers(self, data: object, writers: int) -> pa.Array:
        """The writer number of each row, for several writers that fill dynamic buckets at the same time.

        Returns: int32 from 0; writer n is `writer(share=(n, writers))`.

        Raises:
            UsageError: the table has no dynamic buckets, or the data do not fit.
        """
        from paimon_py.write.dynamic import writer_numbers

        return writer_numbers(self._schema, data, writers)

    @commits
    def write_arrow(
        self, data: object, *, overwrite: Mapping[str, object] | str | None = None, watermark: int | None = None,
        user: str | None = None, identifier: int | None = None, progress: Progress | None = None,
    ) -> CommitResult:  # fmt: skip
        """Write and commit in one step.

        Args:
            data: pyarrow tables, batches and readers; pandas and polars DataFrames; datasets; DuckDB relations; lists
                of mappings; generators of batches. Columns match by name; a number of a wider type must fit.
            overwrite: `{"month": 3}` replaces that partition, `{}` the whole table, `"dynamic"` the partitions that
                occur in `data`. None adds rows. Data without rows empty what they replace, as in Java and SQL.
            watermark: event-time watermark in epoch milliseconds to record.
            user, identifier: make the call repeatable: a number that `user` has already committed does nothing, before
                any data are read, and the result says so. The numbers of a user must increase. A call without rows to
                write creates no snapshot and does not use up its number.
            progress: called with the number of rows read and written, the total (0 if unknown), and "rows".

        Returns: what was committed.

        Raises:
            UsageError: the data do not fit; no file is left behind. The message contains the first bad value of each
                column. Also for an identifier without user, or below the user's last one.
            CommitConflictError: another commit changed what this one depends on; no file is left behind. If keys move
                between partitions, Arrow tables and batches are written again first.
            CommitUnknownError: the store did not say whether the commit happened; nothing was deleted.
        """
        from paimon_py.table import writing

        return writing.write(
            self._open_table, data, overwrite=overwrite, watermark=watermark,
            label=CommitLabel(user, identifier), progress=progress,
        )  # fmt: skip

    @commits
    def commit(
        self,
        changes: Changes | bytes | Iterable[Changes | bytes],
        *,
        user: str | None = None,
        identifier: int | None = None,
        overwrite: Mapping[str, object] | str | None = None,
        watermark: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> CommitResult:
        """Publish the changes of writers as one snapshot.

        With `user` and `identifier` the call can be repeated: an identifier that the user has already committed does
        nothing, and the result says so. The identifiers of one user must increase. They are remembered for the time of
        the option `commit.user-retention`, even if snapshots expire.

        Raises:
            CommitConflictError, CommitRetriesExhaustedError, CommitUnknownError: see `errors.py`.
            UsageError: an identifier without user, or below the user's last one; changes that do not belong to this
                table or whose files are deleted.
        """
        from paimon_py.table import writing

        return writing.publish(
            self._open_table, changes, label=CommitLabel(user, identifier), overwrite=overwrite,
            watermark=watermark, properties=properties,
        )  # fmt: skip

    @commits
    def truncate(self, *, user: str | None = None, identifier: int | None = None) -> CommitResult:
        """Delete all rows in one commit; `user` and `identifier` make it repeatable, as in `write_arrow`."""
        from paimon_py.codec.partition_choice import PartitionChoice
        from paimon_py.table import writing

        label = CommitLabel(user, identifier)
        return writing.remove(self._open_table, PartitionChoice(), label=label)

    @commits
    def drop_partitions(
        self, partitions: Sequence[Mapping[str, object]], *, user: str | None = None, identifier: int | None = None
    ) -> CommitResult:
        """Delete all rows of partitions given as `[{"month": 3}]`; a subset of the keys selects all partitions below
        it.

        Args:
            user, identifier: make the call repeatable, as in `write_arrow`.

        Raises:
            UsageError: the table has no partitions, a name is not a partition key, or the list is empty.
            NotFoundError: one of the partitions has no file; nothing was deleted.
        """
        from paimon_py.codec.partition_choice import PartitionChoice, choice_of
        from paimon_py.table import writing

        given = () if partitions is None else partitions
        chosen = choice_of(self._schema, "drop_partitions", given) or PartitionChoice()
        return writing.remove(self._open_table, chosen, given, label=CommitLabel(user, identifier))

    # -- reading ----------------------------------------------------------------------------------------------------

    @reads
    def scan(  # noqa: PLR0913
        self,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
        columns: ColumnList | None = None,
        where: Predicate | str | None = None,
        limit: int | None = None,
        order_by: object = None,
        options: Mapping[str, str] | None = None,
        row_ids: Sequence[int] | range | None = None,
    ) -> Scan:
        """A lazy read of the latest or an earlier state; nothing is read until rows are requested.

        Args:
            snapshot_id: read this snapshot, with its schema.
            tag: read the snapshot of a tag.
            timestamp: read the last snapshot committed at or before this time (an ISO string, epoch milliseconds or a
                datetime; one without zone is local time).
            watermark: read the first snapshot with at least this watermark (epoch milliseconds).
            columns: names of the columns to return, in this order; None for all. Tables that track rows also have
                `_ROW_ID` and `_SEQUENCE_NUMBER`, the id of the snapshot that wrote the row, for `columns` and `where`.
            where: rows to return, as `col("a") > 3` or SQL text.
            limit: at most this many rows.
            order_by: the first `limit` rows in the order of a column, as "c", `("c", "descending")` or a list of these;
                NULL comes last. Files that cannot contain such rows by their statistics are not read.
            options: Paimon's own `scan.*` options.
            row_ids: rows with these ids, a list or a range, in the order of the request; files without one are not
                read. For tables with `row-tracking.enabled`.

        Raises:
            UsageError: an unknown column, a wrong literal, more than one state to read.
            SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: when the state is looked up.
            UnsupportedError: the table uses a feature that paimon_py cannot read; no data file is touched.
        """
        from paimon_py.scan.fallback import open_scan

        check_scannable(self._schema)
        return open_scan(
            self._open_table, snapshot_id=snapshot_id, tag=tag, timestamp=timestamp, watermark=watermark,
            columns=columns, where=where, limit=limit, order_by=order_by, options=options, row_ids=row_ids,
        )  # fmt: skip

    @reads
    def changes(
        self,
        start: int | str | datetime | CommitResult | RowsResult,
        end: int | str | datetime | None = None,
        *,
        columns: ColumnList | None = None,
        where: Predicate | str | None = None,
        mode: str = "auto",
        limit: int | None = None,
    ) -> Scan:
        """The changes after one state up to and including another, as a scan whose rows have their kind in `_row_kind`.

        The changes of a key come in the order in which they happened.

        Args:
            start: the state before the changes: a snapshot id (0: the empty table), the name of a tag, or a datetime,
                which means the last snapshot committed at or before the time. Or the result of a call that committed:
                what it did to the rows, as a diff unless another mode is given.
            end: the state after them; None for the latest. None with a result.
            columns: names of the columns to return, in this order, before `_row_kind`; None for all.
            where: changes to return, as `col("a") > 3` or SQL text; it may use `_row_kind`, too.
            mode: "delta" returns the rows that were written, "changelog" those of the table's changelog. "auto" returns
                for each snapshot what a stream would return: the changelog if the table produced one then (option
                `changelog-producer`), otherwise the delta. "diff" returns one net change per key: +I for a new row, +U
                for a changed row, −D for a deleted row; without a primary key, +I for added and −D for removed rows,
                and with the column `_ROW_ID` also −U and +U for a changed row.
            limit: at most this many rows.

        Raises:
            UsageError: start and end in the wrong order, an unknown mode, a changelog of rows for which the table has
                none.
            SnapshotNotFoundError, SnapshotExpiredError, TagNotFoundError: when the ends are looked up.
            UnsupportedError: the table uses a feature that paimon_py cannot read; no data file is touched.
        """
        from paimon_py.scan.between import between
        from paimon_py.scan.scan import Scan

        check_readable(self._schema)
        span = between(start, end, mode)
        return Scan(self._root, self._schema, columns=columns, where=where, limit=limit, between=span)

    @overload
    def system(self, name: Literal["audit_log", "binlog", "ro"]) -> SystemTable: ...
    @overload
    def system(self, name: str) -> SystemTable | MetadataTable: ...
    @reads
    def system(self, name: str) -> SystemTable | MetadataTable:
        """A system table of this table, such as "audit_log" or "snapshots"; readable like a table, never writable.

        Raises:
            UnsupportedError: a system table that is not implemented.
            UsageError: no system table has this name.
        """
        from paimon_py.system.kinds import system_table

        return system_table(self._open_table, self._name, name)

    @reads
    def lookup(
        self, keys: object, *, columns: NameList | None = None, missing: str = "drop",
        progress: Progress | None = None,
    ) -> pa.Table:
        """The rows that have these primary keys, in the order of the keys; a key given twice returns two rows.

        If the newest file with a key contains it twice, as files of an old SDK may, all its rows are returned.

        Reads the key columns of candidate files of the latest snapshot first, then the other columns of matching rows.
        This table object caches decoded data for further lookups, up to `lookup.cache-max-memory-size`.

        Args:
            keys: `{"id": 1}`, a list of such, or anything with an Arrow C stream whose columns are the primary key. For
                a key of one column, a list of values or an Arrow array is accepted.
            columns: names of the columns to return, in this order; None for all.
            missing: "drop" omits keys without a row; "null" returns a row for every key, with only the key columns
                filled if there is none.
            progress: called with the number of keys looked up, the total, and "keys".

        Raises:
            UsageError: the table has no primary key, or `keys` do not match it.
            SchemaError: a key of a wrong type, or NULL.
            UnsupportedError: the table uses a feature that paimon_py cannot read; no data file is touched.
        """
        from paimon_py.lookup.files import RepeatedKeyError
        from paimon_py.spec.visibility import clusters_keys

        if clusters_keys(self._schema):
            return self._lookup_by_scan(keys, columns, missing)
        try:
            return self._lookups.rows(self._schema, keys, columns, missing, progress=progress)
        except RepeatedKeyError:
            return self._lookup_by_scan(keys, columns, missing)

    def _lookup_by_scan(self, keys: object, columns: NameList | None, missing: str) -> pa.Table:
        """Look up keys that occur several times in a file, or in files that are not sorted by the key."""
        from paimon_py.lookup.keys import RequestedKeys, check_missing
        from paimon_py.lookup.repeated import rows_by_scan
        from paimon_py.scan.projection import projection_of
        from paimon_py.scan.request import every_bucket
        from paimon_py.scan.scan import Scan

        check_missing(missing)
        asked, wanted = RequestedKeys(self._schema, keys), projection_of(columns, self._schema).fields
        whole = every_bucket(self._schema)
        found = rows_by_scan(
            lambda where: Scan(self._root, whole, where=where).to_arrow(), asked, with_missing=missing == "null"
        )
        return found.select([field.name for field in wanted])

    @lazy_property
    def _lookups(self) -> Lookups:
        from paimon_py.lookup.lookups import Lookups

        return Lookups(self._root)

    # -- metadata ---------------------------------------------------------------------------------------------------

    @reads
    def snapshot(self, snapshot_id: int | None = None) -> Snapshot | None:
        """The latest snapshot (None on an empty table), or the one with this id.

        Raises:
            SnapshotNotFoundError: no snapshot with this id was ever committed.
            SnapshotExpiredError: the snapshot has expired.
        """
        if snapshot_id is not None:
            return Snapshot(self._root, self._root.snapshots.get(snapshot_id))
        value = self._root.latest()
        return None if value is None else Snapshot(self._root, value)

    @reads
    def snapshots(self) -> list[Snapshot]:
        """All remaining snapshots, oldest first."""
        numbers = self._root.check_listed(self._root.snapshots.ids())
        return [Snapshot(self._root, self._root.snapshots.get(number)) for number in numbers]

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._root, self._schema, self._name)

    def _repr_html_(self) -> str:
        return table_page(self._open_table, self._name)

    def __repr__(self) -> str:
        key = f", primary_key={list(self._schema.primary_keys)}" if self._schema.primary_keys else ""
        parts = f", partition_by={list(self._schema.partition_keys)}" if self._schema.partition_keys else ""
        columns = join_values(self._schema.names)
        return f"Table({self._name!r}, columns=[{columns}]{key}{parts}, location={self.location!r})"
