"""Imports the files of a directory into a table, by reference or as copies, each file once."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from paimon_py.arguments import NameList
from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.codec.columns import combine
from paimon_py.commit.changes import BucketChanges, Changes, Edit
from paimon_py.commit.commit import commit
from paimon_py.commit.request import CommitRequest
from paimon_py.commit.result import CommitResult
from paimon_py.commit.uncommitted import discarding_on_failure
from paimon_py.env import Env
from paimon_py.errors import (
    AlreadyExistsError,
    CorruptionError,
    SchemaError,
    TableNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.files.stats import StatsMode, stats_of
from paimon_py.formats.base import ColumnBounds
from paimon_py.imports.columns import Layout, layout_in, layout_of, misfits_of, partition_of, partition_values
from paimon_py.imports.damage import damage_of, faulty_column
from paimon_py.imports.int96_times import check_times
from paimon_py.imports.ledger import EarlierImports, Ledger
from paimon_py.imports.result import ImportResult, UnfitFile
from paimon_py.imports.source_files import SourceFile, check_format, directory_of, find_sources, place_of, url_of
from paimon_py.maintain.auto_maintenance import run_auto_maintenance
from paimon_py.metadata.open_table import OpenTable
from paimon_py.progress import Progress, ProgressCounter
from paimon_py.spec.bucket_mode import BucketMode, bucket_mode
from paimon_py.spec.data_file import DataFile, FileSource
from paimon_py.spec.external_paths import PATHS, declared_roots
from paimon_py.spec.layout import DATABASE_SUFFIX
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.options import Options
from paimon_py.spec.redact import shown_url
from paimon_py.spec.referenced_paths import REFERENCED, referenced_paths
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_changes import SetOption
from paimon_py.spec.snapshot import Base
from paimon_py.spec.types import Field
from paimon_py.table.table import Table
from paimon_py.table.writing import writer

_UNSUITED = ("row-tracking.enabled", "data-evolution.enabled")
_SHOWN = 5


class ImportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The sources and settings of an import; see `Catalog.import_files`.

    Attributes:
        source: a directory or file; of a file, its directory is referenced.
        format: the file format; None: determined by the file names.
        partition_by: keys, optionally with types; None: determined by the names of directories.
        copy: rows are copied; otherwise the files stay in place.
        dry_run: nothing is changed.
        verify: all values of files that are referenced are read first.
        primary_key, table_options: settings of a new table.
        options: options of the store of the source.
    """

    source: str
    format: str | None = None
    partition_by: Sequence[str] | Mapping[str, str] | None = None
    copy: bool = False
    dry_run: bool = False
    verify: bool = False
    primary_key: tuple[str, ...] = ()
    table_options: Mapping[str, str] = {}
    options: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        check_format(self.format)
        if not self.source:
            raise UsageError("import_files takes a directory, not ''")


class TablesOfCatalog(Protocol):
    """Opens and creates tables."""

    @property
    def warehouse(self) -> str:
        """Directory or URL of the warehouse."""

    def table(self, name: str) -> Table:
        """Open a table."""

    def create_table(
        self, name: str, schema: Schema, *, primary_key: NameList, partition_by: NameList, options: Mapping[str, str],
        exist_ok: bool,
    ) -> Table:  # fmt: skip
        """Create a table."""

    def drop_table(self, name: str, *, missing_ok: bool = False) -> None:
        """Drop a table."""


