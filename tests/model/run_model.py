"""Every data file as a dictionary: what its rows must be, followed through writing, compaction and commits.

It is told which files there are and which were merged; what is in them it works out row by row. So it also knows the
answer of engines whose answer depends on what was compacted when.

Source: format.md §12.2, §13.3, §13.5; Java `MergeTreeCompactRewriter`, `LookupChangelogMergeFunctionWrapper`,
`FirstRowMergeFunctionWrapper`.
"""

from __future__ import annotations

import msgspec
from model.engine_models import merged

from paimon_py.compaction.steps import Upgrade


class RunModel:
    """What is in the files of a table.

    `files`: rows by key, by file name. `dead`: keys whose row is dead by file name, for each state of a bucket's index
    (names of its index files).
    """

    def __init__(self, case, *, looks_up, marks, expire_seconds=None):
        self.case = case
        self.looks_up = looks_up
        self.marks = marks
        self.expire_seconds = expire_seconds
        self.files = {}
        self.dead = {(): {}}

    @property
    def hides_new(self):
        """Whether readers leave level 0 out."""
        return self.marks or self.case.first_wins

    # -- writing ---

    def flushed(self, rows):
        """What a write buffer makes of rows, given as (key, row): one for each key."""
        versions = {}
        for key, row in rows:
            versions.setdefault(key, []).append(row)
        return {key: merged(self.case, found, looks_up=self.looks_up) for key, found in versions.items()}

    def place(self, files, rows):
        """Files in key order get rows; returns the files that were not needed."""
        keys, files = sorted(rows), list(files)
        while keys:
            assert files, f"rows of keys {keys} are in no file"
            file = files.pop(0)
            part, keys = keys[: file.row_count], keys[file.row_count :]
            assert len(part) == file.row_count, f"{file.name} has {file.row_count} rows instead of {len(part)}"
            self.files[file.name] = {key: rows[key] for key in part}
            gone = sum(rows[key].kind & 1 for key in part)
            assert file.delete_row_count == gone, f"{file.name} counts {file.delete_row_count} deletes, not {gone}"
        return files

    # -- compaction ---

    def carry_out(self, task, steps, changes, now_seconds):
        """A compaction that gave `changes` must have done this."""
        oldest = None if self.expire_seconds is None else now_seconds - self.expire_seconds
        dead = self.dead[tuple(entry.name for entry in task.index)]
        found = {}
        after = list(changes.compacted.added)
        for step in steps:
            if isinstance(step, Upgrade):
                file, moved = step.file, after.pop(0)
                assert (moved.name, moved.level) == (file.name, task.output_level)
                if step.lookup and self.marks:
                    for key in self._alive(file, dead, oldest):
                        self._above(key, task, dead, found, oldest)
                continue
            after = self.place(after, self._rewritten(step, task, dead, found, oldest))
        assert not after, f"files from nowhere: {after}"
        gone = {file.name for file in changes.compacted.deleted} - {file.name for file in changes.compacted.added}
        left = {name: set(keys) for name, keys in dead.items() if name not in gone}
        for name, keys in found.items():
            left.setdefault(name, set()).update(keys)
        index = tuple(entry.name for entry in changes.compacted.added_index)
        assert index or not left
        assert self.dead.setdefault(index, left) == left

    def _rewritten(self, step, task, dead, found, oldest):
        versions = {}
        for file in step.files:
            for key, row in self._alive(file, dead, oldest).items():
                versions.setdefault(key, []).append(msgspec.structs.replace(row, level=file.level))
        rows = {}
        for key, candidates in versions.items():
            row = self._merged(key, candidates, step, task, dead, found, oldest)
            if row is not None and not (step.drop_deletes and row.kind & 1):
                rows[key] = row
        return rows

    def _merged(self, key, candidates, step, task, dead, found, oldest):
        case = self.case
        if not step.lookup:
            return merged(case, candidates, looks_up=self.looks_up)
        high = min((row for row in candidates if row.level > 0), key=lambda row: row.level, default=None)
        if high is None:
            above = self._above(key, task, dead, found, oldest)
            if above is not None and case.first_wins:
                return None
            if above is not None and not (self.marks and case.newest_wins):
                candidates = [*candidates, above]
        if not case.first_wins:
            high = min((row for row in candidates if row.level > 0), key=lambda row: row.level, default=None)
            candidates = [row for row in candidates if row.level == 0 or row is high]
        return case.fold(sorted(candidates, key=case.order))

    def _above(self, key, task, dead, found, oldest):
        """The row that a lookup finds in the levels above the output."""
        for file in sorted(task.higher_files, key=lambda file: file.level):
            row = self._alive(file, dead, None if self.marks or self.case.first_wins else oldest).get(key)
            if row is not None:
                if self.marks:
                    found.setdefault(file.name, set()).add(key)
                return msgspec.structs.replace(row, level=file.level)
        return None

    def _alive(self, file, dead, oldest):
        gone = dead.get(file.name, ())
        return {key: row for key, row in self.files[file.name].items() if key not in gone and not expired(row, oldest)}

    # -- reading ---

    def visible(self, levels, index):
        """The rows of a bucket by key: `levels` by name of its live files, `index` its index files."""
        dead = self.dead[index]
        versions = {}
        for name, level in levels.items():
            if level == 0 and self.hides_new:
                continue
            gone = dead.get(name, ())
            for key, row in self.files[name].items():
                if key not in gone:
                    versions.setdefault(key, []).append(msgspec.structs.replace(row, level=level))
        found = {}
        for key, rows in versions.items():
            assert not self.marks or len(rows) == 1, f"key {key} has {len(rows)} live rows"
            row = merged(self.case, rows, looks_up=self.looks_up)
            if not row.kind & 1:
                found[key] = row.values
        return found

    def check_levels(self, levels):
        """Files of one level above 0 do not overlap."""
        spans = {}
        for name, level in levels.items():
            if level > 0:
                keys = self.files[name]
                spans.setdefault(level, []).append((min(keys), max(keys), name))
        for level, found in spans.items():
            found.sort()
            for one, two in zip(found, found[1:]):
                assert one[1] < two[0], f"level {level}: {one} overlaps {two}"


def expired(row, oldest):
    """Whether a row has ended by age."""
    return oldest is not None and row.values.get("age") is not None and row.values["age"] < oldest
