"""Scripts about single rules of merge engines and compaction, written by hand."""

from __future__ import annotations

import dataclasses

from engine_cells import KEY, TREE
from engine_scripts import Script
from engine_values import ROWS

ADD = "aggregation"
DV = {"deletion-vectors.enabled": "true"}
ITSELF = {"write-only": "false"}


def _table(name: str, columns: list, options: dict[str, str], batches: list, *more: tuple, partition=(), unordered=(), key=("k",)) -> Script:
    """A commit per batch, a minor compaction, a full one; `more` steps come before the compactions."""
    steps = [batch if isinstance(batch, tuple) else ("write", batch) for batch in batches]
    steps += [*more, ("compact", False), ("compact", True)]
    return Script(name, [KEY, *columns], [*partition, *key], list(partition), {**TREE, **options}, steps, frozenset(unordered), about=name)


def _column(kind, function: str, **more: str) -> tuple[list, dict[str, str]]:
    """One aggregated column `v`."""
    return [["v", kind]], {"merge-engine": ADD, "fields.v.aggregate-function": function, **{f"fields.v.{k.replace('_', '-')}": v for k, v in more.items()}}


def _values(*batches: list, retract: tuple[int, ...] = ()) -> list[list[dict]]:
    """Rows of key 1 with these values; batches named by `retract` hold −D rows."""
    return [[{"k": 1, "v": v, **({"_kind": "-D"} if number in retract else {})} for v in batch] for number, batch in enumerate(batches)]


def _function(name: str, kind, function: str, *batches: list, retract=(), unordered=(), **more: str) -> Script:
    columns, options = _column(kind, function, **more)
    return _table(name, columns, options, _values(*batches, retract=retract), unordered=unordered)


