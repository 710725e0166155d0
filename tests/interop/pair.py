"""One script played by us, by Java, and by both in turn; afterwards both must see the same in each of these tables.

A script is a list of actions in the notation of the oracle:

    ("write", rows)                    one commit; {"watermark": 5} may follow
    ("alter", change, …)               as in the oracle's `alter`
    ("overwrite", partition, rows)     static; "dynamic" instead of a partition replaces the partitions in the rows
    ("truncate",)  ("drop", [partition, …])
    ("compact", full)                  every bucket, fully or as the picker likes; [partition, …] may follow
    ("dead", column, {least: rows})    Java deletes rows, by number, of the file whose smallest value of the column is `least`
    ("rounds", [rows, …])              one writer, one commit per list
    ("tag", name)                      of the latest snapshot
    ("rescale", buckets)               every partition; a partition may follow
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import pathlib
from dataclasses import dataclass, field

import golden
import oracle
from filters import predicate
from values import arrow_rows, canonical_rows, difference, ours

import paimon_py
from paimon_py import Catalog, NotFoundError, Schema, Table
from paimon_py.spec.snapshot import RESERVED_PROPERTIES
from paimon_py.spec.type_text import print_type

TURNS = ("o", "j", "oj", "jo")
"""Who acts: we, Java, we and Java in turn, Java and we in turn. The first one creates the table."""


HINTS = {f"{directory}/{name}" for directory in ("snapshot", "changelog") for name in ("EARLIEST", "LATEST")}
OUR_FILES = {"tag/ANCESTOR"}
"""Files of a table that Java does not write."""


@dataclass(frozen=True)
class Kind:
    """What a table is made of."""

    columns: list
    primary_key: list[str] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)


class Pair:
    """A table of one warehouse that we and a Java Paimon share."""

    def __init__(self, java: oracle.Session, warehouse: pathlib.Path, name: str = "t") -> None:
        self.java = java
        self.warehouse = pathlib.Path(warehouse)
        self.name = f"db.{name}"
        self.path = self.warehouse / "db.db" / name

    def table(self) -> Table:
        """Our view of it, opened afresh."""
        return Catalog.open(str(self.warehouse)).table(self.name)

    def create(self, kind: Kind, by: str) -> None:
        if by == "o":
            catalog = Catalog.open(str(self.warehouse))
            catalog.create_database("db", exist_ok=True)
            schema = Schema([(name, text) for name, text in kind.columns])
            catalog.create_table(
                self.name, schema, primary_key=kind.primary_key, partition_by=kind.partition_by, options=kind.options
            )
            return
        self.step("create", columns=kind.columns, primaryKeys=kind.primary_key, partitionKeys=kind.partition_by, tableOptions=kind.options)

    # -- Java's side ------------------------------------------------------------------------------------------------

    def steps(self, steps: list[dict], check: bool = True) -> list:
        """Results of Java steps on this table."""
        made = self.java.run(str(self.warehouse), [{"table": self.name, **step} for step in steps], check=check)
        return [output["result"] if check else output for output in made]

    def step(self, op: str, **fields):
        return self.steps([{"op": op, **fields}])[0]

    def java_rows(self, columns: list | None = None, **fields) -> list[list]:
        """What Java reads, in canonical form."""
        return canonical_rows(columns or self.columns(), self.step("read", **fields))

    # -- ours -------------------------------------------------------------------------------------------------------

    def columns(self, schema_id: int | None = None) -> list:
        """[[name, type]…] of a schema, by default of the latest."""
        if schema_id is None:
            return [[f.name, print_type(f.type)] for f in self.table().schema.fields]
        text = (self.path / "schema" / f"schema-{schema_id}").read_text()
        return [[f["name"], f["type"]] for f in json.loads(text)["fields"]]

    def our_rows(self, columns: list | None = None, **scan) -> list[list]:
        """What we read, in canonical form."""
        return ours(columns or self.columns(), self.table().scan(**scan).to_arrow())

    def our_write(self, rows: list[dict], **extra) -> paimon_py.CommitResult:
        table = self.table()
        kinds = bool(table.schema.primary_keys) and "rowkind.field" not in table.options
        return table.write_arrow(arrow_rows(table.schema, self.columns(), rows, kinds=kinds), **extra)

    # -- both -------------------------------------------------------------------------------------------------------

    def act(self, action: tuple, by: str) -> None:
        """Let one side do one action."""
        verb, *rest = action
        getattr(self, f"_{verb}_{'ours' if by == 'o' else 'java'}")(*rest)

    def agree(self, **scan) -> list[list]:
        """Rows of the latest state, which both sides read alike."""
        columns = self.columns()
        theirs = self.java_rows(columns)
        assert difference(columns, theirs, self.our_rows(columns)) is None, f"{self.name}: we read other rows than Java"
        return theirs

    def check_filters(self, filters: list, rows: list[list], java_errs: tuple[str, ...] = ()) -> None:
        """Our filtered reads are exact; Java's filtered reads of the same files lose nothing, `java_errs` aside."""
        columns = self.columns()
        types = {name: golden.parse_type(kind) for name, kind in columns}
        named = [dict(zip(types, row)) for row in rows]
        table = self.table()
        pruned = self.steps([{"op": "read", "filter": tree} for tree in filters])
        for tree, theirs in zip(filters, pruned, strict=True):
            want = [row for row, by_name in zip(rows, named) if golden.matches(by_name, tree, types)]
            got = ours(columns, table.scan(where=predicate(tree, types)).to_arrow())
            assert difference(columns, want, got) is None, f"we filter wrongly by {tree}"
            if tree[1] in java_errs:
                continue
            left = [row for row in canonical_rows(columns, theirs) if golden.matches(dict(zip(types, row)), tree, types)]
            assert difference(columns, want, left) is None, f"Java loses rows of {self.name} by {tree}"

    def _write_ours(self, rows: list[dict], extra: dict | None = None) -> None:
        self.our_write(rows, **(extra or {}))

    def _write_java(self, rows: list[dict], extra: dict | None = None) -> None:
        self.step("write", rows=rows, **(extra or {}))

    def _compact_ours(self, full: bool, partitions: list[dict] | None = None) -> None:
        self.table().compact(full=full, partitions=partitions)

    def _compact_java(self, full: bool, partitions: list[dict] | None = None) -> None:
        which = {} if partitions is None else {"partitions": [{k: str(v) for k, v in one.items()} for one in partitions]}
        options = self.table().options
        if options.get("bucket") == "-2":  # Java's engines pass the option on
            which["buckets"] = int(options["postpone.default-bucket-num"])
        self.step("compact", full=full, **which)

    def _dead_java(self, column: str, rows: dict) -> None:
        names = {file["valueStats"]["min"][column]: file["fileName"] for file in self.step("files")}
        self.step("deleteRows", positions={names[least]: numbers for least, numbers in rows.items()})

    _dead_ours = _dead_java

    def _rounds_ours(self, rounds: list[list[dict]]) -> None:
        table = self.table()
        kinds = bool(table.schema.primary_keys) and "rowkind.field" not in table.options
        with table.writer() as writer:
            for rows in rounds:
                writer.write_arrow(arrow_rows(table.schema, self.columns(), rows, kinds=kinds))
                table.commit(writer.changes())

    def _rounds_java(self, rounds: list[list[dict]]) -> None:
        self.step("write", rounds=[{"rows": rows} for rows in rounds])

    def _alter_ours(self, *changes: list) -> None:
        self.table().alter(*map(our_change, changes))

    def _alter_java(self, *changes: list) -> None:
        self.step("alter", changes=list(changes))

    def _overwrite_ours(self, partition, rows: list[dict]) -> None:
        table = self.table()
        names = dict(self.columns())
        if partition != "dynamic":
            partition = {k: int(v) if names[k].startswith(("INT", "BIGINT")) else v for k, v in partition.items()}
        kinds = bool(table.schema.primary_keys) and "rowkind.field" not in table.options
        table.write_arrow(arrow_rows(table.schema, self.columns(), rows, kinds=kinds), overwrite=partition)

    def _overwrite_java(self, partition, rows: list[dict]) -> None:
        dynamic = partition == "dynamic"
        options = {"dynamic-partition-overwrite": "true" if dynamic else "false", **self._in_peace()}
        self.step("write", rows=rows, overwrite={} if dynamic else partition, options=options)

    def _truncate_ours(self) -> None:
        self.table().truncate()

    def _truncate_java(self) -> None:
        self.step("truncate")

    def _drop_ours(self, partitions: list[dict]) -> None:
        names = dict(self.columns())
        typed = [{k: int(v) if names[k].startswith(("INT", "BIGINT")) else v for k, v in p.items()} for p in partitions]
        with contextlib.suppress(NotFoundError):
            self.table().drop_partitions(typed)

    def _drop_java(self, partitions: list[dict]) -> None:
        self.step("truncate", partitions=partitions)

    def _rescale_ours(self, buckets: int, partition: dict | None = None) -> None:
        self.table().rescale(buckets, partitions=None if partition is None else [partition])

    def _rescale_java(self, buckets: int, partition: dict | None = None) -> None:
        where = {} if partition is None else {"partition": {name: str(value) for name, value in partition.items()}}
        options = {"dynamic-partition-overwrite": "false", **self._in_peace()}
        self.step("rescale", bucket=buckets, options=options, **where)

    def _in_peace(self) -> dict[str, str]:
        """Java writers of unordered buckets look at what they overwrite, and fail ("File deletion conflicts"), if they compact."""
        return {"write-only": "true"} if self.table().options.get("bucket-append-ordered") == "false" else {}

    def _tag_ours(self, name: str) -> None:
        self.table().create_tag(name)

    def _tag_java(self, name: str) -> None:
        self.step("tag", name=name)


