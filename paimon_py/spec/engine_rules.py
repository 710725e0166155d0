"""The options of the merge engines as values, and the rules between them.

Source: format.md §12; Java `PartialUpdateMergeFunction.Factory`, `SchemaValidation`, release 2.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.option_names import DEFAULT_AGGREGATE, FIELDS_PREFIX, did_you_mean
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema

_ANYWHERE = "last_non_null_value"
"""The only aggregate function of columns outside sequence groups: what partial-update does by default."""

_GROUP_SUFFIX = ".sequence-group"
_REMOVE_ON_GROUP = "partial-update.remove-record-on-sequence-group"
_REMOVE_ON_DELETE = "partial-update.remove-record-on-delete"

NO_RETRACTS = {
    "partial-update": (
        "the merge engine 'partial-update' does not take rows of kind -U or -D unless an option defines them: set "
        "the option 'ignore-update-before' to leave out -U, the row before an update, whose +U is taken, "
        "'ignore-delete' to leave out both, 'partial-update.remove-record-on-delete' to let -D remove the "
        "whole row, or sequence groups ('fields.<f>.sequence-group') to take back the columns of a group, with "
        "'partial-update.remove-record-on-sequence-group' to remove the whole row"
    ),
    "first-row": (
        "the merge engine 'first-row' does not take rows of kind -U or -D; set the option 'ignore-update-before' to"
        " 'true' to leave out -U, the row before an update, 'ignore-delete' to leave out both"
    ),
}
"""The error messages of merge engines for -U and -D rows, if no option defines them."""


class SequenceGroup(msgspec.Struct, frozen=True):
    """Columns of a partial-update table that are updated together.

    `fields`: the sequence fields that decide which row is newer, compared from left to right. `columns`: the other
        columns of the group.
    """

    fields: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """All columns of the group."""
        return self.fields + self.columns


def sequence_groups(options: Mapping[str, str]) -> tuple[SequenceGroup, ...]:
    """The groups defined by the options `fields.<f>[,<f>…].sequence-group`."""
    return tuple(group for _, group in _groups(options))


def _groups(options: Mapping[str, str]) -> Iterator[tuple[str, SequenceGroup]]:
    for name, text in options.items():
        if name.startswith(FIELDS_PREFIX) and name.endswith(_GROUP_SUFFIX):
            fields = tuple(name[len(FIELDS_PREFIX) : -len(_GROUP_SUFFIX)].split(","))
            yield name, SequenceGroup(fields, tuple(column for column in text.split(",") if column not in fields))


def removing_fields(options: Options) -> tuple[str, ...]:
    """The sequence fields of groups in which a −D row removes the whole row."""
    text = options.find_str(_REMOVE_ON_GROUP)
    return () if text is None else tuple(text.split(","))


def needs_lookup(options: Options) -> bool:
    """Whether compactions look up keys, so that a row above level 0 replaces all rows of its key in higher levels.

    Source: Java `CoreOptions.lookupStrategy`.
    """
    return (
        options.get_bool("deletion-vectors.enabled")
        or options.get_bool("force-lookup")
        or options.get_enum("changelog-producer") == "lookup"
        or options.get_enum("merge-engine") == "first-row"
    )


def shared_members(groups: Sequence[SequenceGroup]) -> tuple[str, ...]:
    """The columns that belong to several groups."""
    counts = Counter(name for group in groups for name in group.members)
    return tuple(name for name, count in counts.items() if count > 1)


def check_engine(schema: TableSchema, options: Options) -> None:
    """Check the options of the partial-update engine.

    Raises:
        OptionError: the message names the option and the rule.
    """
    if not schema.primary_keys or options.get_enum("merge-engine") != "partial-update":
        return
    _check_groups(schema, options)
    _check_functions(schema, options)
    _check_deletes(options)


def _check_groups(schema: TableSchema, options: Options) -> None:
    for name, group in _groups(options):

        def refuse(reason: str, name: str = name) -> OptionError:
            return OptionError(f"option {name!r} = {options[name]!r} {reason}", option=name, value=options[name])

        unknown = [column for column in group.members if column not in schema.names]
        if unknown:
            hint = did_you_mean(unknown[0], schema.names)
            raise refuse(f"names {unknown}, which are not columns{hint}; the columns are {list(schema.names)}")
        keys = [column for column in group.members if column in schema.primary_keys]
        if keys:
            raise refuse(f"contains the primary key columns {keys}, which cannot be in a sequence group")
        shared = [column for column in shared_members(sequence_groups(options)) if column in group.members]
        if shared:
            raise refuse(f"shares {shared} with another sequence group; a column can be in only one group")


def _check_functions(schema: TableSchema, options: Options) -> None:
    grouped = {column for group in sequence_groups(options) for column in group.members}
    for column in schema.names:
        option = f"{FIELDS_PREFIX}{column}.aggregate-function"
        option = option if option in options else DEFAULT_AGGREGATE
        function = options.get(option)
        if function in (None, _ANYWHERE) or column in grouped or column in schema.primary_keys:
            continue
        raise OptionError(
            f"option {option!r} = {function!r} aggregates column {column!r}, which belongs to no sequence group: add "
            f"'fields.<sequence field>.sequence-group' = {column!r}, or use {_ANYWHERE!r}",
            option=option,
            value=function,
        )


def _check_deletes(options: Options) -> None:
    removing = removing_fields(options)
    on_delete = options.get_bool(_REMOVE_ON_DELETE)
    for wanted, name in ((on_delete, _REMOVE_ON_DELETE), (bool(removing), _REMOVE_ON_GROUP)):
        if wanted and options.get_bool("ignore-delete"):
            raise OptionError(
                f"option {name!r} cannot be combined with 'ignore-delete' = 'true': one acts on deletes, the other "
                "ignores them",
                option=name,
                value=options[name],
            )
    groups = sequence_groups(options)
    if on_delete and groups:
        raise OptionError(
            f"option {_REMOVE_ON_DELETE!r} cannot be combined with sequence groups; use {_REMOVE_ON_GROUP!r}",
            option=_REMOVE_ON_DELETE,
            value="true",
        )
    unknown = set(removing) - {field for group in groups for field in group.fields}
    if unknown:
        raise OptionError(
            f"option {_REMOVE_ON_GROUP!r} names {sorted(unknown)}, which are not sequence fields of a sequence group",
            option=_REMOVE_ON_GROUP,
            value=options[_REMOVE_ON_GROUP],
        )


def refused_retracts(options: Options) -> str | None:
    """The reason why a table's merge engine refuses rows of kind -U and -D; None: it merges or drops them.

    Source: Java `FirstRowMergeFunction`, `PartialUpdateMergeFunction`, which fail when they merge such rows.
    """
    engine = options.get_enum("merge-engine")
    if options.get_bool("ignore-delete"):
        return None
    if engine == "partial-update" and (sequence_groups(options) or options.get_bool(_REMOVE_ON_DELETE)):
        return None
    return NO_RETRACTS.get(engine)