def import_files(
    catalog: TablesOfCatalog, name: str, asked: ImportRequest, env: Env, progress: Progress | None
) -> ImportResult:
    """See `Catalog.import_files`."""
    table = find_table(catalog, name)
    place = directory_of(asked.source, asked.options)
    url = url_of(place)
    _require_plain_files(asked)
    if not asked.copy:
        check_source(url, place, catalog.warehouse, table)
    files, wrong = find_sources(asked.source, asked.format, asked.options, env)
    settled = EarlierImports() if table is None else Ledger(table._newest_table).settle()
    known = settled.urls | _live(table)
    new: list[SourceFile] = []
    for each in env.io.map(_with_times, [file for file in files if file.url not in known]):
        (new if isinstance(each, SourceFile) else wrong).append(each)  # type: ignore[arg-type]
    layout = _layout(table, new or files, asked)
    wrong = [each for each in wrong if url_of(each.path) not in known]
    misfits = misfits_of(new, layout, by_reference=not asked.copy)
    converts = len(misfits) > len(misfits_of(new, layout, by_reference=False))
    misfits = [*wrong, *misfits]
    if table is not None and not asked.copy:
        check_table(table._newest)
    if asked.verify:
        misfits += _unsound(_without(new, misfits), env)
    fit = _without(new, misfits)
    found = ImportResult(
        table=name, is_new=table is None, dry_run=asked.dry_run, by_reference=not asked.copy, files=len(fit),
        rows=sum(file.row_count for file in fit), size_bytes=sum(file.size_bytes for file in fit),
        partitions=len({partition_of(file, layout) for file in fit}),
        known_files=sum(file.url in known for file in files),
        columns=layout.columns if table is None else table.schema.fields,
        partition_keys=tuple(field.name for field in layout.keys), misfits=tuple(misfits),
    )  # fmt: skip
    if asked.dry_run:
        return found
    if misfits:
        raise _refusal(misfits, converts)
    is_made = False
    if table is None:
        table, is_made = _create(catalog, name, layout, asked)
    if not new:
        return found
    with dropping_on_failure(catalog, name, table, is_made=is_made):
        done = commit_files(table, new, layout, (url, settled), progress, is_copy=asked.copy)
    return msgspec.structs.replace(found, snapshot_id=done.snapshot_id)


def _require_plain_files(asked: ImportRequest) -> None:
    """Refuse a directory of a table, whose files include deleted rows. Cost: one list.

    Raises: UsageError
    """
    store, place = place_of(asked.source, asked.options)
    names = {each.name for each in store.list(place)}
    if "_delta_log" in names:
        raise UsageError(f"{place} is a Delta table, whose files include deleted rows: use import_delta")
    is_iceberg = "metadata" in names and any(
        each.name.endswith(".metadata.json") for each in store.list(f"{place}/metadata")
    )
    if is_iceberg:
        raise UsageError(f"{place} is an Iceberg table, whose files include deleted rows: use import_iceberg")
    if {"schema", "snapshot", "manifest"} <= names:
        raise UsageError(f"{place} is a Paimon table, whose files include deleted rows: use clone_table")


def find_table(catalog: TablesOfCatalog, name: str) -> Table | None:
    """The table to import into, None if there is none yet. Raises: UsageError for a system table"""
    try:
        found = catalog.table(name)
    except TableNotFoundError:
        return None
    if not isinstance(found, Table):
        raise UsageError(f"import_files writes into tables, and {name} is a system table")
    return found


def _layout(table: Table | None, files: Sequence[SourceFile], asked: ImportRequest) -> Layout:
    if table is not None:
        return layout_in(table._newest, files, asked.partition_by)
    return layout_of(files, asked.partition_by, asked.primary_key)


def _without(files: Sequence[SourceFile], misfits: Sequence[UnfitFile]) -> list[SourceFile]:
    paths = {misfit.path for misfit in misfits}
    return [file for file in files if file.path not in paths]


def _unsound(files: Sequence[SourceFile], env: Env) -> list[UnfitFile]:
    """The files whose rows cannot be read. Cost: reads all of them, several at a time."""
    found = zip(files, env.io.map(damage_of, files), strict=True)
    return [UnfitFile(file.path, reason) for file, reason in found if reason is not None]


def _refusal(misfits: Sequence[UnfitFile], converts: bool) -> SchemaError:
    lines = "".join(f"\n  {each.path}: {each.reason}" for each in misfits[:_SHOWN])
    more = f"\n  and {len(misfits) - _SHOWN} more" if len(misfits) > _SHOWN else ""
    way = "; copy=True converts types" if converts else ""
    count = "1 file does" if len(misfits) == 1 else f"{len(misfits)} files do"
    return SchemaError(f"nothing was imported: {count} not fit{way}{lines}{more}")