def functions() -> list[Script]:
    """Overflows, nulls, retractions and awkward values, one function each."""
    made = []
    for kind, top in (("TINYINT", 127), ("SMALLINT", 32767), ("INT", 2147483647), ("BIGINT", 9223372036854775807)):
        made += [
            _function(f"sum overflows {kind}", kind, "sum", [top], [1], [2]),
            _function(f"sum overflows {kind} in the buffer", kind, "sum", [top, 1]),
            _function(f"sum reaches the ends of {kind}", kind, "sum", [top], [-1], [-top, -top]),
            _function(f"sum of {kind} is taken back below the range", kind, "sum", [-top], [2], retract=(1,)),
            _function(f"sum of {kind} begins with the least, taken back", kind, "sum", [None], [-top - 1], retract=(1,)),
            _function(f"product overflows {kind}", kind, "product", [top], [2]),
            _function(f"product of {kind} is divided toward zero", kind, "product", [-7], [2], [None], retract=(1,)),
            _function(f"product of {kind} is divided by zero", kind, "product", [7], [0], retract=(1,)),
        ]
    made += [
        _function("sum of a compact decimal leaves its precision", "DECIMAL(4, 2)", "sum", ["99.99"], ["0.01"], ["0.01"]),
        _function("sum of a wide decimal leaves its precision", "DECIMAL(20, 2)", "sum", ["999999999999999999.99"], ["0.01"], ["5.00"]),
        _function("sum of a wide decimal leaves its precision in the buffer", "DECIMAL(20, 2)", "sum", ["999999999999999999.99", "0.01"], ["5.00"]),
        _function("product of a decimal is rounded to its scale", "DECIMAL(10, 2)", "product", ["1.25"], ["1.25"], ["0.33"]),
        _function("product of a wide decimal leaves its precision", "DECIMAL(20, 2)", "product", ["999999999999999999.99"], ["10.00"], ["1.00"]),
        _function("product of a decimal is divided", "DECIMAL(10, 2)", "product", ["10.00"], ["4.00"], retract=(1,)),
        _function("sum of doubles goes in order", "DOUBLE", "sum", [1e16, 1.0, 1.0], [1.0, -1e16], [0.1, 0.2]),
        _function("sum of floats goes in order", "FLOAT", "sum", [16777216.0, 1.0], [1.0, 1.0], [0.1]),
        _function("sum of doubles meets NaN", "DOUBLE", "sum", ["Infinity"], ["-Infinity"], [1.0]),
        _function("product of doubles goes in order", "DOUBLE", "product", [1e308, 10.0], [0.1], [0.0]),
        _function("max of doubles with NaN", "DOUBLE", "max", [1.0, "NaN"], ["Infinity"], [None]),
        _function("min of doubles with NaN", "DOUBLE", "min", ["NaN"], [1.0, "-Infinity"], [None]),
        _function("max of zeros", "DOUBLE", "max", [-0.0], [0.0], [-0.0]),
        _function("min of zeros", "FLOAT", "min", [0.0], [-0.0], [0.0]),
        _function("max of texts by bytes", "STRING", "max", ["\uff5e"], ["\U0001f600"], ["a"]),
        _function("min of bytes is unsigned", "BYTES", "min", ["80"], ["7f"], ["7f00"]),
        _function("max of bytes is unsigned", "BYTES", "max", ["80"], ["7fff"], ["80", "8000"]),
        _function("last_value takes null", "INT", "last_value", [1], [None], [None]),
        _function("last_value is taken back", "INT", "last_value", [1], [2], [3], retract=(1,)),
        _function("last_non_null_value is taken back", "INT", "last_non_null_value", [1], [None], [1], retract=(1, 2)),
        _function("first_value keeps null", "INT", "first_value", [None], [1], [2]),
        _function("first_non_null_value waits", "INT", "first_non_null_value", [None], [1], [2]),
        _function("first_not_null_value is the same", "INT", "first_not_null_value", [None], [1], [2]),
        _function("first_value cannot be taken back", "INT", "first_value", [1], [2], retract=(1,)),
        _function("max cannot be taken back", "INT", "max", [1], [2], retract=(1,)),
        _function("listagg skips blanks", "STRING", "listagg", ["a", "", " "], [None, "b"], ["\t", "a"]),
        _function("listagg begins with a blank", "STRING", "listagg", [" "], ["b"], ["", "c"]),
        _function("listagg without repeats", "STRING", "listagg", ["a;b"], ["b;c;;c"], ["a"], distinct="true", list_agg_delimiter=";"),
        _function("listagg without repeats in the first value", "STRING", "listagg", ["a;a"], ["a;b"], distinct="true", list_agg_delimiter=";"),
        _function("listagg with an empty delimiter", "STRING", "listagg", ["a"], ["b"], ["c"], list_agg_delimiter=""),
        _function("bool_and and nulls", "BOOLEAN", "bool_and", [None], [True], [False, None]),
        _function("bool_or and nulls", "BOOLEAN", "bool_or", [None], [False], [True, None]),
        _function("collect with nulls inside", {"type": "ARRAY", "element": "INT"}, "collect", [[1, None]], [[], None], [[1, 2]]),
        _function("collect takes back one of equal ones", {"type": "ARRAY", "element": "INT"}, "collect", [[1, 2, 1]], [[1, 5]], [[None]], retract=(1, 2)),
        _function("collect takes back before it has any", {"type": "ARRAY", "element": "INT"}, "collect", [[1]], [[1]], [[2]], retract=(0, 1)),
        _function("collect sets", {"type": "ARRAY", "element": "STRING"}, "collect", [["a", "a"]], [["b", None, None]], [["b"]], distinct="true", unordered="v"),
        _function("collect sets of doubles", {"type": "ARRAY", "element": "DOUBLE"}, "collect", [[0.0, "NaN"]], [["NaN", 1.0]], [[1.0]], distinct="true", unordered="v"),
        _function("collect sets of rows", ROWS, "collect", [[{"id": 1}, {"id": 1}]], [[{"id": 2, "x": "a"}]], distinct="true", unordered="v"),
        _function("collect sets take back", {"type": "ARRAY", "element": "INT"}, "collect", [[1, 2]], [[2, 3]], [[9]], retract=(1,), distinct="true", unordered="v"),
        _function("merge_map overwrites by key", {"type": "MAP", "key": "INT NOT NULL", "value": "STRING"}, "merge_map", [[[1, "a"], [2, "b"]]], [[[2, None], [3, "c"]]], [[]]),
        _function("merge_map takes back keys", {"type": "MAP", "key": "INT NOT NULL", "value": "STRING"}, "merge_map", [[[1, "a"], [2, "b"]]], [[[2, "other"], [9, "c"]]], retract=(1,)),
        _function("nested_update without a key", ROWS, "nested_update", [[{"id": 1}, {"id": 1}]], [[{"id": 1, "x": "a"}]], [None]),
        _function("nested_update without a key takes back all that are equal", ROWS, "nested_update", [[{"id": 1}, {"id": 1}, {"id": 2}]], [[{"id": 1}]], retract=(1,)),
        _function("nested_update by key", ROWS, "nested_update", [[{"id": 1, "x": "a"}]], [[{"id": 1, "x": "b"}, {"id": 2}]], [[{"id": 2, "n": 5}]], nested_key="id", unordered="v"),
        _function("nested_update by key takes back", ROWS, "nested_update", [[{"id": 1}, {"id": 2}]], [[{"id": 2, "x": "other"}]], retract=(1,), nested_key="id", unordered="v"),
        _function("nested_update by two keys", ROWS, "nested_update", [[{"id": 1, "x": "a"}]], [[{"id": 1, "x": "b"}, {"id": 1, "x": "a", "n": 3}]], nested_key="id,x", unordered="v"),
        _function("nested_update by sequence", ROWS, "nested_update", [[{"id": 1, "x": "a", "n": 5}]], [[{"id": 1, "x": "b", "n": 4}]], [[{"id": 1, "x": "c", "n": 5}, {"id": 1, "x": "d"}]], nested_key="id", nested_sequence_field="n", unordered="v"),
        _function("nested_update with a limit", ROWS, "nested_update", [[{"id": 1}, {"id": 2}, {"id": 3}]], [[{"id": 4}]], count_limit="2"),
        _function("nested_update by key with a limit", ROWS, "nested_update", [[{"id": 1}, {"id": 2}]], [[{"id": 2, "x": "new"}, {"id": 4}]], nested_key="id", count_limit="2", unordered="v"),
        _function("nested_partial_update", ROWS, "nested_partial_update", [[{"id": 1, "x": "a"}]], [[{"id": 1, "n": 3}, {"id": 2}]], [[{"id": 1, "x": "b"}]], nested_key="id", unordered="v"),
    ]
    for strategy in ("merge", "ignore", "error"):
        made += [
            _function(f"nested_update {strategy}s null keys", ROWS, "nested_update", [[{"x": "a"}, {"id": 2}]], [[{"x": "b"}]], nested_key="id", nested_key_null_strategy=strategy, unordered="v"),
            _function(f"nested_partial_update {strategy}s null keys", ROWS, "nested_partial_update", [[{"x": "a"}, {"id": 2}]], [[{"n": 1}]], nested_key="id", nested_key_null_strategy=strategy, unordered="v"),
        ]
    return made


