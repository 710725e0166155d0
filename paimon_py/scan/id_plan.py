"""Plans the difference of two states of a table with row tracking, whose rows are identified by their ids.

Files that may contain rows with the same ids are compared together. Ids are known from the first id of a file, or from
statistics; a file without either may contain any row.

    file    before   after    ids          compared
    f1      x        x        0 – 99       not read
    f2      x                 100 – 149    f2 with f3
    f3               x        100 – 149
    f4               x        150 – 160    f4 alone
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paimon_py.codec.columns import Ints, Mask, numpy_values
from paimon_py.codec.manifest.columns import ABSENT, EntryColumns
from paimon_py.files.physical import evolves_columns, without_row_ids
from paimon_py.lsm.intervals import sections_of
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.row_ranges import holders
from paimon_py.scan.bag_plan import difference_split, planned_difference
from paimon_py.scan.ends import Ends
from paimon_py.scan.plan_snapshot import Planned, packing_of
from paimon_py.scan.prune_entries import bounds_of
from paimon_py.scan.request import Request, ids_only
from paimon_py.scan.split import Compared, Split
from paimon_py.scan.state_files import StateFiles, common_files
from paimon_py.spec.packing import pack
from paimon_py.spec.schema import ROW_ID

_LAST = np.iinfo(np.int64).max


def plan_ids(root: TableRoot, request: Request, ends: Ends) -> Planned | None:
    """Plan the difference of two states by row ids; None if files that differ have no row ids.

    Files without row ids are written by compactions of pypaimon.

    Cost: like planning a scan of each state.
    Raises: SnapshotExpiredError: a snapshot has expired.
    """
    asked = ids_only(request)
    states = [StateFiles(root, asked, each, by_id=True) for each in (ends.start, ends.last) if each is not None]
    common = common_files(states)
    files = [state.other_files(common) for state in states]
    differing = [state.entries.take(some) for state, some in zip(states, files, strict=True)]
    if any(_lacks_ids(entries) for entries in differing):
        return None
    table = OpenTable(root, asked.schema)
    ranges = [_id_ranges(table, entries) for entries in differing]
    low, high = (np.concatenate([each[end] for each in ranges]) for end in (0, 1))
    sizes = np.concatenate([entries.size_bytes for entries in differing])
    count, packing = len(files[0]) if len(states) > 1 else 0, packing_of(asked.schema)
    splits = []
    for packed in pack(sections_of(low, high), lambda one: int(sizes[one].sum()), packing.target_bytes):
        numbers = np.sort(np.concatenate([np.array(section, np.int64) for section in packed]))
        chosen = [numbers[numbers < count], numbers[numbers >= count] - count][2 - len(states) :]
        some = [mine[at] for mine, at in zip(files, chosen, strict=True)]
        entries = [mine.take(at) for mine, at in zip(differing, chosen, strict=True)]
        sides = [tuple(state.splits(mine)) for state, mine in zip(states, some, strict=True)]
        before = sides[0] if len(sides) > 1 else ()
        splits += _split(before, sides[-1], _changed_columns(table, entries), ends)
    return planned_difference(states, common, splits)


def _split(before: tuple[Split, ...], after: tuple[Split, ...], columns: tuple[str, ...], ends: Ends) -> list[Split]:
    """One split, none if conditions exclude all files."""
    if not before and not after:
        return []
    return [difference_split(Compared(before=before, after=after, removals=True, identified=columns), ends)]


def _lacks_ids(entries: EntryColumns) -> bool:
    """Whether rows of a file have no ids."""
    codes, lists = entries.lists("write_columns")
    stored: Mask = np.array([ROW_ID in (names or ()) for names in lists], np.bool_)
    return bool((~stored[codes] & (entries.first_row_id == ABSENT)).any()) if len(entries) else False


def _id_ranges(table: OpenTable, entries: EntryColumns) -> tuple[Ints, Ints]:
    """The smallest and largest id that each file may have."""
    if not len(entries):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    bounds = bounds_of(entries, table.schema.field(ROW_ID), table.root.schemas.get)
    known = numpy_values(bounds.min.is_valid()) & numpy_values(bounds.max.is_valid())
    low, high = (numpy_values(each.fill_null(0)) for each in (bounds.min, bounds.max))
    return np.where(known, low, 0), np.where(known, high, _LAST)


def _changed_columns(table: OpenTable, sides: Sequence[EntryColumns]) -> tuple[str, ...]:
    """The columns that may differ: where files store some columns of rows, those of files in only one of the states."""
    fields = without_row_ids(table.schema).fields
    if not evolves_columns(table.schema) or len(sides) < 2:
        return tuple(field.name for field in fields)
    files = [list(zip(side.names().to_pylist(), side.first_row_id.tolist(), strict=True)) for side in sides]
    found = set[int]()
    for entries, mine, others in zip(sides, files, map(set, reversed(files)), strict=True):
        alone = np.flatnonzero([file not in others for file in mine])
        held = holders(entries.take(alone), [field.id for field in fields], table.root.schemas.get)
        found |= {field_id for field_id, mask in held.items() if mask.any()}
    return tuple(field.name for field in fields if field.id in found)
