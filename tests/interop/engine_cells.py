"""Hand-written scripts: every engine with every function, way of deleting, format and place in the tree of levels.

Each script writes four times, compacts as the picker likes, writes, compacts fully and writes once more, so that every
state before, between and after compactions is compared.
"""

from __future__ import annotations

import random

import engine_values as values
from engine_scripts import NO_BIAS, Script

FORMATS = ("parquet", "orc", "avro")
KEY = ["k", "INT NOT NULL"]
TREE = {"bucket": "1", "write-only": "true", "num-sorted-run.compaction-trigger": "3", **NO_BIAS}
"""Four runs of level 0: a minor compaction takes the two newest and leaves the others."""

KINDS = {"adds": ("+I",), "some deletes": ("+I", "+I", "+U", "-D", "-U")}


def story(batches: list[list[dict]]) -> list[tuple]:
    """Four commits, a minor compaction, a commit, a full compaction, a commit, another minor one."""
    steps: list[tuple] = [("write", rows) for rows in batches[:4]]
    return [*steps, ("compact", False), ("write", batches[4]), ("compact", True), ("write", batches[5]), ("compact", False)]


def batches(name: str, columns: list, functions: dict[str, str], kinds: tuple[str, ...], keys: int = 4) -> list[list[dict]]:
    """Six lists of rows over a few keys, drawn from the name of the script."""
    rng = random.Random(name)
    made = []
    for _ in range(6):
        rows = []
        for _ in range(5):
            row = {"k": rng.randrange(keys)}
            for column, kind in columns:
                if column[0] in "sg":
                    row[column] = None if rng.random() < 0.15 else _moment(rng, kind)
                elif column == "p":
                    row[column] = rng.randrange(2)
                elif column != "k":
                    row[column] = values.maybe(rng, kind, functions.get(column))
            kind = rng.choice(kinds)
            rows.append(row if kind == "+I" else {**row, "_kind": kind})
        made.append(rows)
    return made


def _moment(rng: random.Random, kind: str):
    number = rng.randrange(1, 6)
    return f"2024-03-0{number}T00:00:00" if kind.startswith("TIMESTAMP") else number


def cell(name: str, columns: list, options: dict[str, str], kinds="adds", functions=None, unordered=(), steps=None, partition=()) -> Script:
    """A script of the matrix."""
    functions = functions or {}
    columns = [KEY, *columns]
    steps = steps or story(batches(name, columns, functions, KINDS[kinds]))
    key = [*partition, "k"]
    return Script(name, columns, key, list(partition), {**TREE, **options}, steps, frozenset(unordered), about=name)


# -- aggregation ----------------------------------------------------------------------------------------------------

FUNCTION_OPTIONS = {
    "listagg-distinct": ("listagg", {"distinct": "true", "list-agg-delimiter": ";"}),
    "collect-distinct": ("collect", {"distinct": "true"}),
    "nested_update-key": ("nested_update", {"nested-key": "id"}),
    "nested_update-sequence": ("nested_update", {"nested-key": "id", "nested-sequence-field": "n"}),
    "nested_update-limit": ("nested_update", {"count-limit": "3"}),
    "nested_partial_update": ("nested_partial_update", {"nested-key": "id"}),
    "merge_map_with_keytime-field": ("merge_map_with_keytime", {"map-ts-field": "ts"}),
}
VARIANTS = {**{f: (f, {}) for f in values.FUNCTIONS if f != "nested_partial_update"}, **FUNCTION_OPTIONS}
UNORDERED = ("collect-distinct", "nested_update-key", "nested_update-sequence", "nested_partial_update")


def aggregated(variant: str, prefix: str = "v") -> tuple[list, dict[str, str], dict[str, str]]:
    """One column per type that the function takes, with their options; and the functions by column."""
    function, more = VARIANTS[variant]
    columns = [[f"{prefix}{number}", kind] for number, kind in enumerate(values.FUNCTIONS[function])]
    options = {f"fields.{name}.{option}": value for name, _ in columns for option, value in {"aggregate-function": function, **more}.items()}
    return columns, options, dict.fromkeys((name for name, _ in columns), function)


def ignoring(columns: list, function: str) -> dict[str, str]:
    return {} if function in values.RETRACTABLE else {f"fields.{name}.ignore-retract": "true" for name, _ in columns}


