"""The file indexes that a table's options configure, and the restrictions of Java.

`file-index.<type>.columns` lists columns, or `map[key]` for the values of one key of a map column. Index options are
named `file-index.<type>.<column>.<option>`; for a map column they apply to all its keys.

Source: format.md §11.1; Java `FileIndexOptions`, `SchemaValidation.validateFileIndex`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.option_names import did_you_mean
from paimon_py.spec.options import Options, parse_size
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import sql_type
from paimon_py.spec.types import Atomic, DataType, MapType, Root

PREFIX = "file-index."
INDEX_SUFFIX = ".index"
"""The suffix of index files."""

_COLUMNS = ".columns"
_NUMBERS = frozenset((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT))
_TIMES = frozenset((Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
_FLOATS = frozenset((Root.FLOAT, Root.DOUBLE))
_TEXTS = frozenset((Root.CHAR, Root.VARCHAR))
_BINARIES = frozenset((Root.BINARY, Root.VARBINARY))
_TYPES = {
    "bloom-filter": _NUMBERS | _TIMES | _FLOATS | _TEXTS | _BINARIES,
    "bitmap": _NUMBERS | _TIMES | _FLOATS | _TEXTS | {Root.BOOLEAN},
    "bsi": _NUMBERS | _TIMES | {Root.DECIMAL},
    "range-bitmap": _NUMBERS | _TIMES | _FLOATS | _TEXTS | {Root.BOOLEAN, Root.DECIMAL},
}
_OPTIONS = {
    "bloom-filter": ("items", "fpp"),
    "bitmap": ("version", "index-block-size"),
    "bsi": (),
    "range-bitmap": ("chunk-size",),
}
KINDS = tuple(_TYPES)
"""The types of indexes."""


class IndexColumn(msgspec.Struct, frozen=True, kw_only=True):
    """One index of one column; `key`: for a map column, the key whose values are indexed."""

    column: str
    kind: str
    key: str | None = None
    options: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        """The name of the column in the index."""
        return self.column if self.key is None else f"{self.column}[{self.key}]"


def index_kinds(options: Mapping[str, str]) -> list[str]:
    """The index types in a table's options, including unknown ones."""
    found = (_kind_of(name) for name in options)
    return [kind for kind in found if kind is not None]


def index_columns(options: Mapping[str, str]) -> tuple[IndexColumn, ...]:
    """The indexes that a table's options configure, including those of unknown types.

    Raises: OptionError for empty names, and for options of columns without that index.
    """
    wanted: dict[tuple[str, str | None, str], IndexColumn] = {}
    for name, text in options.items():
        kind = _kind_of(name)
        if kind is None:
            continue
        for part in text.split(","):
            if not part.strip():
                raise OptionError(f"option {name!r} = {text!r} has an empty name", option=name, value=text)
            column, key = _split(part.strip())
            of_part = {} if key is None else _options_of(options, kind, part.strip())
            own = {**_options_of(options, kind, column), **of_part}
            wanted.setdefault((column, key, kind), IndexColumn(column=column, kind=kind, key=key, options=own))
    _check_names(options, tuple(wanted.values()))
    return tuple(wanted.values())


def allows(kind: str, type_: DataType) -> bool:
    """Whether an index type supports a column type."""
    if not isinstance(type_, Atomic) or type_.root not in _TYPES.get(kind, ()):
        return False
    if kind != "range-bitmap":
        return True
    if type_.root is Root.DECIMAL:
        return (type_.precision or 10) <= 18
    return type_.root not in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ) or type_.precision is None or type_.precision <= 6


def indexed_type(index: IndexColumn, type_: DataType) -> DataType | None:
    """The type of the indexed values for a column of this type; None if the index is not possible."""
    if index.key is None:
        return type_
    if isinstance(type_, MapType) and isinstance(type_.key, Atomic) and type_.key.root in _TEXTS:
        return type_.value
    return None


def check_indexed_column(index: IndexColumn, names: Sequence[str]) -> None:
    """Refuse an index of a column that does not exist, as after Java renames an indexed column.

    Raises: OptionError
    """
    if index.column in names:
        return
    option = f"{PREFIX}{index.kind}{_COLUMNS}" if index.kind else f"{PREFIX}{_COLUMNS[1:]}"
    raise OptionError(
        f"option {option!r} names {index.column!r}, which is not a column{did_you_mean(index.column, names)}; the "
        f"columns are {list(names)}. An indexed column is dropped together with its name in this option, in one alter; "
        f"table.alter(RemoveOption({option!r})) removes the index, and SetOption gives it the new name of the column",
        option=option,
    )


