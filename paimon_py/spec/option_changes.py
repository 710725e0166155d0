"""The options of an existing table that may change, and how options follow a renamed column.

Source: Java `SchemaManager.checkAlterTableOption`, `applyRenameColumnsToOptions`, options marked `@Immutable`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import OptionError
from paimon_py.spec.file_indexes import renamed_index
from paimon_py.spec.new_schema import split_keys
from paimon_py.spec.option_names import FIELDS_PREFIX, check_names, known_names, nearest
from paimon_py.spec.options import OPTIONS, Options, check_values
from paimon_py.spec.schema import TableSchema

IMMUTABLE = frozenset(
    (
        "bucket-key",
        "bucket-function.type",
        "data-file.path-directory",
        "merge-engine",
        "sequence.snapshot-ordering",
        "aggregation.remove-record-on-delete",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "rowkind.field",
        "primary-key",
        "primary-key.nullable",
        "partition",
        "dynamic-bucket.initial-buckets",
        "force-lookup",
        "row-tracking.enabled",
        "data-evolution.enabled",
        "index-file-in-data-file-dir",
        "blob-field",
        "blob-descriptor-field",
        "blob-view-field",
        "pk-clustering-override",
    )
)
"""Options that cannot change once the table holds data."""

_RULES = frozenset(
    (
        "changelog-producer", "deletion-vectors.enabled", "deletion-vectors.bitmap64", "merge-engine", "rowkind.field",
        "sequence.field", "sequence.field.sort-order", "ignore-delete", "ignore-update-before",
        "deduplicate.ignore-delete", "partial-update.ignore-delete", "first-row.ignore-delete",
    )
)  # fmt: skip
"""Options that determine the meaning of rows in files and which changes are reported."""

_RULE_PREFIXES = ("changelog-producer.", FIELDS_PREFIX, "partial-update.", "aggregation.")

_ONLY_ON = ("ignore-delete", "ignore-update-before")
_NAMES_IN_VALUE = ("bucket-key", "sequence.field", "clustering.columns", "sink.clustering.by-columns",
                   "changelog-producer.row-deduplicate-ignore-fields")  # fmt: skip
_NAME_IN_KEY = (
    "aggregate-function",
    "ignore-retract",
    "distinct",
    "list-agg-delimiter",
    "stats-mode",
    "map.storage-layout",
    "map.shared-shredding.max-columns",
    "map.shared-shredding.column-placement-policy",
)
_NAMES_IN_BOTH = ("sequence-group", "nested-key")


def changed_rules(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Names of the differing options that determine the meaning of rows or which changes are reported: files written
    under one value are invalid under the other.
    """
    names = {*before, *now}
    rules = sorted(name for name in names if name in _RULES or name.startswith(_RULE_PREFIXES))
    return [name for name in rules if before.get(name) != now.get(name)]


def check_set(schema: TableSchema, name: str, value: str, *, has_snapshots: bool) -> bool:
    """Whether setting an option changes anything.

    Raises:
        OptionError: an invalid name or value, or the option cannot change (any more).
    """
    _require_name(name)
    check_names({name: value})
    check_values({name: value})
    if _is_unchanged(schema, name, value):
        return False
    _check_never(name)
    if has_snapshots:
        _check_immutable(name, value)
        _check_transition(schema, name, value)
    return True


def check_dynamic(schema: TableSchema, name: str, value: str) -> None:
    """Refuse an option for a single read if it would misinterpret data written under another value.

    Raises:
        OptionError: an invalid name or value, or an option that is fixed by the data.
    """
    if check_set(schema, name, value, has_snapshots=True) and name == "bucket":
        raise OptionError("'bucket' is fixed by the rows, a read cannot change it", option=name, value=value)


def _require_name(name: object) -> None:
    if not isinstance(name, str):
        raise OptionError(f"an option's name is a string, not {name!r}", option=str(name))


