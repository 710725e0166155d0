"""Rows as a dataset of Ray: a data source whose read tasks read splits.

Source: https://docs.ray.io/en/latest/data/api/doc/ray.data.Datasource.html
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray.data
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from paimon_py.scan.split import Split
from paimon_py.spec.packing import shares

if TYPE_CHECKING:
    from paimon_py.scan.split_rows import SplitRows


def ray_dataset(rows: SplitRows[Any]) -> ray.data.Dataset:
    """A dataset that reads the splits of `rows` when Ray runs it."""
    return ray.data.read_datasource(PaimonDatasource(rows))


class PaimonDatasource(Datasource):  # type: ignore[misc]
    """The splits of a scan as read tasks of Ray."""

    def __init__(self, rows: SplitRows[Any]) -> None:
        super().__init__()
        self._rows = rows
        self._splits = [] if rows._is_whole else rows.splits()

    def estimate_inmemory_data_size(self) -> int | None:
        """Bytes of the files, which is less than the rows take in memory; None if they are not known."""
        sizes = [split.size_bytes for split in self._splits if isinstance(split, Split)]
        return sum(sizes) if sizes else None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: object = None
    ) -> list[ReadTask]:
        """At most `parallelism` tasks, each with some neighbouring splits."""
        del data_context
        tasks = [partial(_read_whole, self._rows)] if self._rows._is_whole else [
            partial(_read_splits, self._rows, [bytes(split) for split in share])
            for share in shares(self._splits, parallelism)
        ]  # fmt: skip
        unknown = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
        return [ReadTask(task, unknown, self._rows.schema, per_task_row_limit) for task in tasks]


def _read_whole(rows: SplitRows[Any]) -> Iterator[pa.Table]:
    yield from _tables(rows.schema, rows.to_reader())


def _read_splits(rows: SplitRows[Any], splits: Sequence[bytes]) -> Iterator[pa.Table]:
    yield from _tables(rows.schema, (batch for split in splits for batch in rows.read(split)))


def _tables(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """A block for each batch; an empty one if there are no rows."""
    empty = True
    for batch in batches:
        yield pa.Table.from_batches([batch])
        empty = False
    if empty:
        yield schema.empty_table()
