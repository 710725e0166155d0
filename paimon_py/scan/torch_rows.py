"""Rows as a dataset of PyTorch: each worker of each process reads its own splits.

Source: https://pytorch.org/docs/stable/data.html#iterable-style-datasets
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa
import torch
from torch.utils.data import IterableDataset, get_worker_info

from paimon_py.errors import UsageError

if TYPE_CHECKING:
    from paimon_py.scan.split_rows import SplitRows


class ProcessShare(msgspec.Struct, frozen=True):
    """The part of the rows that a process reads: part `number` of `count`."""

    number: int
    count: int


def share_of(rank: int | None, world_size: int | None) -> ProcessShare:
    """The share that arguments name, or that `torch.distributed` gives this process.

    Raises: UsageError for one argument without the other, or a rank that is not below the world size.
    """
    if (rank is None) != (world_size is None):
        raise UsageError("rank and world_size belong together: give both, or neither")
    if rank is not None and world_size is not None:
        _require("world_size", world_size, 1)
        _require("rank", rank, 0)
        if rank >= world_size:
            raise UsageError(f"rank must be below world_size: it is {rank} of {world_size}")
        return ProcessShare(rank, world_size)
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return ProcessShare(distributed.get_rank(), distributed.get_world_size())
    return ProcessShare(0, 1)


class TorchRows(IterableDataset):  # type: ignore[misc]
    """Rows of a scan for a DataLoader. `Scan.to_torch` makes it.

    Processes of one training run see every row exactly once in an epoch; the number of rows may differ between them.
    """

    def __init__(
        self,
        rows: SplitRows[Any],
        *,
        batch_size: int | None,
        seed: int | None,
        rank: int | None,
        world_size: int | None,
    ) -> None:
        """`seed`: the splits are read in a random order; None: in the order of the plan."""
        if batch_size is not None:
            _require("batch_size", batch_size, 1)
        if seed is not None:
            _require("seed", seed, 0)
        self._rows = rows
        self._batch_size = batch_size
        self._seed = seed
        self._share = share_of(rank, world_size)
        self._epoch = 0
        self._splits = None if rows._is_whole else rows.splits()

    def set_epoch(self, epoch: int) -> None:
        """Choose the random order of this epoch. Call it before the DataLoader starts its workers."""
        _require("epoch", epoch, 0)
        self._epoch = epoch

    def __iter__(self) -> Iterator[dict[str, Any]]:
        batches = self._batches()
        if self._batch_size is not None:
            return map(tensors_of, batches_of(batches, self._batch_size))
        return (row for batch in batches for row in batch.to_pylist())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        worker = get_worker_info()
        number, count = (0, 1) if worker is None else (worker.id, worker.num_workers)
        number, count = self._share.number * count + number, self._share.count * count
        if self._splits is None:
            if number == 0:
                yield from self._rows.to_reader()
            return
        places = np.arange(len(self._splits))
        if self._seed is not None:
            np.random.default_rng((self._seed, self._epoch)).shuffle(places)
        for place in places[number::count].tolist():
            yield from self._rows.read(self._splits[place])


def batches_of(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The rows in tables of `size` rows; the last one has the rest."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while rows + batch.num_rows >= size:
            yield pa.Table.from_batches([*waiting, batch.slice(0, size - rows)])
            batch = batch.slice(size - rows)
            waiting, rows = [], 0
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
    if rows:
        yield pa.Table.from_batches(waiting)


def tensors_of(rows: pa.Table) -> dict[str, Any]:
    """Columns as tensors: booleans, integers, floats, and vectors of these (rows × elements); others as lists.

    Raises: UsageError for NULL where a tensor would be returned.
    """
    columns = zip(rows.column_names, rows.columns, strict=True)
    return {name: _tensor_of(name, column.combine_chunks()) for name, column in columns}


def _tensor_of(name: str, column: pa.Array) -> torch.Tensor | Sequence[object]:
    kind, width = column.type, None
    if pa.types.is_fixed_size_list(kind):
        kind, width = kind.value_type, kind.list_size
    if not (pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values: Sequence[object] = column.to_pylist()
        return values
    flat = column if width is None else column.flatten()
    if column.null_count or flat.null_count:
        raise UsageError(
            f"column {name!r} contains NULL, which a tensor cannot hold: leave these rows out with"
            f" where=col({name!r}).is_not_null(), or read rows without batch_size"
        )
    found = torch.from_numpy(np.array(flat.to_numpy(zero_copy_only=False)))
    return found if width is None else found.reshape(len(column), width)


def _require(name: str, number: object, least: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise UsageError(f"{name} must be a whole number from {least}, not {number!r}")
