"""A scan as a polars LazyFrame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars
import pyarrow as pa
from polars.io.plugins import register_io_source

from paimon_py.codec.texts import with_valid_text
from paimon_py.expr.foreign import ForeignColumns
from paimon_py.expr.from_polars import claim_of

if TYPE_CHECKING:
    from paimon_py.scan.rows import Rows


def lazy_frame(rows: Rows) -> polars.LazyFrame:
    """A LazyFrame that pushes columns, filters and limits into the scan; nothing is read yet.

    If polars compares differently from the scan, for example signed zeros, the scan skips only rows that cannot match
    in either, and polars filters the rest. If polars passes a limit and a condition, the limit applies first.

    Source: https://docs.pola.rs/user-guide/plugins/io_plugins
    """

    seen = ForeignColumns(rows.schema, rows._projection.by_name)

    def frames(
        columns: list[str] | None, condition: polars.Expr | None, most: int | None, _: int | None
    ) -> Iterator[polars.DataFrame]:
        source = rows if most is None else rows._limit_to(most if rows.limit is None else min(most, rows.limit))
        claim = None if condition is None else claim_of(condition, seen)
        says_all = claim is not None and claim.exact and source._takes_conditions
        for batch in source._narrow(columns, None if claim is None else claim.predicate).to_reader():
            frame = _frame(batch)
            if columns is not None and frame.columns != columns:
                frame = frame.select(columns)
            yield frame if condition is None or says_all else frame.filter(condition)

    return register_io_source(frames, schema=_frame(rows.schema.empty_table()).schema)


def _frame(data: pa.Table | pa.RecordBatch) -> polars.DataFrame:
    found = polars.from_arrow(with_valid_text(data))
    assert isinstance(found, polars.DataFrame)
    return found
