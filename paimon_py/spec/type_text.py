"""Converts data types from and to strings and JSON.

A schema file stores an atomic type as a string (`DECIMAL(10, 2) NOT NULL`) and a constructed type as a JSON object
(`{"type": "ARRAY", "element": …}`). Users may also write constructed types as strings (`MAP<STRING, ARRAY<INT>>`,
`ROW<x INT, y DOUBLE>`), which is how `sql_type` prints them.

Source: format.md §3.1; Java `DataTypeJsonParser`, `DataType.asSQLString`, release 2.0.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from paimon_py.errors import SchemaError
from paimon_py.spec.json_values import plain_text, whole_number
from paimon_py.spec.type_hints import meant_class, meant_text, meant_type
from paimon_py.spec.types import (
    MAX_LENGTH,
    ArrayType,
    Atomic,
    DataType,
    Field,
    MapType,
    MultisetType,
    Root,
    RowType,
    VectorType,
)
from paimon_py.spec.vectors import is_element

NESTING_MAX = 64
"""The maximum nesting of types: as deep as Arrow data can be exchanged between libraries."""

TOO_DEEP = f"a type is nested too deeply: more than {NESTING_MAX} types in one another"

UNASSIGNED = -1
"""The id of a ROW field whose JSON has none; `new_schema.assign_ids` assigns one."""

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[^\W\d][^\s<>(),.`']*)|(?P<number>\d{1,18})|(?P<quoted>`(?:[^`]|``)*`)|(?P<text>'(?:[^']|'')*')"
    r"|(?P<mark>[<>(),]))"
)
_PLAIN = {
    "BOOLEAN": Root.BOOLEAN,
    "TINYINT": Root.TINYINT,
    "SMALLINT": Root.SMALLINT,
    "INT": Root.INT,
    "INTEGER": Root.INT,
    "BIGINT": Root.BIGINT,
    "FLOAT": Root.FLOAT,
    "DATE": Root.DATE,
    "VARIANT": Root.VARIANT,
    "BLOB": Root.BLOB,
}
_SIZED = {"CHAR": Root.CHAR, "VARCHAR": Root.VARCHAR, "BINARY": Root.BINARY, "VARBINARY": Root.VARBINARY}
_MAX_SIZED = {"STRING": Root.VARCHAR, "BYTES": Root.VARBINARY}
_DECIMALS, _TIMES = ("DECIMAL", "NUMERIC", "DEC"), ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_GEO = {"GEOMETRY": Root.GEOMETRY, "GEOGRAPHY": Root.GEOGRAPHY}
_GEO_DEFAULTS = {Root.GEOMETRY: ("OGC:CRS84",), Root.GEOGRAPHY: ("OGC:CRS84", "spherical")}
_NULLS = {"NOT": "; after a type there is NOT NULL or nothing", "NULL": "; after a type there is NOT NULL or nothing"}
_WORDS = {ArrayType: "ARRAY", MapType: "MAP", MultisetType: "MULTISET", RowType: "ROW", VectorType: "VECTOR"}
_NAMES = (*_PLAIN, *_SIZED, *_MAX_SIZED, *_DECIMALS, *_GEO, *_TIMES, "DOUBLE", *_WORDS.values())
_NOT_NULL = re.compile(r"\bNOT\s+NULL\b", re.IGNORECASE)
_HEAD = re.compile(r"\s*[A-Za-z_]+")
_BARE_CRS = re.compile(r"[^\W\d][^\s<>(),.`']*")


class UnknownTypeError(SchemaError):
    """The name of a type is unknown: a user error, or a type of a later release in a schema file."""


def parse_type(value: str | Mapping[str, Any] | DataType) -> DataType:
    """Parse a type from a string or a JSON object of a schema file.

    Args:
        value: a type string in any case, or a JSON object whose parts are strings or objects. A `DataType` is returned
            unchanged. Fields of a ROW without an id get `UNASSIGNED`.

    Raises:
        SchemaError: not a Paimon type, nested too deeply, or a length, precision or scale out of range.
    """
    try:
        return require_shallow(_parse(value))
    except RecursionError as error:
        raise SchemaError(TOO_DEEP) from error


def require_shallow(data_type: DataType) -> DataType:
    """Returns the type unless it is nested more than `NESTING_MAX` deep.

    Raises: SchemaError.
    """
    inside, depth = children(data_type), 0
    while inside:
        depth += 1
        if depth > NESTING_MAX:
            raise SchemaError(TOO_DEEP)
        inside = tuple(part for child in inside for part in children(child))
    return data_type


def print_type(data_type: DataType) -> str | dict[str, Any]:
    """A type as stored in a schema file: a string for an atomic type, else an object in Java's key order."""
    if isinstance(data_type, Atomic):
        return _atomic_text(data_type)
    null = "" if data_type.nullable else " NOT NULL"
    if isinstance(data_type, (ArrayType, MultisetType)):
        return {"type": _WORDS[type(data_type)] + null, "element": print_type(data_type.element)}
    if isinstance(data_type, MapType):
        return {"type": "MAP" + null, "key": print_type(data_type.key), "value": print_type(data_type.value)}
    if isinstance(data_type, VectorType):
        return {"type": "VECTOR" + null, "element": print_type(data_type.element), "length": data_type.length}
    return {"type": "ROW" + null, "fields": [print_field(field) for field in data_type.fields]}


