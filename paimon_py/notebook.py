"""Pages of notebooks for catalogs, tables, scans and snapshots: what a person wants to see first, for few store calls.

An error of ours becomes a line of the page: looking at a value never fails a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from paimon_py.errors import PaimonError
from paimon_py.pages import facts, grid, listed, note, page, section
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.schema_page import fields_grid, schema_parts
from paimon_py.spec.shown import shown_text, shown_url
from paimon_py.spec.snapshot import Snapshot
from paimon_py.spec.types import Field

if TYPE_CHECKING:
    from paimon_py.metadata.root import TableRoot

_COMMITS = 3
_MANIFESTS = 2
_DATABASES = 3
_NAMES = 30


def catalog_page(warehouse: str, databases: Callable[[], list[str]], tables: Callable[[str], list[str]]) -> str:
    """The databases of a catalog, and the tables of the first ones. Cost: a listing, and one for each of these."""

    def content() -> Iterator[str]:
        names = databases()
        rows = [(name, listed(tables(name), _NAMES) or "no table") for name in names[:_DATABASES]]
        rows += [(name, "…") for name in names[_DATABASES:]]
        yield grid(("database", "tables"), rows) if rows else note("no database")

    return page("Catalog", facts({"warehouse": shown_url(warehouse)}), *guarded(content))


def table_page(root: TableRoot, schema: TableSchema, name: str) -> str:
    """The schema, options, size and last commits of a table. Cost: the latest snapshot, and a get for each before."""

    def content() -> Iterator[str]:
        latest = root.latest()
        if latest is None:
            yield note("no snapshot yet: the table is empty")
            return
        yield facts(_size(root, latest))
        yield section("last commits", _commits(root, latest))

    return page(
        f"Table {name}",
        facts({"location": shown_url(root.path), "comment": schema.comment}),
        schema_parts(schema),
        *guarded(content),
    )


def _size(root: TableRoot, latest: Snapshot) -> dict[str, object]:
    """How much a table holds; its bytes only where few manifests say."""
    manifests = root.manifests.base_and_delta(latest)
    known: dict[str, object] = {
        "rows in all files": latest.total_record_count,
        "data files": sum(each.added_files - each.deleted_files for each in manifests),
    }
    if len(manifests) <= _MANIFESTS:
        known["bytes"] = f"{sum(entry.file.size_bytes for entry in root.manifests.live(manifests).entries()):,}"
    return known


def _commits(root: TableRoot, latest: Snapshot) -> str:
    found = [latest]
    while len(found) < _COMMITS and found[-1].id > 1:
        before = root.snapshots.find(found[-1].id - 1)
        if before is None:
            break
        found.append(before)
    return grid(
        ("snapshot", "time", "kind", "user", "rows written", "rows in all files"),
        [
            (each.id, moment(each.time_millis), each.commit_kind.value, each.commit_user, each.delta_record_count,
             each.total_record_count)
            for each in found
        ],
    )  # fmt: skip


def system_page(name: str, fields: Iterable[Field]) -> str:
    """The columns of a system table. Cost: nothing is read."""
    return page(f"SystemTable {name}", fields_grid(fields), note("rows: .scan().head() or .scan().to_pandas()"))


def scan_page(
    title: str, known: dict[str, object], columns: Iterable[tuple[str, object]], plan: Callable[[], dict[str, object]]
) -> str:
    """What a scan asks for, the columns that it returns, and what it would read."""

    def content() -> Iterator[str]:
        found = plan()
        if found:
            yield section("plan", facts(found))

    return page(title, facts(known), grid(("column", "type"), columns), *guarded(content))


def snapshot_page(value: Snapshot) -> str:
    """What a snapshot says of itself. Cost: nothing is read."""
    known = {
        "time": moment(value.time_millis), "commit kind": value.commit_kind.value, "commit user": value.commit_user,
        "commit identifier": value.commit_identifier, "schema": value.schema_id,
        "rows in all files": value.total_record_count, "rows written": value.delta_record_count,
        "watermark": value.watermark,
    }  # fmt: skip
    return page(f"Snapshot {value.id}", facts(known))


def guarded(content: Callable[[], Iterable[str]]) -> list[str]:
    """Parts of a page; what cannot be read is said instead."""
    try:
        return list(content())
    except PaimonError as error:
        return [note(f"{type(error).__name__}: {shown_text(str(error))}")]


def moment(millis: int) -> str:
    """A time in UTC as people write it."""
    try:
        return datetime.fromtimestamp(millis / 1000, timezone.utc).isoformat(" ", "seconds")
    except (OverflowError, ValueError, OSError):
        return f"{millis} ms after 1970"

