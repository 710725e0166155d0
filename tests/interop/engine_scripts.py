"""Scripts about merge engines and compaction, each drawn from one seed: a table, and what happens to it step by step.

A script says nothing about who plays it. Its steps are those of `pair.py` and

    ("compact", full)                  compact every bucket, fully or as the picker likes
    ("rounds", [rows, …])              one writer, one commit per list of rows

Where the sizes of files decide what a compaction picks, two writers need not agree; `Script.sizes_matter` says so, and
only rows are compared then.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import engine_values as values

ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
FORMATS = ("parquet", "parquet", "orc", "avro")
KEYS = (["INT"], ["INT"], ["BIGINT"], ["STRING"], ["INT", "STRING"], ["DATE"], ["DECIMAL(10, 2)", "INT"], ["TIMESTAMP(3)"])
ADDS, ALL_KINDS = ("+I",), ("+I", "+I", "+U", "-U", "-D")
NO_BIAS = {"compaction.size-ratio": "-100", "compaction.max-size-amplification-percent": "1000000000"}
"""No run ever fits by size: only their number counts."""


@dataclass(frozen=True)
class Script:
    """One table and its life, in the oracle's notation."""

    seed: int | str
    columns: list
    primary_key: list[str]
    partition_by: list[str]
    options: dict[str, str]
    steps: list[tuple]
    unordered: frozenset[str] = frozenset()
    sizes_matter: bool = False
    java_only: bool = False
    about: str = field(default="", compare=False)

    def text(self) -> str:
        """The script as Python that makes it again."""
        steps = "".join(f"    {step!r},\n" for step in self.steps)
        return (
            f"Script({self.seed!r}, {self.columns!r},\n  {self.primary_key!r}, {self.partition_by!r},\n  {self.options!r}, [\n{steps}  ],\n"
            f"  frozenset({sorted(self.unordered)!r}), {self.sizes_matter!r})"
        )


class Draft:
    """A script in the making."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(f"engines-{seed}")
        self.engine = self.rng.choice(ENGINES)
        self.format = self.rng.choice(FORMATS)
        self.options = {"merge-engine": self.engine, "file.format": self.format}
        self.keys = [[f"k{i}", f"{kind} NOT NULL"] for i, kind in enumerate(self.rng.choice(KEYS))]
        self.partition = [["p", "INT NOT NULL"]] if self.chance(0.25) else []
        self.values: list[list] = []
        self.functions: dict[str, str] = {}
        self.special: list[list] = []
        self.kinds = ADDS
        self.unordered: set[str] = set()
        self.sizes_matter = False

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def types(self, pool) -> list:
        """Without what the format lacks, or what Java's format shows wrongly."""
        return [kind for kind in pool if not (self.format == "avro" and kind == "TIME(6)")]

    @property
    def columns(self) -> list:
        return self.partition + self.keys + self.special + self.values


def script(seed: int) -> Script:
    """The script of a seed."""
    draft = Draft(seed)
    _values(draft)
    {"deduplicate": _deduplicate, "partial-update": _partial_update, "aggregation": _aggregation, "first-row": _first_row}[draft.engine](draft)
    _sequence(draft)
    _row_kinds(draft)
    _storage(draft)
    _compaction(draft)
    order = [list(column) for column in draft.columns]
    draft.rng.shuffle(order)
    steps = _steps(draft)
    primary = [name for name, _ in draft.partition + draft.keys]
    about = f"{draft.engine} {draft.format} {draft.functions}"
    return Script(
        seed, order, primary, [n for n, _ in draft.partition], draft.options, steps, frozenset(draft.unordered), draft.sizes_matter, about=about
    )


# -- engines --------------------------------------------------------------------------------------------------------


def _values(draft: Draft) -> None:
    if draft.engine == "aggregation":
        names = draft.rng.sample(sorted(values.FUNCTIONS), draft.rng.randrange(2, 7))
        for number, function in enumerate(names):
            kind = draft.rng.choice(values.FUNCTIONS[function])
            _aggregate(draft, f"v{number}", kind, function)
        return
    kinds = draft.rng.sample(draft.types(values.ANY), draft.rng.randrange(2, 6))
    draft.values = [[f"v{number}", kind] for number, kind in enumerate(kinds)]