def print_field(field: Field) -> dict[str, Any]:
    """A column or ROW field as stored in a schema file."""
    printed: dict[str, Any] = {"id": field.id, "name": field.name, "type": print_type(field.type)}
    if field.description is not None:
        printed["description"] = field.description
    if field.default is not None:
        printed["defaultValue"] = field.default
    return printed


def sql_type(data_type: DataType) -> str:
    """The type as one line of SQL; `parse_type` is the inverse (except for ids, comments and defaults)."""
    return _line(data_type, lambda field: f"{_quote(field.name)} {sql_type(field.type)}")


def whole_type(data_type: DataType) -> str:
    """The type as one line of SQL as Java prints it: names of fields in backticks, with comments and defaults."""
    return _line(data_type, _whole_field)


def _whole_field(field: Field) -> str:
    printed = f"`{field.name.replace('`', '``')}` {whole_type(field.type)}"
    if field.description is not None:
        printed += " COMMENT '" + field.description.replace("'", "''") + "'"
    return printed if field.default is None else f"{printed} DEFAULT {field.default}"


def _line(data_type: DataType, printed: Callable[[Field], str]) -> str:
    if isinstance(data_type, Atomic):
        return _atomic_text(data_type)
    null = "" if data_type.nullable else " NOT NULL"
    if isinstance(data_type, RowType):
        return f"ROW<{', '.join(map(printed, data_type.fields))}>{null}"
    inside = ", ".join(_line(child, printed) for child in children(data_type))
    size = f", {data_type.length}" if isinstance(data_type, VectorType) else ""
    return f"{_WORDS[type(data_type)]}<{inside}{size}>{null}"


def with_nullability(data_type: DataType, nullable: bool) -> DataType:
    """The same type, nullable or NOT NULL."""
    return data_type if data_type.nullable == nullable else msgspec.structs.replace(data_type, nullable=nullable)


def children(data_type: DataType) -> tuple[DataType, ...]:
    """The types directly inside a constructed type; none for an atomic one."""
    if isinstance(data_type, (ArrayType, MultisetType, VectorType)):
        return (data_type.element,)
    if isinstance(data_type, MapType):
        return (data_type.key, data_type.value)
    if isinstance(data_type, RowType):
        return tuple(field.type for field in data_type.fields)
    return ()


def contains(data_type: DataType, matches: Callable[[DataType], bool]) -> bool:
    """Whether the type or any type inside it matches."""
    return matches(data_type) or any(contains(child, matches) for child in children(data_type))