_MOVES = {"first": paimon_py.First, "last": paimon_py.Last, "after": paimon_py.After, "before": paimon_py.Before}


def our_change(change: list) -> object:
    """A change in the oracle's notation as one of ours."""
    kind, *rest = change
    match kind:
        case "add":
            column, data_type, *more = rest
            comment, move = (more + [None, None])[:2]
            where = None if move is None else _MOVES[move[0]](*([move[2]] if len(move) > 2 else []))
            return paimon_py.AddColumn(column, data_type, comment, where)
        case "rename":
            return paimon_py.RenameColumn(*rest)
        case "drop":
            return paimon_py.DropColumn(*rest)
        case "type":
            return paimon_py.UpdateColumnType(*rest, allow_narrowing=True)
        case "nullability":
            return paimon_py.UpdateColumnNullability(*rest)
        case "comment":
            return paimon_py.UpdateColumnComment(*rest)
        case "default":
            return paimon_py.UpdateColumnDefault(*rest)
        case "set":
            return paimon_py.SetOption(*rest)
        case "reset":
            return paimon_py.RemoveOption(*rest)
        case "tableComment":
            return paimon_py.UpdateComment(*rest)
        case "position":
            move = rest[0]
            return paimon_py.UpdateColumnPosition(move[1], _MOVES[move[0]](*([move[2]] if len(move) > 2 else [])))
    raise ValueError(kind)


