"""Reports changes of a Hive catalog's table to the metastore: new schemas, added and dropped partitions, and tags.

A new schema is reported to the metastore before it is published: if the metastore refuses it, it is not published, and
writers cannot have used it. Partitions and tags are reported after they exist; if that fails, the commit stands, a
warning is issued, and `Catalog.repair` reports them again.

Source: Java `HiveCatalog.alterTable`, `createPartitions`, `dropPartitions`, `AddPartitionCommitCallback`,
`AddPartitionTagCallback`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import pyarrow as pa
import pyarrow.compute as pc

from paimon_py.codec.partition_text import partition_texts
from paimon_py.env import Env
from paimon_py.errors import PaimonError, StorageError, StorageUnknownError, TableNotFoundError
from paimon_py.logs import warn
from paimon_py.metadata.branches import branch_names
from paimon_py.metadata.catalog_entry import LockedCommitter
from paimon_py.metadata.committer import Committed, Committer, Publication, StoreCommitter
from paimon_py.metadata.partition_files import partition_columns, partition_files
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.connection import Client, RefusedError
from paimon_py.metastores.hive.lock import HiveLock
from paimon_py.metastores.hive.records import (
    DATA_DIRECTORY,
    T_KEYS,
    Owner,
    changed_table,
    is_paimon,
    location_of,
    new_partition,
    parameters,
    synchronised_keys,
)
from paimon_py.metastores.hive.settings import HiveSettings
from paimon_py.metastores.hive.thrift import Struct
from paimon_py.metastores.hive.verbs import HiveVerbs
from paimon_py.metastores.metastore import TableName
from paimon_py.spec.changed_schema import apply
from paimon_py.spec.data_file import FileKind
from paimon_py.spec.layout import MAIN_BRANCH, is_blank, partition_path
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import RemoveOption, SchemaChange
from paimon_py.spec.snapshot import Snapshot


class HiveRegistration:
    """The record of one table in the metastore. Can be pickled."""

    __slots__ = ("_env", "_keys", "_name", "_settings", "_verbs", "lock")

    def __init__(
        self, verbs: HiveVerbs, name: TableName, settings: HiveSettings, env: Env, keys: tuple[str, ...]
    ) -> None:
        """`keys`: the keys of the partitions that the metastore stores, empty if none."""
        self._verbs = verbs
        self._name = name
        self._settings = settings
        self._env = env
        self._keys = keys
        self.lock = None if settings.locks is None else HiveLock(verbs.client, name, settings.locks, env)

    def history(self, branch: str) -> None:  # noqa: ARG002
        """See `CatalogEntry.history`."""
        return

    def committer(self, root: TableRoot) -> Committer:
        """See `CatalogEntry.committer`."""
        committer = StoreCommitter(root) if self.lock is None else LockedCommitter(root, self.lock)
        return _PartitionCommitter(committer, root, self) if self._keys else committer

    def alter(
        self, root: TableRoot, changes: Sequence[SchemaChange], publish: Callable[[], TableSchema], /
    ) -> TableSchema:
        """See `CatalogEntry.alter`. Cost: publishing, plus three calls, two more with a lock."""
        with nullcontext() if self.lock is None else self.lock.hold(root.branch):
            if root.branch != MAIN_BRANCH:
                return publish()
            return self._alter(root, changes, publish)

    def _alter(
        self, root: TableRoot, changes: Sequence[SchemaChange], publish: Callable[[], TableSchema]
    ) -> TableSchema:
        before = self._record()
        removed = [change.name for change in changes if isinstance(change, RemoveOption)]
        planned = apply(
            root.schemas.latest(), changes, has_snapshots=root.snapshots.latest_id() is not None,
            time_millis=self._env.clock.millis(),
        )  # fmt: skip
        self.report_schema(before, planned, removed)
        try:
            published = publish()
        except StorageUnknownError:
            raise
        except PaimonError:
            self._restore_record(before)
            raise
        if _metastore_view(published) != _metastore_view(planned):
            self.report_schema(self._record(), published, removed)
        self._keys = synchronised_keys(published)
        return published

    def report_schema(self, record: Struct, schema: TableSchema, removed: Sequence[str] = ()) -> None:
        """Write a schema to the table's record.

        Raises:
            StorageError: the metastore refuses the schema; nothing was changed.
            StorageUnknownError: the metastore did not report whether it accepted the schema.
        """
        location = location_of(record)
        try:
            self._alter_record(changed_table(record, schema, location or "", self._settings, removed))
        except RefusedError as error:
            more = (
                "; a metastore with hive.metastore.disallow.incompatible.col.type.changes = false accepts it"
                if "incompatible" in error.message
                else ""
            )
            raise StorageError(
                f"the metastore refuses the change of {self._name}, and nothing was changed: {error.message}{more}",
                path=location,
                operation="alter_table",
            ) from error

    def _restore_record(self, before: Struct) -> None:
        try:
            self._alter_record(before)
        except (PaimonError, RefusedError) as error:
            warn(
                f"the schema of {self._name} was not changed, but the metastore has the new one: {error}; call"
                f" Catalog.repair({str(self._name)!r})"
            )

    def _alter_record(self, record: Struct) -> None:
        skip = self._settings.skip_statistics
        is_set = parameters(record).get("DO_NOT_UPDATE_STATS", "").strip().lower() == "true"
        context = {"DO_NOT_UPDATE_STATS": "true" if skip or is_set else "false"}
        if self._settings.cascade:
            context["CASCADE"] = "true"
        self._verbs.alter_table(self._name, record, context)

    # -- partitions -------------------------------------------------------------------------------------------------

    def add_partitions(self, schema: TableSchema, partitions: pa.ChunkedArray) -> None:
        """Add partitions (serialized) to the metastore; existing ones are not changed.

        Raises: StorageError
        """
        if len(partitions):
            self._add([list(zip(schema.partition_keys, one, strict=True)) for one in _texts(schema, partitions)])

    def drop_partitions(self, schema: TableSchema, partitions: pa.ChunkedArray) -> None:
        """Remove partitions (serialized) from the metastore.

        Raises: StorageError
        """
        for values in _texts(schema, partitions) if len(partitions) else ():
            self._verbs.drop_partition(self._name, values)

    def add_tags(self, tags: Sequence[str]) -> None:
        """Add tags to the metastore; existing ones are not changed.

        Raises: StorageError
        """
        if tags:
            self._add([[(self._keys[0], tag)] for tag in tags])

    def tag_created(self, root: TableRoot, tag: str) -> None:
        """Report a new tag, if the metastore shows tags as partitions. Warns if that fails."""
        if self._keys and not root.schemas.latest().partition_keys:
            self.report(f"tag {tag!r}", lambda: self.add_tags([tag]))

    def tag_deleted(self, root: TableRoot, tag: str) -> None:
        """Report a deleted tag, if the metastore shows tags as partitions. Warns if that fails."""
        if self._keys and not root.schemas.latest().partition_keys:
            self.report(f"deleted tag {tag!r}", lambda: self._verbs.drop_partition(self._name, [tag]))

    def report(self, what: str, send: Callable[[], object]) -> None:
        """Send a change to the metastore; warns if that fails."""
        try:
            send()
        except PaimonError as error:
            warn(
                f"the metastore was not updated with {what} of {self._name}: {error}. The table itself is correct;"
                f" Catalog.repair({str(self._name)!r}) updates the metastore"
            )

    def _add(self, partitions: Sequence[Sequence[tuple[str, str]]]) -> None:
        record = self._record()
        home = location_of(record) or ""
        inside = parameters(record).get(DATA_DIRECTORY)
        home = f"{home}/{inside}" if inside else home
        owner = Owner(self._settings.servers.user, self._env.clock.millis() // 1000)
        records = []
        for pairs in partitions:
            names, texts = zip(*pairs, strict=True)
            location = f"{home}/{partition_path(names, texts)}"
            records.append(new_partition(record, texts, location, owner, self._settings))
        self._verbs.add_partitions(self._name, records)

    def _record(self) -> Struct:
        record = self._verbs.table(self._name)
        if record is None or not is_paimon(record):
            raise TableNotFoundError(
                f"the metastore no longer has the table {str(self._name)!r}: it was renamed or dropped",
                table=str(self._name),
            )
        return record

    def __reduce__(self) -> tuple[object, ...]:
        return _reopen, (self._verbs.client, self._name, self._settings, self._keys)


class _PartitionCommitter:
    """Publishes like another committer, and reports new and emptied partitions to the metastore.

    Partitions without files are dropped only if no branch may show them.
    """

    __slots__ = ("_committer", "_registration", "_root")

    def __init__(self, committer: Committer, root: TableRoot, registration: HiveRegistration) -> None:
        self._committer = committer
        self._root = root
        self._registration = registration

    def publish(self, snapshot: Snapshot, parent: Snapshot | None, *, deadline: float) -> Publication:
        """See `Committer.publish`. Cost: reads the new manifests, and two calls."""
        done = self._committer.publish(snapshot, parent, deadline=deadline)
        if isinstance(done, Committed):
            what = f"the partitions of snapshot {snapshot.id}"
            self._registration.report(what, lambda: self._report_partitions(done.snapshot))
        return done

    def _report_partitions(self, snapshot: Snapshot) -> None:
        schema = self._root.schemas.get(snapshot.schema_id)
        if not schema.partition_keys:
            return
        manifests = self._root.manifests
        entries = manifests.read_entries(manifests.delta(snapshot))
        added = entries.additions().partitions().unique()
        self._registration.add_partitions(schema, pa.chunked_array([added]))
        left = entries.take(entries.kind == FileKind.DELETE).partitions().unique()
        left = left.filter(pc.invert(pc.is_in(left, value_set=added)))
        if len(left) and not branch_names(self._root):  # a branch may still have these partitions
            kept = partition_files(self._root, snapshot)["partition"].combine_chunks()
            gone = left.filter(pc.invert(pc.is_in(left, value_set=kept)))
            self._registration.drop_partitions(schema, pa.chunked_array([gone]))


def keys_of(record: Struct) -> tuple[str, ...]:
    """The names of the partition keys that the metastore stores for a table."""
    return tuple(thrift.text(key, 1) or "" for key in thrift.structs(record, T_KEYS))


def _texts(schema: TableSchema, partitions: pa.ChunkedArray) -> list[list[str]]:
    """The values of partitions as strings, as in directory names but unescaped."""
    options = Options(schema.options)
    legacy, default = options.get_bool("partition.legacy-name"), options.get_str("partition.default-name")
    columns = partition_columns(schema, partitions)
    texts = [
        partition_texts(columns[field.name].combine_chunks(), field.type, legacy=legacy).to_pylist()
        for field in schema.partition_fields
    ]
    return [
        [default if text is None or is_blank(text) else text for text in row] for row in zip(*texts, strict=True)
    ]


def _metastore_view(schema: TableSchema) -> tuple[object, ...]:
    """The parts of a schema that the metastore stores."""
    return schema.fields, schema.partition_keys, dict(schema.options), schema.comment


def _reopen(client: Client, name: TableName, settings: HiveSettings, keys: tuple[str, ...]) -> HiveRegistration:
    return HiveRegistration(HiveVerbs(client), name, settings, Env(), keys)
