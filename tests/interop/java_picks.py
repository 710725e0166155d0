"""Invented levels before Java's own compaction manager (`picker/Picks.java`, which is compiled when first needed)."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import random
import subprocess
import tempfile
from collections.abc import Callable

import msgspec
import oracle
from lsm_states import State

from paimon_py.compaction.picker import PickerState, Wait, drop_deletes, pick, pick_full, writers_wait
from paimon_py.compaction.steps import Upgrade
from paimon_py.testing.compaction_simulator import SimulatedWrite

SOURCE = pathlib.Path(__file__).parent / "picker" / "Picks.java"
VERSION = "2.0.0"


def ask_java(questions: list[dict]) -> list[dict]:
    """Java's answers."""
    path = oracle.class_path(VERSION)
    command = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
               "-cp", os.pathsep.join((str(_classes(path)), path)), "org.apache.paimon.mergetree.compact.Picks"]  # fmt: skip
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    made = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=500, check=False)
    assert made.returncode == 0, made.stderr[-3000:]
    return [json.loads(line) for line in made.stdout.splitlines()]


def _classes(class_path: str) -> pathlib.Path:
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "paimon-oracle"
    folder = cache / "classes" / f"picks-{VERSION}-{digest}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            subprocess.run(["javac", "-nowarn", "-d", f"{made}/out", "-cp", class_path, str(SOURCE)], check=True, capture_output=True)
            pathlib.Path(made, "out").rename(folder)
    return folder


def question_of(state: State, kind: str, **extra) -> dict:
    """A question about a state: `pick` or `full`."""
    files = [
        {"name": f.name, "level": f.level, "size": f.size_bytes, "low": state.keys[f.name][0], "high": state.keys[f.name][1],
         "newest": f.max_sequence, "deletes": f.delete_row_count, "created": -1 if f.creation_time_millis is None else f.creation_time_millis}
        for f in state.files
    ]  # fmt: skip
    return {"options": state.options, "files": files, "question": kind, **extra}


def our_answer(state: State, question: dict) -> dict:
    """The same question to us, answered in Java's words."""
    settings, runs = state.settings, state.runs
    expired = frozenset(question["expired"])
    known = PickerState.of(state.files, settings)
    last = known.last_full_millis if question["last"] is None else question["last"]
    before = after = PickerState(last, question["tries"])
    if question["question"] == "full":
        choice = pick_full(runs, settings, deleted=question["deleted"], expired=expired)
    else:
        choice, after = pick(runs, settings, before, question["now"], question["hour"])
    answer: dict = {"waits": writers_wait(runs, settings), "steps": []}
    if settings.compacts_early:
        answer["last"] = after.last_full_millis
    if settings.up_level_0_interval is not None:
        answer["tries"] = after.tries
    if isinstance(choice, Wait):
        return answer
    answer["choice"] = {
        "output": choice.output_level,
        "dropDeletes": drop_deletes(choice.output_level, runs, settings),
        "rewriteAll": choice.rewrite_all,
        "files": sorted(file.name for file in choice.files),
    }
    answer["steps"] = [_step(step) for step in state.steps(choice, expired)]
    return answer


def _step(step) -> dict:
    if isinstance(step, Upgrade):
        return {"do": "upgrade", "file": step.file.name, "lookup": step.lookup}
    sections = [sorted(file.name for run in section for file in run.files) for section in step.sections]
    runs = sum(map(len, step.sections))
    return {"do": "rewrite", "dropDeletes": step.drop_deletes, "lookup": step.lookup, "sections": sections, "runs": runs}


def questions_of(moments: list[SimulatedWrite], options: dict[str, str], hour_of: Callable[[SimulatedWrite], int]) -> list[tuple[State, dict]]:
    """What the picker was asked in a simulation."""
    asked = []
    for moment in moments:
        state = State(options, [file for run in moment.runs for file in run.files])
        state.keys = {file.name: (_number(file.min_key), _number(file.max_key)) for file in state.files}
        question = question_of(
            state, "pick", now=moment.now_millis, hour=hour_of(moment), last=moment.state.last_full_millis,
            tries=moment.state.tries, deleted=[], expired=[],
        )  # fmt: skip
        asked.append((state, question))
    return asked


