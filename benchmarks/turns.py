"""`python -m benchmarks.turns`: reads beside pypaimon-rust, or an older checkout, on a machine with other work.

A process of each peer stays, and they take turns, one read at a time, pinned to one core. What else the machine does
meets all of them alike, so that the median of the ratios of neighbouring reads means something where CPU times do not.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.children import HERE, Failed, environment
from benchmarks.environments import MODULES, interpreter
from benchmarks.shapes import READS, SHAPES, settings_of, written

_WARM = 2
"""The number of first reads that do not count."""


class Peer:
    """A process that answers requests to read with the CPU seconds that it took."""

    def __init__(self, peer: str, checkout: Path | None = None) -> None:
        """`checkout`: where `paimon_py` is imported from, if not from this one."""
        inherited = environment(peer)
        if checkout is not None:
            inherited = {**inherited, "PYTHONPATH": str(checkout)}
        command = [interpreter(peer), str(HERE / "child.py"), MODULES[peer], "serve", "{}"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=inherited, cwd=tempfile.gettempdir()
        )

    def seconds(self, step: str, settings: Mapping[str, Any]) -> float:
        """CPU seconds of one read. Raises: Failed if the process ended, which prints why."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([step, settings]) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise Failed(f"a peer ended at {step} with {settings}")
        return float(answer)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def ratios(
    ours: Peer, others: Mapping[str, Peer], step: str, settings: Mapping[str, Any], reads: int
) -> dict[str, float]:
    """Beside each other peer, the median of what paimon_py takes of its time."""
    peers = {"ours": ours, **others}
    samples: dict[str, list[float]] = {name: [] for name in peers}
    for number in range(reads + _WARM):
        for name in list(peers)[:: 1 if number % 2 else -1]:
            taken = peers[name].seconds(step, settings)
            if number >= _WARM:
                samples[name].append(taken)
    return {
        name: statistics.median(one / two for one, two in zip(samples["ours"], samples[name], strict=True))
        for name in others
    }


def main(arguments: Sequence[str] | None = None) -> dict[tuple[str, str], dict[str, float]]:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("--only", default="int-key,many-files,many-partitions")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--reads", type=int, default=12)
    parser.add_argument("--beside", type=Path, help="a checkout to compare with, in place of pypaimon-rust")
    given = parser.parse_args(arguments)
    found = {}
    for name in given.only.split(","):
        with ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            table, inputs = written(SHAPES[name], given.rows, Path(directory))
            other = {"rust": Peer("rust")} if given.beside is None else {"before": Peer("ours", given.beside)}
            ours = Peer("ours")
            for peer in (ours, *other.values()):
                stack.callback(peer.close)
            for line in READS:
                settings = {"table": table, **settings_of(line, inputs, given.rows)}
                found[name, line.name] = ratios(ours, other, line.step, settings, given.reads)
                print(name, line.name, found[name, line.name], flush=True)
    return found


if __name__ == "__main__":
    main()
