"""Questions to `spec.validation`: which options of compactions are refused when a table is created?"""

from __future__ import annotations

import pytest

from paimon_py.errors import OptionError
from paimon_py.spec.new_schema import Schema, TableSpec, new_table_schema
from paimon_py.spec.options import check_values
from paimon_py.spec.validation import validate


def check(primary_keys=("k",), **options):
    spec = TableSpec(primary_keys=primary_keys, options={"bucket": "1" if primary_keys else "-1", **options})
    check_values(options)
    validate(new_table_schema(Schema([("k", "INT"), ("v", "INT")]), spec, time_millis=1))


BAD = {
    "num-sorted-run.compaction-trigger": ({"num-sorted-run.compaction-trigger": "0"}, "at least 1"),
    "num-levels": ({"num-levels": "1"}, "at least 2"),
    "num-sorted-run.stop-trigger": ({"num-sorted-run.stop-trigger": "many"}, "many"),
    "compaction.optimization-interval": ({"compaction.optimization-interval": "1 week"}, "week"),
    "compaction.total-size-threshold": ({"compaction.total-size-threshold": "1 x"}, "1 x"),
    "compaction.offpeak.start.hour": ({"compaction.offpeak.start.hour": "noon"}, "noon"),
    "lookup-compact": ({"lookup-compact": "slow"}, "radical"),
    "compaction.force-up-level-0": ({"compaction.force-up-level-0": "perhaps"}, "true"),
    "compaction.small-file-ratio": ({"compaction.small-file-ratio": "half"}, "half"),
    "file.format.per.level": ({"file.format.per.level": "top:avro"}, "level"),
    "changelog-producer": ({"changelog-producer": "lookup", "full-compaction.delta-commits": "3"}, "full-compaction"),
}


@pytest.mark.parametrize("name", BAD)
def test_options_without_sense_are_refused_by_name(name):
    options, part = BAD[name]
    with pytest.raises(OptionError, match=part) as caught:
        check(**options)
    assert caught.value.option == name


@pytest.mark.parametrize(
    "options",
    [
        {"num-sorted-run.compaction-trigger": "1", "num-levels": "2"},
        {"num-sorted-run.stop-trigger": "0"},
        {"compaction.offpeak.start.hour": "22", "compaction.offpeak.end.hour": "6", "compaction.offpeak-ratio": "50"},
        {"compaction.size-ratio": "-5", "compaction.max-size-amplification-percent": "0"},
        {"lookup-compact": "gentle", "lookup-compact.max-interval": "0", "force-lookup": "true"},
        {"full-compaction.delta-commits": "3"},
        {"file.format.per.level": "0:avro,5:orc", "file.compression.per.level": "0:none"},
    ],
)
def test_what_java_takes_is_taken(options):
    check(**options)


def test_append_tables_have_no_levels():
    check(primary_keys=(), **{"num-levels": "1"})
