"""Values that travel as bytes: damage, mixed-up kinds and older versions are refused by name."""

import copy
import pickle
import struct
import zlib

import pytest

from paimon_py.commit.changes import BucketChanges, Changes, Edit
from paimon_py.compaction.task import CompactionTask
from paimon_py.errors import CorruptionError, UsageError
from paimon_py.scan.split import Section, Split
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.snapshot import Base

FILE = DataFile(name="f.parquet", size_bytes=10, row_count=3, min_sequence=0, max_sequence=2, schema_id=0, level=0)
CHANGED = BucketChanges(partition=bytes(12), bucket=0, total_buckets=1, written=Edit(added=(FILE,)))
VALUES = {
    "changes": Changes(schema_id=0, base=Base(3, "m"), buckets=(CHANGED,), watermark=7),
    "split": Split(
        snapshot_id=4, schema_id=0, partition=bytes(12), bucket=0, total_buckets=1,
        sections=(Section(runs=((FILE,),), raw=True),),
    ),
    "compaction": CompactionTask(base=Base(4), schema_id=0, partition=bytes(12), bucket=0, total_buckets=1, files=(FILE,)),
}  # fmt: skip
CALLED = {"changes": "changes", "split": "a split", "compaction": "a compaction task"}


def sealed(head: bytes, body: bytes) -> bytes:
    """Bytes as a stranger would make them, with a right checksum."""
    size = struct.pack(">Q", len(body))
    return head + size + struct.pack(">I", zlib.crc32(head + size + body)) + body


@pytest.fixture(params=VALUES)
def value(request):
    return VALUES[request.param]


def test_a_value_comes_back_from_bytes_pickles_and_copies(value):
    assert type(value).from_bytes(bytes(value)) == value
    assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)


def test_every_flipped_bit_is_refused(value):
    data = bytes(value)
    for place in range(len(data)):
        for bit in range(8):
            with pytest.raises((CorruptionError, UsageError)):
                type(value).from_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])


def test_bytes_that_are_cut_off_doubled_or_followed_by_others_are_refused(value):
    data = bytes(value)
    for wrong in (*(data[:size] for size in range(len(data))), data * 2, data + b"\0"):
        with pytest.raises(CorruptionError, match=r"not (changes|a split|a compaction task)"):
            type(value).from_bytes(wrong)


def test_damage_is_called_damage(value):
    data = bytes(value)
    with pytest.raises(CorruptionError, match="wrong checksum"):
        type(value).from_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def test_a_damaged_pickle_is_refused(value):
    pickled = pickle.dumps(value)
    at = pickled.index(b"paimon-") + 40
    with pytest.raises(CorruptionError, match="wrong checksum"):
        pickle.loads(pickled[:at] + bytes([pickled[at] ^ 4]) + pickled[at + 1 :])


@pytest.mark.parametrize("other", VALUES)
def test_a_value_of_another_kind_is_named(value, other):
    if type(VALUES[other]) is type(value):
        return
    with pytest.raises(UsageError, match=f"not {CALLED[value.kind]}: they begin with 'paimon-{other}'"):
        type(value).from_bytes(bytes(VALUES[other]))


def test_an_older_or_later_version_is_named(value):
    for version in (value.edition - 1, value.edition + 1):
        with pytest.raises(CorruptionError, match=f"of version {version}, this paimon_py reads version {value.edition}"):
            type(value).from_bytes(f"paimon-{value.kind}-{version}:".encode() + b"\x80")


@pytest.mark.parametrize("body", [b"", b"\x80", b"\xc1", b"\x81\xa1\xff\xff", b"\x81\xa1x" + b"\x91" * 100_000, b"\x93\0\0\0"])
def test_what_is_no_value_is_refused_though_its_checksum_is_right(value, body):
    head = f"paimon-{value.kind}-{value.edition}:".encode()
    assert sealed(head, bytes(value)[len(head) + 12 :]) == bytes(value)
    with pytest.raises(CorruptionError, match=f"not {CALLED[value.kind]}"):
        type(value).from_bytes(sealed(head, body))
