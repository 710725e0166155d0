"""Runs one step of one workload on one peer in this fresh process, pinned to one core, and prints one JSON line.

    python child.py MODULE STEP JSON

Figures: `cpu` seconds of user and system time of all threads, `wall` seconds, `repeat_cpu` of further calls in the
same process, `import_cpu` of what the peer imports, `peak_mb` and `base_mb` (before the first call) of resident memory,
`check`: what came out, looked at after the clock was stopped. A peer that works in another process has a `cpu` of
its own.
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


def resident_mb(which: str) -> float:
    """`VmRSS` is what the process holds now, `VmHWM` the most it has held. (`ru_maxrss` would count the parent's.)"""
    if sys.platform.startswith("linux"):
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith(f"{which}:")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def moved_mb() -> tuple[float, float]:
    """What the process has read from files and written to them by system calls, in MB; 0 where nobody counts."""
    if not os.path.exists("/proc/self/io"):
        return 0, 0
    with open("/proc/self/io") as counters:
        found = dict(line.split(": ") for line in counters)
    return int(found["rchar"]) / 1e6, int(found["wchar"]) / 1e6


def serve(module, used) -> None:
    """Answer each line of a step and its settings with the CPU seconds of one call, until the input ends."""
    for line in sys.stdin:
        step, settings = json.loads(line)
        inputs = module.prepare(settings)
        before = used()
        result = getattr(module, step)(inputs, settings)
        print(used() - before, flush=True)
        del result


def main(name: str, step: str, settings: dict) -> None:
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[settings.pop("core", 0) % len(allowed)]})
    repeats = settings.pop("repeats", 0)
    started = cpu()
    module = importlib.import_module(f"peers.{name}")
    imported = cpu() - started
    used = getattr(module, "cpu", cpu)
    if step == "serve":
        serve(module, used)
        return
    inputs = module.prepare(settings)
    figures = {"import_cpu": imported, "base_mb": resident_mb("VmRSS")}
    run = getattr(module, step)
    moved = moved_mb()
    before, clock = used(), time.perf_counter()
    result = run(inputs, settings)
    figures |= {"cpu": used() - before, "wall": time.perf_counter() - clock, "peak_mb": resident_mb("VmHWM")}
    read, written = moved_mb()
    figures |= {"read_mb": read - moved[0], "written_mb": written - moved[1]}
    check = module.check(result)
    del result
    again = []
    for _ in range(repeats):
        before = used()
        result = run(inputs, settings)
        again.append(used() - before)
        del result
    print(json.dumps(figures | {"repeat_cpu": again, "check": check}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
