"""Scripts about bucket modes and what is done to rows: every mode with every operation it takes, and random ones.

A mode is a table; a story is a list of steps (`pair.py`, `row_pair.py`) drawn for it. Only rows and buckets are compared:
Java and we bring about operations on rows by other files.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import engine_values
import lives
from engine_scripts import Script

FORMATS = ("parquet", "parquet", "orc", "avro")
VECTORS = {"deletion-vectors.enabled": "true"}
PARTIAL = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
SUMS = {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum", "fields.v.aggregate-function": "last_value",
        "aggregation.remove-record-on-delete": "true"}  # fmt: skip
ALL = ("delete", "update", "upsert", "merge", "mixed")
KEYED = (*ALL, "look", "overwrite", "evolve", "rounds")
APPEND = (*ALL, "overwrite", "evolve", "sort", "index")


@dataclass(frozen=True)
class Mode:
    """A table of one bucket mode, and the stories it takes."""

    options: dict[str, str]
    stories: tuple[str, ...]
    key: tuple[str, ...] = ()
    parts: bool = False
    key_types: tuple[str, ...] = ("INT",)
    formats: tuple[str, ...] = FORMATS
    extra: bool = True


def keyed(options: dict[str, str], stories: tuple[str, ...] = KEYED, **more) -> Mode:
    names = tuple(f"k{number or ''}" for number in range(len(more.get("key_types", ("INT",)))))
    return Mode(options, stories, ("p", *names), **more)


FIXED = (*KEYED, "rescale")
DYNAMIC = {"bucket": "-1", "dynamic-bucket.target-row-num": "5"}
WAITING = ("publish", "look", "overwrite", "rounds", "resize")
POSTPONED = {"bucket": "-2", "postpone.default-bucket-num": "3"}
BUCKETS = {"bucket": "2", "bucket-key": "k"}

MODES: dict[str, Mode] = {
    "one bucket": keyed({"bucket": "1"}, FIXED),
    "fixed": keyed({"bucket": "3"}, FIXED, parts=True),
    "fixed by some columns": keyed({"bucket": "4", "bucket-key": "k"}, FIXED, key_types=("STRING", "INT")),
    "fixed vectors": keyed({"bucket": "2", **VECTORS}, FIXED),
    "fixed vectors of 64 bits": keyed({"bucket": "2", **VECTORS, "deletion-vectors.bitmap64": "true"}, FIXED, parts=True),
    "fixed sequence": keyed({"bucket": "2", "sequence.field": "n"}, FIXED),
    "fixed partial-update": keyed({"bucket": "2", **PARTIAL}, FIXED),
    "fixed write-only": keyed({"bucket": "2", "write-only": "true"}, FIXED, parts=True),
    "fixed sums": keyed({"bucket": "2", **SUMS}, ("delete", "look", "rescale", "overwrite")),
    "fixed first-row": keyed({"bucket": "2", "merge-engine": "first-row"}, ("look", "rounds", "overwrite")),
    "modulo": keyed({"bucket": "3", "bucket-function.type": "mod", "bucket-key": "k"}, FIXED),
    "hive": keyed({"bucket": "3", "bucket-function.type": "hive"}, FIXED, key_types=("STRING", "INT")),
    "dynamic": keyed(DYNAMIC, (*KEYED, "shared")),
    "dynamic parts": keyed(DYNAMIC, (*KEYED, "shared"), parts=True),
    "dynamic texts": keyed({**DYNAMIC, "write-only": "true"}, (*KEYED, "shared"), key_types=("STRING", "BIGINT")),
    "dynamic vectors": keyed({**DYNAMIC, **VECTORS}),
    "dynamic partial-update": keyed({**DYNAMIC, **PARTIAL}, parts=True),
    "dynamic sums": keyed({**DYNAMIC, **SUMS}, ("delete", "look", "overwrite")),
    "dynamic at most two": keyed({**DYNAMIC, "dynamic-bucket.max-buckets": "2"}, (*ALL, "shared")),
    "dynamic of assigners": keyed({**DYNAMIC, "dynamic-bucket.initial-buckets": "2"}, ("shared", "merge"), parts=True),
    "postponed": keyed(POSTPONED, WAITING),
    "postponed parts": keyed({**POSTPONED, "postpone.default-bucket-num": "1"}, WAITING, parts=True),
    "postponed partial-update": keyed({**POSTPONED, **PARTIAL}, ("publish", "overwrite", "rounds", "resize")),
    "postponed sums": keyed({**POSTPONED, **SUMS}, ("publish", "overwrite", "rounds", "resize"), parts=True),
    "files": Mode({}, APPEND),
    "files in parts": Mode({}, APPEND, parts=True),
    "files, vectors": Mode(VECTORS, APPEND, extra=False),
    "files, vectors of 64 bits": Mode({**VECTORS, "deletion-vectors.bitmap64": "true"}, APPEND, parts=True, extra=False),
    "files in buckets": Mode({**BUCKETS, "compaction.min.file-num": "3"}, (*APPEND, "rescale")),
    "files in unordered buckets": Mode({**BUCKETS, "bucket-append-ordered": "false"}, (*APPEND, "rescale"), parts=True),
    "files in buckets, vectors": Mode({**BUCKETS, **VECTORS}, APPEND, extra=False),
}


class Draft:
    """A story in the making."""

    def __init__(self, name: str, mode: Mode) -> None:
        self.rng = random.Random(f"tables {name}")
        self.mode = mode
        self.format = self.rng.choice(mode.formats)
        self.number = 0
        self.asks = False
        types = mode.key_types
        self.keys = [[f"k{number or ''}", kind] for number, kind in enumerate(types)]
        self.columns = [["p", "INT NOT NULL"], *([name, f"{kind} NOT NULL"] for name, kind in self.keys), ["v", "STRING"], ["n", "BIGINT"]]
        if mode.extra:
            pool = [kind for kind in engine_values.FLAT if not (self.format == "avro" and kind == "TIME(6)")]
            self.columns.append(["x", self.rng.choice(pool)])
        self.pool = self._pool()

    def _pool(self) -> list[dict]:
        """The keys that ever occur."""
        pool = {}
        for number in range(24):
            row = {"p": number % 2}
            for name, kind in self.keys:
                row[name] = number // 2 if kind in ("INT", "BIGINT") and name == "k" else key_value(self.rng, kind)
            pool.setdefault(str(row), row)
        return list(pool.values())

    def rows(self, most: int = 10) -> list[dict]:
        """Rows with different keys."""
        return [self.row(key) for key in self.rng.sample(self.pool, self.rng.randrange(2, min(most, len(self.pool))))]

    def row(self, key: dict) -> dict:
        self.number += 1
        row = {**key, "v": self.rng.choice("abc"), "n": self.number}
        if self.mode.extra and self.rng.random() < 0.8:
            row["x"] = engine_values.value(self.rng, self.columns[-1][1])
        return row

    def source(self, full: bool = False) -> list[dict]:
        """Rows to merge; all with the same columns."""
        names = [name for name, _ in self.columns if full or name != "x"]
        return [{name: row.get(name) for name in names} for row in self.rows()]

    def on(self) -> list[str]:
        return ["p", *(name for name, _ in self.keys)]

    def tree(self) -> list:
        """A condition that some rows meet."""
        letter, middle = self.rng.choice("abc"), self.number - self.rng.randrange(10)
        name, _ = self.rng.choice(self.keys)
        key, other = self.rng.choice(self.pool)[name], self.rng.choice(self.pool)[name]
        return self.rng.choice([
            ["=", "v", letter], ["and", ["=", "v", letter], ["=", "p", 1]], ["<", "n", middle], [">=", "n", middle],
            ["=", name, key], ["in", name, [key, other]], ["or", ["=", name, key], ["=", "v", letter]],
        ])  # fmt: skip

    def values(self) -> dict:
        self.number += 1
        return {"v": self.rng.choice(["a", "set", "longer than before"]), "n": self.number}

    # -- steps ------------------------------------------------------------------------------------------------------

    def write(self) -> tuple:
        if self.mode.options.get("merge-engine") is None and self.mode.key and self.rng.random() < 0.4:
            return ("write", [{**row, "_kind": self.rng.choice(["+I", "+U", "-D"])} for row in self.rows()])
        return ("write", self.rows())

    def rounds(self) -> tuple:
        return ("rounds", [self.rows() for _ in range(3)])

    def shared(self) -> tuple:
        return ("shared", [self.row(key) for key in self.pool], self.rng.choice((2, 3)))

    def delete(self) -> tuple:
        return ("delete", self.tree())

    def update(self) -> tuple:
        return ("update", self.tree(), self.values())

    def upsert(self) -> tuple:
        if self.mode.key and self.rng.random() < 0.7:
            return ("upsert", self.source(full=True), [])
        return ("upsert", self.source(), self.on())

    def merge(self) -> tuple:
        clauses: dict = {"delete": ["=", "v", "a"], "update": True, "insert": True, "rest": (self.tree(), self.values()), "rest deleted": ["=", "v", "c"]}
        for name in self.rng.sample(list(clauses), self.rng.randrange(3)):
            del clauses[name]
        if self.rng.random() < 0.3 and "update" in clauses:
            clauses["update"] = self.values()
        return ("merge", self.source(), self.on(), clauses)

    def minor(self) -> tuple:
        return ("compact", False)

    def full(self) -> tuple:
        return ("compact", True)

    def overwrite(self) -> tuple:
        if self.mode.parts and self.rng.random() < 0.5:
            return ("overwrite", "dynamic", [row for row in self.rows() if row["p"] == 1] or [self.row(self.pool[1])])
        if self.mode.parts:
            return ("overwrite", {"p": "1"}, [row for row in self.rows() if row["p"] == 1])
        return ("overwrite", {}, self.rows())

    def drop(self) -> tuple:
        return ("drop", [{"p": str(self.rng.randrange(2))}]) if self.mode.parts else ("truncate",)

    def rescale(self) -> tuple:
        return ("rescale", self.rng.choice((1, 2, 3, 5)))

    def resize(self) -> tuple:
        return ("resize", self.rng.choice((1, 2, 4)))

    def look(self) -> tuple:
        return ("look",)

    def ask(self) -> tuple:
        return ("ask", [self.tree() for _ in range(3)])

    def sort(self) -> tuple:
        strategy = self.rng.choice(("order", "zorder", "hilbert"))
        return ("sort", ["v"] if strategy == "order" else ["k", "n"], strategy)

    def index(self) -> tuple:
        return ("index",)

    def add(self) -> tuple:
        return ("alter", ["add", f"c{self.number}", "INT"])

    def comment(self) -> tuple:
        return ("alter", ["set", "commit.max-retries", "11"])


STORIES: dict[str, str] = {
    "delete": "write write delete minor write delete full write",
    "update": "write write update minor update write full update",
    "upsert": "write upsert minor write upsert full upsert",
    "merge": "write write merge minor write merge full write merge",
    "mixed": "write merge delete minor upsert update full delete",
    "look": "write look write minor look write full look write look",
    "overwrite": "write write overwrite write full write drop write",
    "evolve": "write add write {change} add minor {change} full write",
    "rounds": "rounds {change} rounds minor rounds full",
    "rescale": "write write rescale write {change} rescale minor write full",
    "publish": "write write minor write minor look write full write write full look",
    "resize": "write minor resize write full resize write minor look",
    "shared": "write shared write shared full {change} write",
    "sort": "write write sort {change} minor sort write full",
    "index": "write write ask index ask {change} write full ask",
}
"""The steps of each story, by the names of `Draft`; `{change}` is an operation on rows, or a write where there is none."""

INDEXES = (
    {"file-index.bloom-filter.columns": "v,k", "file-index.bloom-filter.v.items": "50", "file-index.bloom-filter.k.items": "50"},
    {"file-index.bitmap.columns": "v,k"},
    {"file-index.bsi.columns": "n,k"},
    {"file-index.range-bitmap.columns": "v,n,k"},
)


def story(mode: str, plot: str, steps: str | None = None, table: Mode | None = None) -> Script:
    """The script of a mode and a story. `table`: a mode that is none of `MODES`."""
    name = f"{mode}: {plot}"
    table = table or MODES[mode]
    draft = Draft(name, table)
    options = {"file.format": draft.format, **table.options}
    made = []
    merged = {"merge-engine", "sequence.field"} & table.options.keys() and table.options.get("merge-engine") != "first-row"
    waits = table.options.get("bucket") == "-2"
    for verb in (steps or STORIES[plot]).split():
        if verb == "look" and merged and waits:
            continue  # the oracle compacts buckets only to which it publishes rows
        if verb == "look" and (merged or waits):
            made.append(draft.full())  # Java looks up the newest row of a key, waiting ones too, and does not merge
        if verb == "{change}":
            verb = draft.rng.choice([one for one in table.stories if one in ALL and one != "mixed"] or ["write"])
        made.append(getattr(draft, verb)())
    if plot == "index":
        options |= {**draft.rng.choice(INDEXES), "file-index.in-manifest-threshold": draft.rng.choice(("0 b", "1 mb"))}
    return Script(name, draft.columns, list(table.key), ["p"] if table.parts else [], options, made, sizes_matter=True, about=name)


def key_value(rng: random.Random, kind: str):
    """A value of a key, without zeros of floats: whether they are equal is another question."""
    while (value := lives.value(rng, kind)) in (0.0, "NaN") and kind in ("FLOAT", "DOUBLE"):
        pass
    return value


HIVE = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "STRING", "BYTES", "DECIMAL(10, 2)")


def of_key(kinds: tuple[str, ...], options: dict[str, str], name: str) -> Script:
    """A short life of a table with keys of these types."""
    MODES[name] = keyed(options, (), key_types=kinds, extra=False)
    return story(name, "mixed", "write upsert delete minor merge update full look")


def of_keys() -> list[Script]:
    """Every type of key with every bucket function and dynamic buckets."""
    made = []
    for number, kind in enumerate(lives.KEY_TYPES):
        made.append(of_key((kind,), {"bucket": "3"}, f"fixed {kind}"))
        made.append(of_key((kind, "INT"), DYNAMIC, f"dynamic {kind}"))
    made += [of_key((kind, "INT"), {"bucket": "3", "bucket-function.type": "hive"}, f"hive {kind}") for kind in HIVE]
    return made


def cells() -> list[Script]:
    """Every mode with every story it takes."""
    return [story(mode, plot) for mode, table in list(MODES.items()) for plot in table.stories]


VERBS = {
    "keyed": "write write write rounds delete update upsert merge minor full overwrite drop look add",
    "append": "write write write rounds delete update upsert merge minor full overwrite drop ask add index",
}


def drawn(seed: int) -> Script:
    """A random script."""
    rng = random.Random(f"table script {seed}")
    mode = rng.choice(list(TABLES))
    table = MODES[mode]
    verbs = VERBS["keyed" if table.key else "append"].split()
    verbs = [verb for verb in verbs if verb not in (*ALL, "look") or verb in table.stories]
    verbs += [verb for verb in ("rescale", "shared", "sort", "resize") if verb in table.stories]
    steps = ["write", *rng.choices(verbs, k=rng.randrange(5, 12)), "full"]
    return story(mode, f"drawn {seed}", " ".join(steps))


TABLES = tuple(MODES)
