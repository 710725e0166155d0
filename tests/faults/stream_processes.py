"""A process that writes and a process that follows, killed again and again: `python stream_processes.py DIRECTORY SEED KILLS CASE`.

The writer commits batch after batch under a user and an identifier, and begins with what it finds committed. The
follower stores every step in a file of its own before it says that it has it: by a consumer, or by a position beside the
steps. A sink that gets a step again writes the same file again. Each of both is forked by this process, which has no
threads, killed after some milliseconds, and forked again. In the end both run until everything is done.

Prints what was seen as a line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import pyarrow as pa

from paimon_py import Catalog, Table

KEYS = 40
LIFE_SECONDS_MAX = 1.5
DEATHS = 0.1
"""How probable a follower's death is before a step is stored, before it is acknowledged, and after."""
STEPS_LEAST = 6
"""Steps that are stored before the killing ends, unless that takes four times the kills."""
CASES = {
    "none": {},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "full compaction": {"changelog-producer": "full-compaction", "full-compaction.delta-commits": "3"},
}
ROWS = pa.schema([pa.field("k", pa.int32(), nullable=False), ("v", pa.int64())])


def rows_of(seed: int, number: int) -> pa.Table:
    """A batch: keys with new values, and some that go."""
    rng = random.Random(f"{seed} {number}")
    keys = rng.sample(range(KEYS), rng.randrange(1, 12))
    kinds = [rng.choice(["+I", "+U", "-D"]) for _ in keys]
    values = [number * 1000 + at for at in range(len(keys))]
    columns = [pa.array(keys, pa.int32()), pa.array(values, pa.int64()), pa.array(kinds)]
    return pa.table(columns, ["k", "v", "_row_kind"])


def create(directory: Path, case: str) -> None:
    catalog = Catalog.open(str(directory))
    catalog.create_database("db")
    options = {"bucket": "1", "num-sorted-run.compaction-trigger": "3", **CASES[case]}
    catalog.create_table("db.t", ROWS, primary_key=["k"], options=options)


def table_of(directory: Path) -> Table:
    return Catalog.open(str(directory)).table("db.t")


def write(directory: Path, seed: int, batches: int) -> None:
    """Commit what is not committed yet."""
    table = table_of(directory)
    left = table.filter_committed(user="job", identifiers=list(range(1, batches + 1)))
    with table.writer() as writer:
        for number in left:
            writer.write_arrow(rows_of(seed, number))
            table.commit(writer.changes(), user="job", identifier=number)


class Sink:
    """Steps in files, each named after the snapshot with which a reader goes on."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)

    def numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self.directory.glob("*.json"))

    def take(self, number: int, content: dict) -> None:
        path = self.directory / f"{number}.json"
        text = json.dumps(content)
        if path.exists():
            assert path.read_text() == text, f"step {number} came again and was another"
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(text)
        draft.rename(path)

    def steps(self) -> list[dict]:
        return [json.loads((self.directory / f"{number}.json").read_text()) for number in self.numbers()]


def follow(directory: Path, batches: int, *, consumer: bool, last: bool) -> None:
    """Read on from where the place was stored; `last`: until nothing is left."""
    sink, table = Sink(directory / "steps"), table_of(directory)
    if consumer:
        stream = table.stream(from_="full", consumer_id="c")
    else:
        known = sink.numbers()
        stream = table.stream(from_=sink.steps()[-1]["position"] if known else "full")
    while True:
        step = stream.poll()
        if step is None:
            if last:
                return
            time.sleep(0.005)
            continue
        rows = sorted(json.dumps(row) for row in step.to_arrow().to_pylist())
        perhaps_die(last)
        sink.take(step.next_snapshot_id, {"full": step.is_full, "rows": rows, "position": step.position})
        perhaps_die(last)
        if consumer:
            step.acknowledge()
            perhaps_die(last)


def perhaps_die(last: bool) -> None:
    """End as by a kill, where that matters and another process would hardly hit."""
    if not last and random.random() < DEATHS:
        os.kill(os.getpid(), signal.SIGKILL)


def forked(work) -> int:
    process = os.fork()
    if process:
        return process
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - the parent reads how the child ended
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(3)
    os._exit(0)


def run(directory: Path, seed: int, kills: int, case: str) -> dict:
    rng = random.Random(seed)
    consumer = seed % 2 == 0
    batches = 10 + 4 * kills
    create(directory, case)
    works = {
        "writer": lambda: write(directory, seed, batches),
        "follower": lambda: follow(directory, batches, consumer=consumer, last=False),
    }
    living: dict[str, tuple[int, float]] = {}
    killed, ended, seen, stuck = 0, [], 0, 0
    while killed < kills or (len(Sink(directory / "steps").numbers()) < STEPS_LEAST and killed < 4 * kills):
        for name, work in works.items():
            if name not in living:
                living[name] = (forked(work), time.monotonic() + rng.uniform(0, LIFE_SECONDS_MAX * (1 + stuck)))
        name = min(living, key=lambda one: living[one][1])
        process, until = living.pop(name)
        time.sleep(max(0, until - time.monotonic()))
        os.kill(process, signal.SIGKILL)
        code = os.waitpid(process, 0)[1]
        if code != signal.SIGKILL:
            ended.append((name, code))
            continue
        killed += 1
        stored = len(Sink(directory / "steps").numbers())
        seen, stuck = stored, stuck + 1 if stored == seen else 0  # on a busy machine lives have to be longer
        if consumer:
            check_place(directory)
    for process, _ in living.values():
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        killed += 1
    for work in (works["writer"], lambda: follow(directory, batches, consumer=consumer, last=True)):
        code = os.waitpid(forked(work), 0)[1]
        assert code == 0, f"the last process ended with {code}"
    bad = [one for one in ended if one[1] != 0]
    return {"killed": killed, "batches": batches, "bad": bad, "steps": len(Sink(directory / "steps").numbers())}


def check_place(directory: Path) -> None:
    """A consumer never stands behind a step that was not stored."""
    places = [one.next_snapshot_id for one in table_of(directory).consumers() if one.name == "c"]
    stored = Sink(directory / "steps").numbers()
    assert not places or places[0] <= max(stored, default=0), f"the consumer stands at {places}, stored is {stored[-1:]}"


if __name__ == "__main__":
    where, given_seed, given_kills, given_case = sys.argv[1:]
    print(json.dumps(run(Path(where), int(given_seed), int(given_kills), given_case)))
