"""Random scripts about tables of any shape, each drawn from one seed: what `table_scripts.py` leaves alike in all of its tables.

Keys of one to three columns of any type, in another order than in the schema; up to two partition columns of several
types, with nulls and awkward texts where there is no key; bucket keys that are a part of the key; columns that come, go,
change their names, types and places between operations on rows; file indexes; every format.
"""

from __future__ import annotations

import random

import engine_values
import lives
import table_scripts
from engine_scripts import Script
from table_scripts import ALL, DYNAMIC, PARTIAL, POSTPONED, SUMS, VECTORS, Mode

KEY_TYPES = [*lives.KEY_TYPES, "BINARY(4)", "VARBINARY(9)", "DECIMAL(18, 6)", "DECIMAL(38, 10)", "TIME(0)",
             *(f"TIMESTAMP({digits}){zone}" for digits in range(10) for zone in ("", " WITH LOCAL TIME ZONE"))]  # fmt: skip
PLAIN = ("INT", "BIGINT", "SMALLINT", "STRING", "VARCHAR(12)")
"""Those of tables where Java is told rows by their numbers in files."""
FINE = ("(7)", "(8)", "(9)")
"""Digits of timestamps that Avro does not have."""
WORDS = ("", " ", "a", "b/c", "x=y", "%41", "é中", "a b", "q'\"", "{}[]", "10:30", "\\t\t", "null")
PARTITION_TYPES = ("INT", "STRING", "VARCHAR(12)", "DATE", "BIGINT", "BOOLEAN", "DECIMAL(10, 2)", "TINYINT", "CHAR(5)", "TIMESTAMP(3)")
WIDER = {
    "TINYINT": ("SMALLINT", "INT", "BIGINT", "DOUBLE", "STRING"), "SMALLINT": ("INT", "BIGINT", "DECIMAL(10, 2)"), "INT": ("BIGINT", "DOUBLE", "STRING"),
    "BIGINT": ("DECIMAL(24, 4)", "STRING"), "FLOAT": ("DOUBLE",), "DECIMAL(10, 2)": ("DECIMAL(24, 4)",), "VARCHAR(12)": ("STRING", "VARCHAR(20)"),
    "DATE": ("TIMESTAMP(3)", "STRING"), "TIMESTAMP(3)": ("TIMESTAMP(6)",), "BOOLEAN": ("STRING", "INT"), "TIME(3)": ("STRING",),
}  # fmt: skip
EVOLVE = ("add", "drop_column", "rename", "rename_key", "widen", "move", "loosen", "default")
ONE_BY_ONE = ("write", "write", "write", "rounds", "minor", "full", "overwrite", *EVOLVE)
KEYED = (*ALL, "look")

MODES: dict[str, Mode] = {
    "fixed": Mode({"bucket": "3"}, (*KEYED, "rescale"), ("k",)),
    "fixed vectors": Mode({"bucket": "2", **VECTORS}, (*KEYED, "rescale"), ("k",)),
    "fixed vectors of 64 bits": Mode({"bucket": "1", **VECTORS, "deletion-vectors.bitmap64": "true"}, KEYED, ("k",)),
    "fixed sequence": Mode({"bucket": "2", "sequence.field": "n"}, KEYED, ("k",)),
    "fixed partial-update": Mode({"bucket": "2", **PARTIAL}, KEYED, ("k",)),
    "fixed sums": Mode({"bucket": "2", **SUMS}, ("delete", "look", "rescale"), ("k",)),
    "fixed first-row": Mode({"bucket": "2", "merge-engine": "first-row"}, ("look",), ("k",)),
    "fixed write-only": Mode({"bucket": "2", "write-only": "true", "data-file.thin-mode": "true"}, (*KEYED, "rescale"), ("k",)),
    "dynamic": Mode(DYNAMIC, KEYED, ("k",)),
    "dynamic vectors": Mode({**DYNAMIC, **VECTORS}, KEYED, ("k",)),
    "postponed": Mode(POSTPONED, ("resize",), ("k",)),
    "moving": Mode({"bucket": "-1"}, ("delete", "update", "upsert"), ("k",)),
    "files": Mode({}, (*ALL, "sort", "index")),
    "files, vectors": Mode(VECTORS, (*ALL, "sort", "index")),
    "files, vectors of 64 bits": Mode({**VECTORS, "deletion-vectors.bitmap64": "true"}, (*ALL, "sort")),
    "files in buckets": Mode({"bucket": "2"}, (*ALL, "rescale")),
    "files in unordered buckets": Mode({"bucket": "2", "bucket-append-ordered": "false"}, (*ALL, "sort", "rescale")),
    "files in buckets, vectors": Mode({"bucket": "2", **VECTORS}, ALL),
}


