"""What our verbs make of tables that another writer might have left: no call that succeeds may make one unreadable.

A life is a changed table (`foreign.ask.CHANGES`) that we read, and some verbs, drawn from a seed. A verb may refuse the
table by name; then it holds what it held. Otherwise it is read again, by the scan and by the count.
"""

from __future__ import annotations

import random
import shutil
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import golden
import pyarrow as pa
import pyarrow.parquet as pq
from foreign.ask import CHANGES
from foreign.origins import OWN, golden_cases
from foreign.place import Place
from pair import Pair

from paimon_py import AddColumn, Catalog, DropColumn, PaimonError, PaimonWarning, RenameColumn, Table, col

_SIMPLE = {"INT", "BIGINT", "SMALLINT", "TINYINT", "STRING", "VARCHAR"}
_TRIES = 20


class NotHere(Exception):
    """The table has nothing for a verb."""


class Trouble(NamedTuple):
    """What a life must not meet."""

    seed: int
    table: str
    verbs: list[str]
    what: str


class Guest:
    """A table in the hands of our verbs. `number`: of the next name."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self.catalog = catalog
        self.folder = folder
        self._number = 0

    @property
    def table(self) -> Table:
        return self.catalog.table("db.t")

    def name(self) -> str:
        self._number += 1
        return f"zz{self._number}"

    def first(self) -> pa.Table:
        """The first row. Raises: NotHere."""
        found = self.table.to_arrow()
        if not found.num_rows:
            raise NotHere
        return found.slice(0, 1)

    def key(self) -> str:
        for field in self.table.schema.fields:
            if getattr(getattr(field.type, "root", None), "value", "") in _SIMPLE:
                return field.name
        raise NotHere

    def same(self) -> Any:
        """A condition that the first row meets."""
        value = self.first()[self.key()][0].as_py()
        return col(self.key()).is_null() if value is None else col(self.key()) == value

    def free(self) -> str:
        """A column that can be set, renamed and dropped."""
        schema = self.table.schema
        for field in schema.fields:
            if field.type.nullable and field.name not in (*schema.primary_keys, *schema.partition_keys):
                return field.name
        raise NotHere


def _keys(guest: Guest) -> list[str]:
    return list(guest.table.schema.primary_keys) or [guest.key()]


def _upsert(guest: Guest) -> None:
    keyed = bool(guest.table.schema.primary_keys)
    guest.table.upsert(guest.first(), **({} if keyed else {"on": [guest.key()]}))


def _merge(guest: Guest) -> None:
    guest.table.merge(guest.first(), on=_keys(guest), when_matched_update=True, when_not_matched_insert=True)


def _update_rows(guest: Guest) -> None:
    found = guest.table.scan(columns=["_ROW_ID", guest.free()]).to_arrow().slice(0, 1)
    if not found.num_rows:
        raise NotHere
    guest.table.update_rows(found)


def _branch(guest: Guest) -> None:
    name, row = guest.name(), guest.first()
    guest.table.create_branch(name)
    guest.table.branch(name).write_arrow(row)
    guest.table.branch(name).to_arrow()
    guest.table.fast_forward(name)


def _rollback(guest: Guest) -> None:
    there = guest.table.snapshots()
    if len(there) < 2:
        raise NotHere
    guest.table.rollback_to(there[-2].id)


def _clone(guest: Guest, *, history: bool) -> None:
    name = f"db.{guest.name()}"
    guest.catalog.clone_table("db.t", name, history=history, tags=history)
    assert rows(guest.catalog.table(name)) == rows(guest.table), "the clone has other rows"


def _import(guest: Guest, *, copy: bool) -> None:
    place = guest.folder / guest.name()
    place.mkdir()
    pq.write_table(guest.first(), place / "a.parquet")
    guest.catalog.import_files("db.t", place, copy=copy)


VERBS: dict[str, Callable[[Guest], object]] = {
    "write": lambda guest: guest.table.write_arrow(guest.first()),
    "upsert": _upsert,
    "delete": lambda guest: guest.table.delete(guest.same()),
    "update": lambda guest: guest.table.update(guest.same(), {guest.free(): None}),
    "merge": _merge,
    "compact": lambda guest: guest.table.compact(),
    "full": lambda guest: guest.table.compact(full=True),
    "rescale": lambda guest: guest.table.rescale(2),
    "anew": lambda guest: guest.table.write_arrow(guest.table.scan().to_reader(), overwrite={}),
    "dynamic": lambda guest: guest.table.write_arrow(guest.first(), overwrite="dynamic"),
    "expire": lambda guest: guest.table.expire_snapshots(retain_max=1, retain_min=1),
    "rollback": _rollback,
    "branch": _branch,
    "tag": lambda guest: guest.table.create_tag(guest.name()),
    "analyze": lambda guest: guest.table.analyze(),
    "add": lambda guest: guest.table.alter(AddColumn(guest.name(), "INT")),
    "rename": lambda guest: guest.table.alter(RenameColumn(guest.free(), guest.name())),
    "drop": lambda guest: guest.table.alter(DropColumn(guest.free())),
    "update_rows": _update_rows,
    "backfill": lambda guest: guest.table.backfill({guest.free(): None}),
    "clone": lambda guest: _clone(guest, history=False),
    "clone history": lambda guest: _clone(guest, history=True),
    "import a copy": lambda guest: _import(guest, copy=True),
    "import": lambda guest: _import(guest, copy=False),
    "lookup": lambda guest: guest.table.lookup(guest.first().select(_keys(guest))),
    "doctor": lambda guest: guest.table.doctor(deep=True),
    "stream": lambda guest: [step.to_arrow() for step in iter(guest.table.stream(from_="full").poll, None)],
}  # fmt: skip
LIKE_BEFORE = {"compact", "full", "rescale", "anew", "expire", "tag", "analyze", "clone", "clone history", "lookup", "doctor", "stream"}
"""Verbs after which the rows are those of before."""
SHOW_WAITING = {"compact", "full"}
"""Verbs that show rows of level 0 where reads pass over that level, as in Java."""


AS_IN_JAVA = ("exceeds the range of", "cannot be read from the branches")
"""Tables that Java cannot read either: a sum or product beyond its type (format.md §12.5), and a branch to fall back to
whose columns were not changed yet as those of the table."""


def passes_over_new_rows(table: Table) -> bool:
    """Whether reads see rows only after a compaction."""
    options = table.schema.options
    by_vectors = options.get("deletion-vectors.enabled") == "true" and bool(table.schema.primary_keys)
    return options.get("merge-engine") == "first-row" or by_vectors or options.get("bucket") == "-2"


def rows(table: Table) -> list[str]:
    """The rows in an order of their own, also times that Python has no values for."""
    found = table.to_arrow()
    times = [pa.types.is_temporal(column.type) for column in found.columns]
    values = [column.cast(pa.string()) if is_time else column for column, is_time in zip(found.columns, times, strict=True)]
    return sorted(map(repr, pa.table(dict(zip(found.column_names, values, strict=True))).to_pylist()))


class Guests:
    """Makes the tables that are changed, in a folder, each once, and lets them live."""

    def __init__(self, folder: Path, names: list[tuple[str, str]]) -> None:
        """`names`: origins of `foreign.origins`, by us (o) and golden ones (g)."""
        self._folder, self._names = folder, names
        self._made: dict[tuple[str, str], Path] = {}
        self.lived = self.acknowledged = 0

    def live(self, seed: int, steps: int = 6) -> Trouble | None:
        """Let the table of a seed live. None if all went well, and for tables that nobody can read."""
        draw = random.Random(f"life {seed}")
        changes = sorted(CHANGES)
        change = changes[seed % len(changes)]
        warehouse = self._folder / f"w{seed}"
        for name, by in draw.sample(self._names, min(_TRIES, len(self._names))):
            shutil.copytree(self._origin(name, by), warehouse / "db.db" / "t")
            done = CHANGES[change](Place(warehouse / "db.db" / "t", draw))
            if done is not None:
                break
            shutil.rmtree(warehouse)
        else:
            return None
        script: list[str] = []
        try:
            what = self._live(Guest(Catalog.open(str(warehouse)), warehouse), draw, script, steps)
        except Exception:  # noqa: BLE001 -- what is raw is what is looked for
            what = traceback.format_exc()[-1500:]
        shutil.rmtree(warehouse)
        return None if what is None else Trouble(seed, f"{name} ({by}) {change}: {done}", script, what)

    def _live(self, guest: Guest, draw: random.Random, script: list[str], steps: int) -> str | None:
        try:
            before = rows(guest.table)
        except PaimonError:
            return None
        self.lived += 1
        for verb in draw.choices(sorted(VERBS), k=steps):
            script.append(verb)
            refusal = None
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PaimonWarning)  # maintenance that fails after a commit is no refusal
                    VERBS[verb](guest)
            except NotHere:
                continue
            except PaimonError as error:
                refusal = error
            try:
                after, count = rows(guest.table), guest.table.count()
            except PaimonError as error:
                if any(words in str(error) for words in AS_IN_JAVA):
                    return None
                return f"cannot be read any more: {error}; the verb said: {refusal}"
            if count != len(after):
                return f"{count} rows are counted, and {len(after)} read"
            alike = verb in LIKE_BEFORE or (refusal is not None and verb != "branch")
            if refusal is None and verb in SHOW_WAITING and passes_over_new_rows(guest.table):
                alike = False
            if alike and after != before:
                return f"{len(after)} rows instead of {len(before)}; the verb said: {refusal}"
            self.acknowledged += refusal is None
            before = after
        return None

    def _origin(self, name: str, by: str) -> Path:
        if (name, by) not in self._made:
            place = self._folder / f"{by} {name}"
            if by == "g":
                self._made[name, by] = Path(golden.unpack(golden_cases()[name], place)) / "db.db" / "t"
            else:
                origin, pair = next(one for one in OWN if one.name == name), Pair(None, place)
                pair.create(origin.kind, "o")
                for action in origin.script:
                    pair.act(action, "o")
                self._made[name, by] = pair.path
        return self._made[name, by]
