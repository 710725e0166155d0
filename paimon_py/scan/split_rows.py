"""Rows that independent processes can read in parts: splits, and the datasets that machine learning builds on them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from paimon_py.arguments import with_location
from paimon_py.expr.column_list import ColumnList
from paimon_py.scan import convert
from paimon_py.scan.projection import listed_names
from paimon_py.scan.rows import Rows

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