class Draft(table_scripts.Draft):
    """A script in the making, whose columns change while it is made."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = random.Random(f"wide {seed}")
        self.name = rng.choice(list(MODES))
        self.mode = MODES[self.name]
        self.format = rng.choice(("parquet", "parquet", "orc", "avro"))
        self.number = 0
        self.keyed = bool(self.mode.key)
        self.options = {"file.format": self.format, **self.mode.options}
        self.moving = self.name == "moving"
        required = " NOT NULL" if self.keyed else ""
        told = "deletion-vectors.enabled" in self.options and not self.keyed
        kinds = PLAIN if told else PARTITION_TYPES
        self.parts = [[f"p{n}", rng.choice(kinds) + required] for n in range(rng.choice((0, 1, 1, 2)) or self.moving)]
        kinds = self.possible(PLAIN if told else KEY_TYPES)
        self.keys = [[f"k{n or ''}", rng.choice(kinds) + required] for n in range(rng.choice((1, 1, 2, 3)))]
        if self.keys[0][1].startswith("BOOLEAN"):
            self.keys[0][1] = "SMALLINT" + required
        self.extras = [[f"x{n}", self.new_type() + rng.choice(("", "", " NOT NULL"))] for n in range(rng.randrange(1, 5))]
        self.columns = [*self.parts, *self.keys, ["v", "STRING"], ["n", rng.choice(("INT", "BIGINT"))], *self.extras]
        rng.shuffle(self.columns)
        key = [*(self.keys if self.moving else self.parts + self.keys)]
        rng.shuffle(key)
        self.primary = [name for name, _ in key] if self.keyed else []
        self._buckets()
        self._indexes()
        self.pool = self._pool()
        self.first = [list(column) for column in self.columns]
        self.first_key = list(self.primary)

    def possible(self, kinds) -> list[str]:
        return [kind for kind in kinds if self.format != "avro" or not any(digits in kind for digits in FINE)]

    def new_type(self) -> str:
        return self.rng.choice([kind for kind in (*engine_values.FLAT, "CHAR(5)", "BINARY(4)") if not (self.format == "avro" and kind == "TIME(6)")])

    def _buckets(self) -> None:
        """A bucket key of some columns, in any order, where there may be one."""
        names = [name for name, _ in self.keys]
        if self.name.startswith("files in") or (self.name.startswith("fixed") and len(names) > 1 and self.rng.random() < 0.6):
            self.options["bucket-key"] = ",".join(self.rng.sample(names, self.rng.randrange(1, len(names) + 1)))

    def _indexes(self) -> None:
        if self.rng.random() < 0.3:
            kinds = {"bsi": ["n"], "bloom-filter": ["v", "n"], "bitmap": ["v"], "range-bitmap": ["v", "n"]}
            for kind in self.rng.sample(list(kinds), 2):
                self.options[f"file-index.{kind}.columns"] = ",".join(kinds[kind])
            self.options["file-index.in-manifest-threshold"] = self.rng.choice(("0 b", "1 mb"))

    def _pool(self) -> list[dict]:
        """The keys that ever occur, each in one partition unless keys move."""
        parts = [{name: self.part(kind) for name, kind in self.parts} for _ in range(3)]
        pool: dict[str, dict] = {}
        for number in range(24):
            key = {name: self.key(kind, number) for name, kind in self.keys}
            pool.setdefault(str(key), {**parts[number % 3], **key})
        self.places = parts
        return list(pool.values())

    def part(self, kind: str):
        if "NOT NULL" not in kind and self.rng.random() < 0.25:
            return None
        root = kind.replace(" NOT NULL", "")
        if root in ("STRING", "VARCHAR(12)", "CHAR(5)"):
            keyed = self.keyed  # Java's lookups name local files after partitions, slashes and all, and fail to make them
            return self.rng.choice([word for word in WORDS if len(word) <= 5 and not word.endswith(" ") and not (keyed and "/" in word)])
        return lives.value(self.rng, root)

    def key(self, kind: str, number: int):
        root = kind.replace(" NOT NULL", "")
        return number if root in ("INT", "BIGINT") else table_scripts.key_value(self.rng, root)

    def row(self, key: dict) -> dict:
        self.number += 1
        row = {**key, "v": self.rng.choice("abc"), "n": self.number}
        if self.moving and self.rng.random() < 0.3:
            row |= self.rng.choice(self.places)
        for name, kind in self.extras:
            if "NOT NULL" in kind or "partial-update" in self.name or self.rng.random() < 0.8:
                row[name] = engine_values.value(self.rng, kind.replace(" NOT NULL", "")) if "BINARY" not in kind and "CHAR(5)" not in kind else lives.value(self.rng, kind.replace(" NOT NULL", ""))
        return lives.plain_zeros(row, self.format)

    def source(self, full: bool = False) -> list[dict]:
        """Rows to merge; all with the same columns."""
        left_out = None if full or "partial-update" in self.name else self.rng.choice([None, *(name for name, kind in self.extras if "NOT NULL" not in kind)])
        names = [name for name, _ in self.columns if name != left_out]
        return [{name: row.get(name) for name in names} for row in self.rows()]

    def on(self) -> list[str]:
        return list(self.primary) or [name for name, _ in self.parts + self.keys]

    def upsert(self) -> tuple:
        return ("upsert", self.source(full=True), []) if self.moving else super().upsert()

    def tree(self) -> list:
        """A condition that some rows meet. Only of letters and numbers where Java is told rows by their numbers in files."""
        letter, middle = self.rng.choice("abc"), self.number - self.rng.randrange(12)
        plain = [["=", "v", letter], ["<", "n", middle], [">=", "n", middle], ["and", ["=", "v", letter], [">", "n", middle - 9]]]
        if not self.keyed and "deletion-vectors.enabled" in self.options:
            return self.rng.choice(plain)  # what `row_pair.py` sees of any file
        name, kind = self.rng.choice(self.parts + self.keys + self.extras)
        pool = [row.get(name) for row in map(self.row, self.rng.sample(self.pool, min(4, len(self.pool))))]
        known = [value for value in pool if value is not None]
        if not known or kind.startswith(("FLOAT", "DOUBLE")):
            return self.rng.choice([["isNull", name], ["isNotNull", name], *plain])
        leaves = [["=", name, known[0]], ["!=", name, known[0]], ["in", name, known[:2]], ["isNull", name]]
        if not kind.startswith(("BOOLEAN", "BINARY", "VARBINARY", "BYTES", "CHAR")):
            leaves += [["<", name, known[0]], [">=", name, known[0]]]
        if kind.startswith("BOOLEAN"):
            leaves = leaves[:1]
        leaf = self.rng.choice(leaves)
        return self.rng.choice([leaf, leaf, ["or", leaf, ["=", "v", letter]], ["and", leaf, ["=", "v", letter]], *plain])

    # -- steps ------------------------------------------------------------------------------------------------------

    def overwrite(self) -> tuple:
        if self.parts and not self.moving and self.rng.random() < 0.6:
            place = self.rng.choice(self.places)
            rows = [row for row in self.rows(20) if all(row[name] == value for name, value in place.items())]
            return ("overwrite", "dynamic", rows or [self.row(self.pool[0])])
        return ("overwrite", {}, self.rows())

    def sort(self) -> tuple:
        return ("sort", *self.rng.choice(((["v"], "order"), (["n", "v"], "zorder"), (["n", "v"], "hilbert"))))

    def add(self) -> tuple:
        self.number += 1
        column = [f"y{self.number}", self.new_type()]
        self.extras.append(column)
        self.columns.append(column)
        move = self.rng.choice((None, ["first", column[0]], ["after", column[0], "v"]))
        return ("alter", ["add", *column, None, *([] if move is None else [move])])

    def drop_column(self) -> tuple:
        if not self.extras:
            return self.add()
        column = self.rng.choice(self.extras)
        self.extras.remove(column)
        self.columns.remove(column)
        return ("alter", ["drop", column[0]])

    def rename(self) -> tuple:
        if not self.extras:
            return self.add()
        self.number += 1
        column = self.rng.choice(self.extras)
        old, column[0] = column[0], f"z{self.number}"
        return ("alter", ["rename", old, column[0]])

    def rename_key(self) -> tuple:
        """Renames a column of the key. Those of partitions keep their names in Java, which reads no old snapshot after those of buckets changed."""
        if not self.keyed or "bucket-key" in self.options:
            return self.rename()
        self.number += 1
        column = self.rng.choice(self.keys)
        old, column[0] = column[0], f"q{self.number}"
        for row in self.pool:
            row[column[0]] = row.pop(old)
        self.primary = [column[0] if name == old else name for name in self.primary]
        return ("alter", ["rename", old, column[0]])

    def default(self) -> tuple:
        texts = {"INT": "7", "STRING": "none", "BOOLEAN": "true", "DECIMAL(10, 2)": "1.50", "DATE": "2024-02-29", "BIGINT": "-3"}
        able = [column for column in self.extras if column[1] in texts]
        if not able or not self.keyed or not {"rescale", "resize"}.isdisjoint(self.mode.stories):
            return self.add()  # Java fills NULLs also where it only rewrites rows
        column = self.rng.choice(able)
        return ("alter", ["default", column[0], texts[column[1]]])

    def widen(self) -> tuple:
        able = [column for column in self.extras if column[1] in WIDER]
        if not able:
            return self.add()
        column = self.rng.choice(able)
        column[1] = self.rng.choice(WIDER[column[1]])
        return ("alter", ["type", *column])

    def move(self) -> tuple:
        name, other = self.rng.sample([name for name, _ in self.columns], 2)
        return ("alter", ["position", self.rng.choice((["after", name, other], ["before", name, other]))])

    def loosen(self) -> tuple:
        able = [column for column in self.extras if "NOT NULL" in column[1]]
        if not able:
            return self.add()
        column = self.rng.choice(able)
        column[1] = column[1].replace(" NOT NULL", "")
        return ("alter", ["nullability", column[0], True])


def wide(seed: int) -> Script:
    """The script of a seed."""
    draft = Draft(seed)
    verbs = [*ONE_BY_ONE, *draft.mode.stories, *draft.mode.stories, *([] if draft.keyed else ["ask"])]
    merged = {"merge-engine", "sequence.field"} & draft.options.keys() and draft.options.get("merge-engine") != "first-row"
    names = [verb for verb in ["write", *draft.rng.choices(verbs, k=draft.rng.randrange(7, 15)), "full"] if verb != "mixed"]
    made = []
    for verb in names:
        if verb == "look" and merged:
            made.append(draft.full())  # Java looks up the newest row of a key, and does not merge
        made.append(getattr(draft, verb)())
    about = f"wide {seed}: {draft.name} {draft.format}"
    parts = [name for name, _ in draft.parts]
    return Script(f"wide {seed}", draft.first, draft.first_key, parts, draft.options, made, sizes_matter=True, about=about)