def aggregation(variant: str, deletes: str, fmt: str) -> Script:
    columns, options, functions = aggregated(variant)
    function = VARIANTS[variant][0]
    options |= {"merge-engine": "aggregation", "file.format": fmt}
    if deletes == "retract":
        options |= ignoring(columns, function)
    elif deletes == "remove":
        options["aggregation.remove-record-on-delete"] = "true"
    elif deletes == "ignore":
        options["ignore-delete"] = "true"
    kinds = "adds" if deletes == "adds" or (deletes == "remove" and function not in values.RETRACTABLE) else "some deletes"
    unordered = [name for name, _ in columns] if variant in UNORDERED else []
    name = f"aggregation {variant} {deletes} {fmt}"
    return cell(name, columns, options, kinds, functions, unordered)


AGGREGATION_DELETES = ("adds", "retract", "remove", "ignore")


# -- partial update -------------------------------------------------------------------------------------------------

PLAIN = [["v0", "INT"], ["v1", "STRING"], ["v2", "TIMESTAMP(6)"], ["v3", {"type": "ARRAY", "element": "INT"}]]


def grouped(variant: str, deletes: str, fmt: str) -> Script:
    """A function inside a sequence group of one or two fields, beside a plain group and a column of none."""
    columns, options, functions = aggregated(variant, "v")
    function = VARIANTS[variant][0]
    fields = "g0" if len(variant) % 2 else "g0,g1"
    members = [name for name, _ in columns]
    columns = [*columns, ["g0", "INT"], ["g1", "TIMESTAMP(3)"], ["g2", "BIGINT"], ["w", "STRING"], ["x", "STRING"]]
    options |= {"merge-engine": "partial-update", "file.format": fmt, f"fields.{fields}.sequence-group": ",".join(members), "fields.g2.sequence-group": "w"}
    if deletes in ("retract", "remove"):
        options |= ignoring(columns[: len(members)], function)
    if deletes == "remove":
        options["partial-update.remove-record-on-sequence-group"] = fields
    if deletes == "ignore":
        options["ignore-delete"] = "true"
    name = f"partial-update group {variant} {deletes} {fmt}"
    kinds = "adds" if deletes == "adds" else "some deletes"
    return cell(name, columns, options, kinds, functions, members if variant in UNORDERED else ())


def partial(deletes: str, fmt: str, more: dict[str, str] | None = None) -> Script:
    options = {"merge-engine": "partial-update", "file.format": fmt, **(more or {})}
    options |= {"remove": {"partial-update.remove-record-on-delete": "true"}, "ignore": {"ignore-delete": "true"}}.get(deletes, {})
    columns = [*PLAIN, ["s0", "INT"]]
    name = f"partial-update {deletes} {fmt} {sorted((more or {}).items())}"
    return cell(name, columns, options, "adds" if deletes == "adds" else "some deletes")


# -- deduplicate, first-row, sequence fields ------------------------------------------------------------------------

SEQUENCES = {
    "none": {},
    "one": {"sequence.field": "s0"},
    "two": {"sequence.field": "s1,s0"},
    "one descending": {"sequence.field": "s0", "sequence.field.sort-order": "descending"},
    "two descending": {"sequence.field": "s0,s1", "sequence.field.sort-order": "descending"},
}
MOMENTS = [["s0", "INT"], ["s1", "TIMESTAMP(3)"]]


def sequenced(engine: str, sequence: str, deletes: str, fmt: str) -> Script:
    options = {"merge-engine": engine, "file.format": fmt, **SEQUENCES[sequence]}
    columns = [["v0", "INT"], ["v1", "STRING"], *MOMENTS]
    if engine == "aggregation":
        options |= {"fields.v0.aggregate-function": "sum", "fields.v1.aggregate-function": "last_value"}
    if deletes == "ignore":
        options["ignore-delete"] = "true"
    elif deletes == "remove":
        options[f"{engine}.remove-record-on-delete"] = "true"
    return cell(f"{engine} by {sequence} {deletes} {fmt}", columns, options, "adds" if deletes == "adds" else "some deletes")


def first_row(deletes: str, fmt: str, write_only: bool) -> Script:
    options = {"merge-engine": "first-row", "file.format": fmt, "write-only": str(write_only).lower()}
    if deletes == "ignore":
        options["ignore-delete"] = "true"
    return cell(f"first-row {deletes} {fmt} write-only={write_only}", PLAIN, options, "adds" if deletes == "adds" else "some deletes")


# -- deletion vectors, levels ---------------------------------------------------------------------------------------


