"""Finds the rows of a file that match before its other columns are decoded, where few of them do.

Worked example: one of 200,000 rows in random order matches. Its file has ten pages of a column; the condition's column
is decoded as a whole, and one page of each of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from paimon_py.codec.columns import numpy_values
from paimon_py.expr.arrow import Filter
from paimon_py.expr.predicate import And, Compare, In, Or, Predicate
from paimon_py.expr.references import columns_of, may_fail
from paimon_py.files.reader import FileReader
from paimon_py.scan.request import Request
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import Field

PAGE_ROWS = 20_000
"""The maximum number of rows in a page, unless the writer of the file was told otherwise."""
SEARCHED_ROWS = 10_000
"""Files with fewer rows are decoded in less time than a search takes."""
_WORTH = 5
"""The multiple of a condition's columns from which on it is worth decoding them first."""
_WORTH_OF_VALUES = 2
"""The same of a condition that names values, which few rows have more often than values in a range."""
_FIRST_GAP = 7
_WIDEST_GAP = 16


class RowSearch:
    """The searches of one reader: after a file with matches in many pages, the next ones are not searched.

    The number of files without a search grows each time, so a condition that many rows meet costs little more.
    """

    def __init__(self, predicate: Predicate, mask: Filter) -> None:
        self._predicate = predicate
        self._names = columns_of(predicate)
        self._mask = mask
        self._worth = _WORTH_OF_VALUES if _names_values(predicate) else _WORTH
        self._gap = self._left = 0

    def rows_of(
        self, file: DataFile, fields: Sequence[Field], reader: Callable[[Sequence[Field]], FileReader]
    ) -> BitMap | None:
        """The positions of matching rows in a file without dead rows; None if unknown.

        Files at external paths, which are URLs, are not read by page, and so not searched.

        `fields`: the columns to decode; `reader`: reads some of these.
        Raises: as `FileReader.positions`
        """
        asked = [field for field in fields if field.name in self._names]
        narrows = len(asked) == len(self._names) and len(fields) >= self._worth * len(asked)
        is_local_parquet = file.external_path is None and file.name.endswith(".parquet")
        if not narrows or file.row_count < SEARCHED_ROWS or not is_local_parquet or not self.begin():
            return None
        return self.find(reader(asked).positions(batch_rows=PAGE_ROWS, predicate=self._predicate))

    def begin(self) -> bool:
        """Whether to search the next file."""
        if self._left:
            self._left -= 1
            return False
        return True

    def find(self, pieces: Iterable[tuple[int, pa.RecordBatch]]) -> BitMap | None:
        """The positions of matching rows; None if there are matches in more than half of the pages that may have one.

        Shapes: `pieces` — batches of at most `PAGE_ROWS` rows with the condition's columns and the position of their
          first row.
        Cost: decodes these columns, or those of two pages if both have a match.
        """
        found = BitMap()
        count = with_match = 0
        for count, (position, batch) in enumerate(pieces, 1):
            rows = np.flatnonzero(numpy_values(self._mask(batch)))
            if len(rows):
                found.update(BitMap((rows + position).astype(np.uint32)))
                with_match += 1
            if count > 1 and 2 * with_match > count:
                break
        if 2 * with_match > count:
            self._gap = min(_WIDEST_GAP, 2 * self._gap + _FIRST_GAP)
            self._left = self._gap
            return None
        self._gap = 0
        return found


def _names_values(predicate: Predicate) -> bool:
    """Whether only rows match in which a column has one of some values."""
    if isinstance(predicate, And):
        return any(map(_names_values, predicate.parts))
    if isinstance(predicate, Or):
        return all(map(_names_values, predicate.parts))
    if isinstance(predicate, In):
        return not predicate.negated
    return isinstance(predicate, Compare) and predicate.operator == "=="


def row_search(request: Request) -> RowSearch | None:
    """The searches of a request; None without a condition, and if it would cost more than it saves."""
    if request.mask is None or request.predicate is None or request.first_rows is not None:
        return None
    return None if may_fail(request.predicate) else RowSearch(request.predicate, request.mask)
