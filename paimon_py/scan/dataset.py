"""A scan as a pyarrow dataset, for DuckDB, polars, and user programs.

The columns and filters of a dataset's reader are pushed into the scan; pyarrow evaluates the part of a filter that the
scan cannot express exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from paimon_py.errors import UnsupportedError
from paimon_py.expr.foreign import ForeignColumns
from paimon_py.expr.from_arrow import ArrowCondition, condition_from_arrow

if TYPE_CHECKING:
    from paimon_py.scan.rows import Rows


class ScanDataset(pyarrow.dataset.UnionDataset):  # type: ignore[misc]
    """A dataset with the rows of a scan.

    Arrow's own scanners get a dataset of one file that cannot be opened: without any file they would crash.
    """

    def __init__(self, rows: Rows) -> None:
        """The dataset of a scan; nothing is read yet."""
        kind, place = pyarrow.dataset.ParquetFileFormat(), pyarrow.fs.PyFileSystem(_NoFiles())
        file = kind.make_fragment("rows of a scan", filesystem=place)
        files = pyarrow.dataset.FileSystemDataset([file], rows.schema, kind, filesystem=place)
        super().__init__(rows.schema, [files])
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._rows.schema

    @property
    def children(self) -> NoReturn:
        """Not supported: a scan has splits."""
        _refuse("children")

    @property
    def partition_expression(self) -> Any:
        """A condition that holds for all rows: none is known."""
        return pyarrow.dataset.scalar(True)

    def scanner(
        self, columns: Sequence[str] | Mapping[str, Any] | None = None, filter: Any = None, **_: Any
    ) -> ScanScanner:
        """A scanner for some columns of the rows that match a pyarrow filter.

        Cost: columns and rows are skipped as by `Table.scan`; the part of a filter that the scan cannot express
          exactly is evaluated afterwards. The scan decides how rows are read: settings of pyarrow's scanners have no
          effect.
        """
        seen = ForeignColumns(self.schema, self._rows._projection.by_name)
        said = ArrowCondition() if filter is None else condition_from_arrow(filter, seen)
        claim = said.claim if self._rows._takes_conditions else None
        left = None if filter is None or (claim is not None and claim.exact) else filter
        names = _needed_columns(self.schema, columns, said.columns if left is not None else ())
        found = self._rows._narrow(names, None if claim is None else claim.predicate)
        return ScanScanner(found, columns, left)

    def filter(self, _: Any) -> NoReturn:
        """Not supported: filters belong to the reader."""
        _refuse("filter")

    def get_fragments(self, _: Any = None) -> NoReturn:
        """Not supported: a scan has splits."""
        _refuse("get_fragments")

    def join(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported: use tables for joins."""
        _refuse("join")

    def join_asof(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported: use tables for joins."""
        _refuse("join_asof")

    def replace_schema(self, _: Any) -> NoReturn:
        """Not supported: the scan has a schema."""
        _refuse("replace_schema")

    def sort_by(self, *_: Any, **__: Any) -> NoReturn:
        """Not supported: use tables to sort."""
        _refuse("sort_by")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._rows,)

    def __repr__(self) -> str:
        return f"ScanDataset({self._rows!r})"


class ScanScanner:
    """Reads a dataset like a pyarrow scanner; stops reading when no more rows are requested."""

    def __init__(self, rows: Rows, columns: Sequence[str] | Mapping[str, Any] | None, condition: Any) -> None:
        """`condition`: the filter to apply to the rows; `columns`: the returned columns."""
        self._rows, self._condition, self.dataset_schema = rows, condition, rows.schema
        self._columns = list(columns) if columns is not None and not isinstance(columns, Mapping) else columns
        self.projected_schema: pa.Schema = self._finish(rows.schema.empty_table()).schema

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        for batch in self._rows.to_reader():
            yield from self._finish(pa.Table.from_batches([batch])).to_batches()

    def to_table(self) -> pa.Table:
        """The rows as a table in memory."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """At most `num_rows` first rows."""
        found, left = [], num_rows
        for batch in self.to_batches() if left else ():
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if not left:
                break
        return pa.Table.from_batches(found, self.projected_schema)

    def take(self, indices: object) -> pa.Table:
        """The rows at some positions."""
        return self.to_table().take(indices)

    def count_rows(self) -> int:
        """The number of rows."""
        return sum(batch.num_rows for batch in self.to_batches())

    def _finish(self, rows: pa.Table) -> pa.Table:
        """The part of some rows that is returned."""
        if self._condition is not None or isinstance(self._columns, Mapping):
            return pyarrow.dataset.dataset(rows).to_table(columns=self._columns, filter=self._condition)
        return rows if self._columns is None else rows.select(self._columns)


class _NoFiles(pyarrow.fs.FileSystemHandler):  # type: ignore[misc]
    """Files that cannot be opened."""

    def get_type_name(self) -> str:
        return "paimon_py"

    def normalize_path(self, path: str) -> str:
        return path

    def _no_file(self, *_: object, **__: object) -> NoReturn:
        raise UnsupportedError(
            "Arrow's own scanners cannot read the dataset of a scan: give filters and columns to its to_table, "
            "to_batches or scanner, or take scan.to_reader()", feature="scanner",
        )  # fmt: skip

    open_input_file = open_input_stream = get_file_info = get_file_info_selector = _no_file
    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _no_file
    copy_file = move = open_append_stream = open_output_stream = _no_file


def _needed_columns(
    schema: pa.Schema, columns: Sequence[str] | Mapping[str, Any] | None, more: Iterable[str]
) -> list[str] | None:
    """The columns to read, in order; None for all. Expressions may use any."""
    if columns is None or isinstance(columns, Mapping):
        return None
    wanted = frozenset((*columns, *more))
    return [name for name in schema.names if name in wanted]


def _refuse(verb: str) -> NoReturn:
    raise UnsupportedError(
        f"the dataset of a scan has no {verb}: give filters and columns to to_table, to_batches or scanner, or take "
        "scan.to_arrow()", feature=verb,
    )  # fmt: skip
