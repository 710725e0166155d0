"""Questions to `spec.engine_rules`: which options of merge engines go together, and is what breaks a rule named?"""

from __future__ import annotations

import pytest

from paimon_py.errors import OptionError, UsageError
from paimon_py.spec.engine_rules import SequenceGroup, needs_lookup, sequence_groups
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.options import Options
from paimon_py.spec.validation import validate

COLUMNS = [("k", "INT"), ("a", "INT"), ("b", "STRING"), ("g", "INT"), ("h", "INT"), ("i", "STRING")]
GROUP = {"fields.g.sequence-group": "a"}


def table(**options):
    given = {"bucket": "1", "merge-engine": "partial-update", **options}
    return new_table_schema(Schema(COLUMNS), TableSpec(primary_keys=("k",), options=given), time_millis=0)


GOOD = [
    {},
    GROUP,
    {**GROUP, "fields.h,i.sequence-group": "b"},
    {"fields.g.sequence-group": "a,g"},
    {**GROUP, "fields.a.aggregate-function": "sum"},
    {"fields.default-aggregate-function": "last_non_null_value"},
    {"fields.g.sequence-group": "a,b,h,i", "fields.default-aggregate-function": "max"},
    {**GROUP, "partial-update.remove-record-on-sequence-group": "g"},
    {"partial-update.remove-record-on-delete": "true"},
    {**GROUP, "ignore-delete": "true"},
    {**GROUP, "sequence.field": "h"},
    {"merge-engine": "deduplicate", "fields.g.sequence-group": "k"},
]


@pytest.mark.parametrize("options", GOOD)
def test_options_that_go_together_pass(options):
    validate(table(**options))


BAD = [
    ({"fields.g.sequence-group": "zz"}, "zz.*not columns"),
    ({"fields.zz.sequence-group": "a"}, "zz"),
    ({"fields.g.sequence-group": "a,k"}, "primary key"),
    ({"fields.k.sequence-group": "a"}, "primary key"),
    ({**GROUP, "fields.h.sequence-group": "b,a"}, "only one group"),
    ({**GROUP, "fields.g,h.sequence-group": "b"}, "only one group"),
    ({**GROUP, "fields.b.aggregate-function": "max"}, "belongs to no sequence group"),
    ({"fields.default-aggregate-function": "sum"}, "belongs to no sequence group"),
    ({"partial-update.remove-record-on-delete": "true", "ignore-delete": "true"}, "ignore-delete"),
    (
        {**GROUP, "partial-update.remove-record-on-sequence-group": "g", "ignore-delete": "true"},
        "ignore-delete",
    ),
    ({**GROUP, "partial-update.remove-record-on-delete": "true"}, "cannot be combined with sequence groups"),
    ({**GROUP, "partial-update.remove-record-on-sequence-group": "h"}, "'h'"),
    ({"partial-update.remove-record-on-sequence-group": "g"}, "'g'"),
    ({"merge-engine": "first-row", "sequence.field": "g"}, "first-row"),
    ({"merge-engine": "first-row", "changelog-producer": "full-compaction"}, "first-row"),
    ({"merge-engine": "first-row", "deletion-vectors.enabled": "true"}, "first-row"),
    ({"record-level.expire-time": "1 d"}, "record-level.time-field"),
]


@pytest.mark.parametrize(("options", "rule"), BAD)
def test_a_broken_rule_is_named(options, rule):
    with pytest.raises(UsageError, match=rule) as caught:
        validate(table(**options))
    assert isinstance(caught.value, OptionError)


def test_a_sequence_group_is_its_sequence_fields_and_the_columns_they_protect():
    options = {"fields.h,i.sequence-group": "b,a,h", "fields.g.aggregate-function": "sum"}
    assert sequence_groups(options) == (SequenceGroup(("h", "i"), ("b", "a")),)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, False),
        ({"merge-engine": "first-row"}, True),
        ({"deletion-vectors.enabled": "true"}, True),
        ({"force-lookup": "true"}, True),
        ({"changelog-producer": "lookup"}, True),
        ({"changelog-producer": "full-compaction"}, False),
    ],
)
def test_some_options_make_compactions_look_keys_up(options, wanted):
    assert needs_lookup(Options(options)) is wanted
