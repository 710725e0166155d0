"""The options of the merge engines as values, and the rules that tie them together.

Source: format.md §12; Java `PartialUpdateMergeFunction.Factory`, `SchemaValidation`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from paimon_py.spec.option_names import FIELDS_PREFIX
from paimon_py.spec.options import Options

_GROUP_SUFFIX = ".sequence-group"
_REMOVE_ON_GROUP = "partial-update.remove-record-on-sequence-group"
_REMOVE_ON_DELETE = "partial-update.remove-record-on-delete"


class SequenceGroup(msgspec.Struct, frozen=True):
    """Columns of a partial-update table that are newer or older together.

    `fields`: the sequence fields that say so, compared from left to right. `columns`: the columns they protect.
    """

    fields: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def members(self) -> tuple[str, ...]:
        """All columns of the group."""
        return self.fields + self.columns


def sequence_groups(options: Mapping[str, str]) -> tuple[SequenceGroup, ...]:
    """The groups that the options `fields.<f>[,<f>…].sequence-group` define."""
    return tuple(group for _, group in _groups(options))


def _groups(options: Mapping[str, str]) -> Iterator[tuple[str, SequenceGroup]]:
    for name, text in options.items():
        if name.startswith(FIELDS_PREFIX) and name.endswith(_GROUP_SUFFIX):
            fields = tuple(name[len(FIELDS_PREFIX) : -len(_GROUP_SUFFIX)].split(","))
            yield name, SequenceGroup(fields, tuple(column for column in text.split(",") if column not in fields))


def removing_fields(options: Options) -> tuple[str, ...]:
    """The sequence fields of groups in which a −D removes the whole row."""
    text = options.find_str(_REMOVE_ON_GROUP)
    return () if text is None else tuple(text.split(","))


def needs_lookup(options: Options) -> bool:
    """Whether compactions look keys up, so that a row above level 0 stands for all rows of its key below it.

    Source: Java `CoreOptions.lookupStrategy`.
    """
    return (
        options.get_bool("deletion-vectors.enabled")
        or options.get_bool("force-lookup")
        or options.get_enum("changelog-producer") == "lookup"
        or options.get_enum("merge-engine") == "first-row"
    )
