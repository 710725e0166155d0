"""Values in the notation of the oracle's scripts as Arrow tables, and the model of what a table must hold."""

from __future__ import annotations

import datetime
import decimal
import json

import golden
import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.spec.schema import TableSchema

_EPOCH = datetime.datetime(1970, 1, 1)


def _clock_nanos(text: str) -> int:
    parts = (text.split(":") + ["0"])[:3]
    seconds, _, fraction = parts[2].partition(".")
    return (int(parts[0]) * 3600 + int(parts[1]) * 60 + int(seconds)) * 10**9 + int((fraction or "0").ljust(9, "0")[:9])


_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def python_value(value, kind: tuple, arrow: pa.DataType):
    """A JSON value as what `pa.array` takes for the Arrow type."""
    if value is None:
        return None
    root = kind[0]
    if root in ("FLOAT", "DOUBLE"):
        return float(value.replace("Infinity", "inf")) if isinstance(value, str) else float(value)
    if root == "DECIMAL":
        return decimal.Decimal(str(value)).quantize(decimal.Decimal(1).scaleb(-kind[2]), context=decimal.Context(prec=60))
    if root == "DATE":
        return (datetime.datetime.fromisoformat(value) - _EPOCH).days
    if root == "TIME":
        return _clock_nanos(value) // 10**6
    if root in ("TIMESTAMP", "LTZ"):
        day, _, clock = value.partition("T")
        days = (datetime.datetime.fromisoformat(day) - _EPOCH).days
        return (days * 86400 * 10**9 + _clock_nanos(clock or "00:00")) // _UNIT[arrow.unit]
    if root == "BYTES":
        return bytes.fromhex(value)
    if root == "ARRAY":
        return [python_value(item, kind[1], arrow.value_type) for item in value]
    if root == "MAP":
        return [
            (python_value(k, kind[1], arrow.key_type), python_value(v, kind[2], arrow.item_type)) for k, v in value
        ]
    if root == "ROW":
        value = value if isinstance(value, dict) else dict(zip((name for name, _ in kind[1]), value, strict=True))
        return {name: python_value(value.get(name), part, arrow.field(name).type) for name, part in kind[1]}
    if root in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return int(value)
    return value


def arrow_rows(schema: TableSchema, columns: list, rows: list[dict], kinds: bool = False) -> pa.Table:
    """Rows of a script as an Arrow table in the table's types; `kinds` adds `_row_kind` from `_kind`."""
    target = to_arrow_schema(schema.fields)
    types = {c[0]: golden.parse_type(c[1]) for c in columns}
    arrays = [
        pa.array([python_value(row.get(field.name), types[field.name], field.type) for row in rows], field.type)
        for field in target
    ]
    table = pa.Table.from_arrays(arrays, schema=target)
    if kinds:
        table = table.append_column("_row_kind", pa.array([row.get("_kind", "+I") for row in rows], pa.string()))
    return table


def canonical_rows(columns: list, rows: list[dict]) -> list[list]:
    """Rows of a script, or of a Java read, in golden's canonical form."""
    return [[golden.canonical(row.get(c[0]), golden.parse_type(c[1])) for c in columns] for row in rows]


def ours(columns: list, table: pa.Table) -> list[list]:
    """Rows that paimon_py read, in golden's canonical form."""
    return golden.normalise(table, [[c[0], c[1]] for c in columns])


def difference(columns: list, want: list[list], got: list[list]) -> str | None:
    """None if both are the same bag of rows, else one line."""
    return golden.first_difference(want, got, [[c[0], c[1]] for c in columns])


class Model:
    """What a table must hold: a dict per key with deduplicate, else a bag."""

    def __init__(self, columns: list, primary_key: list[str], options: dict[str, str]) -> None:
        self.columns = columns
        self.key = primary_key
        self.options = options
        self.rows: dict[str, tuple[tuple, dict]] = {}
        self.bag: list[dict] = []
        self.count = 0

    def write(self, rows: list[dict]) -> None:
        """Apply rows in arrival order."""
        for row in rows:
            self.count += 1
            if not self.key:
                self.bag.append(row)
                continue
            kind = row.get("_kind", "+I")
            if kind in ("-D", "-U") and self.options.get("ignore-delete") == "true":
                continue
            key = json.dumps([row.get(name) for name in self.key])
            order = (*self._sequence(row), self.count)
            if key not in self.rows or self.rows[key][0] <= order:
                self.rows[key] = (order, row)

    def _sequence(self, row: dict) -> tuple:
        names = [name for name in self.options.get("sequence.field", "").split(",") if name]
        descending = self.options.get("sequence.field.sort-order") == "descending"
        parts = []
        for name in names:
            value = row.get(name)
            parts.append((False, 0) if value is None else (True, -value if descending else value))
        return tuple(parts)

    def expected(self) -> list[list]:
        """The rows a batch read gives, in canonical form."""
        live = self.bag if not self.key else [r for _, r in self.rows.values() if r.get("_kind", "+I") in ("+I", "+U")]
        return canonical_rows(self.columns, live)
