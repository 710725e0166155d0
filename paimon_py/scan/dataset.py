"""A scan as a dataset of pyarrow, for what reads such: DuckDB, polars, and programs of users.

What a reader of the dataset wants of columns and rows goes into the scan; what the scan cannot say exactly is done by
pyarrow with the rows that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from paimon_py.errors import UnsupportedError
from paimon_py.expr.foreign import ForeignColumns
from paimon_py.expr.from_arrow import Said, said_by

if TYPE_CHECKING:
    from paimon_py.scan.rows import Rows


class ScanDataset(pyarrow.dataset.UnionDataset):  # type: ignore[misc]
    """A dataset whose rows are those of a scan.

    Arrow's own scanners see a dataset of one file that cannot be opened: they would crash where there is none.
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
        """Refused: a scan has splits."""
        _refuse("children")

    @property
    def partition_expression(self) -> Any:
        """What holds for all rows: nothing is known."""
        return pyarrow.dataset.scalar(True)

    def scanner(
        self, columns: Sequence[str] | Mapping[str, Any] | None = None, filter: Any = None, **_: Any
    ) -> ScanScanner:
        """What reads some columns of the rows that match a filter of pyarrow.

        Cost: columns and rows that are not wanted are left out as by `Table.scan`; a filter that the scan cannot say
            exactly is carried out with the rest. How the rows are read is the scan's business: settings of pyarrow's
            own scanners do nothing here.
        """
        seen = ForeignColumns(self.schema, self._rows._projection.by_name)
        said = Said() if filter is None else said_by(filter, seen)
        claim = said.claim if self._rows._takes_conditions else None
        left = None if filter is None or (claim is not None and claim.exact) else filter
        names = _needed_columns(self.schema, columns, said.columns if left is not None else ())
        found = self._rows._narrow(names, None if claim is None else claim.predicate)
        return ScanScanner(found, columns, left)

    def filter(self, _: Any) -> NoReturn:
        """Refused: filters are for what reads."""
        _refuse("filter")

    def get_fragments(self, _: Any = None) -> NoReturn:
        """Refused: a scan has splits."""
        _refuse("get_fragments")

    def join(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: tables join."""
        _refuse("join")

    def join_asof(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: tables join."""
        _refuse("join_asof")

    def replace_schema(self, _: Any) -> NoReturn:
        """Refused: the scan has a schema."""
        _refuse("replace_schema")

    def sort_by(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: tables sort."""
        _refuse("sort_by")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._rows,)

    def __repr__(self) -> str:
        return f"ScanDataset({self._rows!r})"


class ScanScanner:
    """Reads a dataset, as a scanner of pyarrow does; stops to read when nobody wants more."""

    def __init__(self, rows: Rows, columns: Sequence[str] | Mapping[str, Any] | None, condition: Any) -> None:
        """`condition` is what is left to do with the rows; `columns` are to be returned."""
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
        """The first rows, at most so many."""
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
        """How many rows there are."""
        return sum(batch.num_rows for batch in self.to_batches())

    def _finish(self, rows: pa.Table) -> pa.Table:
        """What is to be returned of some rows."""
        if self._condition is not None or isinstance(self._columns, Mapping):
            return pyarrow.dataset.dataset(rows).to_table(columns=self._columns, filter=self._condition)
        return rows if self._columns is None else rows.select(self._columns)


class _NoFiles(pyarrow.fs.FileSystemHandler):  # type: ignore[misc]
    """Files of which none can be opened."""

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
    """The columns to read, in order; None for all. Expressions may need any."""
    if columns is None or isinstance(columns, Mapping):
        return None
    wanted = frozenset((*columns, *more))
    return [name for name in schema.names if name in wanted]


def _refuse(verb: str) -> NoReturn:
    raise UnsupportedError(
        f"the dataset of a scan has no {verb}: give filters and columns to to_table, to_batches or scanner, or take "
        "scan.to_arrow()", feature=verb,
    )  # fmt: skip