def groups() -> list[Script]:
    """Partial update: what a record older, newer or without a sequence does."""
    columns = [["a", "INT"], ["b", "STRING"], ["g1", "INT"], ["c", "INT"], ["d", "INT"], ["g2", "INT"], ["e", "STRING"]]
    options = {"merge-engine": "partial-update", "fields.g1.sequence-group": "a,b", "fields.g2.sequence-group": "c,d", "fields.c.aggregate-function": "sum"}
    rows = [
        [{"k": 1, "a": 1, "b": "x", "g1": 5, "c": 10, "g2": 5, "d": 1}], [{"k": 1, "a": 2, "g1": 6, "c": 7, "g2": 4, "d": 2}],
        [{"k": 1, "a": 9, "b": "y", "c": 1, "g2": 6, "e": "e"}], [{"k": 1, "a": 2, "g1": 7, "c": 3, "g2": 6, "_kind": "-D"}],
    ]  # fmt: skip
    made = [_table("the example of the page", columns, options, rows)]
    for kind in ("-D", "-U"):
        late = [*rows[:3], [{**rows[3][0], "g1": 1, "g2": 1, "_kind": kind}], [{"k": 1, "a": 4, "g1": 8, "e": "again"}]]
        nulls = [*rows[:3], [{"k": 1, "c": 3, "_kind": kind}], [{"k": 2, "g1": 1, "a": 3, "_kind": kind}], [{"k": 2, "g1": 1, "b": "b"}]]
        for which in ("", "g1", "g2", "g1,g2"):
            more = {"partial-update.remove-record-on-sequence-group": which} if which else {}
            made.append(_table(f"{kind} older than the row, removing on {which or 'none'}", columns, {**options, **more}, late))
            made.append(_table(f"{kind} without sequences, removing on {which or 'none'}", columns, {**options, **more}, nulls))
            made.append(_table(f"{kind} newer than the row, removing on {which or 'none'}", columns, {**options, **more}, [*rows[:3], [{**rows[3][0], "_kind": kind}], [{"k": 1, "e": "z", "g1": 9}]]))
    two = {"merge-engine": "partial-update", "fields.g1,g2.sequence-group": "a,c", "fields.default-aggregate-function": "last_non_null_value"}
    made.append(_table("a group of two fields, one of them null", columns, two, [[{"k": 1, "a": 1, "g1": 1}], [{"k": 1, "a": 2, "g2": 9}], [{"k": 1, "a": 3, "g1": 1, "g2": 0}, {"k": 1, "c": 5}]]))
    for function in ("last_value", "first_value", "first_non_null_value", "listagg", "max"):
        more = {"fields.b.aggregate-function": function, "fields.b.ignore-retract": "true"}
        late = [[{"k": 1, "b": "5", "g1": 5}], [{"k": 1, "b": "3", "g1": 3}], [{"k": 1, "g1": 4}], [{"k": 1, "b": "4", "g1": 4}], [{"k": 1, "b": "7", "g1": 7}]]
        made.append(_table(f"late records of {function}", columns, {**options, **more}, late))
    strict = [["v", "INT NOT NULL"], ["w", "STRING"]]
    made.append(_table("partial update of a NOT NULL column", strict, {"merge-engine": "partial-update"}, [[{"k": 1, "v": 1}], [{"k": 1, "v": 2, "w": "x"}]]))
    plain = [["v", "INT"], ["w", "STRING"]]
    removing = {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}
    steps = [[{"k": 1, "v": 1, "w": "a"}], [{"k": 1, "_kind": "-D"}], [{"k": 1, "w": "b"}], [{"k": 1, "v": 5, "_kind": "-U"}, {"k": 2, "v": 1, "_kind": "-U"}]]
    made.append(_table("partial update begins anew after a delete", plain, removing, steps))
    return made