def _parse(value: Any) -> DataType:
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, Mapping):
        return _parse_object(value)
    if isinstance(value, (Atomic, ArrayType, MultisetType, MapType, RowType, VectorType)):
        return value
    if hasattr(value, "__arrow_c_schema__"):
        raise SchemaError(
            f"{value!r} is a type of Arrow: write a type as text here, such as 'INT', or all columns as a "
            "pyarrow.schema([…]), which create_table takes as well"
        )
    raise SchemaError(
        f"a type is text such as 'INT NOT NULL', a type of pyarrow or of paimon_py, not {value!r}{meant_class(value)}"
    )


def _quote(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def _atomic_text(data_type: Atomic) -> str:
    root, null = data_type.root, "" if data_type.nullable else " NOT NULL"
    if root is Root.VARCHAR and data_type.length == MAX_LENGTH:
        return "STRING" + null
    if root is Root.VARBINARY and data_type.length == MAX_LENGTH:
        return "BYTES" + null
    if data_type.length is not None:
        return f"{root.value}({data_type.length}){null}"
    if root is Root.DECIMAL:
        return f"DECIMAL({data_type.precision}, {data_type.scale}){null}"
    if root is Root.TIMESTAMP_LTZ:
        return f"TIMESTAMP({data_type.precision}) WITH LOCAL TIME ZONE{null}"
    if data_type.precision is not None:
        return f"{root.value}({data_type.precision}){null}"
    if data_type.parameters:
        crs, *rest = data_type.parameters
        shown = crs if _BARE_CRS.fullmatch(crs) else "'" + crs.replace("'", "''") + "'"
        return f"{root.value}({', '.join([shown, *rest])}){null}"
    return f"{root.value}{null}"


@functools.lru_cache(maxsize=1024)
def _parse_text(text: str) -> DataType:
    parser = _Parser(text)
    data_type = parser.type()
    if parser.peek() is not None:
        raise parser.error(f"unexpected {parser.peek()!r}{_meant_whole(text) or _NULLS.get(parser.peek() or '', '')}")
    return data_type


def _meant_whole(text: str) -> str:
    """The end of a message about a string that is a type once names of other systems are replaced; empty otherwise."""
    meant = meant_text(text)
    if meant == text:
        return ""
    try:
        parser = _Parser(meant)
        data_type = parser.type()
    except SchemaError:
        return ""
    return "" if parser.peek() is not None else f"; did you mean {sql_type(data_type)!r}?"


def _parse_object(value: Mapping[str, Any]) -> DataType:
    text = value.get("type")
    if not isinstance(text, str) or not text.strip():
        raise SchemaError(f"a type object needs the key 'type' with a string, got {value!r}")
    words = _HEAD.match(text)
    head = words[0].strip().upper() if words is not None else text
    nullable = _NOT_NULL.search(text, text.rfind(">") + 1) is None  # old SDKs include the inner types
    if head == "ARRAY":
        return ArrayType(_parse(_part(value, "element")), nullable)
    if head == "MULTISET":
        return MultisetType(_parse(_part(value, "element")), nullable)
    if head == "MAP":
        return MapType(_parse(_part(value, "key")), _parse(_part(value, "value")), nullable)
    if head == "VECTOR":
        return _vector(_parse(_part(value, "element")), _whole(value, "length"), nullable)
    if head == "ROW":
        fields = value.get("fields")
        if not isinstance(fields, Sequence) or isinstance(fields, str):
            raise SchemaError(f"a ROW type needs 'fields', a list, got {value!r}")
        return RowType(tuple(_field(field) for field in fields), nullable)
    raise UnknownTypeError(f"unknown constructed type {text!r}; known are ARRAY, MAP, MULTISET, ROW, VECTOR")


def _vector(element: DataType, length: int, nullable: bool) -> VectorType:
    if not is_element(element) or not 1 <= length <= MAX_LENGTH:
        raise SchemaError(
            f"VECTOR<{sql_type(element)}, {length}>: vectors have at least one element of BOOLEAN, TINYINT, SMALLINT, "
            "INT, BIGINT, FLOAT or DOUBLE; ARRAY takes every type"
        )
    return VectorType(element, length, nullable)


def parse_field(value: Any) -> Field:
    """Parse a column or ROW field from its JSON object.

    Raises:
        SchemaError: the object is not a field, or its type is nested too deeply.
    """
    try:
        field = _field(value)
        if not isinstance(field.type, Atomic):
            require_shallow(field.type)
    except RecursionError as error:
        raise SchemaError(TOO_DEEP) from error
    return field


def _field(value: Any) -> Field:
    if not isinstance(value, Mapping):
        raise SchemaError(f"a field is an object with 'name' and 'type', got {value!r}")
    name = value.get("name")
    if not isinstance(name, str):
        raise SchemaError(f"a field needs 'name', a string, got {value!r}")
    number = whole_number(value.get("id", UNASSIGNED))
    if number is None:
        raise SchemaError(f"field {name!r}: 'id' is a whole number, got {value['id']!r}")
    return Field(
        id=number,
        name=name,
        type=_parse(_part(value, "type")),
        description=_optional_text(value, "description"),
        default=_optional_text(value, "defaultValue"),
    )


def _part(value: Mapping[str, Any], key: str) -> Any:
    if key not in value:
        raise SchemaError(f"{value.get('type') or 'field'!r} needs the key {key!r}, got {value!r}")
    return value[key]


def _whole(value: Mapping[str, Any], key: str) -> int:
    number = _part(value, key)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise SchemaError(f"{value.get('type')!r}: {key!r} is a positive whole number, got {number!r}")
    return number


def _optional_text(value: Mapping[str, Any], key: str) -> str | None:
    found = plain_text(value.get(key))
    if found is None and value.get(key) is not None:
        raise SchemaError(f"field {value.get('name')!r}: {key!r} is a string, got {value[key]!r}")
    return found


class _Parser:
    """A recursive-descent parser over the tokens of one type string."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if match is None:
                raise SchemaError(f"type {text!r}: cannot read at position {position}: {stripped[position:]!r}")
            self.tokens.append((match.lastgroup or "", match.group(match.lastgroup or 0)))
            position = match.end()

    def error(self, reason: str) -> SchemaError:
        return SchemaError(f"type {self.text!r}: {reason}")

    def peek(self, ahead: int = 0) -> str | None:
        """The next token in upper case, None at the end; a quoted token keeps its quotes."""
        index = self.at + ahead
        return self.tokens[index][1].upper() if index < len(self.tokens) else None

    def take(self, *words: str) -> bool:
        """Consume these tokens if all of them come next."""
        if any(self.peek(index) != word for index, word in enumerate(words)):
            return False
        self.at += len(words)
        return True

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.error(f"expected {word!r}, found {self.peek() or 'the end'!r}")

    def number(self) -> int:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] != "number":
            raise self.error(f"expected a number, found {self.peek() or 'the end'!r}")
        self.at += 1
        return int(self.tokens[self.at - 1][1])

    def nullable(self) -> bool:
        if self.take("NOT", "NULL"):
            return False
        self.take("NULL")
        return True

    def type(self) -> DataType:
        parsed = self.base()
        parsed = with_nullability(parsed, self.nullable())
        while True:
            if self.take("ARRAY"):
                parsed = ArrayType(parsed, self.nullable())
            elif self.take("MULTISET"):
                parsed = MultisetType(parsed, self.nullable())
            else:
                return parsed

    def base(self) -> DataType:
        word = self.peek()
        if word is None:
            raise self.error("a type is missing")
        self.at += 1
        if word in _PLAIN:
            return Atomic(_PLAIN[word])
        if word == "DOUBLE":
            self.take("PRECISION")
            return Atomic(Root.DOUBLE)
        if word in _SIZED:
            return Atomic(_SIZED[word], length=self.parameter(1, 1, MAX_LENGTH, "length"))
        if word in _MAX_SIZED:
            return Atomic(_MAX_SIZED[word], length=MAX_LENGTH)
        if word in _DECIMALS:
            return self.decimal()
        if word == "TIME":
            precision = self.parameter(0, 0, 9, "precision")
            self.take("WITHOUT", "TIME", "ZONE")
            return Atomic(Root.TIME, precision=precision)
        if word in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            return self.timestamp(local=word == "TIMESTAMP_LTZ")
        if word in _GEO:
            return self.geo(_GEO[word])
        return self.constructed_type(word)

    def parameter(self, default: int, low: int, high: int, what: str) -> int:
        if not self.take("("):
            return default
        number = self.number()
        self.expect(")")
        if not low <= number <= high:
            raise self.error(f"{what} must be between {low} and {high}, got {number}")
        return number

    def decimal(self) -> Atomic:
        precision, scale = 10, 0
        if self.take("("):
            precision = self.number()
            if self.take(","):
                scale = self.number()
            self.expect(")")
        if not 1 <= precision <= 38:
            raise self.error(f"precision must be between 1 and 38, got {precision}")
        if not 0 <= scale <= precision:
            raise self.error(f"scale must be between 0 and the precision {precision}, got {scale}")
        return Atomic(Root.DECIMAL, precision=precision, scale=scale)

    def timestamp(self, *, local: bool) -> Atomic:
        precision = self.parameter(6, 0, 9, "precision")
        if not local and self.take("WITH", "LOCAL", "TIME", "ZONE"):
            local = True
        elif not local:
            self.take("WITHOUT", "TIME", "ZONE")
        return Atomic(Root.TIMESTAMP_LTZ if local else Root.TIMESTAMP, precision=precision)

    def geo(self, root: Root) -> Atomic:
        parameters = list(_GEO_DEFAULTS[root])
        if self.take("("):
            for index in range(len(parameters)):
                if index and not self.take(","):
                    break
                parameters[index] = self.name()
            self.expect(")")
        return Atomic(root, parameters=tuple(parameters))

    def name(self) -> str:
        """An identifier, quoted or not, or a quoted string."""
        if self.at >= len(self.tokens) or self.tokens[self.at][0] not in ("word", "quoted", "text"):
            raise self.error(f"expected a name, found {self.peek() or 'the end'!r}")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "word":
            return token
        quote = token[0]
        return token[1:-1].replace(quote * 2, quote)

    def constructed_type(self, word: str) -> DataType:
        if word not in ("ARRAY", "MULTISET", "MAP", "ROW", "VECTOR"):
            name = self.tokens[self.at - 1][1]
            meant = _meant_whole(self.text) or meant_type(name, _NAMES)
            raise UnknownTypeError(f"type {self.text!r}: unknown type {name!r}{meant}")
        self.expect("<")
        parsed: DataType
        if word == "MAP":
            key = self.type()
            self.expect(",")
            parsed = MapType(key, self.type())
        elif word == "ROW":
            parsed = RowType(self.row_fields())
        elif word == "VECTOR":
            element = self.type()
            self.expect(",")
            parsed = _vector(element, self.number(), nullable=True)
        else:
            parsed = ArrayType(self.type()) if word == "ARRAY" else MultisetType(self.type())
        self.expect(">")
        return parsed

    def row_fields(self) -> tuple[Field, ...]:
        fields: list[Field] = []
        while self.peek() != ">":
            if fields:
                self.expect(",")
            is_quoted = self.tokens[self.at : self.at + 1] and self.tokens[self.at][0] != "word"
            name = self.name()
            if name.endswith(":") and not is_quoted:
                raise self.error(f"a field of a ROW has no colon: write {name[:-1]} and its type, as in ROW<a INT>")
            if self.peek() in (",", ">"):
                raise self.error(f"{name!r} has no type")
            data_type = self.type()
            comment = self.name() if self.at < len(self.tokens) and self.tokens[self.at][0] == "text" else None
            fields.append(Field(UNASSIGNED, name, data_type, comment))
        return tuple(fields)
