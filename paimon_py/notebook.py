"""Notebook pages for catalogs, tables, scans and snapshots: the most important facts, with few store calls.

An error of paimon_py becomes a line of the page: displaying a value never fails a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from paimon_py.errors import PaimonError
from paimon_py.html import facts, grid, join_values, moment, note, page, section
from paimon_py.spec.manifest import ManifestFile
from paimon_py.spec.redact import shown_text, shown_url
from paimon_py.spec.schema_page import fields_grid, schema_parts
from paimon_py.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot, TagValue
from paimon_py.spec.types import Field

if TYPE_CHECKING:
    from paimon_py.metadata.open_table import OpenTable
    from paimon_py.metadata.root import TableRoot

_COMMITS = 3
_MANIFESTS = 2
_DATABASES = 3
_NAMES = 30


def catalog_page(warehouse: str, databases: Callable[[], list[str]], tables: Callable[[str], list[str]]) -> str:
    """The databases of a catalog, and the tables of the first ones. Cost: a listing, and one for each of these."""

    def content() -> Iterator[str]:
        names = databases()
        rows = [(name, join_values(tables(name), _NAMES) or "no table") for name in names[:_DATABASES]]
        rows += [(name, "…") for name in names[_DATABASES:]]
        yield grid(("database", "tables"), rows) if rows else note("no database")

    return page("Catalog", facts({"warehouse": shown_url(warehouse)}), *guard(content))


def table_page(table: OpenTable, name: str) -> str:
    """The schema, options, size and last commits of a table. Cost: the latest snapshot, a get for each earlier one."""

    def content() -> Iterator[str]:
        latest = table.root.latest()
        if latest is None:
            yield note("no snapshot yet: the table is empty")
            return
        yield section("size", facts(_size(table.root, latest)))
        yield section("last commits", _commits(table.root, latest))

    return page(
        f"Table {name}",
        facts({"location": shown_url(table.root.path), "comment": table.schema.comment}),
        schema_parts(table.schema),
        *guard(content),
    )


def _size(root: TableRoot, latest: Snapshot) -> dict[str, object]:
    """The size of a table; its bytes only if there are few manifests."""
    manifests = root.manifests.base_and_delta(latest)
    known: dict[str, object] = {
        "rows in all files": _count(latest.total_record_count),
        "data files": _count(sum(each.added_files - each.deleted_files for each in manifests)),
    }
    if len(manifests) <= _MANIFESTS:
        known["bytes"] = _count(sum(entry.file.size_bytes for entry in root.manifests.live(manifests).entries()))
    return known


def _commits(root: TableRoot, latest: Snapshot) -> str:
    found = [latest]
    while len(found) < _COMMITS and found[-1].id > 1:
        before = root.snapshots.find(found[-1].id - 1)
        if before is None:
            break
        found.append(before)
    return grid(
        ("snapshot", "time", "operation", "user", "rows written", "rows in all files"),
        [
            (each.id, moment(each.time_millis), each.operation or each.commit_kind.value, each.commit_user,
             _count(each.delta_record_count), _count(each.total_record_count))
            for each in found
        ],
    )  # fmt: skip


def system_page(name: str, fields: Iterable[Field]) -> str:
    """The columns of a system table. Cost: none."""
    return page(f"SystemTable {name}", fields_grid(fields), note("rows: .scan().head() or .scan().to_pandas()"))


def scan_page(
    title: str, known: dict[str, object], columns: Callable[[], pa.Schema], plan: Callable[[], dict[str, object]]
) -> str:
    """The request of a scan, the columns that it returns, and its plan."""

    def content() -> Iterator[str]:
        yield grid(("column", "type"), [(field.name, field.type) for field in columns()])
        found = plan()
        if found:
            yield section("plan", facts(found))

    return page(title, facts(known), *guard(content))


def snapshot_page(value: Snapshot) -> str:
    """The contents of a snapshot. Cost: none."""
    return page(f"Snapshot {value.id}", facts(_snapshot_rows(value)))


def guard(content: Callable[[], Iterable[str]]) -> Iterator[str]:
    """Parts of a page; an error ends them and is reported in their place."""
    try:
        yield from content()
    except PaimonError as error:
        yield note(f"{type(error).__name__}: {shown_text(str(error))}")


def tag_page(value: TagValue) -> str:
    """A tag and the snapshot that it retains. Cost: none."""
    return page(f"Tag {value.name}", facts({"snapshot": value.snapshot.id, **_snapshot_rows(value.snapshot)}))


def manifest_page(value: ManifestFile) -> str:
    """The record of a manifest in its list. Cost: none."""
    known = {"files added": value.added_files, "files deleted": value.deleted_files, "bytes": _count(value.size_bytes)}
    return page(f"Manifest {value.name}", facts(known), note("entries: .entries()"))


def _snapshot_rows(value: Snapshot) -> dict[str, object]:
    batch = value.commit_identifier == BATCH_COMMIT_IDENTIFIER
    return {
        "time": moment(value.time_millis), "commit kind": value.commit_kind.value, "commit user": value.commit_user,
        "commit identifier": None if batch else value.commit_identifier, "schema": value.schema_id,
        "rows in all files": _count(value.total_record_count), "rows written": _count(value.delta_record_count),
        "watermark": value.watermark,
    }  # fmt: skip


def _count(number: int | None) -> str | None:
    return None if number is None else f"{number:,}"
