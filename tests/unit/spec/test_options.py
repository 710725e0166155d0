from __future__ import annotations

import pytest

from paimon_py.errors import OptionError
from paimon_py.spec.option_names import known_names, suggestion
from paimon_py.spec.options import OPTIONS, Options, check_names, check_values


def test_every_default_fits_the_type_of_its_option():
    check_values({name: option.default for name, option in OPTIONS.items() if option.default is not None})


def test_no_known_name_is_taken_for_another():
    assert {suggestion(name) for name in known_names()} == {None}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("bukcet", "bucket"),
        ("buckets", "bucket"),
        ("Bucket", "bucket"),
        ("bucket_key", "bucket-key"),
        ("tyep", "type"),
        ("merge-engin", "merge-engine"),
        ("file-format", "file.format"),
        ("snapshot.num-retain.min", "snapshot.num-retained.min"),
        ("changelog-producter", "changelog-producer"),
        ("fields.a.agregate-function", "fields.a.aggregate-function"),
        ("fields.defualt-aggregate-function", "fields.default-aggregate-function"),
        ("primaryKey", "primary-key"),
    ],
)
def test_a_name_that_is_nearly_an_option_is_refused_with_the_right_name(given, meant):
    with pytest.raises(OptionError, match=meant) as caught:
        check_names({given: "x"})
    assert caught.value.option == given


@pytest.mark.parametrize(
    "name",
    [
        "fs.s3a.access.key",
        "s3.endpoint",
        "parquet.page.size",
        "orc.compres",
        "lookup.something",
        "my.custom",
        "owner",
        "types",
        "team",
        "compaction.max.file-num",
        "write.compaction-skip",
        "file-index.bloom-filter.columns",
        "file.format.per.level.0",
        "fields.a.aggregate-function",
        "fields.a.b.c",
        "fields.a.own",
        "table.owner",
        "ttl",
    ],
)
def test_names_unlike_any_option_pass(name):
    check_names({name: "x"})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("bucket", "abc"),
        ("bucket", "1.0"),
        ("bucket", " 1"),
        ("bucket", "4294967296"),
        ("write-only", "yes"),
        ("merge-engine", "dedup"),
        ("write-buffer-size", "12 parsecs"),
        ("write-buffer-size", "-1"),
        ("snapshot.time-retained", "1 fortnight"),
        ("snapshot.time-retained", ""),
        ("compaction.small-file-ratio", "half"),
        ("file.format.per.level", "0=avro"),
        ("write-buffer-size", "99999999999 tb"),
        ("read.parallelism", "0"),
        ("read.parallelism", "-3"),
    ],
)
def test_a_text_that_does_not_fit_its_option_is_refused_by_name(name, text):
    with pytest.raises(OptionError, match=name) as caught:
        check_values({name: text})
    assert (caught.value.option, caught.value.value) == (name, text)


def test_a_value_that_is_no_text_is_refused():
    with pytest.raises(OptionError, match="'4'"):
        check_values({"bucket": 4})


def test_values_are_read_in_java_s_notations():
    options = Options(
        {
            "write-buffer-size": "64 MB",
            "snapshot.time-retained": "2 days",
            "manifest.target-file-size": "7",
            "bucket": "-2",
            "merge-engine": "PARTIAL-UPDATE",
            "file.format.per.level": "0:avro, 5:orc",
            "sequence.field": "a, b",
            "compaction.small-file-ratio": "0.5",
        }
    )
    assert options.get_memory("write-buffer-size") == 64 * 1024**2
    assert options.get_memory("manifest.target-file-size") == 7
    assert options.get_duration("snapshot.time-retained") == 172_800_000
    assert options.get_int("bucket") == -2
    assert options.get_enum("merge-engine") == "partial-update"
    assert options.get_map("file.format.per.level") == {"0": "avro", "5": "orc"}
    assert options.get_list("sequence.field") == ("a", "b")
    assert options.get_float("compaction.small-file-ratio") == 0.5


def test_defaults_older_names_and_prefixed_maps_are_found():
    options = Options({"write.compaction-skip": "TRUE", "metadata.stats-mode.per.level.0": "none"})
    assert options.get_bool("write-only") is True
    assert options.is_set("write-only")
    assert options.get_map("metadata.stats-mode.per.level") == {"0": "none"}
    assert options.get_str("metadata.stats-mode") == "truncate(16)"
    assert options.find_int("num-levels") is None
    with pytest.raises(OptionError, match="num-levels"):
        options.get_int("num-levels")
