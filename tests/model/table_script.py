"""Lives of tables as scripts: lists of (verb, seed), from which everything else follows.

`python -m model.table_script "dynamic" 17` (with PYTHONPATH=.:tests) plays the life with seed 17, `… 17 30` those from 17
to 30; the first that fails is made small and printed. `model.change_script` plays those whose changes are followed.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

from model import steps_beside, steps_care, steps_reading, steps_rows, steps_writing
from model.table_life import Life
from model.table_modes import MODES

from paimon_py import PaimonError

LENGTH = 110
VERBS = {
    steps_writing.write: 10, steps_writing.overwrite: 3, steps_writing.truncate: 1, steps_writing.expire_partitions: 1, steps_writing.hold: 4,
    steps_writing.commit_held: 5, steps_writing.commit_again: 2, steps_writing.discard_held: 1,
    steps_writing.go_on_writing: 5, steps_writing.stop_writing: 1, steps_writing.write_shared: 2,
    steps_writing.add_column: 1, steps_writing.widen: 1, steps_writing.reopen: 2,
    steps_rows.delete: 6, steps_rows.update: 5, steps_beside.update_beside: 3, steps_beside.merge_beside: 3, steps_rows.upsert: 6, steps_rows.merge: 8,
    steps_care.compact: 7, steps_care.sort: 2, steps_beside.compact_beside: 3, steps_care.compact_in_tasks: 6,
    steps_care.rescale: 3, steps_care.index_files: 2, steps_care.compact_manifests: 1, steps_care.wait: 1,
    steps_reading.scan: 5, steps_reading.travel: 4, steps_reading.lookup: 8, steps_reading.explain: 1,
    steps_reading.analyze: 2,
}  # fmt: skip
ERRORS = (AssertionError, PaimonError, LookupError, TypeError, ValueError)


class Sort(NamedTuple):
    """What lives are like: what a life is made by, and its verbs with how often each is drawn."""

    make: Callable
    verbs: dict


TABLES = Sort(Life, VERBS)


def script_of(seed, length, sort=TABLES):
    rng = random.Random(seed)
    names = rng.choices([verb.__name__ for verb in sort.verbs], list(sort.verbs.values()), k=length)
    return [(name, rng.randrange(1 << 32)) for name in names]


def play(mode, seed, script, sort=TABLES):
    """Live through a script; returns the steps that were taken."""
    life = sort.make(mode, seed)
    by_name = {verb.__name__: verb for verb in sort.verbs}
    try:
        for number, (name, step) in enumerate(script):
            life.clock.sleep(1)
            try:
                by_name[name](life, random.Random(step))
                life.check()
            except ERRORS as error:
                error.script = script[: number + 1]
                raise
    finally:
        for one in life.writers:
            one.writer.abort()
    return len(script)


def lives(mode, seeds, length, sort=TABLES):
    steps, began = 0, time.process_time()
    for seed in seeds:
        try:
            steps += play(mode, seed, script_of(seed, length, sort), sort)
        except ERRORS as error:
            print(f"mode {mode.name!r}, seed {seed}, script {error.script}")
            raise
    print(f"{mode.name}: {steps} steps in {time.process_time() - began:.1f} s, seeds {seeds}")
    return steps


# -- by hand ---


def failure(mode, seed, script, sort=TABLES):
    """Where a script fails, and how; None if it does not."""
    try:
        play(mode, seed, script, sort)
    except ERRORS as error:
        return error
    return None


def kind_of(error):
    """Errors of one kind end at the same line."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error), frames[-1].filename, frames[-1].lineno


def shrunk(mode, seed, script, error, sort=TABLES):
    """A shorter script that fails alike."""
    script = error.script
    size = max(1, len(script) // 2)
    while size:
        at = 0
        while at < len(script):
            shorter = script[:at] + script[at + size :]
            found = failure(mode, seed, shorter, sort)
            if found is not None and kind_of(found) == kind_of(error):
                script, error = found.script, found
            else:
                at += size
        size //= 2
    return script, error


def main(modes, arguments, sort=TABLES):
    name, *given = arguments
    first, last, length = (*map(int, given), *([int(given[0]), LENGTH][len(given) - 1 :]))[:3]
    mode = next(mode for mode in modes if mode.name == name)
    for seed in range(first, last + 1):
        script = script_of(seed, length, sort)
        error = failure(mode, seed, script, sort)
        if error is not None:
            script, error = shrunk(mode, seed, script, error, sort)
            print("".join(traceback.format_exception(error)[-12:]))
            print(f"mode {mode.name!r}, seed {seed}, script {script}")
            return
    print(f"{name}: fine")


if __name__ == "__main__":
    main(MODES, sys.argv[1:])
