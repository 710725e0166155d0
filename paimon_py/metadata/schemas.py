"""The schema versions of one table: reading them, adding one, and altering the latest.

Source: format.md §2, §3; Java `SchemaManager`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

import msgspec

from paimon_py.codec.json import schema_from_json, schema_options_from_json, schema_to_json
from paimon_py.env import Clock
from paimon_py.errors import (
    CommitRetriesExhaustedError,
    CorruptionError,
    SchemaError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    UnsupportedError,
)
from paimon_py.spec.external_paths import PATHS, declared_roots
from paimon_py.spec.layout import SCHEMA_PREFIX, parse_number, schema_directory, schema_path
from paimon_py.spec.referenced_paths import referenced_paths
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import SchemaChange
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.supported import check_same_features
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic
from paimon_py.storage.store import Delete, FileMissingError, FileStatus, Get, List, PutNew

ALTER_ATTEMPTS = 30
_FIRST_WAIT_SECONDS = 0.01
_LONGEST_WAIT_SECONDS = 0.5


class SchemaStore(Get, PutNew, List, Delete, Protocol):
    """The store operations that this module uses."""


class Schemas:
    """The schemas of one table directory (or branch directory).

    A schema file never changes, so every version is read once. Another one takes its place only if the table is dropped
    and created again, or rolled back by others; a listing shows this. Pickles carry the store and the path.

    A branch that is deleted and created again has the same schemas, copies of the table's. There a file that was
    written again means another branch.
    """

    __slots__ = ("_cache", "_is_branch", "_own", "_path", "_stamps", "_store")

    def __init__(self, store: SchemaStore, path: str, *, is_branch: bool = False) -> None:
        self._store = store
        self._path = path
        self._is_branch = is_branch
        self._cache: dict[int, TableSchema] = {}
        self._stamps: dict[int, FileStatus] = {}
        self._own: set[tuple[int, int]] = set()  # versions of the table, by id and time, used by snapshots

    def ids(self) -> list[int]:
        """Ids of all versions, ascending. Cost: one list."""
        return sorted(self._list())

    def _list(self) -> dict[int, FileStatus]:
        statuses = self._store.list(schema_directory(self._path))
        numbers = ((parse_number(SCHEMA_PREFIX, status.name), status) for status in statuses if not status.is_directory)
        return {number: status for number, status in numbers if number is not None}

    def latest(self) -> TableSchema:
        """The newest version. Cost: one list and, the first time, one get.

        Raises:
            TableNotFoundError: there is no schema, so there is no table; or a version that was read before has
                changed: there is another table.
        """
        listed = self._list()
        if not listed:
            raise TableNotFoundError(f"{self._path} is not a Paimon table: it has no schema", path=self._path)
        for number in list(self._cache):
            stamp = self._stamps.get(number)
            if listed.get(number) != stamp:
                if self._is_branch and stamp is not None:
                    raise _changed_error(self._path, number, is_branch=self._is_branch)
                self._require_same(number, self._cache[number].__eq__)
        self._stamps = listed
        try:
            return self.get(max(listed))
        except CorruptionError:
            if max(listed) in self.ids():
                raise
        return self.latest()  # a fast-forward has deleted it

    def require_same(self, schema: TableSchema) -> None:
        """Check that a version is the same as when it was read. Cost: a get, the first time.

        Raises: TableNotFoundError
        """
        known = self._cache.get(schema.id)
        if known is None or not known.is_same_version(schema):
            self._require_same(schema.id, schema.is_same_version)

    def require_own(self, snapshot: Snapshot, schema: TableSchema) -> None:
        """Check that a snapshot belongs to the table whose version was read; undecidable for other writers.

        Cost: none for a snapshot of this version; otherwise a get, once for each other version.
        Raises: TableNotFoundError if another table is at the path now.
        """
        millis = snapshot.schema_millis
        if millis is None or millis == schema.time_millis or (snapshot.schema_id, millis) in self._own:
            return
        self._require_same(schema.id, schema.is_same_version)
        self._own.add((snapshot.schema_id, millis))

    @property
    def newest_seen(self) -> TableSchema:
        """The newest version by the last listing; lists if there was none. Raises: as `latest`"""
        return self.get(max(self._stamps)) if self._stamps else self.latest()

    def _require_same(self, number: int, is_same: Callable[[TableSchema], bool]) -> None:
        path = schema_path(self._path, number)
        try:
            if is_same(schema_from_json(self._store.get(path), path)):
                return
        except FileMissingError:
            pass
        raise _changed_error(self._path, number, is_branch=self._is_branch)

    def forget(self) -> None:
        """Discard all cached versions: others may have taken their place."""
        self._cache.clear()
        self._own.clear()
        self._stamps = {}

    def external_roots(self) -> Iterator[str]:
        """The directories that any version names as `data-file.external-paths`, those of the newest first.

        Cost: one list, and a get for each version not read before; versions are read lazily.
        """
        for number in reversed(self.ids()):
            yield from declared_roots(self.options(number).get(PATHS))

    def referenced_roots(self) -> Iterator[str]:
        """Directories of others in which any version states that files of the table are. Cost: as `external_roots`"""
        for number in reversed(self.ids()):
            yield from referenced_paths(self.options(number))

    def options(self, schema_id: int) -> Mapping[str, str]:
        """The options of a version, also if a later release wrote its columns. Cost, Raises: as `get`"""
        try:
            return self.get(schema_id).options
        except UnsupportedError:
            path = schema_path(self._path, schema_id)
            return schema_options_from_json(self._store.get(path), path)

    def of_file(self, schema_id: int, current: TableSchema) -> TableSchema:
        """The version with which a file was written: `current` itself if it is this one, even with other options.

        Raises: SchemaError if it is a later one that gave a column another type, since its values may not fit.
        """
        if schema_id == current.id:
            return current
        written = self.get(schema_id)
        if schema_id > current.id:
            _require_same_types(written, current)
        return written

    def get(self, schema_id: int) -> TableSchema:
        """One version. Cost: one get, the first time.

        Raises:
            TableNotFoundError: the table does not exist (any more).
            CorruptionError: the table lacks this version, the file is not a schema, or it has another id.
        """
        schema = self._cache.get(schema_id)
        if schema is None:
            path = schema_path(self._path, schema_id)
            try:
                data = self._store.get(path)
            except FileMissingError as error:
                if self.ids():
                    raise CorruptionError(f"schema {schema_id} of {self._path} is missing", path=path) from error
                raise TableNotFoundError(f"{self._path} is not a Paimon table: it has no schema", path=path) from error
            schema = schema_from_json(data, path)
            if schema.id != schema_id:
                raise CorruptionError(f"{path} contains schema {schema.id}", path=path)
            self._cache[schema_id] = schema
        return schema

    def add(self, schema: TableSchema, *, after: TableSchema | None = None) -> bool:
        """Publish a version. Returns True if this call did, False if its id is taken.

        The file is read back: the version is ours if it equals what we wrote. The answer of the store may be lost,
        and a Java writer that checked before we wrote replaces the file.

        Args:
            after: the previous version, which must still exist; only the file is created then. None: the first
                version of a new table, whose directory is created.

        Cost: one conditional put and one get; with `after` one more get.

        Raises:
            TableNotFoundError: the table was renamed, dropped or rolled back in the meantime; it has no such version.
            StorageUnknownError: the answer was lost and the file does not exist (yet), or it could not be read back.
        """
        path, data = schema_path(self._path, schema.id), schema_to_json(schema)
        lost: StorageUnknownError | None = None
        try:
            created = self._store.put_new(path, data, within=None if after is None else schema_directory(self._path))
        except StorageUnknownError as unknown:
            created, lost = True, unknown
        except FileMissingError as error:
            raise self._gone_error(schema.id) from error
        if not created:
            return False
        try:
            there = self._find_bytes(schema.id)
            if there == data and after is not None and not self._is_stored(after):
                self._store.delete(path)
                there = None
        except StorageError as error:
            raise StorageUnknownError(
                f"{path} could not be read back: {error}", path=path, operation="put_new"
            ) from error
        if there is None:
            raise lost or self._gone_error(schema.id)
        return there == data

    def _find_bytes(self, schema_id: int) -> bytes | None:
        try:
            return self._store.get(schema_path(self._path, schema_id))
        except FileMissingError:
            return None

    def _is_stored(self, schema: TableSchema) -> bool:
        there = self._find_bytes(schema.id)
        return there is not None and schema_from_json(there, schema_path(self._path, schema.id)) == schema

    def _gone_error(self, schema_id: int) -> TableNotFoundError:
        path = schema_path(self._path, schema_id)
        return TableNotFoundError(
            f"{self._path} was renamed, dropped or rolled back while its schema {schema_id} was being added; open the"
            " table again",
            path=path,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Schemas, is_branch=self._is_branch), (self._store, self._path)

    def __repr__(self) -> str:
        return f"Schemas({self._path!r})"


def _changed_error(path: str, number: int, *, is_branch: bool) -> TableNotFoundError:
    what = "branch was deleted" if is_branch else "table was dropped"
    return TableNotFoundError(
        f"schema {number} of {path} has changed: the {what} and created again, or its schema rolled back;"
        " open it again",
        path=schema_path(path, number),
    )


def alter(
    schemas: Schemas, changes: Sequence[SchemaChange], *, has_snapshots: Callable[[], bool], clock: Clock
) -> TableSchema:
    """Apply changes to the latest schema and publish the result as the next version.

    If another writer takes the next id first, the changes are applied again to its version.

    Args:
        schemas: the versions of the table.
        changes: all of them make one new version.
        has_snapshots: whether the table contains data; some options cannot change then.
        clock: provides the creation time and waits between attempts.

    Raises:
        UsageError: a change breaks a rule, or needs an unsupported feature.
        TableNotFoundError: the table was renamed or dropped; it is not created again.
        CommitRetriesExhaustedError: the race was lost every time.
    """
    from paimon_py.spec.changed_schema import apply

    wait = _FIRST_WAIT_SECONDS
    for attempt in range(ALTER_ATTEMPTS):
        if attempt:
            clock.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        latest = schemas.latest()
        schema = apply(latest, changes, has_snapshots=has_snapshots(), time_millis=clock.millis())
        check_same_features(latest, schema)
        if schemas.add(schema, after=latest):
            return schema
    raise CommitRetriesExhaustedError(f"others changed the schema of {schemas!r} in all {ALTER_ATTEMPTS} attempts")


def _require_same_types(later: TableSchema, known: TableSchema) -> None:
    types = {field.id: field.type for field in later.fields}
    for field in known.fields:
        other = types.get(field.id)
        if not isinstance(other, Atomic) or not isinstance(field.type, Atomic):
            continue
        if other != msgspec.structs.replace(field.type, nullable=other.nullable):
            raise SchemaError(
                f"column {field.name} is {sql_type(other)} since schema {later.id}, but {sql_type(field.type)} in"
                f" schema {known.id}, which this table object knows; call refresh(), or open the table again",
                fields=(field.name,),
            )
