"""Tables that another writer might have left: each is changed by a seed, and Java and we say the same about it.

Where Java reads, we read the same rows, unless a wrong answer could come of it: `foreign.known` says where, and why. What
we read alone is what was there before the change. A finding prints its seed; `Sweep(Java(), folder).run(range(seed, seed + 1))`
makes it again. Shards of the full run are tests, so that `tests/full_run.py` goes on where it stopped.
"""

from __future__ import annotations

import collections
import random

import pytest
from foreign import avro_bytes
from foreign.ask import CHANGES, JAVA_ONLY, OTHER_ROWS, RAW, SAME, Finding, Java, Sweep
from foreign.known import KNOWN, reason

pytestmark = pytest.mark.java

QUICK = range(1_000_000, 1_000_120)
"""The seeds of the bounded run."""

QUICK_SHARDS = 2
FULL_SHARDS = 50
SHARD = 100


@pytest.fixture(scope="module")
def sweep(java, tmp_path_factory):
    own = Java()  # `java` skips where there is none
    yield Sweep(own, tmp_path_factory.mktemp("foreign"))
    own.close()


def check(findings):
    """Every difference has a reason; prints what differs without one, once for each change."""
    first, counts = {}, collections.Counter()
    for finding in findings:
        if reason(finding) is None:
            key = finding.verdict, finding.change
            counts[key] += 1
            first.setdefault(key, finding)
    print(collections.Counter(reason(finding) for finding in findings))
    assert not first, "\n".join(f"{counts[key]} times: {finding}" for key, finding in first.items())


@pytest.mark.budget(8)
@pytest.mark.parametrize("number", range(QUICK_SHARDS))
def test_java_and_we_read_the_same(number, sweep):
    size = len(QUICK) // QUICK_SHARDS
    seeds = QUICK[number * size : (number + 1) * size]
    findings = sweep.run(seeds)
    check(findings)
    assert len({finding.seed for finding in findings}) > size / 2
    assert sum(finding.verdict == SAME for finding in findings) > size * 3


@pytest.mark.full
@pytest.mark.parametrize("number", range(FULL_SHARDS))
def test_java_and_we_read_the_same_in_all(number, sweep):
    findings = sweep.run(range(number * SHARD, (number + 1) * SHARD))
    check(findings)


def test_every_change_happens_within_the_bounded_run():
    """Seeds take the changes in turn."""
    assert len(CHANGES) <= len(QUICK)


def test_what_has_no_reason_is_told():
    finding = Finding(1, "t", "field_extra", "snapshot-1: with 'x'", "rows", RAW, "KeyError: 'x'")
    with pytest.raises(AssertionError, match="KeyError"):
        check([finding, finding._replace(verdict=SAME)])
    for verdict in (JAVA_ONLY, OTHER_ROWS):
        assert reason(finding._replace(verdict=verdict)) is None
    assert len({known.reason for known in KNOWN}) == len(KNOWN)


@pytest.mark.parametrize("codec", avro_bytes.CODECS)
def test_containers_come_back_in_every_style(codec):
    schema = {"type": "record", "name": "record", "fields": [{"name": "a", "type": {"type": "array", "items": ["null", "long"]}}]}
    draw = random.Random(codec)
    items = [avro_bytes.Branch(1, draw.randrange(-(2**40), 2**40)) for _ in range(5)]
    records = [{"a": items[:count]} for count in range(6)]
    for per_block in (0, 1, 4):
        for sized, split in ((False, False), (True, False), (True, True)):
            style = avro_bytes.Style(codec, per_block, (True, True, True), sized, split)
            assert avro_bytes.read(avro_bytes.write(schema, records, style))[1:] == (records, codec)
