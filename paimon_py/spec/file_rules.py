"""Rules about data files: formats, the types that each supports, statistics, default values, indexes, and directories.

Source: format.md §8.3-8.5, §9; Java `AvroFileFormat`, `OrcFileFormat`, `SchemaValidation`, `SimpleColStatsCollector`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial

from paimon_py.errors import OptionError, SchemaError
from paimon_py.spec.external_paths import external_paths
from paimon_py.spec.file_indexes import check_file_indexes
from paimon_py.spec.layout import PATH_DIRECTORY, check_prefixes, is_plain_directory
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.shredding import shredded_columns
from paimon_py.spec.type_text import children, sql_type
from paimon_py.spec.types import Atomic, DataType, MapType, MultisetType, Root, RowType, VectorType
from paimon_py.spec.vector_files import VECTOR_FORMAT, vectors_apart

FORMATS = ("parquet", "orc", "avro")
"""File formats that can be read and written."""

PACKAGED_FORMATS = ("vortex", "lance", "mosaic")
"""File formats that packages of their own read and write."""

VECTOR_FORMATS = ("parquet", "avro", "vortex", "lance")
"""File formats for vectors beside rows."""

READ_FORMATS = ("json", "text", "row")
"""File formats that can only be read."""

MERGED_ROWS = "file.format=row and primary keys"
"""A feature that is not supported, by name."""

MERGED_ROWS_HINT = "Java 2.0 mixes rows up when it merges such files, and its compactions write the wrong rows"

OTHER_FORMATS = ("csv", "blob")
"""File formats of Java that are not supported."""

_STATS_MODE = re.compile(r"none|counts|full|truncate\([0-9]{1,9}\)", re.IGNORECASE)
_FORMAT_OPTIONS = ("file.format", "changelog-file.format")
_STATS_OPTIONS = ("metadata.stats-mode", "changelog-file.stats-mode")
_CODECS = ("file.compression", "file.compression.per.level", "changelog-file.compression", "manifest.compression")
_CODECS_OF_FORMATS = ("orc.compress", "avro.codec", "parquet.compression")
_STATS_BY_LEVEL = "metadata.stats-mode.per.level"
_AVRO_NAME = re.compile(r"[^\W\d]\w*")


def data_formats(options: Options) -> dict[str, str]:
    """All formats in which new files may be written, in lower case, each with the option that configures it."""
    by_level = "file.format.per.level"
    asked = [(name, by_level) for name in options.get_map(by_level).values()]
    asked += [(options.find_str(option) or "", option) for option in reversed(_FORMAT_OPTIONS)]
    return {name.lower(): option for name, option in asked if name}


def _formats(_schema: TableSchema, options: Options) -> None:
    known = (*FORMATS, *PACKAGED_FORMATS, *READ_FORMATS, *OTHER_FORMATS)
    for name, option in data_formats(options).items():
        if name not in known:
            raise OptionError(
                f"option {option!r}: file format {name!r} does not exist; use one of {', '.join(FORMATS)}",
                option=option,
                value=name,
            )
    for name in ("file.format.per.level", "file.compression.per.level", _STATS_BY_LEVEL):
        for level in options.get_map(name):
            if not level.isdecimal():
                raise OptionError(f"option {name!r}: {level!r} is not a level", option=name, value=options.get(name))


def _types(schema: TableSchema, options: Options) -> None:
    formats, apart = data_formats(options), vectors_apart(schema)
    beside = tuple(field for field in schema.fields if field not in apart)
    checks: dict[str, Callable[[DataType], str | None]] = {"avro": _avro_problem, "orc": _orc_problem}
    checks |= {name: partial(packaged_problem, name) for name in PACKAGED_FORMATS}
    for name, check in checks.items():
        fields = beside if name in formats else ()
        if (options.find_str(VECTOR_FORMAT) or "").lower() == name:
            fields += apart
        for field in fields:
            problem = check(field.type)
            if name == "avro" and problem is None and not _AVRO_NAME.fullmatch(field.name):
                problem = f"Avro takes only letters, digits and _ in names, not {field.name!r}"
            if problem is not None:
                raise SchemaError(f"column {field.name!r}: {problem}; use another 'file.format'", fields=(field.name,))


def _avro_problem(data_type: DataType) -> str | None:
    if isinstance(data_type, Atomic):
        precision = data_type.precision or 0
        if data_type.root in (Root.TIMESTAMP, Root.TIMESTAMP_LTZ) and precision > 6:
            return f"Avro files hold timestamps up to precision 6, not {sql_type(data_type)}"
        if data_type.root is Root.TIME and precision > 3:
            return f"Avro files hold times up to precision 3, not {sql_type(data_type)}"
        return _other_problem("Avro", data_type)
    if isinstance(data_type, RowType):
        for field in data_type.fields:
            if not _AVRO_NAME.fullmatch(field.name):
                return f"Avro takes only letters, digits and _ in names, not {field.name!r}"
    return next((problem for child in children(data_type) if (problem := _avro_problem(child))), None)


def _orc_problem(data_type: DataType) -> str | None:
    if isinstance(data_type, Atomic):
        return _other_problem("ORC", data_type)
    if isinstance(data_type, VectorType):
        return f"ORC files cannot hold {sql_type(data_type)}"
    return next((problem for child in children(data_type) if (problem := _orc_problem(child))), None)


def packaged_problem(name: str, data_type: DataType) -> str | None:
    """Why files of a format that a package writes do not hold a type; None if they do."""
    unknown: tuple[type[DataType], ...] = (MapType, MultisetType)
    if name == "mosaic":
        unknown = (RowType, VectorType)
    if isinstance(data_type, unknown):
        return f"{name} files cannot hold {sql_type(data_type)}"
    if isinstance(data_type, Atomic):
        return _other_problem(name, data_type)
    inner = (packaged_problem(name, child) for child in children(data_type))
    return next((problem for problem in inner if problem), None)


def _other_problem(name: str, data_type: Atomic) -> str | None:
    if data_type.root in (Root.VARIANT, Root.GEOMETRY, Root.GEOGRAPHY):
        return f"{name} files cannot hold {sql_type(data_type)}"
    return None


def _statistics(_schema: TableSchema, options: Options) -> None:
    modes = [(name, options.find_str(name)) for name in _STATS_OPTIONS]
    modes += [item for item in options.items() if item[0].startswith("fields.") and item[0].endswith(".stats-mode")]
    modes += [(_STATS_BY_LEVEL, text) for text in options.get_map(_STATS_BY_LEVEL).values()]
    for name, text in modes:
        if text is not None and not _STATS_MODE.fullmatch(text):
            raise OptionError(
                f"option {name!r} is {text!r}; it must be none, counts, full or truncate(n)", option=name, value=text
            )


def _defaults(schema: TableSchema, _options: Options) -> None:
    from paimon_py.spec.default_values import parse_default

    for field in schema.fields:
        if field.default is not None:
            try:
                parse_default(field.type, field.default)
            except SchemaError as error:
                raise SchemaError(f"column {field.name!r}: {error}", fields=(field.name,)) from error


def _shredding(_schema: TableSchema, options: Options) -> None:
    shredded_columns(options)


def _places(_schema: TableSchema, options: Options) -> None:
    external_paths(options)
    check_prefixes(options)
    directory = options.find_str(PATH_DIRECTORY)
    if directory and not is_plain_directory(directory):
        raise OptionError(
            f"option {PATH_DIRECTORY!r} is {directory!r}; it must be a plain directory below the table, such as data",
            option=PATH_DIRECTORY,
            value=directory,
        )


FILE_RULES = (_formats, _types, _statistics, _defaults, _shredding, _places, check_file_indexes)


def names_codecs(names: Iterable[str]) -> bool:
    """Whether any of these options configures the compression of files."""
    return any(name in _CODECS or name.startswith(_CODECS_OF_FORMATS) for name in names)