def vectors(engine: str, bits: int, fmt: str, write_only: bool) -> Script:
    options = {"merge-engine": engine, "file.format": fmt, "deletion-vectors.enabled": "true", "write-only": str(write_only).lower()}
    if bits == 64:
        options["deletion-vectors.bitmap64"] = "true"
    columns = [["v0", "INT"], ["v1", "STRING"], *MOMENTS]
    if engine == "aggregation":
        options |= {"fields.v0.aggregate-function": "sum", "fields.v1.aggregate-function": "last_value"}
    elif engine == "partial-update":
        options["partial-update.remove-record-on-delete"] = "true"
    return cell(f"vectors {engine} {bits} {fmt} write-only={write_only}", columns, options, "some deletes")


LEVELS = {
    "by count": NO_BIAS,
    "all fit": {"compaction.size-ratio": "1000000"},
    "amplified": {"compaction.max-size-amplification-percent": "1"},
    "often full": {"compaction.optimization-interval": "1 h", **NO_BIAS},
    "small table": {"compaction.total-size-threshold": "1 gb"},
    "new bytes": {"compaction.incremental-size-threshold": "1 b"},
    "up": {**NO_BIAS, "compaction.force-up-level-0": "true"},
}


def levels(mode: str, trigger: int, count: int | None, write_only: bool) -> Script:
    """Twelve commits of a table that compacts by itself or by request."""
    rng = random.Random(f"{mode} {trigger} {count} {write_only}")
    options = {**LEVELS[mode], "num-sorted-run.compaction-trigger": str(trigger), "write-only": str(write_only).lower()}
    if count is not None:
        options["num-levels"] = str(count)
    steps: list[tuple] = []
    for number in range(12):
        low = rng.randrange(20)
        rows = [{"k": low + k, "v": number} if rng.random() < 0.8 else {"k": low + k, "_kind": "-D"} for k in range(rng.randrange(1, 6))]
        steps.append(("write", rows))
        if write_only and number % 3 == 2:
            steps.append(("compact", False))
    name = f"levels {mode} trigger={trigger} levels={count} write-only={write_only}"
    tree = {key: value for key, value in TREE.items() if mode in ("by count", "up") or key not in NO_BIAS}
    return Script(name, [KEY, ["v", "INT"]], ["k"], [], {**tree, **options}, [*steps, ("compact", True)], frozenset(), about=name)


# -- which of them -------------------------------------------------------------------------------------------------


def quick() -> list[Script]:
    """One format each: what every run of CI plays."""
    made = []
    for number, variant in enumerate(VARIANTS):
        fmt = FORMATS[number % 3]
        made.append(aggregation(variant, "retract", fmt))
        if number % 2:
            made.append(grouped(variant, "retract", FORMATS[(number + 1) % 3]))
    made += [partial("adds", "orc"), partial("ignore", "parquet"), partial("remove", "avro")]
    for number, sequence in enumerate(SEQUENCES):
        made.append(sequenced("deduplicate", sequence, "deletes", FORMATS[number % 3]))
    made += [sequenced("aggregation", "two descending", "remove", "orc"), sequenced("partial-update", "one", "remove", "parquet")]
    made += [first_row("adds", "avro", False), first_row("ignore", "parquet", True)]
    made += [vectors("deduplicate", 32, "parquet", False), vectors("partial-update", 64, "orc", True), vectors("aggregation", 32, "avro", False)]
    made += [levels(mode, 3, None, number % 2 == 0) for number, mode in enumerate(LEVELS)]
    return made


def every() -> list[Script]:
    """The whole matrix."""
    made = []
    for fmt in FORMATS:
        for variant in VARIANTS:
            made += [aggregation(variant, deletes, fmt) for deletes in AGGREGATION_DELETES]
            made += [grouped(variant, deletes, fmt) for deletes in AGGREGATION_DELETES]
        made += [partial(deletes, fmt) for deletes in ("adds", "ignore", "remove")]
        made += [partial("adds", fmt, {"fields.default-aggregate-function": "last_non_null_value"})]
        for sequence in SEQUENCES:
            made += [sequenced(engine, sequence, deletes, fmt) for engine in ("deduplicate", "partial-update", "aggregation") for deletes in ("adds", "ignore")]
            made += [sequenced("deduplicate", sequence, "deletes", fmt), sequenced("aggregation", sequence, "remove", fmt), sequenced("partial-update", sequence, "remove", fmt)]
        for write_only in (False, True):
            made += [first_row("adds", fmt, write_only), first_row("ignore", fmt, write_only)]
            made += [vectors(engine, bits, fmt, write_only) for engine in ("deduplicate", "partial-update", "aggregation") for bits in (32, 64)]
    for mode in LEVELS:
        made += [levels(mode, trigger, count, write_only) for trigger in (2, 3, 5) for count in (None, 2, 7) for write_only in (False, True)]
    return made
