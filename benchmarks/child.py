"""Runs one step of one workload on one peer in this fresh process, pinned to one core, and prints one JSON line.

    python child.py PEER STEP JSON

Figures: `cpu` seconds of user and system time of all threads, `wall` seconds, `peak_mb` and `base_mb` of resident
memory, `repeat_cpu` of further calls in the same process, `check` what came out.
"""

import importlib
import json
import os
import resource
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(peer: str, step: str, settings: dict) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {settings.pop("core", 0)})
    repeats = settings.pop("repeats", 0)
    started = cpu()
    module = importlib.import_module(f"peers.{peer}")
    imported = cpu() - started
    inputs = module.prepare(step, settings)
    base = resident_mb()
    before, clock = cpu(), time.perf_counter()
    check = getattr(module, step)(inputs, settings)
    figures = {"cpu": cpu() - before, "wall": time.perf_counter() - clock, "import_cpu": imported}
    again = []
    for _ in range(repeats):
        before = cpu()
        getattr(module, step)(inputs, settings)
        again.append(cpu() - before)
    figures |= {"repeat_cpu": again, "peak_mb": resident_mb(), "base_mb": base, "check": check}
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