def _with_times(file: SourceFile) -> SourceFile | UnfitFile:
    try:
        return check_times(file)
    except (CorruptionError, UnsupportedError) as error:
        return UnfitFile(file.path, str(error))


def _create(catalog: TablesOfCatalog, name: str, layout: Layout, asked: ImportRequest) -> tuple[Table, bool]:
    if not layout.fields:
        raise UsageError("import_files found no file that has columns: create the table first")
    keys = [field.name for field in layout.keys]
    return create_or_open(catalog, name, layout.columns, keys, asked.primary_key, asked.table_options)


def create_or_open(
    catalog: TablesOfCatalog, name: str, fields: tuple[Field, ...], partition_by: Sequence[str],
    primary_key: tuple[str, ...], options: Mapping[str, str],
) -> tuple[Table, bool]:  # fmt: skip
    """A new table and True; or the one that another process has created meanwhile, and False."""
    create = functools.partial(
        catalog.create_table, name, Schema(fields), primary_key=primary_key, partition_by=tuple(partition_by),
        options=options,
    )  # fmt: skip
    try:
        return create(exist_ok=False), True
    except AlreadyExistsError:
        return create(exist_ok=True), False


@contextlib.contextmanager
def dropping_on_failure(catalog: TablesOfCatalog, name: str, table: Table, *, is_made: bool) -> Iterator[None]:
    """Drop the table that an import has made if rows do not fit it, or after Ctrl-C, unless it has commits."""
    try:
        yield
    except (UsageError, CorruptionError, KeyboardInterrupt):
        if is_made and table.snapshot() is None:
            catalog.drop_table(name, missing_ok=True)
        raise


def check_source(url: str, place: str, warehouse: str, table: Table | None) -> None:
    """Refuse directories where dropping a table or database would delete the source files.

    Raises: UsageError
    """
    if "," in url or shown_url(url) != url:
        raise UsageError(f"{shown_url(url)!r} cannot be referenced: it has a comma, a user or a query; use copy=True")
    below = place.removeprefix(warehouse.rstrip("/") + "/")
    if below != place and below.partition("/")[0].endswith(DATABASE_SUFFIX):
        raise UsageError(
            f"{place} is in a database of the warehouse, whose drop would delete it: copy=True copies the rows"
        )
    own = () if table is None else declared_roots(table.options.get(PATHS))
    for root in own:
        if f"{root}/".startswith(f"{url}/") or f"{url}/".startswith(f"{root}/"):
            raise UsageError(f"{url} and {root}, where new files are written ({PATHS}), must not overlap; or copy=True")


def check_table(schema: TableSchema) -> None:
    """Raises: UnsupportedError for a table that cannot reference foreign files."""
    options = Options(schema.options)
    tracked = [name for name in _UNSUITED if options.get_bool(name)]
    if schema.primary_keys or bucket_mode(schema) is not BucketMode.NONE or tracked:
        what = "a primary key" if schema.primary_keys else tracked[0] if tracked else "buckets"
        raise UnsupportedError(
            f"a table with {what} cannot reference foreign files: copy=True copies their rows",
            feature="import by reference",
        )


def _live(table: Table | None) -> set[str]:
    """URLs of the external files of the latest snapshot."""
    latest = None if table is None else table._root.latest()
    if table is None or latest is None or not referenced_paths(table._newest.options):
        return set()
    entries = table._root.manifests.live_entries(latest).entries()
    return {entry.file.external_path for entry in entries if entry.file.external_path is not None}


def commit_files(
    table: Table, files: Sequence[SourceFile], layout: Layout, source: tuple[str, EarlierImports],
    progress: Progress | None, *, is_copy: bool = False, version: str | None = None,
) -> CommitResult:  # fmt: skip
    """Commit files.

    `source`: the directory, and the earlier imports. `version`: the imported version of a table of another format.
    """
    url, settled = source
    if not is_copy:
        check_table(table._newest)
        table = _with_external_path(table, url)
    newest = table._newest_table
    layout = layout_in(newest.schema, files, None)
    ledger = Ledger(newest)
    begun = ledger.begin(settled, url, (*(file.url for file in files), *([version] if version else ())))
    request = CommitRequest(label=begun.label, is_new=True, check=settled.require_alone)
    tally = ProgressCounter(progress, len(files), "files")
    if is_copy:
        done = _copy(newest, files, layout, request, tally)
    else:
        changes = _references(newest, files, layout, tally)
        done = run_auto_maintenance(newest, commit(newest, changes, request), of_batch=True)
    ledger.mark(begun)
    return done


