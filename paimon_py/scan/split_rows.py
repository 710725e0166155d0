"""Rows that independent processes can read in parts: splits, and the datasets that machine learning builds on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import pyarrow as pa

from paimon_py.arguments import check_flag, with_location
from paimon_py.executors.executor import Executor, require_executor
from paimon_py.expr.column_list import ColumnList
from paimon_py.scan import convert
from paimon_py.scan.projection import listed_names
from paimon_py.scan.rows import Rows, table_of

if TYPE_CHECKING:
    import ray.data

    from paimon_py.scan.torch_rows import TorchRows

S = TypeVar("S")


@with_location(lambda rows: rows._place)
class SplitRows(Rows, Generic[S]):
    """Rows that can be read one split at a time, in any process."""

    @abstractmethod
    def splits(self) -> list[S]:
        """Independent parts of the rows."""

    @abstractmethod
    def iter_splits(self) -> Iterator[S]:
        """The splits, planned while they are taken."""

    @abstractmethod
    def read(self, split: S | bytes) -> pa.RecordBatchReader:
        """The rows of one split."""

    @property
    def is_ordered(self) -> bool:
        """Whether the rows are ordered, so that they are read as a whole."""
        return False

    def to_reader(self, *, in_order: bool = True, executor: Executor | None = None) -> pa.RecordBatchReader:
        """The rows as a stream, in memory that does not grow with the table.

        Splits are read in parallel, by as many threads as the table has (`Env(threads=…)`). Threads read ahead as far
        as memory allows, and end when it is full, when the last row was consumed, or when the reader is released.

        Args:
            in_order: return the rows as if one split were read after the other; else as soon as they are available,
                which keeps more cores busy if splits are large.
            executor: its tasks read the splits, see `paimon_py.executors`; the rows are then always in order. A scan
                with a limit or an order is read by this process. None: the threads of this process.

        Memory: with an executor, the rows of at most 16 tasks, each of which reads about 16 MB of files; of fewer if
            the memory of this process is limited.
        """
        check_flag("in_order", in_order)
        require_executor(executor)
        if executor is None or self._is_whole:
            return super().to_reader(in_order=in_order)
        return pa.RecordBatchReader.from_batches(self.schema, convert.rows_by_tasks(self, executor, keeps=False))

    def to_arrow(
        self, *, blobs: Literal["bytes", "refs"] | None = None, executor: Executor | None = None
    ) -> pa.Table:
        """The rows as a table in memory.

        Args:
            blobs: return BLOBs as bytes, or as references to the bytes, which `BlobRef.from_bytes` decodes. None: as
                the option `blob-as-descriptor` says; the default is bytes.
            executor: its tasks read the splits, see `to_reader`; None: the threads of this process.
        """
        require_executor(executor)
        if executor is None or self._is_whole:
            return super().to_arrow(blobs=blobs)
        rows = self if blobs is None else self._with_blobs(blobs)
        assert isinstance(rows, SplitRows)
        return table_of(convert.rows_by_tasks(rows, executor, keeps=True), rows.schema)

    def _parcels(self, splits: Iterable[S]) -> Iterator[tuple[S, ...]]:
        """Parts of splits, and splits that are read together."""
        return ((split,) for split in splits)

    def to_torch(
        self,
        *,
        columns: ColumnList | None = None,
        batch_size: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> TorchRows:
        """The rows as an `IterableDataset` of PyTorch. Each worker of a DataLoader reads its own splits.

        Args:
            columns: return only these columns.
            batch_size: return so many rows together: a mapping from columns to tensors, or to lists of Python values
                where tensors cannot hold the type; use `DataLoader(…, batch_size=None)`. None: return each row as a
                mapping from columns to Python values, which the DataLoader puts into batches.
            shuffle: read the splits in a random order, another one after each `set_epoch`. Rows of a split stay
                together.
            seed: start of the random order. All processes of a training run need the same one.
            rank, world_size: the number of this process and the number of processes that share the rows. None: those of
                `torch.distributed` if it is initialized; otherwise this process reads all rows.

        A scan with a limit or an order is read by one worker of the first process.

        Cost: the plan of the scan, in each worker process that does not share the memory of its parent.
        Raises: UsageError if PyTorch is not installed, or for an argument that does not fit.
        """
        start = seed if shuffle else None
        return convert.to_torch(
            self._only(columns), batch_size=batch_size, seed=start, rank=rank, world_size=world_size
        )

    def to_ray(self, *, columns: ColumnList | None = None) -> ray.data.Dataset:
        """The rows as a dataset of Ray. Its tasks read the splits when Ray runs them, each of the same snapshot.

        Args:
            columns: return only these columns.

        A scan with a limit or an order is read by one task. Ray plans the number of tasks; use
        `dataset.repartition(…)` for other blocks.

        Cost: the plan of the scan.
        Raises: UsageError if Ray is not installed.
        """
        return convert.to_ray(self._only(columns))

    def _only(self, columns: ColumnList | None) -> SplitRows[S]:
        """The rows with these columns."""
        if columns is None:
            return self
        found = self._narrow(listed_names(columns), None)
        assert isinstance(found, SplitRows)
        return found

    @property
    def _is_whole(self) -> bool:
        """Whether splits do not say which rows are returned."""
        return self.is_ordered or self.limit is not None