def _aggregate(draft: Draft, name: str, kind, function: str) -> None:
    """A value column with a function and, now and then, its options."""
    draft.values.append([name, kind])
    draft.functions[name] = function
    draft.options[f"fields.{name}.aggregate-function"] = function
    option = f"fields.{name}."
    if function == "listagg":
        if draft.chance(0.4):
            draft.options[option + "list-agg-delimiter"] = draft.rng.choice((";", "--", "|"))
        if draft.chance(0.4):
            draft.options[option + "distinct"] = "true"
    if function == "collect" and draft.chance(0.4):
        draft.options[option + "distinct"] = "true"
        draft.unordered.add(name)
    if function == "nested_partial_update" or (function == "nested_update" and draft.chance(0.7)):
        draft.options[option + "nested-key"] = "id"
        draft.unordered.add(name)
        if function == "nested_update" and draft.chance(0.4):
            draft.options[option + "nested-sequence-field"] = "n"
    elif function == "nested_update" and draft.chance(0.3):
        draft.options[option + "count-limit"] = "3"
    if function == "merge_map_with_keytime" and draft.chance(0.4):
        draft.options[option + "map-ts-field"] = "ts"


def _deduplicate(draft: Draft) -> None:
    draft.kinds = ALL_KINDS
    if draft.chance(0.2):
        draft.options["ignore-delete"] = "true"


def _first_row(draft: Draft) -> None:
    if draft.chance(0.4):
        draft.options["ignore-delete"] = "true"
        draft.kinds = ALL_KINDS
    elif draft.chance(0.3):
        draft.options["ignore-update-before"] = "true"
        draft.kinds = ("+I", "+U", "-U")


def _aggregation(draft: Draft) -> None:
    if draft.chance(0.15):
        name = draft.rng.choice(draft.values)[0]
        kind = next(kind for column, kind in draft.values if column == name)
        able = sorted(f for f, kinds in values.FUNCTIONS.items() if kind in kinds and f.endswith("_value"))
        if able:
            draft.functions[name] = draft.options["fields.default-aggregate-function"] = draft.rng.choice(able)
            del draft.options[f"fields.{name}.aggregate-function"]
            draft.unordered.discard(name)
            _drop_options(draft, name)
    mode = draft.rng.choice(("adds", "ignore-delete", "remove", "retract", "retract"))
    if mode == "ignore-delete":
        draft.options["ignore-delete"] = "true"
        draft.kinds = ALL_KINDS
    elif mode == "remove":
        draft.options["aggregation.remove-record-on-delete"] = "true"
        able = all(function in values.RETRACTABLE for function in draft.functions.values())
        draft.kinds = ALL_KINDS if able else ("+I", "+I", "+U", "-D")
    elif mode == "retract":
        _ignore_retracts(draft)
        draft.kinds = ALL_KINDS


def _drop_options(draft: Draft, name: str) -> None:
    for option in [o for o in draft.options if o.startswith(f"fields.{name}.")]:
        del draft.options[option]


def _ignore_retracts(draft: Draft) -> None:
    """Say `ignore-retract` for functions that have no retraction, and for some that have."""
    for name, function in draft.functions.items():
        if function not in values.RETRACTABLE or draft.chance(0.15):
            draft.options[f"fields.{name}.ignore-retract"] = "true"