def _with_external_path(table: Table, url: str) -> Table:
    """The table with an external directory whose files may be referenced, and are never deleted."""
    there = referenced_paths(table._newest.options)
    if url not in there:
        table.alter(SetOption(REFERENCED, ",".join((*there, url))))
    return table


def _copy(
    table: OpenTable, files: Sequence[SourceFile], layout: Layout, request: CommitRequest,
    tally: ProgressCounter,
) -> CommitResult:  # fmt: skip
    with writer(table, overwrite=False) as session:
        for file in files:
            try:
                session.write_arrow(_stream(file, layout))
            except SchemaError as error:
                raise SchemaError(f"{file.path}: {error}", fields=error.fields) from error
            except CorruptionError as error:
                raise _with_column(file, error) from error
            tally.add(1)
        changes = session.changes(is_new=True)
        with discarding_on_failure(lambda: session.discard(changes)):
            return run_auto_maintenance(table, commit(table, changes, request), of_batch=True)


def _with_column(file: SourceFile, error: CorruptionError) -> CorruptionError:
    """An error of reading a file, with the column at fault."""
    fault = faulty_column(file)
    if fault is None:
        return error
    return CorruptionError(f"nothing was imported: {file.path} is damaged: {fault}", path=file.path)


def _stream(file: SourceFile, layout: Layout) -> pa.RecordBatchReader:
    """The rows of a file with the values of its partition."""
    keys = {field.name for field in layout.keys}
    fields = [field for field in file.fields if field.name not in keys]
    names = [field.name for field in fields]
    values = partition_values(file, layout)
    batches = file.batches(names)
    first = next(batches, None)
    if first is None:
        return pa.RecordBatchReader.from_batches(to_arrow_schema((*fields, *layout.keys)), iter(()))
    more = [pa.field(field.name, value.type) for field, value in zip(layout.keys, values, strict=True)]
    schema = pa.schema([*first.schema, *more])

    def whole() -> Iterator[pa.RecordBatch]:
        batch = first
        while batch is not None:
            known = [combine(pa.chunked_array([value])).take(pa.array([0] * batch.num_rows)) for value in values]
            yield pa.RecordBatch.from_arrays([*batch.columns, *known], schema=schema)
            batch = next(batches, None)

    return pa.RecordBatchReader.from_batches(schema, whole())


def _references(table: OpenTable, files: Sequence[SourceFile], layout: Layout, tally: ProgressCounter) -> Changes:
    """Changes that reference files in place; nothing is written."""
    now = table.root.env.clock.local_millis()
    types = [field.type for field in table.schema.fields]
    unknown = stats_of([ColumnBounds() for _ in types], types, [StatsMode("none") for _ in types])
    by_partition: dict[bytes, list[DataFile]] = {}
    for file in files:
        named = DataFile(
            name=reference_name(file.url, file.format), size_bytes=file.size_bytes, row_count=file.row_count,
            value_stats=unknown, min_sequence=0, max_sequence=max(file.row_count - 1, 0),
            schema_id=table.schema.id, level=0,
            creation_time_millis=now, delete_row_count=0, source=FileSource.APPEND, external_path=file.url,
        )  # fmt: skip
        by_partition.setdefault(partition_of(file, layout), []).append(named)
        tally.add(1)
    buckets = tuple(
        BucketChanges(partition=partition, bucket=0, total_buckets=-1, written=Edit(added=tuple(added)))
        for partition, added in by_partition.items()
    )
    base = Base.of(table.root.latest())
    return Changes(schema_id=table.schema.id, base=base, buckets=buckets, branch=table.root.branch)


def reference_name(url: str, form: str) -> str:
    """The name of a foreign file in a table: unique, and the same in each import."""
    digits = hashlib.sha256(url.encode()).hexdigest()
    return f"data-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}-0.{form}"
