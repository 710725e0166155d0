"""Plays an engine script by Java, by us and by both in turn, and says where the tables or the readers disagree."""

from __future__ import annotations

import copy
import itertools
import json
import pathlib
import random
from dataclasses import dataclass, field

import golden
import oracle
from engine_scripts import Script
from filters import predicate
from pair import Pair, differences, forgive, snapshot_facts, sorted_facts
from row_pair import RowPair
from values import canonical_rows, difference, ours

import paimon_py
from paimon_py import PaimonError, UnsupportedError

TURNS = ("j", "o", "oj", "jo")
"""Who acts: Java, we, we and Java in turn, Java and we in turn."""

AT_ONCE = ("write", "rounds", "compact", "overwrite", "alter", "rescale")
"""Steps that Java does without being asked for rows first."""


class Disagreement(AssertionError):
    """Two players or two readers of one script differ."""


@dataclass
class Played:
    """A table after a script: what each step ended with, and who failed."""

    pair: Pair
    ends: list[int | str] = field(default_factory=list)

    @property
    def failed(self) -> int | None:
        """Number of the step that was refused; no further one was played."""
        return next((number for number, end in enumerate(self.ends) if isinstance(end, str)), None)


def play(java: oracle.Session, warehouse: pathlib.Path, script: Script, turns=TURNS) -> dict[str, Played]:
    """Play a script once per entry of `turns`, if we can play it at all; the tables by turn."""
    turns = ("j",) if script.java_only else turns
    at_once = "bucket-append-ordered" not in script.options and all(step[0] in AT_ONCE and step[1] != "dynamic" for step in script.steps) and script.options.get("bucket") != "-2"
    return {turn: _all_by_java(java, warehouse, script) if turn == "j" and at_once else _play(java, warehouse, script, turn) for turn in turns}


def _play(java: oracle.Session, warehouse: pathlib.Path, script: Script, turn: str) -> Played:
    played = Played(RowPair(java, warehouse, turn))
    for step, by in zip([None, *script.steps], itertools.chain(turn[0], itertools.cycle(turn))):
        try:
            played.pair.create(script, by) if step is None else played.pair.act(step, by)
        except (PaimonError, oracle.OracleError) as error:
            played.ends.append(f"{by}: {type(error).__name__}: {error}")
            if isinstance(error, UnsupportedError):
                raise Disagreement(f"step {len(played.ends) - 1} of {turn}: {error}") from error
            break
        latest = played.pair.table().snapshot()
        played.ends.append(latest.id if latest else 0)
    return played


def _all_by_java(java: oracle.Session, warehouse: pathlib.Path, script: Script) -> Played:
    """As `_play`, in one call."""
    played = Played(RowPair(java, warehouse, "j"))
    create = {"op": "create", "columns": script.columns, "primaryKeys": script.primary_key, "partitionKeys": script.partition_by, "tableOptions": script.options}
    steps = [create, *map(java_step, script.steps)]
    outputs = played.pair.steps([one for step in steps for one in (step, {"op": "snapshot"})], check=False)
    for done, snapshot in zip(outputs[::2], outputs[1::2], strict=True):
        if not done["ok"]:
            played.ends.append(f"j: {done['error']}")
            break
        played.ends.append(snapshot["result"]["id"] if snapshot["result"] else 0)
    return played


def java_step(step: tuple) -> dict:
    """A step of a script in the oracle's language."""
    verb, *rest = step
    match verb:
        case "write":
            return {"op": "write", "rows": rest[0]}
        case "rounds":
            return {"op": "write", "rounds": [{"rows": rows} for rows in rest[0]]}
        case "compact":
            which = {"partitions": [{k: str(v) for k, v in one.items()} for one in rest[1]]} if len(rest) > 1 else {}
            return {"op": "compact", "full": rest[0], **which}
        case "overwrite":
            return {"op": "write", "rows": rest[1], "overwrite": rest[0], "options": {"dynamic-partition-overwrite": "false"}}
        case "alter":
            return {"op": "alter", "changes": rest}
        case "rescale":
            return {"op": "rescale", "bucket": rest[0], "options": {"dynamic-partition-overwrite": "false"}}
    raise ValueError(verb)


# -- what everyone must agree on ------------------------------------------------------------------------------------


