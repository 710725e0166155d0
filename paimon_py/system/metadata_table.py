"""`MetadataTable`: the user's object for a metadata table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from paimon_py.arguments import NameList, as_mapping, with_location
from paimon_py.errors import UsageError
from paimon_py.expr.predicate import Predicate
from paimon_py.notebook import system_page
from paimon_py.scan.time_travel import Travel, travel_of
from paimon_py.spec.option_changes import check_dynamic
from paimon_py.spec.schema import TableSchema
from paimon_py.system.metadata_scan import MetadataScan
from paimon_py.system.metadata_table_def import MetadataTableDef, Origin, TableSource
from paimon_py.system.reading import SystemReading


@with_location(lambda table: table.location)
class MetadataTable(SystemReading):
    """A system table that describes a table, or all tables of a warehouse: scanned like a table, never written.

    Can be pickled; secrets are omitted.
    """

    def __init__(self, made: MetadataTableDef, source: Origin, name: str) -> None:
        """The metadata table `made` of `source`; `name` is the prefix of its name, with the `$` or dot."""
        self._made = made
        self._source = source
        self._name = name

    @property
    def name(self) -> str:
        """The full name, such as `db.t$files` or `sys.tables`."""
        return f"{self._name}{self._made.name}"

    @property
    def schema(self) -> TableSchema:
        """The columns, with Java's names and types, and the key."""
        return self._made.schema

    @property
    def options(self) -> dict[str, str]:
        """The stored options: none."""
        return {}

    @property
    def location(self) -> str:
        """Directory or URL of the described table or warehouse."""
        return self._source.path

    @property
    def comment(self) -> str | None:
        """Always None: there is no comment."""
        return None

    def scan(
        self,
        *,
        snapshot_id: int | None = None,
        tag: str | None = None,
        timestamp: datetime | str | int | None = None,
        watermark: int | None = None,
        columns: NameList | None = None,
        where: Predicate | str | None = None,
        limit: int | None = None,
        options: Mapping[str, str] | None = None,
    ) -> MetadataScan:
        """A lazy read; as `Table.scan`. Tables that describe one snapshot can describe an earlier one.

        Raises: as `Table.scan`, and UsageError for an earlier state of a system table without states, and for changes.
        """
        chosen = {"snapshot_id": snapshot_id, "tag": tag, "timestamp": timestamp, "watermark": watermark}
        source = self._source
        if self._made.has_states and isinstance(source, TableSource):
            given = as_mapping("options", options)
            for name, text in given.items():
                check_dynamic(source.schema, name, text)
            travel = travel_of(
                snapshot_id=snapshot_id, tag=tag, timestamp=timestamp, watermark=watermark, options=given,
                stored=source.schema.options,
            )  # fmt: skip
            if not isinstance(travel, Travel):
                raise UsageError(f"{self.name} has no changes, only states: scan one snapshot")
            source = TableSource(source.root, source.schema, travel)
        elif options or any(value is not None for value in chosen.values()):
            raise UsageError(
                f"{self.name} has no earlier states: scan it without snapshot_id, tag, timestamp, watermark and options"
            )
        return MetadataScan(self._made, source, columns=columns, where=where, limit=limit)

    def _repr_html_(self) -> str:
        return system_page(self.name, self.schema.fields)

    def __repr__(self) -> str:
        return f"MetadataTable({self.name!r}, columns=[{', '.join(self.schema.names)}], location={self.location!r})"