def check_file_indexes(schema: TableSchema, options: Options) -> None:
    """Refuse indexes on missing columns, and on types that cannot be indexed.

    Raises: OptionError
    """
    for index in index_columns(options):
        option = f"{PREFIX}{index.kind}{_COLUMNS}" if index.kind else f"{PREFIX}{_COLUMNS[1:]}"
        value = options[option]

        def refuse(reason: str, option: str = option, value: str = value) -> OptionError:
            return OptionError(f"option {option!r} = {value!r} {reason}", option=option, value=value)

        if index.kind not in KINDS:
            near = _near(index.kind, KINDS)
            hint = f"did you mean '{PREFIX}{near[0]}{_COLUMNS}'?" if near else f"the kinds are {', '.join(KINDS)}"
            raise refuse(f"asks for an index that does not exist; {hint}")
        check_indexed_column(index, schema.names)
        type_ = schema.field(index.column).type
        found = indexed_type(index, type_)
        if found is None:
            raise refuse(f"names {index.name!r}: that needs a MAP with text keys, not {sql_type(type_)}")
        if not allows(index.kind, found):
            raise refuse(f"names {index.name!r}, but {index.kind} indexes do not support {sql_type(found)}")
        check_index_options(index)


def renamed_index(name: str, value: str, renames: Mapping[str, str]) -> tuple[str, str]:
    """An option and its value, with the new name if it belongs to an index of a renamed column."""
    if _kind_of(name) is not None:
        return name, ",".join(_rename(part.strip(), renames) for part in value.split(","))
    for kind in KINDS:
        start = f"{PREFIX}{kind}."
        column, dot, option = name.removeprefix(start).rpartition(".")
        if name.startswith(start) and dot:
            return f"{start}{_rename(column, renames)}.{option}", value
    return name, value


def _rename(part: str, renames: Mapping[str, str]) -> str:
    column, key = _split(part)
    new = renames.get(column, column)
    return new if key is None else f"{new}[{key}]"


def size_option(options: Mapping[str, str], name: str, default: int) -> int:
    """The value of an index option that is a size in bytes."""
    text = options.get(name)
    size = default if text is None else parse_size(text)
    return default if size is None else size


def _kind_of(option: str) -> str | None:
    """The index type in the name of an option `file-index.<type>.columns`; None for other options."""
    if not (option.startswith(PREFIX) and option.endswith(_COLUMNS)):
        return None
    return option[len(PREFIX) : max(len(PREFIX), len(option) - len(_COLUMNS))]


def _split(name: str) -> tuple[str, str | None]:
    start = name.find("[")
    if start < 0 or not name.endswith("]"):
        return name, None
    return name[:start], name[start + 1 : -1]


def _options_of(options: Mapping[str, str], kind: str, column: str) -> dict[str, str]:
    if "." in column:
        return {}
    prefix = f"{PREFIX}{kind}.{column}."
    found = {name[len(prefix) :]: text for name, text in options.items() if name.startswith(prefix)}
    return {name: text for name, text in found.items() if "." not in name}


def _check_names(options: Mapping[str, str], wanted: tuple[IndexColumn, ...]) -> None:
    known = {(index.kind, name) for index in wanted for name in (index.column, index.name)}
    for name, text in options.items():
        parts = name[len(PREFIX) :].split(".") if name.startswith(PREFIX) and not name.endswith(_COLUMNS) else []
        if len(parts) == 3 and (parts[0], parts[1]) not in known:
            raise OptionError(
                f"option {name!r}: '{PREFIX}{parts[0]}{_COLUMNS}' does not name {parts[1]!r}", option=name, value=text
            )
        if len(parts) == 2 and parts[0] in KINDS and _near(parts[1], [_COLUMNS[1:]], cutoff=0.7):
            right = f"{PREFIX}{parts[0]}{_COLUMNS}"
            raise OptionError(f"option {name!r} does not exist; did you mean {right!r}?", option=name, value=text)


def check_index_options(index: IndexColumn) -> None:
    """Refuse invalid index options.

    Raises: OptionError.
    """
    checks: dict[str, tuple[str, Callable[[str], bool]]] = {
        "items": ("a whole number from 1 to 100,000,000", lambda text: text.isdecimal() and 0 < int(text) <= 10**8),
        "fpp": ("a number between 0 and 1", _is_fraction),
        "version": ("1 or 2", lambda text: text in ("1", "2")),
        "index-block-size": ("a size such as '16 kb'", lambda text: parse_size(text) is not None),
        "chunk-size": ("a size such as '16 kb'", lambda text: parse_size(text) is not None),
    }
    for name in index.options:
        near = _near(name, _OPTIONS[index.kind], cutoff=0.7)
        if near and name != near[0]:
            option = f"{PREFIX}{index.kind}.{index.name}.{name}"
            raise OptionError(f"option {option!r} does not exist; did you mean {near[0]!r}?", option=option)
    for name in _OPTIONS[index.kind]:
        text = index.options.get(name)
        wanted, holds = checks[name]
        if text is not None and not holds(text):
            option = f"{PREFIX}{index.kind}.{index.name}.{name}"
            raise OptionError(f"option {option!r} is {text!r}; it must be {wanted}", option=option, value=text)


def _is_fraction(text: str) -> bool:
    try:
        return 0.0 < float(text) < 1.0
    except ValueError:
        return False


def _near(name: str, known: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """The known name that is most similar to `name`, as a list of at most one."""
    import difflib

    return difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
