"""Narrows the difference of two states by row ids: of files that both states have, only rows that died are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from pyroaring import BitMap

from paimon_py.codec.columns import Ints
from paimon_py.expr.bind import bind
from paimon_py.files.file_index import MAX_ROWS
from paimon_py.metadata.deletion_files import read_deletions
from paimon_py.metadata.root import TableRoot
from paimon_py.scan.request import Request
from paimon_py.scan.row_ids import ids_from, with_row_id
from paimon_py.scan.split import Compared, Section, Split
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.snapshot import Base

_IDS_MAX = 65_536
"""Rows of a section that are asked for by id; with more, all of them are read."""

_Key = tuple[str, ...]

StateRun = tuple[int, Request, Split]
"""A run of a state, 0 for the one before and 1 for the one after, and the request to it."""


def state_runs(root: TableRoot, asked: Request, compared: Compared) -> list[StateRun]:
    """The runs of both states to read, with the request to each.

    Sections with the same files in both states differ only by their deletion vectors: rows that are dead in one of the
    states alone are asked for by their ids.

    Cost: the deletion vectors of such sections are read.
    Raises: SnapshotExpiredError, CorruptionError
    """
    sides = ((0, compared.before), (1, compared.after))
    places = [{_key(section): run for run in runs for section in run.sections} for _, runs in sides]
    ids = {key: _changed_ids(root, key, [side[key] for side in places]) for key in places[0].keys() & places[1].keys()}
    known = {key: found for key, found in ids.items() if found is not None}
    if not known:
        return [(state, asked, run) for state, runs in sides for run in runs]
    wanted = np.sort(np.concatenate(list(known.values())))
    narrow = bind(with_row_id(None, wanted), asked.schema.fields)
    predicate = narrow if asked.predicate is None else asked.predicate & narrow
    fewer = msgspec.structs.replace(asked, predicate=predicate)
    found: list[StateRun] = []
    for state, runs in sides:
        for run in runs:
            found += [(state, fewer, part) for part in _part(run, known, is_known=True) if len(wanted)]
            found += [(state, asked, part) for part in _part(run, known, is_known=False)]
    return found


def _key(section: Section) -> _Key:
    return tuple(sorted(file.name for file in section.files))


def _part(run: Split, known: dict[_Key, Ints], *, is_known: bool) -> Iterator[Split]:
    """The run with only the sections that are known, or are not; none if there are no such sections."""
    sections = tuple(section for section in run.sections if (_key(section) in known) is is_known)
    if sections:
        yield msgspec.structs.replace(run, sections=sections)


def _changed_ids(root: TableRoot, key: _Key, runs: Sequence[Split]) -> Ints | None:
    """The ids of rows of a section that are dead in one of two states alone; None if unknown, or if there are many."""
    counted = next(section.counted_files for section in runs[0].sections if _key(section) == key)
    found: list[Ints] = []
    for file in counted:
        first = ids_from(file)
        if first is None or file.row_count > MAX_ROWS:
            return None
        before, after = (_dead(root, file, run) for run in runs)
        changed = before ^ after
        if len(changed) > _IDS_MAX:
            return None
        found.append(np.array(changed, np.int64) + first)
    return np.concatenate(found)


def _dead(root: TableRoot, file: DataFile, run: Split) -> BitMap:
    """The dead rows of a file in a state, as positions."""
    place = run.deletions.get(file.name)
    if place is None:
        return BitMap()
    with root.reading(Base(run.snapshot_id)):
        return read_deletions(root.files, {file.name: place})[file.name].bitmap(0)
