"""Changes as values that travel."""

import itertools

import msgspec
import pytest

from paimon_py.commit.changes import BucketChanges, Changes, Edit, KeyBase
from paimon_py.errors import CorruptionError, UsageError
from paimon_py.spec.data_file import DataFile, FileSource, Stats
from paimon_py.spec.snapshot import Base


def file(name, rows=3):
    return DataFile(
        name=name, size_bytes=10, row_count=rows, min_sequence=0, max_sequence=rows - 1, schema_id=0, level=0,
        min_key=b"\x00" * 12, value_stats=Stats(b"a", b"b", (1, None)), source=FileSource.APPEND,
        embedded_index=b"\xff\x00", value_stats_columns=("a", "b"), extra_files=("x.index",),
    )  # fmt: skip


def changes(base=3, bucket=0, watermark=None, schema_id=1):
    one = BucketChanges(partition=b"\x00\xff", bucket=bucket, total_buckets=4, written=Edit(added=(file("f"), file("g", 4))))
    return Changes(schema_id=schema_id, base=Base(base or 0), buckets=(one,), watermark=watermark)


def test_bytes_bring_back_an_equal_value():
    value = changes(watermark=17)
    assert Changes.from_bytes(bytes(value)) == value
    assert isinstance(bytes(value), bytes)


@pytest.mark.parametrize("junk", [b"", b"x", b"paimon-changes-6:", b"paimon-changes-4:\x80", b"paimon-changes-3:\x80"])
def test_other_bytes_are_refused(junk):
    with pytest.raises(CorruptionError):
        Changes.from_bytes(junk)


def test_every_truncation_is_refused():
    data = bytes(changes())
    for end in range(len(data)):
        with pytest.raises(CorruptionError):
            Changes.from_bytes(data[:end])


def test_concat_keeps_order_and_every_writer_apart():
    first, second = changes(base=5, watermark=3), changes(base=4, watermark=9)
    whole = Changes.concat([first, second])
    assert whole.buckets == first.buckets + second.buckets
    assert (whole.base.id, whole.watermark, whole.schema_id) == (4, 9, 1)
    assert whole.row_count == 14
    assert whole.file_count == 4


def test_a_writer_that_saw_an_empty_table_makes_the_base_empty():
    assert Changes.concat([changes(base=5), changes(base=None)]).base.id == 0


def test_the_newest_schema_names_the_whole():
    assert Changes.concat([changes(schema_id=2), changes(schema_id=7)]).schema_id == 7


def test_concat_of_nothing_is_refused():
    with pytest.raises(UsageError, match="at least one"):
        Changes.concat([])


def test_is_empty_considers_every_kind_of_file():
    nothing = BucketChanges(partition=b"", bucket=0, total_buckets=1)
    assert nothing.is_empty
    assert Changes(schema_id=0, base=Base(0), buckets=(nothing,)).is_empty
    assert not changes().is_empty
    assert not BucketChanges(partition=b"", bucket=0, total_buckets=1, compacted=Edit(added=(file("c"),))).is_empty


def test_made_files_are_those_to_delete_when_changes_are_discarded():
    value = BucketChanges(partition=b"", bucket=0, total_buckets=1, written=Edit(added=(file("n"),), deleted=(file("d"),), changelog=(file("l"),)), compacted=Edit(deleted=(file("b"),), added=(file("a"),)))  # fmt: skip
    assert [f.name for f in value.made_files] == ["n", "l", "a"]


def test_repr_is_short():
    assert repr(changes()) == "Changes(schema_id=1, base=3, buckets=1, files=2, rows=7)"


def test_changes_of_two_branches_are_not_one_commit():
    one = changes()
    with pytest.raises(UsageError, match="nothing was committed: changes of the branches 'main' and others"):
        Changes.concat([one, msgspec.structs.replace(one, branch="audit")])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_whole_begins_where_its_first_part_began(order):
    """Until `made_after`, no snapshot can contain all the files: a repeated commit is looked for from there on."""
    parts = [
        msgspec.structs.replace(changes(base=base, watermark=watermark), made_after=after)
        for base, after, watermark in ((3, Base(8), 5), (4, None, None), (2, Base(6), 7))
    ]
    whole = Changes.concat([parts[number] for number in order])
    assert {whole.base, *whole.further_bases} == {Base(2), Base(3), Base(4)} and whole.base == Base(2)
    assert (whole.made_after, whole.watermark) == (Base(4), 7)


def test_only_parts_of_one_writer_join_where_keys_move():
    """Files that the writer hands over with these changes are no longer awaited; those of before still are."""
    first = msgspec.structs.replace(changes(), keys=KeyBase(writer="w", base=Base(3), files=("earlier",)))
    second = msgspec.structs.replace(changes(base=4), keys=KeyBase(writer="w", base=Base(4), files=("g", "f", "at last")))
    for parts in ([first, second], [second, first]):
        assert Changes.concat(parts).keys == KeyBase(writer="w", base=Base(3), files=("at last", "earlier"))
    other = msgspec.structs.replace(second, keys=KeyBase(writer="x", base=Base(4)))
    with pytest.raises(UsageError, match="changes of several writers cannot be committed together where keys move"):
        Changes.concat([first, other])
