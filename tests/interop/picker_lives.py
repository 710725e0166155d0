"""Random lives of one bucket, and a replay of every compaction in them on the levels before it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
from pair import Kind, Pair
from values import arrow_rows

from paimon_py.compaction.levels import level_runs
from paimon_py.compaction.picker import (
    Choice,
    PickerSettings,
    PickerState,
    Wait,
    compacts_by_lookup,
    drop_deletes,
    pick,
    pick_full,
)
from paimon_py.compaction.steps import Rewrite, Step, StepSettings, Upgrade, steps_of
from paimon_py.compaction.task import CompactionTask
from paimon_py.lsm.order import key_ranks
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, Snapshot

KIND = Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"])


class Life(msgspec.Struct):
    """`writes`: rows and whether a full compaction follows; `one_writer` stays open over all of them."""

    options: dict[str, str]
    writes: list[tuple[list[dict], bool]]
    one_writer: bool


def life(seed: int, version: str) -> Life:
    """The life that a seed stands for; older Javas get what they decide alike."""
    rng = random.Random(seed)
    options = {"bucket": "1", "target-file-size": rng.choice(("12 kb", "40 kb", "128 mb"))}
    for name, values, share in (
        ("num-sorted-run.compaction-trigger", ("2", "3", "4"), 0.8),
        ("num-levels", ("3", "5"), 0.3),
        ("compaction.max-size-amplification-percent", ("50", "1000", "100000"), 0.7),
        ("compaction.size-ratio", ("0", "100"), 0.3),
        ("compaction.total-size-threshold", ("20 kb",), 0.1),
        ("compaction.incremental-size-threshold", ("30 kb",), 0.1),
        ("compaction.small-file-ratio", ("0.1",), 0.2 if version == "2.0.0" else 0),
        ("compaction.optimization-interval", ("1 h",), 0.1 if version == "2.0.0" else 0),
        ("compaction.force-rewrite-all-files", ("true",), 0.1),
        ("file.format.per.level", ("0:avro",), 0.1),
    ):
        if rng.random() < share:
            options[name] = rng.choice(values)
    if version == "2.0.0":
        options |= rng.choice(
            ({}, {}, {"compaction.force-up-level-0": "true"}, {"deletion-vectors.enabled": "true"}, {"force-lookup": "true"},
             {"merge-engine": "first-row"}, {"force-lookup": "true", "lookup-compact": "gentle", "lookup-compact.max-interval": "4"})
        )  # fmt: skip
    kinds = ("+I",) if options.get("merge-engine") == "first-row" else ("+I",) * 9 + ("-D",) * rng.choice((0, 1, 1))
    writes = [(_rows(rng, kinds), rng.random() < 0.06) for _ in range(14)]
    return Life(options, writes, rng.random() < 0.4)


def _rows(rng: random.Random, kinds: tuple[str, ...]) -> list[dict]:
    count = rng.choice((1, 20, 20, 100, 100, 400, 1500))
    low = rng.choice((0, 0, rng.randrange(20_000), rng.randrange(20_000)))
    keys = rng.sample(range(low, low + rng.choice((count, count * 3, 20_000))), count)
    return [{"k": key, "v": f"{rng.getrandbits(96):024x}", "_kind": rng.choice(kinds)} for key in keys]


def live(pair: Pair, lived: Life) -> None:
    """Let Java live it."""
    pair.create(Kind(KIND.columns, KIND.primary_key, [], lived.options), "j")
    rounds = [
        {"rows": rows, "id": number, **({"compact": "full"} if full else {})}
        for number, (rows, full) in enumerate(lived.writes)
    ]
    if lived.one_writer:
        pair.step("write", rounds=rounds)
    else:
        pair.steps([{"op": "write", **step} for step in rounds])


def live_ours(pair: Pair, lived: Life) -> Replay:
    """Let us live it, each decision looked at."""
    pair.create(Kind(KIND.columns, KIND.primary_key, [], lived.options), "o")
    replay = Replay(pair)
    writer = pair.table().writer() if lived.one_writer else None
    for number, (rows, full) in enumerate(lived.writes):
        if writer is None:
            pair.our_write(rows)
        else:
            table = pair.table()
            writer.write_arrow(arrow_rows(table.schema, pair.columns(), rows, kinds=True))
            table.commit(writer.changes())
        replay.follow(replay.news(), new_writer=writer is None or number == 0)
        if full:
            pair.table().compact(full=True)
            replay.follow(replay.news(), full=True)
    return replay


def replay_java(pair: Pair, lived: Life) -> Replay:
    """Decide again every compaction of a life that Java lived."""
    replay = Replay(pair)
    snapshots = replay.news()
    for number, (_, full) in enumerate(lived.writes):
        made = [snapshot for snapshot in snapshots if snapshot.commit_identifier == number]
        replay.follow(made, full=full, new_writer=number == 0 or not lived.one_writer)
        if full:
            again = replay.decide()
            assert isinstance(again, Wait), "a full compaction leaves nothing to pick"
    return replay


class Replay:
    """One bucket, commit by commit, with what our picker knows at each of them."""

    def __init__(self, pair: Pair) -> None:
        table = pair.table()
        self.root, self.schema = table._root, table.schema
        self.settings = PickerSettings.of(Options(self.schema.options))
        self.state = PickerState()
        self.files: list[DataFile] = []
        self.deleted: set[str] = set()
        self.now_millis = 0
        self.seen = 0
        self.compactions = 0

    def news(self) -> list[Snapshot]:
        """Snapshots since the last time."""
        made = [self.root.snapshots.get(number) for number in self.root.snapshots.ids() if number > self.seen]
        self.seen += len(made)
        return made

    def decide(self) -> Choice:
        """One pick of the writer."""
        choice, self.state = pick(level_runs(self.files), self.settings, self.state, self.now_millis, 12)
        return choice

    def follow(self, made: list[Snapshot], *, full: bool = False, new_writer: bool = False) -> None:
        """The snapshots of one write, or of one full compaction."""
        kinds = [snapshot.commit_kind.value for snapshot in made]
        assert kinds in ([], ["APPEND"], ["COMPACT"], ["APPEND", "COMPACT"])
        if new_writer:
            self.state = PickerState.of(self.files, self.settings)
        files = {s.commit_kind.value: [e.file for e in self.root.manifests.live_entries(s).entries()] for s in made}
        self.now_millis = max([self.now_millis, *(snapshot.time_millis for snapshot in made)])
        self.files = files.get("APPEND", self.files)
        choice = pick_full(level_runs(self.files), self.settings, deleted=self.deleted) if full else self.decide()
        after = files.get("COMPACT", self.files)
        _check(self.schema, self.settings, self.files, choice, after)
        self.files = after
        self.compactions += "COMPACT" in files
        self.deleted = _with_vectors(self.root, made[-1]) if made else self.deleted


def _with_vectors(root: TableRoot, snapshot: Snapshot) -> set[str]:
    if snapshot.index_manifest is None:
        return set()
    entries = root.manifests.read_index(snapshot.index_manifest)
    return {vector.data_file for entry in entries for vector in entry.deletion_vectors or ()}


def _steps(schema: TableSchema, settings: PickerSettings, written: list[DataFile], choice: Choice) -> tuple[Step, ...]:
    if isinstance(choice, Wait):
        return ()
    higher = tuple(file for file in written if file.level > choice.output_level)
    task = CompactionTask(
        base=Base(1), schema_id=schema.id, partition=b"", bucket=0, total_buckets=1, files=choice.files,
        output_level=choice.output_level, drop_deletes=drop_deletes(choice.output_level, level_runs(written), settings),
        rewrite_all=choice.rewrite_all, higher_files=higher if compacts_by_lookup(schema) else (),
    )  # fmt: skip
    return steps_of(task, *_ranks(schema, choice.files), settings=StepSettings.of(schema))


def _ranks(schema: TableSchema, files: Sequence[DataFile]):
    types = [field.type for field in schema.key_fields]
    return key_ranks([file.min_key for file in files], [file.max_key for file in files], types)


def _check(schema: TableSchema, settings: PickerSettings, written: list[DataFile], choice: Choice, after: list[DataFile]) -> None:
    """Our steps on the files before give exactly the files, levels and deletes after."""
    steps = _steps(schema, settings, written, choice)
    rewrites = [step for step in steps if isinstance(step, Rewrite)]
    gone = {file.name for step in rewrites for file in step.files}
    levels = {file.name: file.level for file in written if file.name not in gone}
    levels |= {step.file.name: choice.output_level for step in steps if isinstance(step, Upgrade)}
    assert {file.name: file.level for file in after if file.name in levels} == levels
    new = [file for file in after if file.name not in levels]
    assert not {file.name for file in new} & gone
    if new:
        assert {file.level for file in new} == {choice.output_level}
        assert all(_come_from(schema, file, rewrites) for file in new)


def _come_from(schema: TableSchema, file: DataFile, rewrites: list[Rewrite]) -> bool:
    for step in rewrites:
        lows, highs = _ranks(schema, [file, *step.files])
        if lows[1:].min() <= lows[0] and highs[0] <= highs[1:].max():
            return not step.drop_deletes or file.delete_row_count == 0
    return False