def play(java: oracle.Session, warehouse: pathlib.Path, kind: Kind, script: list[tuple], turns=TURNS) -> dict[str, Pair]:
    """Play a script once per entry of `turns`; the tables by turn."""
    pairs = {}
    for turn in turns:
        pair = pairs[turn] = Pair(java, warehouse, turn)
        pair.create(kind, turn[0])
        for action, by in zip(script, itertools.cycle(turn)):
            pair.act(action, by)
    return pairs


def history(pair: Pair) -> dict[int, tuple]:
    """{snapshot id: (columns, rows)}, equal for both sides, for all snapshots that are left."""
    table = pair.table()
    ids = [snapshot.id for snapshot in table.snapshots()]
    columns = {s.id: pair.columns(s.schema_id) for s in table.snapshots()}
    theirs = pair.steps([{"op": "read", "options": {"scan.snapshot-id": str(number)}} for number in ids])
    states = {}
    for number, rows in zip(ids, theirs, strict=True):
        want = canonical_rows(columns[number], rows)
        got = ours(columns[number], table.scan(snapshot_id=number).to_arrow())
        assert difference(columns[number], want, got) is None, f"{pair.name}: we read snapshot {number} unlike Java"
        states[number] = (columns[number], want)
    return states


def same_histories(pairs: dict[str, Pair]) -> dict[int, tuple]:
    """The history of all tables, which must be one and the same, snapshot by snapshot."""
    histories = {turn: history(pair) for turn, pair in pairs.items()}
    first = next(iter(histories.values()))
    for turn, states in histories.items():
        assert list(states) == list(first), f"{turn}: other snapshots"
        for number, (columns, rows) in states.items():
            where = f"{turn}: snapshot {number}"
            assert [c[0] for c in columns] == [c[0] for c in first[number][0]], f"{where}: other columns"
            assert difference(columns, first[number][1], rows) is None, f"{where} holds other rows"
    return first


# -- metadata -------------------------------------------------------------------------------------------------------

_OWN = ("fileName", "fileSize", "creationTime", "embeddedIndex", "extraFiles")