def check(script: Script, tables: dict[str, Played]) -> dict[str, list]:
    """All tables hold the same after every step, whoever reads them, and describe it alike.

    Returns: what Java reads of the last state, by turn.

    Raises: Disagreement.
    """
    want = tables["j"]
    for turn, played in tables.items():
        if played.failed != want.failed:
            raise Disagreement(f"{turn} ended at step {played.failed} with {played.ends[-1:]}, Java at {want.failed} with {want.ends[-1:]}")
        if not script.sizes_matter and want.failed is None and played.ends != want.ends:
            raise Disagreement(f"{turn}: snapshots after each step are {played.ends}, Java's {want.ends}")
    if want.failed == 0:
        return {}
    described = {turn: _Described(played, script) for turn, played in tables.items()}
    _check_rows(script, tables, described)
    for turn in tables:
        _check_narrow_reads(script, turn, described[turn])
    if not script.sizes_matter:
        for turn in tables:
            _check_metadata(turn, tables[turn].pair, described[turn], described["j"])
    return {turn: one.theirs[max(one.theirs)] for turn, one in described.items() if one.theirs}


class _Described:
    """What Java and we see in every snapshot of a table."""

    def __init__(self, played: Played, script: Script) -> None:
        self.pair = played.pair
        table = self.pair.table()
        steps = {end for end in played.ends if isinstance(end, int) and end}
        self.snapshots = {one.id: one for one in table.snapshots() if one.id in steps or not script.sizes_matter}
        self.columns = {number: self.pair.columns(one.schema_id) for number, one in self.snapshots.items()}
        outputs = self.pair.steps([{"op": "read", "options": {"scan.snapshot-id": str(number)}} for number in self.snapshots], check=False)
        self.theirs = {
            number: canonical_rows(self.columns[number], read["result"]) if read["ok"] else read["error"]
            for number, read in zip(self.snapshots, outputs, strict=True)
        }
        self.facts = {} if script.sizes_matter else self._facts(bool(script.options.get("deletion-vectors.enabled")))
        self.ours = {number: self._our_rows(table, number) for number in self.snapshots}

    def _facts(self, vectors: bool) -> dict[int, tuple]:
        """How every snapshot and its files are described."""
        ops = ("files", "snapshot", *(["manifests"] if vectors else []))
        outputs = iter(self.pair.steps([{"op": op, "snapshot": number} for number in self.snapshots for op in ops]))
        found = {}
        for number in self.snapshots:
            files, snapshot = next(outputs), snapshot_facts(next(outputs))
            index = next(outputs)["index"] if vectors else None
            snapshot.pop("indexManifest", None)  # Java keeps an empty one where we have none
            found[number] = (snapshot, sorted_facts(files), vector_facts(index, files))
        return found

    def _our_rows(self, table: paimon_py.Table, number: int) -> list | str:
        try:
            return ours(self.columns[number], table.scan(snapshot_id=number).to_arrow())
        except PaimonError as error:
            return f"{type(error).__name__}: {error}"


def vector_facts(index: list[dict] | None, files: list[dict]) -> list:
    """Deletion vectors of live files, which are told apart by bucket, level and key range; their order in a file is free."""
    vectors = {
        name: {key: value for key, value in vector.items() if key != "offset"}
        for entry in index or []
        for name, vector in entry.get("deletionVectors", {}).items()
    }
    live = {file["fileName"] for file in files}
    dangling = sorted(set(vectors) - live)
    facts = [
        [file["partition"], file["bucket"], file["level"], file["minKey"], file["maxKey"], file["rowCount"], vectors[file["fileName"]]]
        for file in files
        if vectors.get(file["fileName"])
    ]
    return [len(dangling), sorted(facts, key=lambda one: json.dumps(one, sort_keys=True))]


def settled(columns: list, rows: list | str, unordered: frozenset[str]) -> list | str:
    """Rows with arrays in one order where their order has no meaning."""
    if isinstance(rows, str) or not unordered:
        return rows
    at = [number for number, (name, _) in enumerate(columns) if name in unordered]
    return [
        [sorted(v, key=lambda item: json.dumps(item, sort_keys=True)) if n in at and v is not None else v for n, v in enumerate(row)]
        for row in rows
    ]


def narrowed(columns: list, rows: list | str, chosen: list) -> list | str:
    """The rows with only some of their columns."""
    if isinstance(rows, str) or columns == chosen:
        return rows
    at = [columns.index(column) for column in chosen]
    return [[row[number] for number in at] for row in rows]


