"""Reads splits in parallel, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from paimon_py.codec.row_size import row_bytes
from paimon_py.env import is_distant
from paimon_py.errors import ResourceError
from paimon_py.lsm.merge import WINDOW_BYTES
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.parallel import Budget
from paimon_py.scan.split import Split
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

READ_BYTES = 96 << 20
"""The memory for splits that are being read and for batches in the queue, together."""

_WORKING_BYTES = WINDOW_BYTES // 2
_WORKING_ROWS = 131_072
_DECODED_FACTOR = 3
_PIECE_BYTES = 16 << 20
_ALONE = 16
"""The number of first splits that are not put into parcels unless they are tiny, so that few splits keep all threads
busy."""

_TINY_BYTES = 32 << 10
_PARCEL_SPLITS = 64
_PARCEL_BYTES = 512 << 10


def read_together(
    table: OpenTable,
    read: Callable[[Sequence[Split]], Iterator[pa.RecordBatch]],
    parcels: Iterable[Sequence[Split]],
    *,
    in_order: bool = True,
    keeps: bool = False,
) -> Generator[pa.RecordBatch, None, None]:
    """The results of `read` for all parcels of splits, from the table's thread pool.

    Args:
        in_order: one parcel after the other; otherwise batches in the order in which they arrive.
        keeps: the caller keeps all batches, so that the queue need not be bounded.
    Raises: as `read`; ResourceError if the caller keeps more than fits into the memory of the process.
    """
    size = _nothing if keeps else _batch_bytes
    found = table.root.env.pool.streams(read, parcels, _budget(table.schema, _cost_of_parcel, size), in_order=in_order)
    most = table.root.env.memory.rows_bytes
    return found if most is None or not keeps else _kept_below(most, found, table.root.path)


def _kept_below(
    most: int, batches: Generator[pa.RecordBatch, None, None], path: str
) -> Generator[pa.RecordBatch, None, None]:
    """Batches that the caller keeps. Raises: ResourceError if they take more than `most` bytes."""
    kept = 0
    with closing(batches):
        for batch in batches:
            kept += row_bytes(batch)
            if kept > most and pa.total_allocated_bytes() > most:
                raise too_many_rows(path, kept)
            yield batch


def too_many_rows(path: str, kept: int) -> ResourceError:
    """The error for rows that do not fit into the memory of the process. `kept`: the bytes of those that were read."""
    return ResourceError(
        f"the rows of {path} need more memory than this process gets: {kept:,} bytes were read, and not all rows yet."
        " Read them in batches with to_reader(), or select fewer with columns=, where= and limit=",
        path=path,
    )


def count_together(
    table: OpenTable, count: Callable[[Split], int], splits: Iterable[Split]
) -> Generator[int, None, None]:
    """The results of `count` for all splits, in any order."""

    def count_split(split: Split) -> Generator[int, None, None]:
        yield count(split)

    return table.root.env.pool.streams(count_split, splits, _budget(table.schema, _cost, _nothing), in_order=False)


def small_pieces(splits: Iterable[Split]) -> Iterator[Split]:
    """The same splits, large ones in pieces of some neighbouring sections."""
    for split in splits:
        if len(split.sections) < 2 or split.size_bytes <= _PIECE_BYTES:
            yield split
            continue
        piece, size = [], 0
        for section in split.sections:
            piece.append(section)
            size += sum(file.size_bytes for file in section.files)
            if size > _PIECE_BYTES:
                yield split.only(piece)
                piece, size = [], 0
        if piece:
            yield split.only(piece)


def alone(splits: Iterable[Split]) -> Iterator[tuple[Split, ...]]:
    """Every split as a parcel of its own."""
    return ((split,) for split in splits)


def in_parcels(root: TableRoot, splits: Iterable[Split]) -> Iterator[tuple[Split, ...]]:
    """Splits whose rows are rows of the table: large ones in pieces, and near ones in parcels.

    At a distance a thread waits for one split while others are read.
    """
    pieces = small_pieces(splits)
    return alone(pieces) if is_distant(root.path) else parcels_of(pieces)


def parcels_of(splits: Iterable[Split]) -> Iterator[tuple[Split, ...]]:
    """The same splits, in order, neighbouring small ones together: to begin one costs more than to read it."""
    parcel: list[Split] = []
    size = 0
    for number, split in enumerate(splits):
        split_bytes = split.size_bytes
        is_alone = number < _ALONE and split_bytes > _TINY_BYTES
        if parcel and (is_alone or len(parcel) == _PARCEL_SPLITS or size + split_bytes > _PARCEL_BYTES):
            yield tuple(parcel)
            parcel, size = [], 0
        if is_alone:
            yield (split,)
            continue
        parcel.append(split)
        size += split_bytes
    if parcel:
        yield tuple(parcel)


def _budget(schema: TableSchema, cost: Callable[[Any], int], size: Callable[[pa.RecordBatch], int]) -> Budget:
    most = Options(schema.options).find_int("read.parallelism")
    return Budget(READ_BYTES, cost, size, most)


def _cost_of_parcel(splits: Sequence[Split]) -> int:
    """The memory for reading a parcel: that of its largest split, or of all if they are small and read together."""
    together = sum(split.size_bytes for split in splits) if len(splits) > 1 else 0
    return max(*map(_cost, splits), _DECODED_FACTOR * together)


def _cost(split: Split) -> int:
    """The memory for reading a split: two merge windows of the size used with several workers, or all its rows."""
    decoded = _DECODED_FACTOR * split.size_bytes
    return min(decoded, _WORKING_ROWS * decoded // max(1, split.row_count), _WORKING_BYTES)


def _batch_bytes(batch: pa.RecordBatch) -> int:
    return row_bytes(batch)


def _nothing(_result: object) -> int:
    return 0


def cut_to(batches: Generator[pa.RecordBatch, None, None], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows of some batches; closes the source of the batches at the end."""
    if limit is None:
        yield from batches
        return
    left = limit
    with closing(batches):
        for batch in batches:
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return
