"""The part of a server in a table: its latest snapshot, commits, rollbacks, branches, and schema changes.

Source: Java `RESTCatalog`, `CatalogSnapshotCommit`, `SnapshotLoaderImpl`, `CatalogBranchManager`, `CatalogUtils`, main
of August 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from paimon_py.codec.snapshot_json import snapshot_from_json
from paimon_py.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    NotFoundError,
    SnapshotNotFoundError,
    TableNotFoundError,
    TagNotFoundError,
    UsageError,
)
from paimon_py.metadata.catalog_entry import SnapshotCatalog
from paimon_py.metadata.committer import Committer, StoreCommitter
from paimon_py.metadata.root import TableRoot
from paimon_py.metastores.metastore import TableName
from paimon_py.metastores.rest.change_json import change_json
from paimon_py.metastores.rest.client import RestClient
from paimon_py.metastores.rest.commit import ServerCommitter
from paimon_py.metastores.rest.messages import BranchesAnswer, LatestAnswer, TableAnswer
from paimon_py.metastores.rest.transport import RestRefusedError
from paimon_py.spec.changed_schema import apply
from paimon_py.spec.layout import MAIN_BRANCH
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import SchemaChange
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.supported import check_same_features


class RestTable(msgspec.Struct, frozen=True):
    """A branch of a table on its server. A table that is dropped and created again gets a new `id`."""

    client: RestClient
    name: TableName
    id: str | None
    branch: str = MAIN_BRANCH

    @property
    def object_name(self) -> str:
        """The server's name of the branch."""
        return self.name.table if self.branch == MAIN_BRANCH else f"{self.name.table}$branch_{self.branch}"

    def path(self, *parts: str) -> str:
        """The path of a resource of the branch."""
        return self.client.path("databases", self.name.database, "tables", self.object_name, *parts)

    def main_path(self, *parts: str) -> str:
        """The path of a resource of the table."""
        return self.client.path("databases", self.name.database, "tables", self.name.table, *parts)

    def missing(self, refused: RestRefusedError) -> NotFoundError:
        """The error for an answer that a resource does not exist."""
        kinds: dict[str, type[NotFoundError]] = {
            "BRANCH": BranchNotFoundError, "TAG": TagNotFoundError, "SNAPSHOT": SnapshotNotFoundError,
        }  # fmt: skip
        kind = kinds.get(refused.resource, TableNotFoundError)
        return kind(str(refused), table=f"{self.name.database}.{self.object_name}")


class RestRegistration(msgspec.Struct, frozen=True):
    """The entry of one table. `is_external`: the server stores its name and schema, but no snapshots."""

    table: RestTable
    is_external: bool

    @property
    def counts_partitions(self) -> bool:
        """See `CountsPartitions.counts_partitions`."""
        return not self.is_external

    def history(self, branch: str) -> SnapshotCatalog | None:
        """See `CatalogEntry.history`."""
        return None if self.is_external else RestSnapshotCatalog(msgspec.structs.replace(self.table, branch=branch))

    def committer(self, root: TableRoot) -> Committer:
        """See `CatalogEntry.committer`."""
        if self.is_external:
            return StoreCommitter(root)
        return ServerCommitter(root, msgspec.structs.replace(self.table, branch=root.branch))

    def alter(
        self, root: TableRoot, changes: Sequence[SchemaChange], _publish: Callable[[], TableSchema], /
    ) -> TableSchema:
        """See `CatalogEntry.alter`. The server applies the changes, after they were validated locally.

        Cost: two requests, and reads the schema files.
        """
        before = root.schemas.latest()
        has_snapshots = root.snapshots.latest_id() is not None
        wanted = apply(before, changes, has_snapshots=has_snapshots, time_millis=root.env.clock.millis())
        check_same_features(before, wanted)
        table = msgspec.structs.replace(self.table, branch=root.branch)

        def is_done() -> bool:
            return table.client.get(table.path(), TableAnswer).schemaId > before.id and _same(
                root.schemas.latest(), wanted
            )

        try:
            table.client.change(table.path(), {"changes": [change_json(change) for change in changes]}, is_done)
        except RestRefusedError as refused:
            if refused.status == 404 and refused.resource in ("", "TABLE", "DATABASE"):
                raise table.missing(refused) from refused
            if refused.status in (404, 409):
                raise UsageError(str(refused), table=str(table.name)) from refused
            raise
        return root.schemas.latest()


class RestSnapshotCatalog(msgspec.Struct, frozen=True):
    """A branch whose snapshots the server stores."""

    table: RestTable

    def newest(self) -> Snapshot | None:
        """See `SnapshotCatalog.newest`. Cost: one request. A branch unknown to the server has no snapshot."""
        path = self.table.path("snapshot")
        try:
            found = self.table.client.get(path, LatestAnswer).snapshot
        except RestRefusedError as refused:
            is_branch = self.table.branch != MAIN_BRANCH
            if refused.status == 404 and (refused.resource == "SNAPSHOT" or is_branch):
                return None
            raise self._error(refused) from refused
        return None if found is None else snapshot_from_json(bytes(found.snapshot), path)

    def roll_back(self, target: Snapshot, tag: str | None) -> None:
        """See `SnapshotCatalog.roll_back`."""
        instant: dict[str, Any] = {"type": "snapshot", "snapshotId": target.id}
        if tag is not None:
            instant = {"type": "tag", "tagName": tag}

        def is_done() -> bool:
            newest = self.newest()
            return newest is not None and newest.id == target.id and newest.uuid == target.uuid

        self._change(self.table.path("rollback"), {"instant": instant, "fromSnapshot": None}, is_done)

    def create_branch(self, name: str, tag: str | None) -> None:
        """See `SnapshotCatalog.create_branch`."""
        path = self.table.main_path("branches")
        self._change(path, {"branch": name, "fromTag": tag}, lambda: name in self._branches())

    def delete_branch(self, name: str) -> None:
        """See `SnapshotCatalog.delete_branch`."""
        if name not in self._branches():
            table = str(self.table.name)
            raise BranchNotFoundError(f"no branch {name!r} in {table!r}", table=table)
        try:
            self.table.client.delete(self.table.main_path("branches", name))
        except RestRefusedError as refused:
            raise self._error(refused) from refused

    def fast_forward(self, name: str) -> None:
        """See `SnapshotCatalog.fast_forward`."""
        branch = RestSnapshotCatalog(msgspec.structs.replace(self.table, branch=name))
        main = RestSnapshotCatalog(msgspec.structs.replace(self.table, branch=MAIN_BRANCH))
        self._change(self.table.main_path("branches", name, "forward"), {}, lambda: main.newest() == branch.newest())

    def _branches(self) -> Sequence[str]:
        try:
            return self.table.client.get(self.table.main_path("branches"), BranchesAnswer).branches or ()
        except RestRefusedError as refused:
            raise self._error(refused) from refused

    def _change(self, path: str, body: object, is_done: Callable[[], bool]) -> None:
        try:
            self.table.client.change(path, body, is_done)
        except RestRefusedError as refused:
            raise self._error(refused) from refused

    def _error(self, refused: RestRefusedError) -> Exception:
        if refused.status == 404:
            return self.table.missing(refused)
        if refused.status == 409:
            return AlreadyExistsError(str(refused), table=str(self.table.name))
        return refused


def _same(there: TableSchema, wanted: TableSchema) -> bool:
    """Whether a schema has the requested contents, regardless of its id."""
    return (there.fields, there.options, there.comment) == (wanted.fields, wanted.options, wanted.comment)
