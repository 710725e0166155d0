"""Publishes a table for Iceberg readers after each commit, change of tags, rollback and fast-forward.

Source: docs/format.md §25.9; Java `IcebergCommitCallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from paimon_py.iceberg.early_versions import EarlyVersion
from paimon_py.iceberg.found_versions import FoundVersions
from paimon_py.iceberg.publication import IcebergPublisher
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.snapshot import Base, SnapshotId


class IcebergObserver:
    """Publishes Iceberg metadata after events of a table; each method returns messages for users."""

    def __init__(self, table: OpenTable) -> None:
        self._table = table
        self._root = table.root
        self._publisher = IcebergPublisher(table)

    def on_commit(self, snapshot_ids: Sequence[int]) -> tuple[str, ...]:
        """Publish committed snapshots in their order."""
        notes: tuple[str, ...] = ()
        for number in snapshot_ids:
            make = self._publisher.early.start(number)
            made: list[EarlyVersion | None] = []
            meanwhile = None if make is None else partial(_keep, made, make)
            try:
                directory, known = self._publisher.directory, self._publisher.early.base
                found = FoundVersions(directory, self._root.snapshots, number, meanwhile, known)
                snapshot = found.snapshots[number]
                mark = number.mark if isinstance(number, SnapshotId) else None
                if snapshot is not None and Base(number, mark).is_of(snapshot):
                    notes += self._publisher.publish(snapshot, found, *made).notes
            finally:
                for one in made:
                    if one is not None:
                        one.discard()
        return notes + self._catalog_failure()

    def tags_changed(self) -> tuple[str, ...]:
        """Publish the tags."""
        return self._publisher.tags_changed() + self._catalog_failure()

    def on_move(self) -> tuple[str, ...]:
        """Publish the latest snapshot after a rollback or fast-forward."""
        done = self._publisher.follow_move()
        return (() if done is None else done.notes) + self._catalog_failure()

    def _catalog_failure(self) -> tuple[str, ...]:
        """The warning for a version that was not published to the Iceberg catalog."""
        error = self._publisher.catalog_error
        if error is None:
            return ()
        return (
            f"the Iceberg metadata was written, but not published to its catalog: {error}; the next commit or"
            " table.publish_iceberg() publishes it",
        )


def _keep(made: list[EarlyVersion | None], make: Callable[[], EarlyVersion | None]) -> None:
    made.append(make())