def kinds() -> list[Script]:
    """Row kinds: alone, taken from a column, ignored."""
    columns = [["v", "INT"], ["op", "STRING"]]
    rows = [[{"k": k, "v": k, "op": op} for k, op in enumerate(("+I", "-U", "+U", "-D"))], [{"k": k, "v": 10 + k, "op": op} for k, op in enumerate(("-D", "+I", "-U", "+U"))]]
    by_kind = [[{"k": row["k"], "v": row["v"], "_kind": row["op"]} for row in batch] for batch in rows]
    made = []
    for engine, more in (("deduplicate", {}), (ADD, {"fields.v.aggregate-function": "sum"}), ("partial-update", {"partial-update.remove-record-on-delete": "true"}), ("first-row", {})):
        options = {"merge-engine": engine, **more}
        if engine != "first-row":
            made.append(_table(f"{engine} takes kinds from a column", columns, {**options, "rowkind.field": "op"}, rows))
            made.append(_table(f"{engine} keeps kinds of lone rows", columns, options, by_kind))
        made.append(_table(f"{engine} ignores -U", columns, {**options, "ignore-update-before": "true"}, by_kind if engine != "first-row" else [[r for r in b if r["_kind"] != "-D"] for b in by_kind]))
        ignoring = {key: value for key, value in options.items() if "remove" not in key}
        made.append(_table(f"{engine} ignores deletes", columns, {**ignoring, "ignore-delete": "true"}, by_kind))
    removing = {"merge-engine": ADD, "fields.v.aggregate-function": "sum", "aggregation.remove-record-on-delete": "true"}
    made.append(_table("aggregation begins anew after a delete", columns, removing, [[{"k": 1, "v": 5}], [{"k": 1, "v": 1, "_kind": "-D"}], [{"k": 1, "v": 2, "_kind": "-U"}], [{"k": 1, "v": 3}]]))
    return made


def unmergeable() -> list[Script]:
    """Retractions that the engine can never merge: Java writes them and fails when it merges them, we refuse to write them."""
    partial = {"merge-engine": "partial-update"}
    values = [["v", "INT"], ["w", "STRING"]]
    kinds = [[{"k": k, "v": 10 * n + k, "_kind": kind} for k, kind in enumerate(batch)] for n, batch in enumerate((("+I", "-U", "+U", "-D"), ("-D", "+I", "-U", "+U")))]
    made = [
        _table("partial update has no rule for a delete", values, partial, [[{"k": 1, "v": 1, "w": "a"}], [{"k": 1, "_kind": "-D"}]]),
        _table("partial update keeps a lone delete", values, partial, [[{"k": 1, "v": 1, "_kind": "-D"}], [{"k": 2, "v": 2}]]),
        _table("first-row has no rule for retractions", [["v", "INT"]], {"merge-engine": "first-row"}, kinds),
    ]
    return [dataclasses.replace(script, java_only=True) for script in made]