def _check_rows(script: Script, tables: dict[str, Played], described: dict[str, _Described]) -> None:
    want = tables["j"]
    steps = [number for number, end in enumerate(want.ends) if isinstance(end, int) and end]
    for step in steps:
        base = described["j"]
        columns = base.columns[want.ends[step]]
        rows = settled(columns, base.theirs[want.ends[step]], script.unordered)
        for turn, played in tables.items():
            number = played.ends[step]
            mine = described[turn].columns[number]
            shared = [column for column in columns if column in mine]  # a schema is seen when the next snapshot comes
            for reader, seen in (("Java", described[turn].theirs[number]), ("we", described[turn].ours[number])):
                found = settled(shared, narrowed(mine, seen, shared), script.unordered)
                _same_rows(f"step {step} of {turn}, read by {reader}", shared, narrowed(columns, rows, shared), found)
    if script.sizes_matter:
        return
    for turn, one in described.items():
        for number in one.snapshots:
            rows = settled(one.columns[number], one.theirs[number], script.unordered)
            _same_rows(f"snapshot {number} of {turn}, read by us", one.columns[number], rows, settled(one.columns[number], one.ours[number], script.unordered))


def _check_narrow_reads(script: Script, turn: str, one: _Described) -> None:
    """Reading fewer columns or rows of the last state gives parts of reading all of it, whatever the engine reads for that."""
    number = max(one.snapshots, default=0)
    if not number or isinstance(one.ours[number], str):
        return
    rng = random.Random(f"{script.seed} {turn}")
    columns, rows = one.columns[number], settled(one.columns[number], one.ours[number], script.unordered)
    table = one.pair.table()
    types = {name: golden.parse_type(kind) for name, kind in columns}
    for _ in range(3):
        chosen = rng.sample(columns, rng.randrange(1, len(columns) + 1))
        at = [columns.index(column) for column in chosen]
        tree = _filter(rng, columns, rows)
        want = [[row[i] for i in at] for row in rows if tree is None or golden.matches(dict(zip(types, row)), tree, types)]
        scan = table.scan(snapshot_id=number, columns=[name for name, _ in chosen], where=None if tree is None else predicate(tree, types))
        got = settled(chosen, ours(chosen, scan.to_arrow()), script.unordered)
        _same_rows(f"our read of {[name for name, _ in chosen]} where {tree} in {turn}", chosen, want, got)
        if scan.count() != len(want):
            raise Disagreement(f"our count of rows where {tree} in {turn}: {scan.count()}, not {len(want)}")


def _filter(rng: random.Random, columns: list, rows: list) -> list | None:
    """A filter by a value that occurs, in the notation of the oracle."""
    number, (name, kind) = rng.choice([one for one in enumerate(columns) if isinstance(one[1][1], str)])
    seen = [row[number] for row in rows if row[number] is not None]
    if not seen or rng.random() < 0.15:
        return rng.choice([None, ["isNull", name], ["isNotNull", name]])
    value = rng.choice(seen)
    if kind.startswith("DECIMAL") and len(value.strip("-").replace(".", "")) > int(kind[8:].split(",")[0]):
        return None  # a sum that left its type: there is no such literal
    return [rng.choice(("=", "!=")) if kind == "BOOLEAN" else rng.choice(("=", "<", ">=", "!=")), name, value]


def _same_rows(where: str, columns: list, want: list | str, got: list | str) -> None:
    if isinstance(got, str) and got.startswith("UnsupportedError"):
        raise Disagreement(f"{where}: {got}")
    if isinstance(want, str) or isinstance(got, str):
        if type(want) is not type(got):
            raise Disagreement(f"{where}: {got if isinstance(got, str) else f'{len(got)} rows'}; Java of its own table: {want if isinstance(want, str) else f'{len(want)} rows'}")
        return
    unlike = difference(columns, want, got)
    if unlike is not None:
        raise Disagreement(f"{where}: {unlike}")


def _check_metadata(turn: str, pair: Pair, got: _Described, want: _Described) -> None:
    fmt = pair.table().options.get("file.format", "parquet")
    for number, (snapshot, files, vectors) in got.facts.items():
        their_snapshot, their_files, their_vectors = want.facts[number]
        where = f"{turn}: snapshot {number}"
        if unlike := differences(snapshot, their_snapshot):
            raise Disagreement(f"{where}: {unlike}")
        theirs = copy.deepcopy(their_files)
        forgive(files, theirs, got.columns[number], fmt)
        if unlike := differences(_levels(files), _levels(theirs)):
            raise Disagreement(f"{where}, levels: {unlike}\n   has {_levels(files)}\n  Java {_levels(theirs)}")
        if unlike := differences(files, theirs):
            raise Disagreement(f"{where}, files: {unlike}")
        if unlike := differences(vectors, their_vectors):
            raise Disagreement(f"{where}, deletion vectors: {unlike}")


def _levels(files: list[dict]) -> list:
    names = ("partition", "bucket", "level", "rowCount", "deleteRowCount", "minSequenceNumber", "maxSequenceNumber", "minKey", "maxKey")
    return [[file[name] for name in names] for file in files]