def _partial_update(draft: Draft) -> None:
    if draft.chance(0.35):
        mode = draft.rng.choice(("adds", "ignore-delete", "remove", "ignore-update-before"))
        if mode == "ignore-delete":
            draft.options["ignore-delete"] = "true"
            draft.kinds = ALL_KINDS
        elif mode == "remove":
            draft.options["partial-update.remove-record-on-delete"] = "true"
            draft.kinds = ALL_KINDS
        elif mode == "ignore-update-before":
            draft.options["ignore-update-before"] = "true"
            draft.kinds = ("+I", "+U", "-U")
        return
    groups = _groups(draft)
    mode = draft.rng.choice(("adds", "ignore-delete", "retract", "retract", "remove"))
    if mode == "ignore-delete":
        draft.options["ignore-delete"] = "true"
    elif mode in ("retract", "remove"):
        _ignore_retracts(draft)
    if mode == "remove":
        chosen = draft.rng.sample(groups, draft.rng.randrange(1, len(groups) + 1))
        draft.options["partial-update.remove-record-on-sequence-group"] = ",".join(name for group in chosen for name in group)
    draft.kinds = ADDS if mode == "adds" else ALL_KINDS


def _groups(draft: Draft) -> list[list[str]]:
    """Sequence groups over some value columns; some of their columns are aggregated. The groups' sequence fields."""
    groups = []
    free = [name for name, _ in draft.values]
    for number in range(draft.rng.choice((1, 1, 2))):
        fields = [f"g{number}{letter}" for letter in "ab"[: draft.rng.choice((1, 1, 2))]]
        draft.special += [[name, draft.rng.choice(("INT", "BIGINT", "TIMESTAMP(3)"))] for name in fields]
        plain = [free.pop() for _ in range(min(len(free), draft.rng.randrange(0, 3)))]
        for count in range(draft.rng.randrange(0 if plain else 1, 3)):
            function = draft.rng.choice(sorted(values.FUNCTIONS))
            name = f"a{number}{count}"
            _aggregate(draft, name, draft.rng.choice(values.FUNCTIONS[function]), function)
            plain.append(name)
        draft.options[f"fields.{','.join(fields)}.sequence-group"] = ",".join(plain)
        groups.append(fields)
    if not free and draft.chance(0.2):
        draft.options["fields.default-aggregate-function"] = draft.rng.choice(("last_non_null_value", "last_value", "first_value"))
    return groups


# -- the rest of the table ------------------------------------------------------------------------------------------


def _sequence(draft: Draft) -> None:
    if draft.engine == "first-row" or not draft.chance(0.35):
        return
    fields = [["s0", draft.rng.choice(("INT", "BIGINT"))], ["s1", draft.rng.choice(("TIMESTAMP(3)", "INT", "DATE"))]][: draft.rng.choice((1, 1, 2))]
    draft.special += fields
    draft.options["sequence.field"] = ",".join(name for name, _ in fields)
    if draft.chance(0.35):
        draft.options["sequence.field.sort-order"] = "descending"


def _row_kinds(draft: Draft) -> None:
    if draft.kinds != ADDS and draft.chance(0.12):
        draft.special.append(["op", "STRING"])
        draft.options["rowkind.field"] = "op"


def _storage(draft: Draft) -> None:
    draft.options["bucket"] = draft.rng.choice(("1", "1", "2", "3"))
    if draft.chance(0.1):
        draft.options["data-file.thin-mode"] = "true"
    if draft.chance(0.1):
        draft.options["file.format.per.level"] = draft.rng.choice(("0:avro", "0:avro,5:orc", "5:parquet", "0:orc,3:avro"))
    if draft.chance(0.1):
        draft.options["file.compression.per.level"] = "0:none,5:zstd" if draft.format == "parquet" else "5:zstd"
    vectors = draft.rng.choice(("", "", "", "32", "64")) if draft.engine != "first-row" else ""
    if vectors:
        draft.options["deletion-vectors.enabled"] = "true"
        if vectors == "64":
            draft.options["deletion-vectors.bitmap64"] = "true"
    elif draft.chance(0.08):
        draft.options["force-lookup"] = "true"
    if draft.chance(0.5):
        draft.options["write-only"] = "true"
    elif draft.chance(0.15):
        draft.options |= {"lookup-compact": "gentle", "lookup-compact.max-interval": "2"}


