"""Imports a snapshot of a Delta or Iceberg table: by reference to its files, or by copying its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set

import msgspec
import pyarrow as pa

from paimon_py.codec.arrow_types import from_arrow_schema
from paimon_py.codec.partition_text import may_partition
from paimon_py.commit.commit import commit
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.env import Env
from paimon_py.errors import PaimonError, UnsupportedError, UsageError
from paimon_py.imports.columns import Layout, misfits_of
from paimon_py.imports.ledger import EarlierImports, Ledger
from paimon_py.imports.result import ImportResult, UnfitFile
from paimon_py.imports.source_files import Partition, SourceFile, inspect_file, path_of, place_of, url_of, wider_type
from paimon_py.imports.verb import (
    TablesOfCatalog,
    check_source,
    check_table,
    commit_files,
    create_or_open,
    dropping_on_failure,
    find_table,
)
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.progress import Progress
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.type_text import with_nullability
from paimon_py.spec.types import Field
from paimon_py.storage.open import open_store
from paimon_py.table.table import Table
from paimon_py.table.writing import writer
from paimon_py.write.loaded_files import LoadedFile

_FAILURES = (ValueError, OSError, LookupError, RuntimeError, pa.ArrowException)
"""The errors with which the packages, and Arrow on their behalf, report files that they cannot read."""


class ForeignFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file of a table of another format.

    Attributes:
        url: its location.
        size_bytes: its size.
        partition: values of the partition keys, as strings.
        given: further columns that do not read as NULL if the file lacks them, because the table has their values.
        only_copied: why its rows can only be copied; None if the file may be suitable for a reference.
    """

    url: str
    size_bytes: int
    partition: Partition = ()
    given: tuple[str, ...] = ()
    only_copied: str | None = None


class ForeignTable(msgspec.Struct, frozen=True, kw_only=True):
    """One snapshot of a table of another format.

    Attributes:
        format: Delta or Iceberg.
        url: the directory of the table.
        version: the version or snapshot id.
        columns: names and types.
        ids: the column ids that its files must have, if the format has column ids.
        partition_keys: columns whose values the table keeps for each file.
        files: the data files.
        rows: all rows of the snapshot, as a stream, without deleted rows.
        row_count: the number of these rows, None if it is unknown.
        only_copied: why its rows can only be copied; None if its files may be suitable for references.
    """

    format: str
    url: str
    version: str
    columns: pa.Schema
    ids: Mapping[str, int] | None = None
    partition_keys: tuple[str, ...] = ()
    files: tuple[ForeignFile, ...]
    rows: Callable[[], pa.RecordBatchReader]
    row_count: int | None = None
    only_copied: str | None = None

    @property
    def source(self) -> str:
        """The name of the table in the ledger."""
        return f"{self.format} {self.url} "


class ForeignRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the import of a table; see `Catalog.import_delta`.

    Attributes:
        copy: True: rows are copied; False: never; None: only if the files cannot be referenced.
        dry_run: nothing is changed.
        primary_key, table_options: settings of a new table.
        options: options of the store of the source.
    """

    copy: bool | None = None
    dry_run: bool = False
    primary_key: tuple[str, ...] = ()
    table_options: Mapping[str, str] = {}
    options: Mapping[str, str] = {}


def import_table(
    catalog: TablesOfCatalog, name: str, foreign: ForeignTable, asked: ForeignRequest, env: Env,
    progress: Progress | None,
) -> ImportResult:  # fmt: skip
    """Import a snapshot into a table, which is created if it does not exist. See `Catalog.import_delta`."""
    table = find_table(catalog, name)
    fields = tuple(table._newest.fields) if table is not None else _fields(foreign, asked.primary_key)
    keys = _partition_keys(foreign, fields) if table is None else tuple(table._newest.partition_keys)
    layout = Layout(
        tuple(field for field in fields if field.name not in keys), tuple(_field(fields, key) for key in keys)
    )
    settled = EarlierImports() if table is None else Ledger(table._newest_table).settle()
    before = settled.urls
    new, is_known = _new_files(foreign, before)
    files: list[SourceFile] = []
    reason: str | None = "copy=True"
    if not asked.copy:
        files, reason = _as_references(catalog, foreign, new, layout, asked, env, table)
    by_reference = reason is None
    if asked.copy is False and reason is not None:
        message = f"{foreign.format} table {foreign.url} cannot be referenced: {reason}"
        raise UnsupportedError(message, feature="copy=False")
    if before and not is_known and not by_reference:
        raise UsageError(
            f"{name} contains an earlier version of {foreign.url}, and this version can only be copied"
            f" ({reason}): import it into another table"
        )
    found = ImportResult(
        table=name, is_new=table is None, dry_run=asked.dry_run, by_reference=by_reference,
        files=0 if is_known else len(new), rows=0 if is_known else _count(files, foreign, by_reference),
        size_bytes=0 if is_known else sum(file.size_bytes for file in new),
        partitions=len({file.partition for file in new}),
        known_files=len(foreign.files) - len(new), columns=fields, partition_keys=keys,
        copied_because=None if by_reference or asked.copy else reason,
    )  # fmt: skip
    if asked.dry_run or is_known:
        return found
    is_made = False
    if table is None:
        table, is_made = create_or_open(catalog, name, fields, keys, asked.primary_key, asked.table_options)
    with dropping_on_failure(catalog, name, table, is_made=is_made):
        if by_reference:
            done = commit_files(table, files, layout, (foreign.url, settled), progress, version=_version(foreign))
        else:
            done = _copy(table, foreign, settled)
    return msgspec.structs.replace(found, snapshot_id=done.snapshot_id)


def _fields(foreign: ForeignTable, required: Sequence[str]) -> tuple[Field, ...]:
    """The columns of a new table; NOT NULL in the source is kept if its files declare it, too."""
    says_null = foreign.ids is not None
    known = pa.schema([column.with_type(wider_type(column.type)) for column in foreign.columns])
    columns = Schema(from_arrow_schema(known)).fields
    return tuple(
        msgspec.structs.replace(field, type=with_nullability(
            field.type, field.name not in required and (field.type.nullable or not says_null)
        ))
        for field in columns
    )


def _partition_keys(foreign: ForeignTable, fields: Sequence[Field]) -> tuple[str, ...]:
    """The partition keys of a new table: those of its source, or none if no directory can be named by one of them."""
    kinds = [_field(fields, key).type for key in foreign.partition_keys]
    return foreign.partition_keys if all(may_partition(kind) for kind in kinds) else ()


def _field(fields: Sequence[Field], name: str) -> Field:
    found = next((field for field in fields if field.name == name), None)
    if found is None:
        raise UsageError(f"partition key {name!r} is not a column of the source")
    return found


def _count(files: Sequence[SourceFile], foreign: ForeignTable, by_reference: bool) -> int:
    return sum(file.row_count for file in files) if by_reference else foreign.row_count or 0


def _version(foreign: ForeignTable) -> str:
    return f"{foreign.source}{foreign.version}"


def _new_files(foreign: ForeignTable, before: Set[str]) -> tuple[list[ForeignFile], bool]:
    """Files that no earlier import contains, and whether exactly this version was imported before.

    Raises: UsageError if the source no longer has files that were imported, since their rows are now in other files.
    """
    if _version(foreign) in before:
        return [], True
    earlier = {each for each in before if each.startswith(foreign.source)}
    if not earlier:
        return list(foreign.files), False
    here = {file.url for file in foreign.files}
    gone = [url for url in before if url.startswith(foreign.url) and url not in here]
    if gone:
        raise UsageError(
            f"{foreign.url} has rewritten files that were imported before, such as {gone[0]}: import this version into"
            " another table"
        )
    return [file for file in foreign.files if file.url not in before], False


def _as_references(
    catalog: TablesOfCatalog, foreign: ForeignTable, files: Sequence[ForeignFile], layout: Layout,
    asked: ForeignRequest, env: Env, table: Table | None,
) -> tuple[list[SourceFile], str | None]:  # fmt: skip
    """The files as files of the table, or why they cannot be referenced."""
    keys = tuple(field.name for field in layout.keys)
    reason = foreign.only_copied or ("the table gets a primary key" if asked.primary_key else None)
    if reason is None and keys != foreign.partition_keys:
        reason = f"the table is partitioned by {list(keys)}, and its source by {list(foreign.partition_keys)}"
    reason = reason or next((file.only_copied for file in foreign.files if file.only_copied is not None), None)
    if reason is not None:
        return [], reason
    try:
        check_source(foreign.url, place_of(path_of(foreign.url), asked.options)[1], catalog.warehouse, table)
        if table is not None:
            check_table(table._newest)
    except UsageError as error:
        return [], str(error)
    found: list[SourceFile] = []
    for each in env.io.map(lambda file: _inspect(file, foreign, asked.options), files):
        if isinstance(each, UnfitFile):
            return [], f"{each.path}: {each.reason}"
        found.append(each)
    misfits = misfits_of(found, layout, by_reference=True)
    return ([], f"{misfits[0].path}: {misfits[0].reason}") if misfits else (found, None)


def _inspect(file: ForeignFile, foreign: ForeignTable, options: Mapping[str, str]) -> SourceFile | UnfitFile:
    if not file.url.startswith(f"{foreign.url}/"):
        return UnfitFile(file.url, f"it is outside of {foreign.url}")
    store, place = open_store(path_of(file.url), options)
    found = inspect_file(LoadedFile(place, store, file.size_bytes), None, file.partition)
    if isinstance(found, UnfitFile):
        return found
    lacking = sorted({*file.given} - {field.name for field in found.fields})
    if lacking:
        return UnfitFile(file.url, f"column {lacking[0]!r} is not in the file: the table has its value")
    wrong = [
        field.name for field in found.fields if foreign.ids is not None and foreign.ids.get(field.name) != field.id
    ]
    if wrong:
        return UnfitFile(file.url, f"column {wrong[0]!r} has another id in the file: it was renamed or added again")
    return msgspec.structs.replace(found, url=url_of(place))


def _copy(table: Table, foreign: ForeignTable, settled: EarlierImports) -> CommitResult:
    """Write all rows of the snapshot, as one commit."""
    newest = table._newest_table
    ledger = Ledger(newest)
    begun = ledger.begin(settled, foreign.url, (*(file.url for file in foreign.files), _version(foreign)))
    request = CommitRequest(label=begun.label, is_new=True, check=settled.require_alone)
    with writer(newest, overwrite=False) as session:
        session.write_arrow(_rows(foreign))
        changes = session.changes(is_new=True)
        with discarding_on_failure(lambda: session.discard(changes)):
            done = run_auto_maintenance(newest, commit(newest, changes, request), of_batch=True)
    ledger.mark(begun)
    return done


def _rows(foreign: ForeignTable) -> pa.RecordBatchReader:
    """All rows of the snapshot, with the errors of the package as ours."""
    try:
        rows = foreign.rows()
    except _FAILURES as error:
        raise foreign_failure(f"the {foreign.format}", error) from error

    def whole() -> Iterator[pa.RecordBatch]:
        try:
            yield from rows
        except _FAILURES as error:
            raise foreign_failure(f"the {foreign.format}", error) from error

    return pa.RecordBatchReader.from_batches(rows.schema, whole())


def foreign_failure(form: str, error: Exception) -> PaimonError:
    """The error of a package that reads tables of another format, as a PaimonError."""
    return UsageError(f"{form} table cannot be read: {type(error).__name__}: {error}")
