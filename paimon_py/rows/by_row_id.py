"""Values for rows that are identified by row ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from paimon_py.codec.columns import Ints, Mask, numpy_values
from paimon_py.errors import UsageError
from paimon_py.rows.decide import UPDATE, Decision
from paimon_py.rows.row_values import RowValues
from paimon_py.spec.schema import ROW_ID

_SHOWN = 3


class SetRows:
    """An `Operation` that sets the values of rows with given ids."""

    names = frozenset((ROW_ID,))
    is_doubtful = True
    adds_rows = False
    inserts_last = False

    def __init__(self, given: RowValues) -> None:
        self._given = given
        self.seen: Mask = np.zeros(len(given.ids), np.bool_)

    def decide(self, batch: pa.RecordBatch) -> Decision:
        """Decide to update the rows with one of the ids."""
        places, found = self._places(batch)
        self.seen[places[found]] = True
        return Decision(found.astype(np.int8) * np.int8(UPDATE))

    def update(self, batch: pa.RecordBatch, decision: Decision) -> pa.RecordBatch:
        """The new values of rows, each with one of the ids."""
        del decision
        places, _ = self._places(batch)
        return self._given.take(places)

    def check(self) -> None:
        """Check that every id has a row.

        Raises: UsageError
        """
        lacking = self._given.ids[~self.seen]
        if len(lacking):
            shown = ", ".join(map(str, lacking[:_SHOWN].tolist())) + (", …" if len(lacking) > _SHOWN else "")
            raise UsageError(
                f"no row has the ids {shown} ({len(lacking)} in all): rows may have been deleted. Nothing was changed"
            )

    def inserts(self) -> Iterator[pa.RecordBatch]:
        """Adds no rows."""
        return iter(())

    def _places(self, batch: pa.RecordBatch) -> tuple[Ints, Mask]:
        ids, wanted = numpy_values(batch.column(ROW_ID)), self._given.ids
        places = np.searchsorted(wanted, ids)
        places[places == len(wanted)] = 0
        found: Mask = (wanted[places] == ids) if len(wanted) else np.zeros(len(ids), np.bool_)
        return places, found