def file_facts(entry: dict) -> dict:
    """A decoded file entry without what may differ: names, sizes, times; value statistics by column."""
    facts = {key: value for key, value in entry.items() if key not in (*_OWN, "valueStats", "valueStatsCols")}
    stats, names = entry["valueStats"], entry["valueStatsCols"]
    names = list(stats["min"]) if names is None else names
    counts = stats["nullCounts"] or [None] * len(names)
    facts["valueStats"] = {
        name: (stats["min"][name], stats["max"][name], count)
        for name, count in zip(names, counts, strict=True)
        if (stats["min"][name], stats["max"][name], count) != (None, None, None)
    }
    return facts


def sorted_facts(entries: list[dict]) -> list[dict]:
    order = ("partition", "bucket", "level", "minSequenceNumber", "minKey", "rowCount", "valueStats")
    return sorted(map(file_facts, entries), key=lambda facts: json.dumps([facts[name] for name in order], sort_keys=True))


_NAMES_AND_TIMES = ("uuid", "baseManifestList", "deltaManifestList", "baseManifestListSize", "deltaManifestListSize",
                    "commitUser", "timeMillis", "writerVersion", "indexManifest")  # fmt: skip


def snapshot_facts(snapshot: dict) -> dict:
    """A snapshot's JSON without the properties that are ours alone; what is drawn or measured is only noted to be there."""
    facts = {key: ("…" if key in _NAMES_AND_TIMES else value) for key, value in snapshot.items()}
    shared = {key: value for key, value in (snapshot.get("properties") or {}).items() if not key.startswith(RESERVED_PROPERTIES)}
    return facts | {"properties": shared or None}


def same_metadata(pairs: dict[str, Pair]) -> None:
    """Snapshots and live files of all tables are described alike, as Java decodes them."""
    described = {}
    for turn, pair in pairs.items():
        ids = [snapshot.id for snapshot in pair.table().snapshots()]
        ops = [{"op": op, "snapshot": number} for number in ids for op in ("snapshot", "files")]
        results = pair.steps(ops)
        described[turn] = [
            (snapshot_facts(snapshot), sorted_facts(files)) for snapshot, files in zip(results[::2], results[1::2], strict=True)
        ]
    want = described["j"]
    for turn, got in described.items():
        for number, ((snapshot, files), (their_snapshot, their_files)) in enumerate(zip(got, want, strict=True), 1):
            assert not (unlike := differences(snapshot, their_snapshot)), f"{turn}: snapshot {number}: {unlike}"
            their_files = copy.deepcopy(their_files)
            forgive(files, their_files, pairs[turn].columns(), pairs[turn].table().options.get("file.format", "parquet"))
            assert not (unlike := differences(files, their_files)), f"{turn}: files of snapshot {number}: {unlike}"


_BINARY = ("BINARY", "VARBINARY", "BYTES")


def forgive(files: list[dict], others: list[dict], columns: list, fmt: str) -> None:
    """Make alike what may differ.

    Of binaries we keep no bounds: Java 1.4 compares them as signed bytes.

    We leave the bounds of a float column unknown where it holds NaN; Java says NaN, or nothing wise in ORC. It pads
    those of CHAR in ORC with blanks, and in Avro it has no statistics of key columns whose mode is `none` or `counts`,
    and counts system columns as the first ones.
    """
    for file, other in zip(files, others):
        for name, kind in columns:
            mine, theirs = file["valueStats"].get(name), other["valueStats"].get(name)
            if fmt == "avro" and theirs is None:
                other["valueStats"][name] = mine
            if not mine or not theirs or mine[2] != theirs[2]:
                continue
            real = str(kind).startswith(("FLOAT", "DOUBLE", *_BINARY))
            padded = fmt == "orc" and str(kind).startswith("CHAR") and None not in theirs
            if (real and None in (mine[0], theirs[0])) or (padded and mine[0] == theirs[0].rstrip(" ")):
                other["valueStats"][name] = mine
        for name, kind in columns:
            if str(kind).startswith(_BINARY) and name in other["keyStats"]["min"]:
                other["keyStats"]["min"][name] = other["keyStats"]["max"][name] = None
        if fmt == "avro" and None in other["keyStats"]["min"].values():
            other["keyStats"] = file["keyStats"]


def differences(one, other, path: str = "") -> list[str]:
    """Where two JSON values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = [*one, *(name for name in other if name not in one)]
        return [line for n in names for line in differences(one.get(n), other.get(n), f"{path}.{n}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [line for i, (a, b) in enumerate(zip(one, other)) for line in differences(a, b, f"{path}[{i}]")]
    return [] if one == other else [f"{path}: {one!r} for {other!r}"]
