"""Narrows the difference of two states by row ids: of files that both states have, only rows that died are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

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
from paimon_py.spec.snapshot import Base

_IDS_MAX = 65_536
"""Rows of a section that are asked for by id; with more, all of them are read."""

_Key = tuple[str, ...]
_Dead = Mapping[str, BitMap]
"""The dead rows of files, as positions, by the names of the files."""

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
    sections, others = ({_key(section): section for run in runs for section in run.sections} for _, runs in sides)
    numbered = {key: section for key, section in sections.items() if key in others and _has_ids(section)}
    dead = [_dead(root, runs, numbered.keys()) for _, runs in sides]
    ids = {key: _changed_ids(section, *dead) for key, section in numbered.items()}
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


def _has_ids(section: Section) -> bool:
    """Whether the id of each row follows from its position."""
    return all(ids_from(file) is not None and file.row_count <= MAX_ROWS for file in section.counted_files)


def _part(run: Split, known: dict[_Key, Ints], *, is_known: bool) -> Iterator[Split]:
    """The run with only the sections that are known, or are not; none if there are no such sections."""
    sections = tuple(section for section in run.sections if (_key(section) in known) is is_known)
    if sections:
        yield msgspec.structs.replace(run, sections=sections)


def _changed_ids(section: Section, before: _Dead, after: _Dead) -> Ints | None:
    """The ids of rows of a section that are dead in one of two states alone; None if there are many."""
    found: list[Ints] = []
    for file in section.counted_files:
        changed = before.get(file.name, BitMap()) ^ after.get(file.name, BitMap())
        if len(changed) > _IDS_MAX:
            return None
        first = ids_from(file)
        assert first is not None
        found.append(np.array(changed, np.int64) + first)
    return np.concatenate(found)


def _dead(root: TableRoot, runs: Sequence[Split], keys: Set[_Key]) -> _Dead:
    """The dead rows of the files of some sections in a state. Cost: each index file of a run is opened once."""
    dead: dict[str, BitMap] = {}
    for run in runs:
        files = [file.name for section in run.sections if _key(section) in keys for file in section.counted_files]
        places = {name: run.deletions[name] for name in files if name in run.deletions}
        if places:
            with root.reading(Base(run.snapshot_id)):
                vectors = read_deletions(root.files, places)
            dead.update((name, vector.bitmap(0)) for name, vector in vectors.items())
    return dead
