"""A process that runs inputs one after the other and notes what came of each. See `fuzz.runner`.

    python -m fuzz.worker PROGRESS RESULTS < JOBS         a job: [target, first, count, step]
"""

from __future__ import annotations

import faulthandler
import functools
import itertools
import json
import os
import random
import struct
import sys
import time
import traceback
import warnings
from pathlib import Path

import pyarrow as pa
from fuzz import limits
from fuzz.target import REFUSED, Target, Wrong

from paimon_py.errors import CorruptionError, PaimonError, StorageError

PROGRESS = struct.Struct("<qq")
PACKAGE = str(Path(__file__).parents[2] / "paimon_py")


@functools.cache
def targets() -> dict[str, Target]:
    """All targets by name."""
    from fuzz import forged_targets, table_targets, value_targets, variant_targets

    places = (table_targets, forged_targets, value_targets, variant_targets)
    return {target.name: target for target in itertools.chain.from_iterable(place.targets() for place in places)}


@functools.cache
def target_of(name: str) -> Target:
    """A target by name, also one that misbehaves on purpose."""
    return next((target for target in limits.planted() if target.name == name), None) or targets()[name]


def frame_of(error: BaseException) -> str:
    """Where in the package an error came out of: file and function of the deepest frame."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename.startswith(PACKAGE)] or frames[-1:]
    return f"{inside[-1].filename.removeprefix(PACKAGE + '/').rpartition('/tests/')[2]}:{inside[-1].name}" if inside else "?"


def judged(target: Target, number: int) -> tuple[str, str, str]:
    """Run an input: what came of it, where, and in what words. Raises: TooSlow."""
    try:
        return target.run(random.Random(f"{target.name}:{number}") if target.sweep is None else number), "", ""
    except PaimonError as error:
        if target.named and not _names_a_path(error):
            return "pathless " + type(error).__name__, frame_of(error), str(error)
        return REFUSED, "", ""
    except Wrong as error:
        return "wrong", frame_of(error), str(error)
    except (MemoryError, pa.ArrowMemoryError) as error:
        return "memory", frame_of(error), repr(error)
    except Exception as error:  # noqa: BLE001 — what else comes out is what the suite looks for
        if target.raises and isinstance(error, target.raises):
            return REFUSED, "", ""
        return type(error).__name__, frame_of(error), repr(error)


def _names_a_path(error: PaimonError) -> bool:
    if isinstance(error, (CorruptionError, StorageError)):
        return bool(error.path)
    return bool(str(error))


def run_job(target: Target, numbers: range, note, write) -> bool:
    """Run the inputs of a job; False if memory is so high that another process has to go on behind the last one."""
    for number in numbers:
        note(number)
        before, began = limits.begin(), time.process_time()
        try:
            outcome, where, words = judged(target, number)
        except limits.TooSlow as error:
            outcome, where, words = "slow", frame_of(error), f"more than {limits.CPU_SECONDS} s"
        finally:
            limits.end()
        seconds, growth = time.process_time() - began, limits.resident_bytes() - before
        if growth > limits.MEMORY_BYTES and not where:
            outcome, where, words = "memory", "the process", f"{growth >> 20} MiB"
        write(json.dumps([target.name, number, outcome, where, words[:300], round(seconds, 4), growth]) + "\n")
        if growth > limits.MEMORY_BYTES:
            return False
    return True


def main() -> int:
    """Run the jobs on standard input."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    jobs = json.load(sys.stdin)
    progress = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
    limits.limit_process()
    with open(sys.argv[2], "a", encoding="utf-8", buffering=1) as results:
        for index, (name, first, count, step) in enumerate(jobs):

            def note(number: int, index: int = index) -> None:
                os.pwrite(progress, PROGRESS.pack(index, number), 0)

            if not run_job(target_of(name), range(first, first + count * step, step), note, results.write):
                return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