def check_remove(schema: TableSchema, name: str, *, has_snapshots: bool) -> None:
    """Refuse to reset an option that cannot change (any more).

    Raises:
        OptionError: it cannot change, or it is not set and its name is similar to that of another option.
    """
    _require_name(name)
    if name not in schema.options:
        check_names({name: ""})
        near = None if name in known_names() else nearest(name, frozenset(schema.options))
        if near is not None:
            raise OptionError(f"the table has no option {name!r}; did you mean {near!r}?", option=name)
    _check_never(name)
    if not has_snapshots:
        return
    _check_immutable(name, None)
    if name == "bucket":
        raise OptionError("'bucket' cannot be removed from a table that holds data", option=name)
    default = OPTIONS[name].default if name in OPTIONS else None
    if name in schema.options and default is not None:
        _check_transition(schema, name, default)


def renamed_options(options: Mapping[str, str], renames: Mapping[str, str]) -> dict[str, str]:
    """The options, with the new names of renamed columns in their names and values.

    Clustering and index columns are renamed too; Java does not do this, and fails at the next write or clustering.
    """
    followed = (renamed_index(name, value, renames) for name, value in options.items())
    return {_renamed_key(name, renames): _renamed_value(name, value, renames) for name, value in followed}


def _is_unchanged(schema: TableSchema, name: str, value: str) -> bool:
    old = schema.options.get(name)
    if old is not None:
        return old == value or (name == "type" and old.lower() == value.lower())
    if name == "type":
        return value.lower() == OPTIONS["type"].default
    if name == "primary-key":
        return split_keys(value) == schema.primary_keys
    if name == "partition":
        return split_keys(value) == schema.partition_keys
    return False


def _check_never(name: str) -> None:
    if name in ("type", "path"):
        raise OptionError(f"option {name!r} of a table cannot change", option=name)


def _check_immutable(name: str, value: str | None) -> None:
    if name in IMMUTABLE:
        raise OptionError(f"option {name!r} cannot change once the table holds data", option=name, value=value)


def _check_transition(schema: TableSchema, name: str, value: str) -> None:
    options, changed = Options(schema.options), Options({name: value})
    if name == "bucket":
        old, new = options.get_int(name), changed.get_int(name)
        if old != new and -1 in (old, new):
            raise OptionError(f"'bucket' cannot change from {old} to {new}: -1 is final", option=name, value=value)
    elif name == "deletion-vectors.enabled":
        if options.get_bool(name) != changed.get_bool(name) and not options.get_bool("deletion-vectors.modifiable"):
            raise OptionError(
                f"option {name!r} cannot change once the table holds data; 'deletion-vectors.modifiable' allows it",
                option=name,
                value=value,
            )
    elif name in _ONLY_ON:
        if options.get_bool(name) and not changed.get_bool(name):
            raise OptionError(f"option {name!r} cannot change from true to false", option=name, value=value)
    elif name == "clustering.columns" and "pk-clustering-override" in options:
        raise OptionError(f"option {name!r} cannot change with 'pk-clustering-override'", option=name, value=value)


def _renamed_key(name: str, renames: Mapping[str, str]) -> str:
    for suffix in (*_NAME_IN_KEY, *_NAMES_IN_BOTH):
        if name.startswith(FIELDS_PREFIX) and name.endswith("." + suffix):
            columns = name[len(FIELDS_PREFIX) : -len(suffix) - 1]
            if suffix in _NAMES_IN_BOTH:
                return f"{FIELDS_PREFIX}{_renamed_list(columns, renames)}.{suffix}"
            return f"{FIELDS_PREFIX}{renames.get(columns, columns)}.{suffix}"
    return name


def _renamed_value(name: str, value: str, renames: Mapping[str, str]) -> str:
    in_both = name.startswith(FIELDS_PREFIX) and name.endswith(tuple("." + suffix for suffix in _NAMES_IN_BOTH))
    return _renamed_list(value, renames) if name in _NAMES_IN_VALUE or in_both else value


def _renamed_list(text: str, renames: Mapping[str, str]) -> str:
    return ",".join(renames.get(name.strip(), name) for name in text.split(","))