def tables() -> list[Script]:
    """Expiry of rows, order by snapshot, partitions, overwrites, formats by level."""
    columns = [["v", "INT"], ["t", "INT"]]
    aged = {"record-level.expire-time": "1 d", "record-level.time-field": "t"}
    old, fresh = 1000, 4_000_000_000 // 2
    rows = [[{"k": 1, "v": 1, "t": old}, {"k": 2, "v": 2, "t": fresh}], [{"k": 1, "v": 3, "t": fresh}, {"k": 2, "v": 4, "t": old}], [{"k": 3, "v": 5, "t": old}, {"k": 4, "v": 6}]]
    made = []
    for engine, more in (("deduplicate", {}), ("partial-update", {}), (ADD, {"fields.v.aggregate-function": "sum"}), ("first-row", {})):
        made.append(_table(f"{engine} rows end by age", columns, {"merge-engine": engine, **more, **aged}, rows))
        made.append(_table(f"{engine} rows end by age in a compacting table", columns, {"merge-engine": engine, **more, **aged, **ITSELF, "num-sorted-run.compaction-trigger": "2"}, rows))
    stamps = [["v", "INT"], ["t", "TIMESTAMP(3)"]]
    made.append(_table("rows end by the age of a timestamp", stamps, aged, [[{"k": 1, "t": "1980-01-01T00:00:00"}, {"k": 2, "t": "2090-01-01T00:00:00"}], [{"k": 2, "v": 1}]]))
    millis = [["v", "INT"], ["t", "BIGINT"]]
    made.append(_table("rows end by the age of milliseconds", millis, aged, [[{"k": 1, "t": old * 1000}, {"k": 2, "t": fresh * 1000}], [{"k": 3, "t": fresh}]]))
    for engine, more in (("deduplicate", {}), ("partial-update", {}), (ADD, {"fields.v.aggregate-function": "last_value"})):
        made.append(_table(f"{engine} ordered by snapshots", columns, {"merge-engine": engine, **more, "sequence.snapshot-ordering": "true"}, [*rows, [{"k": 1, "v": 9}, {"k": 1, "v": 10}]]))
    parts = [["p", "INT NOT NULL"], ["v", "INT"]]
    many = [[{"p": p, "k": k, "v": n} for p in (1, 2) for k in range(n, n + 3)] for n in range(4)]
    made.append(_table("one partition is compacted", parts, {}, many, ("compact", True, [{"p": 2}]), partition=["p"]))
    made.append(_table("one partition is compacted a little", parts, {}, many, ("compact", False, [{"p": 1}]), partition=["p"]))
    for more in ({}, DV, {"merge-engine": "first-row"}):
        for itself in ({}, ITSELF):
            steps = [*many[:2], ("overwrite", {"p": "1"}, [{"p": 1, "k": 7, "v": 7}]), *many[2:], ("overwrite", {}, many[0])]
            made.append(_table(f"overwritten between compactions {sorted({**more, **itself})}", parts, {**more, **itself, "num-sorted-run.compaction-trigger": "2"}, steps, partition=["p"]))
    for per_level in ("0:avro", "0:avro,5:orc", "0:orc,5:avro"):
        for more in ({}, DV):
            made.append(_table(f"formats {per_level} {sorted(more)}", columns, {"file.format.per.level": per_level, **more, "num-levels": "6"}, [*rows, rows[0]]))
    return made


def appended() -> list[Script]:
    """Tables without a key: small files, buckets, rows that Java deleted (we read those tables, but do not write them).

    Without buckets Java has no full compaction; ours takes what is left, too.
    """
    columns = [["p", "INT"], ["v", "INT"]]
    made = []
    for name, options, partition in (("no buckets", {}, []), ("partitions", {}, ["p"]), ("buckets", {"bucket": "2", "bucket-key": "v"}, []), ("five are few", {"compaction.min.file-num": "3"}, [])):
        steps = [("write", [{"p": n % 2, "v": 10 * n + k} for k in range(3)]) for n in range(7)]
        script = Script(f"append {name}", columns, [], partition, {**options, "write-only": "true"}, [*steps, ("compact", False), ("write", [{"p": 0, "v": 99}]), ("compact", "bucket" in options)], about=f"append {name}")
        made.append(script)
    for bits, where in (("32", ["p"]), ("64", [])):
        options = {**DV, "write-only": "true", **({"deletion-vectors.bitmap64": "true"} if bits == "64" else {})}
        steps = [("write", [{"p": 1, "v": 10 * n + k} for k in range(4)]) for n in range(3)]
        steps += [("dead", "v", {0: [0], 10: [1, 2, 3]}), ("compact", False), ("dead", "v", {20: [3]}), ("write", [{"p": 1, "v": 90}]), ("compact", True)]
        made.append(Script(f"append with dead rows {bits} {where}", columns, [], where, options, steps, java_only=True, about=f"append with dead rows {bits} {where}"))
    return made


def edges() -> list[Script]:
    """All of them."""
    return [*functions(), *groups(), *kinds(), *unmergeable(), *tables(), *appended()]