def _compaction(draft: Draft) -> None:
    trigger = draft.rng.choice(("2", "3", "3", "4", "5"))
    draft.options["num-sorted-run.compaction-trigger"] = trigger
    if draft.chance(0.3):
        draft.options["num-levels"] = draft.rng.choice(("2", "3", "7"))
    mode = draft.rng.random()
    if mode < 0.35:
        draft.options |= NO_BIAS
    elif mode < 0.65:
        draft.options["compaction.size-ratio"] = "1000000"
    elif mode < 0.75:
        draft.options |= {"compaction.optimization-interval": "1 h", **NO_BIAS}
    elif mode < 0.85:
        draft.options["compaction.total-size-threshold"] = "1 gb"
    elif _looks_up(draft):  # which rows are seen, or have been merged with themselves, depends on what is picked
        draft.options |= NO_BIAS
    else:
        draft.sizes_matter = True
    if draft.chance(0.1):
        draft.options["compaction.force-up-level-0"] = "true"


def _looks_up(draft: Draft) -> bool:
    return draft.engine == "first-row" or bool({"deletion-vectors.enabled", "force-lookup"} & draft.options.keys())


# -- what happens ---------------------------------------------------------------------------------------------------


def _steps(draft: Draft) -> list[tuple]:
    pool = _key_pool(draft)
    steps: list[tuple] = [("write", _rows(draft, pool))]
    for _ in range(draft.rng.randrange(4, 9)):
        what = draft.rng.random()
        if what < 0.60:
            steps.append(("write", _rows(draft, pool)))
        elif what < 0.74:
            steps.append(("compact", False))
        elif what < 0.84:
            steps.append(("compact", True))
        elif what < 0.92:
            steps.append(("rounds", [_rows(draft, pool) for _ in range(draft.rng.randrange(2, 5))]))
        elif what < 0.95:
            steps.append(("overwrite", {}, _rows(draft, pool)))
        else:
            steps.append(_alter(draft))
    return [*steps, ("compact", True)]


def _key_pool(draft: Draft) -> list[dict]:
    """The keys that ever occur; few, so that they meet again."""
    pool = []
    for _ in range(draft.rng.choice((3, 6, 12))):
        row = {name: values.value(draft.rng, kind.replace(" NOT NULL", "")) for name, kind in draft.keys}
        if draft.keys[0][1].startswith(("INT", "BIGINT")):
            row["k0"] = draft.rng.randrange(-5, 40)
        row |= {name: draft.rng.randrange(1, 3) for name, _ in draft.partition}
        if row not in pool:
            pool.append(row)
    return pool


def _rows(draft: Draft, pool: list[dict]) -> list[dict]:
    return [_row(draft, draft.rng.choice(pool)) for _ in range(draft.rng.choice((1, 3, 6, 10)))]


def _row(draft: Draft, key: dict) -> dict:
    row = dict(key)
    kind = draft.rng.choice(draft.kinds)
    for name, data_type in draft.special:
        if name == "op":
            row[name] = kind
        else:
            row[name] = None if draft.chance(0.2) else _moment(draft, data_type)
    for name, data_type in draft.values:
        if data_type is not None:
            row[name] = values.maybe(draft.rng, data_type, draft.functions.get(name))
    if "rowkind.field" not in draft.options and kind != "+I":
        row["_kind"] = kind
    return row


def _moment(draft: Draft, data_type: str):
    number = draft.rng.randrange(1, 7)
    if data_type == "DATE":
        return f"2024-03-0{number}"
    return f"2024-03-0{number}T10:00:00" if data_type.startswith("TIMESTAMP") else number


WIDER = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT", "FLOAT": "DOUBLE", "VARCHAR(12)": "STRING"}


def _alter(draft: Draft) -> tuple:
    """Add a column, or widen one."""
    wide = [column for column in draft.values if isinstance(column[1], str) and column[1] in WIDER]
    if wide and draft.chance(0.5):
        column = draft.rng.choice(wide)
        column[:] = [column[0], WIDER[column[1]]]
        return ("alter", ["type", column[0], column[1]])
    default = draft.options.get("fields.default-aggregate-function")
    kind = "STRING" if default else draft.rng.choice(values.FLAT)
    name = f"n{len(draft.values)}"
    draft.values.append([name, kind])
    return ("alter", ["add", name, kind])
