"""What a writer is told, by the options of its table or in their place."""

from __future__ import annotations

import pytest
from unit.write.support import schema_of

from paimon_py import OptionError
from paimon_py.lsm.spill import SpillSettings
from paimon_py.metadata.open_table import OpenTable
from paimon_py.write.bucket_kinds import routing_of
from paimon_py.write.settings import WriterSettings


def keyed(**options):
    return schema_of({"n": "INT NOT NULL"}, primary_key=["n"], options={"bucket": "1", **options})


def test_the_options_of_a_table_count_unless_something_else_is_said():
    quiet = keyed(**{"write-only": "true", "write-buffer-size": "3 mb", "write-buffer-spillable": "false"})
    assert WriterSettings.of(quiet) == WriterSettings(compacts=False, buffer_bytes=3 << 20, spills=None)
    assert WriterSettings.of(quiet, compacts=True).compacts
    plain = WriterSettings.of(keyed())
    assert (plain.compacts, plain.buckets, plain.spills) == (True, None, SpillSettings(compresses_all=False))
    assert not WriterSettings.of(keyed(), compacts=False).compacts
    with pytest.raises(OptionError):
        WriterSettings.of(keyed(**{"write-buffer-size": "much"}))


def test_rows_become_one_run_whatever_the_spill_options():
    tight = keyed(**{"write-buffer-spillable": "false", "write-buffer-spill.max-disk-size": "1 mb", "write-buffer-size": "3 mb"})
    settings = WriterSettings.in_one_run(tight, buckets=4)
    assert (settings.buckets, settings.compacts, settings.buffer_bytes) == (4, False, 3 << 20)
    assert settings.spills is not None and settings.spills.max_bytes == SpillSettings().max_bytes


@pytest.mark.parametrize(
    ("kind", "options", "answers"),
    [
        ("UnawareBuckets", {"bucket": "-1"}, (-1, False, False)),
        ("FixedBuckets", {"bucket": "3", "bucket-key": "n"}, (3, True, True)),
        ("FixedBuckets", {"bucket": "2", "primary-key": "n"}, (2, True, True)),
        ("PostponedBuckets", {"bucket": "-2", "primary-key": "n"}, (-2, False, False)),
    ],
)
def test_each_kind_of_buckets_answers_for_itself(kind, options, answers):
    key = [options.pop("primary-key")] if "primary-key" in options else []
    schema = schema_of({"n": "INT NOT NULL"}, primary_key=key, options=options)
    routing = routing_of(OpenTable(None, schema), None)
    assert type(routing).__name__ == kind
    assert (routing.total_buckets, routing.follows, routing.compacts) == answers
    assert (routing.keys, routing.handed, routing.memory_bytes) == (None, frozenset(), 0)
    fixed = routing_of(OpenTable(None, schema_of({'n': 'INT NOT NULL'}, primary_key=['n'])), None, buckets=5)
    assert (type(fixed).__name__, fixed.total_buckets) == ("FixedBuckets", 5)
