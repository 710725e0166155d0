"""Reads splits as batches: the rows that match, in the form that is asked for; counts them, and estimates the work.

Source: format.md §17; Java `MergeFileSplitRead`, `RawFileSplitRead`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from paimon_py.expr.predicate import Predicate
from paimon_py.expr.references import columns_of, may_fail
from paimon_py.files.meter import Meter
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.own_options import under
from paimon_py.scan.parcel import SplitParcel
from paimon_py.scan.read_estimate import ReadEstimate
from paimon_py.scan.request import Request, join_small, keep
from paimon_py.scan.row_kinds import ROW_KIND_FIELD, row_kinds
from paimon_py.scan.split import Section, Split
from paimon_py.scan.split_reader import SplitReader

if TYPE_CHECKING:
    from paimon_py.scan.blob_values import BlobValues


def read_split(root: TableRoot, request: Request, split: Split, meter: Meter | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a split, in the order of its sections; `meter` counts the work.

    Shapes: out — non-empty batches of `request.arrow_schema`, followed by `_row_kind` if it is requested or rows
      are changes.
    Cost: one raw batch or one merge window in memory, plus the open files.
    Raises: SnapshotExpiredError if the files have expired in the meantime; CorruptionError for damaged files.
    """
    if split.compared is not None:
        from paimon_py.scan.diff_read import read_difference

        def rows(asked: Request, run: Split) -> Iterator[pa.RecordBatch]:
            own = msgspec.structs.replace(asked, schema=under(OpenTable(root, asked.schema), run.schema_id))
            return read_split(root, own, run, meter)

        if request.schema.primary_keys:
            yield from read_difference(request, split.compared, rows, root.env.memory)
        elif split.compared.identified is not None:
            from paimon_py.scan.id_read import read_id_difference

            yield from read_id_difference(root, request, split.compared, rows)
        else:
            from paimon_py.scan.bag_read import read_bag_difference
            from paimon_py.scan.same_blobs import SameBlobs

            blobs = SameBlobs.of(OpenTable(root, request.schema))
            yield from read_bag_difference(request, split.compared, rows, root.env.spill, blobs)
        return
    if split.moving:
        from paimon_py.scan.moving_read import read_moving

        yield from read_moving(
            request, split.moving, lambda asked, run: read_split(root, asked, run, meter), root.env.spill
        )
        return
    living = SplitReader(root, request, split, meter).living()
    yield from _result_batches(root, request, split, _matching(request, living))


def read_parcel(root: TableRoot, request: Request, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """The rows of several splits of one state, as `read_split` returns them one after the other.

    Small batches of neighbouring splits are filtered together: a filter costs more than the rows of a small file.

    Shapes: in — splits whose rows are rows of the table: neither changes nor differences.
    Cost: as `read_split`; splits are opened one after the other.
    Raises: as `read_split`
    """
    living = SplitParcel(root, request, splits).living()
    yield from _result_batches(root, request, splits[0], _matching(request, living))


def _result_batches(
    root: TableRoot, request: Request, split: Split, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Matching rows in the form that is asked for. `split`: one of those that they come from."""
    kinds = request.kinds or split.since is not None
    schema = request.arrow_schema.append(ROW_KIND_FIELD) if kinds else request.arrow_schema
    references = _references(root, request, split)
    as_read = not kinds and references is None and len(schema) > 0
    for batch in batches:
        if batch.num_rows and as_read and batch.schema.equals(schema, check_metadata=True):
            yield batch
        elif batch.num_rows:
            picked = batch.select(list(request.columns))
            columns = [*picked.columns, row_kinds(batch)] if kinds else picked.columns
            found = pa.RecordBatch.from_arrays(columns, schema=schema) if columns else picked
            if references is None:
                yield found
            else:
                yield from references.fill(found)


def _matching(request: Request, living: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that match, of rows that may."""
    mask = request.mask
    joins = mask is not None and bool(request.read_fields) and request.first_rows is None
    for batch in join_small(living) if joins else living:
        yield keep(batch, mask)


def _references(root: TableRoot, request: Request, split: Split) -> BlobValues | None:
    """The resolver of references to BLOBs, if any are returned."""
    if not request.returns_blobs:
        return None
    from paimon_py.scan.blob_values import BlobValues

    last = split.snapshot_id
    return BlobValues.of(root, request, (last,) if split.since is None else range(split.since + 1, last + 1))


def count_split(root: TableRoot, request: Request, split: Split, most: int | None = None) -> int:
    """The number of rows that `read_split` returns; from metadata alone if that is exact.

    A plan contains only matching partitions, so conditions on partitions alone need not be evaluated again, unless
    their values cannot be calculated for all partitions.

    Args:
        most: an upper bound; with more rows, any number from `most` may be returned.
    """
    if split.compared is not None or split.moving:
        return _count(root, request, split, most)
    if request.predicate is not None and not _is_decided(request.predicate, request.schema.partition_keys):
        return _count(root, request, split, most)
    request = msgspec.structs.replace(request, predicate=None)
    counts = [exact_rows(split, section) for section in split.sections]
    exact = sum(count or 0 for count in counts)
    rest = [section for section, count in zip(split.sections, counts, strict=True) if count is None]
    if not rest or (most is not None and exact >= most):
        return exact
    left = None if most is None else most - exact
    return exact + _count(root, request, msgspec.structs.replace(split, sections=tuple(rest)), left)


def _is_decided(predicate: Predicate, partition_keys: Sequence[str]) -> bool:
    """Whether all rows of a planned partition match."""
    return columns_of(predicate) <= set(partition_keys) and not may_fail(predicate)


def exact_rows(split: Split, section: Section) -> int | None:
    """The number of rows in a section; None if metadata do not determine it."""
    places = [split.deletions[file.name] for file in section.counted_files if file.name in split.deletions]
    if not section.raw or any(place.cardinality is None for place in places):
        return None
    return sum(file.row_count - split.dead_rows(file.name) for file in section.counted_files)


def estimate_split(root: TableRoot, request: Request, split: Split) -> ReadEstimate:
    """The expected work of `read_split`.

    Cost: reads the index files that the predicate needs, and the footers of all files that would be opened.
    Raises: as `read_split`
    """
    if split.compared is None and not split.moving:
        return SplitReader(root, request, split).estimate()
    each = [SplitReader(root, request, run).estimate() for run in split.runs]
    return ReadEstimate(
        sum(one.index_files for one in each), sum(one.index_rows for one in each),
        tuple(part for one in each for part in one.parts),
    )  # fmt: skip


def _count(root: TableRoot, request: Request, split: Split, most: int | None) -> int:
    bare, total = request.counting, 0
    whole = split.compared is not None or bool(split.moving)
    rows = read_split(root, bare, split) if whole else _matching(bare, SplitReader(root, bare, split).living())
    for batch in rows:
        total += batch.num_rows
        if most is not None and total >= most:
            break
    return total
