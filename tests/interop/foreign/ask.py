"""What Java and we say about a changed table, question by question, and how the answers differ."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import golden
import oracle
import pyarrow as pa
from filters import predicate
from foreign import avro_changes, data_changes, file_changes, json_changes, orc_metadata
from foreign.origins import OWN, Maker, golden_cases
from foreign.place import Place
from values import canonical_rows, difference, ours

from paimon_py import Catalog, PaimonError

CHANGES = {change.__name__: change for part in (json_changes, avro_changes, data_changes, file_changes, orc_metadata) for change in part.CHANGES}
SAME, BOTH_REFUSE, JAVA_ONLY, OTHER_ROWS, OURS_ONLY, RAW = "same", "both refuse", "java reads", "other rows", "we read", "raw error"
JAVA_OTHER = "java reads other rows than before"
OTHER_BEFORE = "we read other rows than before"
TURNS = ("written by us", "compacted by us", "written by Java")
POOL, ASKED = 24, 7
LIVING = 3
"""One table in so many goes on: we write and compact, then Java writes."""

SYSTEM = ("snapshots", "schemas", "options", "tags", "branches", "consumers", "files", "partitions", "buckets", "manifests")
OWN_WORDS = {"tags": ("create_time",), "files": ("min_value_stats", "max_value_stats"), "schemas": ("options",), "partitions": ("created_by",)}


class Question(NamedTuple):
    """The same question to both. `ours` gives a table of rows; `columns` None: those of the table by Java."""

    about: str
    step: dict
    ours: Callable[[Catalog, str], Any]
    system: str | None = None


class Finding(NamedTuple):
    """How two answers differ."""

    seed: int
    origin: str
    change: str
    done: str
    question: str
    verdict: str
    detail: str

    @property
    def kind(self) -> tuple[str, str]:
        return self.verdict, self.change


class Changed(NamedTuple):
    """A table that was changed, and what to ask."""

    seed: int
    origin: str
    change: str
    done: str
    name: str
    questions: list[Question]
    before: Mapping[str, Any]


class Java:
    """A JVM that is begun again where a table has ended it: Java reads some damage outside its memory."""

    def __init__(self) -> None:
        os.environ.setdefault("ORACLE_JAVA_OPTIONS", "-XX:+SuppressFatalErrorMessage")
        self._session = oracle.Session(version="2.0.0", tz="UTC")

    def run(self, warehouse: str, steps: list[dict], check: bool = True) -> list[dict]:
        """As a session does it; steps that end the JVM have failed."""
        try:
            return self._session.run(warehouse, steps, check)
        except (oracle.OracleError, ValueError) as error:
            if isinstance(error, oracle.OracleError) and "has ended" not in str(error):
                raise
        self.close()
        self._session = oracle.Session(version="2.0.0", tz="UTC")
        if len(steps) == 1:
            return [{"ok": False, "error": "the JVM has ended"}]
        half = len(steps) // 2
        return self.run(warehouse, steps[:half], check) + self.run(warehouse, steps[half:], check)

    def close(self) -> None:
        """End the JVM; of one that has ended by itself the pipe is left."""
        with contextlib.suppress(OSError):
            self._session._jvm.stdin.close()
        with contextlib.suppress(ValueError):
            self._session.close()
        self._session._log.close()


class Sweep:
    """Changes tables in a folder, and asks both about them. One seed is one table."""

    def __init__(self, java: Java, folder: Path) -> None:
        self._java = java
        self._maker = Maker(java, folder)
        self._warehouse = folder / "changed"
        self._agreed: dict[tuple[str, str], list[Question]] = {}
        self._before: dict[tuple[str, str], dict[str, Any]] = {}

    def run(self, seeds: range, only: str | None = None) -> list[Finding]:
        """What came of these seeds: one finding for each question."""
        self._warehouse.mkdir()
        tables = [table for seed in seeds if (table := self._changed(seed, only)) is not None]
        found = findings(self._java, self._warehouse, tables)
        alike = {finding.seed for finding in found if finding.question == "rows" and finding.verdict == SAME}
        living = [table for table in tables if table.seed in alike and table.seed % LIVING == 0]
        found += [finding for table in living for finding in lives(self._java, self._warehouse, table)]
        shutil.rmtree(self._warehouse)
        return found

    def _changed(self, seed: int, only: str | None) -> Changed | None:
        """Copy an origin and change it; both are drawn from the seed. None where nothing applies."""
        draw = random.Random(f"foreign {seed}")
        names = sorted(CHANGES)
        change = only or names[seed % len(names)]
        path = self._warehouse / "db.db" / f"t{seed}"
        for origin, by in draw.sample(pool(seed), POOL + 1):
            shutil.copytree(self._maker.path(origin, by), path)
            done = CHANGES[change](Place(path, draw))
            if done is not None and (asked := self._questions(origin, by)):
                asked = asked[:1] + draw.sample(asked[1:], min(ASKED - 1, len(asked) - 1))
                return Changed(seed, f"{origin} ({by})", change, done, path.name, asked, self._before[origin, by])
            shutil.rmtree(path)
        return None

    def _questions(self, origin: str, by: str) -> list[Question]:
        """The questions that both answer alike about a table before it is changed."""
        if (origin, by) not in self._agreed:
            path = self._maker.path(origin, by)
            asked = questions(path, random.Random(f"questions {origin}"))
            table = Changed(0, origin, "none", "", path.name, asked, {})
            found = findings(self._java, path.parents[1], [table])
            agreed = [question for question, finding in zip(asked, found, strict=True) if finding.verdict == SAME]
            catalog = Catalog.open(str(path.parents[1]))
            self._agreed[origin, by] = agreed
            self._before[origin, by] = {question.about: question.ours(catalog, f"db.{path.name}") for question in agreed}
        return self._agreed[origin, by]


def pool(seed: int) -> list[tuple[str, str]]:
    """The origins of the seeds of one hundred: half of them golden."""
    draw = random.Random(f"pool {seed // 100}")
    own = [(origin.name, by) for origin in OWN for by in "oj"]
    return [*draw.sample(own, POOL // 2), ("manifests in ORC", draw.choice("oj"))] + [(name, "g") for name in draw.sample(sorted(golden_cases()), POOL // 2)]


# -- questions ----------------------------------------------------------------------------------------------------------


def questions(source: Path, draw: random.Random) -> list[Question]:
    """What to ask of a table like the one in a directory."""
    found = [Question("rows", {"op": "read"}, lambda catalog, name: catalog.table(name).to_arrow())]
    schema = json.loads(max(source.glob("schema/schema-*"), key=lambda path: (len(path.name), path.name)).read_text())
    types = {field["name"]: golden.parse_type(field["type"]) for field in schema["fields"]}
    found += [_filtered(tree, types) for tree in _filters(types, draw)]
    one = draw.choice(sorted(types))
    found.append(Question(f"column {one}", {"op": "read", "projection": [one]}, lambda catalog, name: catalog.table(name).scan(columns=[one]).to_arrow()))
    numbers = sorted(int(path.name.rpartition("-")[2]) for path in source.glob("snapshot/snapshot-*"))
    if numbers:
        number = draw.choice(numbers)
        found.append(_travel(f"snapshot {number}", {"scan.snapshot-id": str(number)}, snapshot_id=number))
    for path in sorted(source.glob("tag/tag-*"))[:1]:
        tag = path.name.removeprefix("tag-")
        found.append(_travel(f"tag {tag}", {"scan.tag-name": tag}, tag=tag))
    for path in sorted(source.glob("branch/branch-*"))[:1]:
        branch = path.name.removeprefix("branch-")
        found.append(Question(f"branch {branch}", {"op": "read", "of": f"$branch_{branch}"}, lambda catalog, name: catalog.table(f"{name}$branch_{branch}").to_arrow()))
    if numbers:
        step = {"op": "streamRead", "plans": numbers[-1] - numbers[0] + 3, "from": numbers[0]}
        found.append(Question("stream", step, lambda catalog, name: _streamed(catalog, name, numbers[0]), "stream"))
    return found + [_system(name) for name in SYSTEM]


def _filtered(tree: list, types: dict) -> Question:
    return Question(f"rows where {tree}", {"op": "read", "filter": tree, "executeFilter": True}, lambda catalog, name: catalog.table(name).scan(where=predicate(tree, types)).to_arrow())


def _travel(about: str, options: dict, **scan: Any) -> Question:
    return Question(about, {"op": "read", "options": options}, lambda catalog, name: catalog.table(name).scan(**scan).to_arrow(), "travel")


def _system(table: str) -> Question:
    return Question(f"${table}", {"op": "read", "of": f"${table}"}, lambda catalog, name: catalog.table(f"{name}${table}").scan().to_arrow(), table)


def _streamed(catalog: Catalog, name: str, first: int) -> Any:
    table = catalog.table(name)
    stream = table.stream(from_=first, options={} if table.schema.primary_keys else {"streaming-read-append-overwrite": "false"})
    return [step.to_arrow() for step in iter(stream.poll, None)]


def _filters(types: dict, draw: random.Random) -> list[list]:
    """Two filters on columns that comparisons mean the same for."""
    literals = {"INT": [1, 2, 5], "BIGINT": [7, 14, 10**10], "STRING": ["text 1", "v1", "y"], "DOUBLE": [0.5], "DATE": ["2024-05-03"]}
    names = sorted(name for name, kind in types.items() if kind[0] in literals)
    return [[draw.choice(["=", ">", "<=", "!="]), name, draw.choice(literals[types[name][0]])] for name in draw.sample(names, min(2, len(names)))]


# -- answers ------------------------------------------------------------------------------------------------------------


def findings(java: Any, warehouse: Path, tables: list[Changed]) -> list[Finding]:
    """Ask both about all tables."""
    steps, found = [], []
    for table in tables:
        for question in table.questions:
            step = dict(question.step)
            name = f"db.{table.name}{step.pop('of', '')}"
            steps += [{"op": "schema", "table": name}, {**step, "table": name}]
    answers = iter(java.run(str(warehouse), steps, check=False))
    catalog = Catalog.open(str(warehouse))
    for table in tables:
        for question in table.questions:
            schema, answer = next(answers), next(answers)
            verdict, detail = _compared(catalog, table.name, question, schema, answer, table.before.get(question.about))
            found.append(_finding(table, question.about, verdict, detail))
    return found


def lives(java: Any, warehouse: Path, table: Changed) -> list[Finding]:
    """Let us write the first row of a table again and compact it all, and then Java write it; ask both after each."""
    catalog, name = Catalog.open(str(warehouse)), f"db.{table.name}"
    rows = next(question for question in table.questions if question.about == "rows")
    before = catalog.table(name).to_arrow()
    (read,) = java.run(str(warehouse), [{"op": "read", "table": name}])
    if not before.num_rows:
        return []
    step = {"op": "write", "table": name, "rows": read["result"][:1]}
    found = []
    for turn in TURNS:
        refusal = None
        try:
            if turn == "written by us":
                catalog.table(name).write_arrow(before.slice(0, 1))
            elif turn == "compacted by us":
                catalog.table(name).compact(full=True)
            else:
                java.run(str(warehouse), [step], check=False)
        except PaimonError as error:
            refusal = f"{type(error).__name__}: {error}"
        except Exception:  # noqa: BLE001 -- what is raw is what is looked for
            found.append(_finding(table, turn, RAW, traceback.format_exc()[-1500:]))
            return found
        if refusal is not None:
            (written,) = java.run(str(warehouse), [step if "written" in turn else {"op": "compact", "table": name}], check=False)
            return [*found, _finding(table, turn, JAVA_ONLY if written["ok"] else BOTH_REFUSE, refusal)]
        schema, answer = java.run(str(warehouse), [{"op": "schema", "table": name}, {"op": "read", "table": name}], check=False)
        found.append(_finding(table, turn, *_compared(catalog, table.name, rows, schema, answer, None)))
    return found


def _finding(table: Changed, question: str, verdict: str, detail: str) -> Finding:
    return Finding(table.seed, table.origin, table.change, table.done, question, verdict, detail)


def _is_as_before(question: Question, one: pa.Table | None, other: pa.Table) -> bool:
    """Whether we read the rows that there were before the change, in any order of rows and columns."""
    if one is None:
        return False
    if question.system == "stream":
        return [table.num_rows for table in one] == [table.num_rows for table in other]
    if set(one.column_names) != set(other.column_names):
        return False
    rows, others = (sorted(map(repr, table.select(one.column_names).to_pylist())) for table in (one, other))
    return rows == others


def _compared(
    catalog: Catalog, name: str, question: Question, schema: dict, answer: dict, before: Any
) -> tuple[str, str]:
    try:
        mine = question.ours(catalog, f"db.{name}")
    except PaimonError as error:
        refusal = f"{type(error).__name__}: {error}"
        if answer["ok"]:
            return JAVA_ONLY, refusal
        return BOTH_REFUSE, f"{refusal} | {str(answer['error'])[:200]}"
    except Exception:  # noqa: BLE001 -- what is raw is what is looked for
        return RAW, traceback.format_exc()[-1500:]
    if not answer["ok"]:
        asked = before is not None and question.system in (None, "travel")
        changed = asked and not _is_as_before(question, before, mine)
        return (OTHER_BEFORE if changed else OURS_ONLY), str(answer["error"])[:600]
    try:
        other = _difference(question, schema["result"], answer["result"], mine)
    except (TypeError, ValueError) as error:  # columns of an earlier state that have other types now
        return OTHER_ROWS, f"not comparable: {error}"
    if other is None:
        return SAME, ""
    return (JAVA_OTHER if _is_as_before(question, before, mine) else OTHER_ROWS), other


def _difference(question: Question, schema: dict, theirs: list, mine: Any) -> str | None:
    if question.system == "stream":
        counts = [row for step in theirs for row in step.get("rows", [])], [row for table in mine for row in table.to_pylist()]
        return None if len(counts[0]) == len(counts[1]) else f"{len(counts[0])} rows by Java, {len(counts[1])} by us"
    columns = [[field["name"], field["type"]] for field in schema["fields"]]
    if question.system == "travel" or (question.system is None and theirs and set(theirs[0]) - {"_kind"} != {c[0] for c in columns}):
        columns = [column for column in columns if column[0] in mine.column_names]
        if question.system == "travel" and {c[0] for c in columns} != set(mine.column_names):
            return None if len(theirs) == mine.num_rows else f"{len(theirs)} rows by Java, {mine.num_rows} by us"
    if question.about.startswith("column "):
        columns = [column for column in columns if column[0] == question.step["projection"][0]]
    if question.system in OWN_WORDS:
        columns = [column for column in columns if column[0] not in OWN_WORDS[question.system] and column[0] in mine.column_names]
    return difference(columns, canonical_rows(columns, theirs), ours(columns, mine.select([c[0] for c in columns])))