def _number(key: bytes) -> int:
    return int.from_bytes(key[12:20], "little")


def random_question(seed: int) -> tuple[State, dict]:
    """Levels, options and a question that a seed stands for."""
    rng = random.Random(seed)
    state = State(options=_options(rng))
    top = max(1, state.settings.level_count - 1 + rng.choice((0, 0, 0, 0, 1, -1)))
    scale = rng.choice((10, 1000, 90 << 20, 1 << 36))  # beyond, Java overflows
    for _ in range(rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 9, 12))):
        low = rng.randrange(100)
        _file(rng, state, 0, int(scale * rng.choice((1, 1, 1, rng.random(), 3))), low, low + rng.choice((0, 3, 20)))
    for level in sorted(rng.sample(range(1, top + 1), rng.randint(0, min(top, 4)))):
        total = int(scale * rng.choice((1, 3, 10, 100)) * rng.random())
        edges = sorted(rng.sample(range(120), 2 * rng.choice((1, 1, 2, 4))))
        for low, high in zip(edges[::2], edges[1::2], strict=True):
            _file(rng, state, level, total * 2 // len(edges), low, high)
    if state.files and rng.random() < 0.1:  # what is exactly at a limit
        state.files = [msgspec.structs.replace(file, size_bytes=rng.choice((100, 101))) for file in state.files]
    names = [file.name for file in state.files]
    some = [name for name in names if rng.random() < 0.2]
    question = question_of(
        state, rng.choice(("pick", "pick", "pick", "full")), now=rng.choice((5_000, 15_000, 15_001, 90_000)), hour=rng.randrange(24),
        last=rng.choice((None, None, 5_000, 9_000)), tries=rng.choice((0, 1, 3, 4, 9)),
        deleted=some if "deletion-vectors.enabled" in state.options else [],
        expired=[name for name in names if rng.random() < 0.2] if rng.random() < 0.2 else [],
    )  # fmt: skip
    return state, question


def _file(rng: random.Random, state: State, level: int, size: int, low: int, high: int) -> None:
    deletes = rng.choice((0, 0, 0, 1, None))
    created = rng.choice((1_000, 5_000, 9_000))
    state.add(level, f"f{len(state.files)}", size, low=low, high=high, deletes=deletes, created=created)


def _options(rng: random.Random) -> dict[str, str]:
    options = {}
    for name, values, share in (
        ("num-sorted-run.compaction-trigger", ("1", "2", "3", "8"), 0.4),
        ("num-sorted-run.stop-trigger", ("2", "6", "9"), 0.2),
        ("num-levels", ("2", "3", "7"), 0.2),
        ("compaction.max-size-amplification-percent", ("0", "100", "1000", "100000"), 0.4),
        ("compaction.size-ratio", ("0", "50", "300"), 0.3),
        ("compaction.offpeak.start.hour", ("0", "5", "22"), 0.2),
        ("compaction.offpeak.end.hour", ("5", "6", "23"), 0.2),
        ("compaction.offpeak-ratio", ("40", "500"), 0.2),
        ("compaction.optimization-interval", ("10 s",), 0.1),
        ("compaction.total-size-threshold", ("1 kb", "500 mb"), 0.1),
        ("compaction.incremental-size-threshold", ("100 b", "200 mb"), 0.1),
        ("compaction.small-file-ratio", ("0.1", "1.0"), 0.1),
        ("compaction.force-rewrite-all-files", ("true",), 0.1),
        ("compaction.force-up-level-0", ("true",), 0.15),
        ("deletion-vectors.enabled", ("true",), 0.2),
        ("force-lookup", ("true",), 0.15),
        ("lookup-compact", ("gentle",), 0.3),
        ("lookup-compact.max-interval", ("2", "10"), 0.2),
        ("merge-engine", ("partial-update", "first-row", "aggregation"), 0.3),
        ("sequence.field", ("k",), 0.1),
        ("changelog-producer", ("lookup",), 0.1),
        ("file.format.per.level", ("0:avro", "5:orc,3:avro"), 0.15),
        ("target-file-size", ("1 kb", "10 b"), 0.2),
        ("chain-table.enabled", ("true",), 0.05),
    ):
        if rng.random() < share:
            options[name] = rng.choice(values)
    return options
