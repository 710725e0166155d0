"""`SystemTable`: the user's object for a system table that shows rows of the table, and the kinds of such tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from paimon_py.arguments import NameList, as_mapping, with_location
from paimon_py.commit.result import CommittedSnapshots
from paimon_py.errors import UnsupportedError, UsageError
from paimon_py.expr.predicate import Predicate
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.notebook import system_page
from paimon_py.scan.between import between
from paimon_py.scan.fallback import open_scan
from paimon_py.scan.request import FileChoice
from paimon_py.scan.row_shape import PlainRows, RowShape
from paimon_py.scan.scan import Scan
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.supported import check_readable
from paimon_py.system.reading import SystemReading

if TYPE_CHECKING:
    from paimon_py.stream.stream import Stream

_SEQUENCE_NUMBERS = "table-read.sequence-number.enabled"


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that a system table presents of its table, and the files that it reads.

    Attributes:
        name: the name after the `$`.
        view: how rows are presented. A scan or a stream of the system table is one of the table with this view.
        top_level: of tables with a primary key only files of the top level are read, whose rows need no merging; they
            contain no information about changes.
    """

    name: str
    view: RowShape
    top_level: bool = False

    def files(self, schema: TableSchema) -> FileChoice | None:
        """The files to read; None for all."""
        if not self.top_level or not schema.primary_keys:
            return None
        options = Options(schema.options)
        levels = options.find_int("num-levels") or options.get_int("num-sorted-run.compaction-trigger") + 1
        return FileChoice(level=levels - 1)

    def has_changes(self, schema: TableSchema) -> bool:
        """Whether changes can be read and streamed."""
        return not self.top_level or not schema.primary_keys


@with_location(lambda table: table._root.path, lambda table: table._root.schemas.latest())
class SystemTable(SystemReading):
    """A table in another form: read like a table, never written. Can be pickled; secrets are omitted."""

    def __init__(self, root: TableRoot, schema: TableSchema, name: str, kind: Kind) -> None:
        """The system table `kind` of the table `name`.

        Raises: UnsupportedError for a table whose columns conflict with those of the system table, or that requests
            sequence numbers in it.
        """
        if not isinstance(kind.view, PlainRows):
            _refuse_sequence_numbers(schema.options)
        self._root = root
        self._schema = schema
        self._name = name
        self._kind = kind
        self._shown = kind.view.shown_schema(schema)

    @property
    def name(self) -> str:
        """The table's name, `$`, and the name of the kind."""
        return f"{self._name}${self._kind.name}"

    @property
    def schema(self) -> TableSchema:
        """The returned columns. Rows of changes have no primary key."""
        keys = self._schema.primary_keys if self._kind.top_level else ()
        return msgspec.structs.replace(self._shown, primary_keys=keys)

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
    ) -> Scan:
        """A lazy read of the latest or an earlier state, or of changes that `options` select; as `Table.scan`.

        Raises: as `Table.scan`, and UsageError for changes of a system table that only shows states.
        """
        check_readable(self._schema)
        if options and not isinstance(self._kind.view, PlainRows):
            _refuse_sequence_numbers(as_mapping("options", options))
        found = open_scan(
            OpenTable(self._root, self._schema),
            snapshot_id=snapshot_id, tag=tag, timestamp=timestamp, watermark=watermark,
            columns=columns, where=where, limit=limit, options=options, view=self._kind.view,
            files=self._kind.files(self._schema),
        )  # fmt: skip
        if found.reads_changes:
            self._require_changes()
        return found

    def changes(
        self,
        start: int | str | datetime | CommittedSnapshots,
        end: int | str | datetime | None = None,
        *,
        columns: NameList | None = None,
        where: Predicate | str | None = None,
        mode: str = "auto",
        limit: int | None = None,
    ) -> Scan:
        """The changes between two states, in the columns of the system table; as `Table.changes`.

        Raises: as `Table.changes`, and UsageError for a system table that only shows states.
        """
        check_readable(self._schema)
        self._require_changes()
        span = between(start, end, mode)
        return Scan(
            self._root, self._schema, columns=columns, where=where, limit=limit, between=span, view=self._kind.view
        )

    def stream(
        self,
        *,
        from_: int | str | datetime | None = None,
        columns: NameList | None = None,
        where: Predicate | str | None = None,
        until: int | str | datetime | None = None,
        options: Mapping[str, str] | None = None,
        consumer_id: str | None = None,
    ) -> Stream:
        """Follow the changes of the table, in the columns of the system table; as `Table.stream`.

        Raises: as `Table.stream`, and UsageError for a system table that only shows states.
        """
        from paimon_py.stream.stream import Stream

        self._require_changes()
        return Stream(
            self._root, self._schema, from_=from_, columns=columns, where=where, until=until, options=options,
            consumer_id=consumer_id, view=None if isinstance(self._kind.view, PlainRows) else self._kind.view,
        )  # fmt: skip

    def _require_changes(self) -> None:
        if not self._kind.has_changes(self._schema):
            raise UsageError(f"{self.name} has no changes, only states: read the changes of {self._name} itself")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._root, self._schema, self._name, self._kind)

    def _repr_html_(self) -> str:
        return system_page(self.name, self._shown.fields)

    def __repr__(self) -> str:
        return f"SystemTable({self.name!r}, columns=[{', '.join(self._shown.names)}], location={self.location!r})"


def _refuse_sequence_numbers(options: Mapping[str, str]) -> None:
    if str(options.get(_SEQUENCE_NUMBERS, "false")).lower() == "true":
        raise UnsupportedError(
            f"{_SEQUENCE_NUMBERS!r} = 'true' adds the column _SEQUENCE_NUMBER in $audit_log and $binlog, which is"
            " not supported yet; read the table itself, or set the option to false",
            feature=_SEQUENCE_NUMBERS,
        )
