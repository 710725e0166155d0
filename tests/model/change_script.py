"""Lives of tables whose changes are followed, as scripts.

`python -m model.change_script "lookup: deduplicate, dynamic" 17 30` (with PYTHONPATH=.:tests) plays those with the seeds
17 to 30; the first that fails is made small and printed.
"""

from __future__ import annotations

import sys

from model import change_life, change_streams, steps_beside, steps_care, steps_rows, steps_writing
from model.change_modes import MODES
from model.table_script import Sort, main

VERBS = {
    steps_writing.write: 12, steps_writing.overwrite: 1, steps_writing.truncate: 1, steps_writing.hold: 4,
    steps_writing.commit_held: 5, steps_writing.commit_again: 2, steps_writing.discard_held: 1,
    steps_writing.go_on_writing: 6, steps_writing.stop_writing: 1,
    steps_writing.add_column: 1, change_life.widen: 1, steps_writing.reopen: 2,
    steps_rows.delete: 5, steps_rows.update: 4, steps_beside.update_beside: 2, steps_beside.merge_beside: 1,
    steps_rows.upsert: 5, steps_rows.merge: 5,
    steps_care.compact: 12, steps_beside.compact_beside: 3, steps_care.compact_in_tasks: 5,
    steps_care.rescale: 1, steps_care.index_files: 1, steps_care.compact_manifests: 1,
    change_life.differ: 8, change_streams.follow_on: 12,
}  # fmt: skip
CHANGES = Sort(change_life.ChangeLife, VERBS)

if __name__ == "__main__":
    main(MODES, sys.argv[1:], CHANGES)
