"""The workloads: what is written, what is read, who is compared, what is to be reached."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.workspace import UPSERTS, Workspace, files_by_age

PAIMON = ("ours", "rust", "native", "pypaimon")
FAST = ("ours", "rust", "native")


@dataclass(frozen=True)
class Measure:
    """One figure: a step that several peers run, and what is to be reached.

    `settings`: what the step is given, made when the measure is run. `inputs`: name of the rows to write; `base`: rows
    written before, not measured. `copied`: the step writes to a copy of the table. `repeats`: the figure is the median
    of so many further calls in one process; 0 is the first call. `per`: the figure counts so many commits. `unit`: the
    figure of a sample that counts. `targets`: (peer, factor) means ours ≤ factor × peer; `absolute` is seconds.
    `steps`: peers that run another step; `own`: settings of one peer alone. `alike`: all must end with the same rows.
    """

    name: str
    step: str
    peers: tuple[str, ...]
    settings: Callable[[], dict[str, Any]] = dict
    targets: tuple[tuple[str, float], ...] = ()
    absolute: float | None = None
    inputs: str | None = None
    base: str | None = None
    keyed: bool = False
    copied: bool = False
    repeats: int = 0
    per: int = 1
    unit: str = "cpu"
    steps: dict[str, str] = field(default_factory=dict)
    own: dict[str, Callable[[], dict[str, Any]]] = field(default_factory=dict)
    alike: bool = True


def measures(space: Workspace, commits: Sequence[int]) -> list[Measure]:
    """All figures in the order in which they are taken."""
    rows = [*_changes(space), *_merges(space), *_buckets(space)]
    return [*_writes(), *_reads(space), *_metadata(space, commits), *_engine(space), *rows]


def _writes() -> list[Measure]:
    loads = (("raw", 1.1), ("rust", 1.0))
    return [
        Measure("append 10 M rows", "write", ("raw", *PAIMON), inputs="append", targets=(("raw", 1.05),)),
        Measure("primary-key load 1 M", "write", ("raw", *PAIMON), inputs="load-1m", keyed=True, targets=loads),
        Measure("primary-key load 5 M", "write", ("raw", *FAST), inputs="load-5m", keyed=True, targets=loads),
        Measure("upsert 100 k, per commit (ten on 1 M)", "write", ("raw", *PAIMON), inputs="upserts", base="load-1m",
                keyed=True, per=UPSERTS, targets=(("rust", 1.0),)),
    ]  # fmt: skip


def _reads(space: Workspace) -> list[Measure]:
    low = space.million // 2

    def whole() -> dict[str, Any]:
        path = space.merged()
        return {"table": str(path), "files": files_by_age(path)}

    def two() -> dict[str, Any]:
        return {**whole(), "columns": ["k", "b"]}

    def percent() -> dict[str, Any]:
        return {**whole(), "range": [low, low + space.million // 100 - 1]}

    def one() -> dict[str, Any]:
        return {**whole(), "range": [low, low]}

    def many(form: str = "array") -> dict[str, Any]:
        return {**whole(), "keys": [0, space.million, max(1, space.million // 10_000)], "form": form}

    def since() -> dict[str, Any]:
        """The last six upserts of 100 k."""
        path = space.merged()
        return {"table": str(path), "since": 1 + UPSERTS - 6, "files": files_by_age(path)[-6:]}

    kinds = {"raw": lambda: {"columns": [*"kabcde", "_VALUE_KIND"]}}
    batches = [
        Measure(f"lookup of 10 k keys{name}, repeated / merged read", "lookup", ("ours", "rust", "plain"), keys,
                targets=(("plain", 0.02),), repeats=5, steps={"rust": "read", "plain": "read"}, alike=False,
                own={"ours": lambda: {"repeats": 25}})
        for name, keys in (("", many), (" in a list", lambda: many("list")), (" as dicts", lambda: many("dicts")))
    ]  # fmt: skip
    return [
        Measure("merged read, all columns, first call", "read", ("raw", *PAIMON), whole, targets=(("rust", 1.0),)),
        Measure("merged read, all columns, repeated", "read", ("raw", *FAST), whole, targets=(("rust", 1.0),),
                repeats=5),
        Measure("merged read / raw decode, repeated", "read", ("ours", "raw"), whole, targets=(("raw", 1.8),),
                repeats=5, steps={"raw": "decode"}),
        Measure("changes of 600 k rows / raw decode, first call", "changes", ("ours", "raw"), since,
                targets=(("raw", 1.1),), steps={"raw": "decode"}, alike=False, own=kinds),
        Measure("changes of 600 k rows / raw decode, repeated", "changes", ("ours", "raw"), since,
                targets=(("raw", 1.1),), repeats=5, steps={"raw": "decode"}, alike=False, own=kinds),
        Measure("merged read, two columns, first call", "read", ("raw", *PAIMON), two, targets=(("rust", 0.5),)),
        Measure("merged read, two columns, repeated", "read", ("raw", *FAST), two, targets=(("rust", 0.5),),
                repeats=5),
        Measure("merged read, 1 % key range, first call", "read", ("raw", *PAIMON), percent,
                targets=(("rust", 1.5),)),
        Measure("merged read, 1 % key range, repeated", "read", ("raw", *FAST), percent, targets=(("rust", 1.5),),
                repeats=5),
        Measure("merged read, one key, first call", "read", ("raw", *PAIMON), one),
        Measure("merged read, one key, repeated", "read", ("raw", *FAST), one, repeats=5),
        Measure("lookup of one key, first call / read of one key", "lookup", ("ours", "rust"), one,
                targets=(("rust", 1.5),), steps={"rust": "read"}),
        *batches,
    ]  # fmt: skip


def _metadata(space: Workspace, commits: Sequence[int]) -> list[Measure]:
    found = [Measure("import", "nothing", ("raw", *PAIMON), unit="import_cpu", absolute=0.25)]
    for count in commits:

        def table(count: int = count) -> dict[str, Any]:
            return {"table": str(space.commits(count))}

        def plan(table: Callable[[], dict[str, Any]] = table) -> dict[str, Any]:
            return {**table(), "range": [50, 60]}

        many = count >= 1000
        found += [
            Measure(f"plan at {count} commits, first call", "plan", PAIMON, plan, absolute=0.060 if many else None),
            Measure(f"plan at {count} commits, repeated", "plan", PAIMON, plan, repeats=5,
                    absolute=0.012 if many else None),
            Measure(f"one more commit at {count}, repeated", "write", PAIMON, table, inputs="small", keyed=True,
                    copied=True, repeats=5, targets=(("rust", 1.0),) if many else ()),
        ]  # fmt: skip
    return found


def _engine(space: Workspace) -> list[Measure]:
    """What the merge tree adds: compaction, spilling, other merge engines."""

    def merged() -> dict[str, Any]:
        path = space.merged()
        return {"table": str(path), "files": files_by_age(path)}

    buffer_kb = max(64, 45_000 * space.million // 1_000_000)
    small = {"write-buffer-size": f"{buffer_kb} kb", "write-buffer-spillable": "true"}
    whole = {"write-buffer-size": "1 gb", "write-buffer-spillable": "false"}
    found = [
        Measure("full compaction 2 M to 1.5 M rows", "compact", ("ours", "raw", "java"), merged,
                targets=(("raw", 1.3),), copied=True),
        Measure("load 5 M with spill, ten buffers / without", "write", ("ours", "plain"), inputs="load-5m", keyed=True,
                targets=(("plain", 1.3),),
                own={"ours": lambda: {"options": small}, "plain": lambda: {"options": whole}}),
    ]  # fmt: skip
    for producer in ("full-compaction", "lookup"):

        def told(producer: str = producer) -> dict[str, Any]:
            return {"table": str(space.settled(producer))}

        def untold() -> dict[str, Any]:
            return {"table": str(space.settled("none"))}

        found.append(
            Measure(f"full compaction 2 M to 1.5 M rows with changelog ({producer}) / without", "compact",
                    ("ours", "plain", "java"), told, targets=(("plain", 1.6), ("java", 0.5)), copied=True,
                    own={"plain": untold})
        )  # fmt: skip
    for engine in ("partial-update", "aggregation"):

        def other(engine: str = engine) -> dict[str, Any]:
            return {**merged(), "table": str(space.merged(engine))}

        def plain() -> dict[str, Any]:
            return {"table": str(space.merged())}

        found += [
            Measure(f"merged read, {engine} / deduplicate, {'repeated' if repeats else 'first call'}", "read",
                    ("ours", "plain"), other, targets=(("plain", 2.0),), repeats=repeats, alike=False,
                    own={"plain": plain})
            for repeats in (0, 5)
        ]  # fmt: skip
    return found


def _changes(space: Workspace) -> list[Measure]:
    """Deletes and updates of 1 % of the rows of an append table: anywhere, or neighbours in one file of ten."""
    places: dict[str, list[object]] = {
        "everywhere": ["a", 49 * 2**40 // 50, 2**40],
        "together": ["k", 11 * space.million, 11 * space.million + space.million // 5 - 1],
    }
    found = []
    for how, place, verb in itertools.product(("rewrite", "deletion vectors"), places, ("delete", "update")):

        def settings(how: str = how, place: str = place, verb: str = verb) -> dict[str, Any]:
            path = space.appended(marks=how != "rewrite")
            values: dict[str, Any] = {"set": {"b": "0.5"}} if verb == "update" else {}
            return {"table": str(path), "files": files_by_age(path), "marks": how != "rewrite", "keyed": False,
                    "where": places[place], **values}  # fmt: skip

        found.append(
            Measure(f"{verb} 1 % of 10 M append rows {place} ({how})", "change", ("ours", "raw", "delta"), settings,
                    targets=(("raw", 1.3),), copied=True, own={"delta": lambda: {"table": str(space.delta())}})
        )  # fmt: skip
    return found


def _merges(space: Workspace) -> list[Measure]:
    """Merges into tables without a key and with one: half of the source updates, half is new."""
    found = []
    for how, place in itertools.product(("rewrite", "deletion vectors", "primary key"), ("everywhere", "together")):

        def settings(how: str = how) -> dict[str, Any]:
            return {"table": str(space.appended(marks=how == "deletion vectors", keyed=how == "primary key"))}

        found.append(
            Measure(f"merge 100 k into 10 M rows {place} ({how})", "merge", ("ours", "delta"), settings,
                    targets=(("delta", 1.0),), inputs=place, copied=True,
                    own={"delta": lambda: {"table": str(space.delta())}})
        )  # fmt: skip
    return found


def _buckets(space: Workspace) -> list[Measure]:
    """Loads into dynamic buckets, three of them, beside as many fixed ones."""
    dynamic = {"bucket": "-1", "dynamic-bucket.target-row-num": str(2 * space.million)}
    return [
        Measure(f"primary-key load {size} into dynamic / 3 fixed buckets", "write", ("ours", "plain"), inputs=source,
                keyed=True, targets=(("plain", 1.3),),
                own={"ours": lambda: {"options": dynamic}, "plain": lambda: {"options": {"bucket": "3"}}})
        for size, source in (("1 M", "load-1m"), ("5 M", "load-5m"))
    ]  # fmt: skip
