import msgspec
import pytest
from unit.commit.support import bucket_changes, data_file, schema

from paimon_py.commit.changes import Edit
from paimon_py.commit.compaction_fit import foreign_files
from paimon_py.commit.conflicts import (
    Conflict,
    LevelFile,
    apply,
    bucket_count_conflict,
    level_conflict,
    schema_conflict,
)
from paimon_py.spec.data_file import FileKind, ManifestEntry
from paimon_py.spec.snapshot import Base
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field


def entry(kind, name, *, level=0, partition=b"p", bucket=0, total=4):
    file = data_file(name, level=level)
    return ManifestEntry(kind=kind, partition=partition, bucket=bucket, total_buckets=total, file=file)


ADD, DELETE = FileKind.ADD, FileKind.DELETE


def deletion_conflict(base, delta):
    after = apply(base, delta)
    return after if isinstance(after, Conflict) else None


def test_an_edit_gives_the_files_after_it():
    after = apply([entry(ADD, "a"), entry(ADD, "b")], [entry(DELETE, "a"), entry(ADD, "c")])
    assert [one.file.name for one in after.values()] == ["b", "c"]


def test_deleting_live_files_and_adding_new_ones_is_fine():
    base = [entry(ADD, "a"), entry(ADD, "b")]
    assert deletion_conflict(base, [entry(DELETE, "a"), entry(ADD, "c")]) is None


def test_deleting_a_missing_file_is_a_conflict():
    assert "a (level 0, bucket 0) was deleted" in deletion_conflict([], [entry(DELETE, "a")]).reason


def test_a_file_at_another_level_is_another_file():
    base = [entry(ADD, "a", level=0)]
    assert deletion_conflict(base, [entry(DELETE, "a", level=1)]) is not None
    assert deletion_conflict(base, [entry(DELETE, "a", level=0), entry(ADD, "a", level=1)]) is None


def test_deleting_twice_and_adding_twice_are_conflicts():
    base = [entry(ADD, "a")]
    assert deletion_conflict(base, [entry(DELETE, "a"), entry(DELETE, "a")]) is not None
    assert "already" in deletion_conflict(base, [entry(ADD, "a")]).reason
    assert deletion_conflict([], [entry(ADD, "b"), entry(ADD, "b")]) is not None


def test_bucket_counts_of_a_partition_must_agree():
    assert bucket_count_conflict([entry(ADD, "a", total=4)], {b"p": 4, b"q": 8}) is None
    assert "written for 4 buckets" in bucket_count_conflict([entry(ADD, "a", total=4)], {b"p": 8}).reason
    assert bucket_count_conflict([entry(ADD, "a", total=4), entry(ADD, "b", total=8, bucket=7)], {}) is not None
    assert bucket_count_conflict([entry(ADD, "a", total=-1), entry(ADD, "b", total=-1)], {}) is None


@pytest.mark.parametrize("known", [None, 1, 2, 4])
@pytest.mark.parametrize("total", [-2, -1, 0, 1, 2, 4])
def test_fixed_counts_of_buckets_are_compared_and_others_are_not(total, known):
    found = bucket_count_conflict([entry(ADD, "a", total=total)], {} if known is None else {b"p": known})
    assert (found is None) == (total < 1 or known in (None, total))


def test_levels_above_zero_must_not_overlap():
    low, high = LevelFile(b"", 0, 1, "low", 0, 4), LevelFile(b"", 0, 1, "high", 5, 9)
    assert level_conflict([high, low]) is None
    touching = msgspec.structs.replace(high, name="touching", min_rank=4)
    assert "low and touching" in level_conflict([touching, low]).reason
    for elsewhere in ({"level": 2}, {"bucket": 1}, {"partition": b"x"}):
        assert level_conflict([low, msgspec.structs.replace(touching, **elsewhere)]) is None
    flat = [msgspec.structs.replace(file, level=0) for file in (low, touching)]
    assert level_conflict(flat) is None


WRITTEN = schema(primary_key=["k"])


def changed(**fields):
    """The schema after changes to columns by name; None drops one."""
    kept = []
    for field in WRITTEN.fields:
        change = fields.pop(field.name, {})
        if change is not None:
            kept.append(msgspec.structs.replace(field, **change))
    kept += [Field(10 + at, name, type_) for at, (name, type_) in enumerate(fields.items())]
    return msgspec.structs.replace(WRITTEN, id=1, fields=tuple(kept))


def test_added_renamed_moved_and_relaxed_columns_do_not_matter():
    assert schema_conflict(WRITTEN, changed(new=parse_type("INT"))) is None
    assert schema_conflict(WRITTEN, changed(v={"name": "w", "description": "text"})) is None
    backwards = msgspec.structs.replace(WRITTEN, id=1, fields=WRITTEN.fields[::-1])
    assert schema_conflict(WRITTEN, backwards) is None
    relaxed = parse_type("INT")
    assert schema_conflict(WRITTEN, changed(k={"type": relaxed})) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"v": None}, "column v was dropped"),
        ({"p": {"type": parse_type("BIGINT")}}, "the type of column p changed"),
        ({"p": {"type": parse_type("INT NOT NULL")}}, "column p became NOT NULL"),
        ({"v": {"type": parse_type("VARCHAR(3)")}}, "the type of column v changed"),
    ],
)
def test_dropped_and_retyped_columns_are_conflicts(change, words):
    reason = schema_conflict(WRITTEN, changed(**change)).reason
    assert words in reason and "call table.refresh()" in reason


def nested(*names, element="INT"):
    fields = [{"id": 20 + number, "name": name, "type": element} for number, name in enumerate(names)]
    return parse_type({"type": "ARRAY", "element": {"type": "ROW", "fields": fields}})


def test_nested_fields_follow_the_same_rules():
    one = schema(columns={"a": "INT"})
    with_two = msgspec.structs.replace(one, fields=(Field(0, "a", nested("x", "y")),))

    def after(data_type):
        return msgspec.structs.replace(with_two, id=1, fields=(Field(0, "a", data_type),))

    assert schema_conflict(with_two, after(nested("x", "y", "z"))) is None
    assert "a.y was dropped" in schema_conflict(with_two, after(nested("x"))).reason
    assert "a.x changed" in schema_conflict(with_two, after(nested("x", "y", element="BIGINT"))).reason
    assert "column a changed" in schema_conflict(with_two, after(parse_type("INT"))).reason


def test_another_primary_key_is_a_conflict():
    other = msgspec.structs.replace(WRITTEN, id=1, primary_keys=("v",))
    assert "primary key" in schema_conflict(WRITTEN, other).reason


def test_the_same_schema_is_not_even_compared():
    assert schema_conflict(WRITTEN, msgspec.structs.replace(WRITTEN, fields=())) is None


@pytest.mark.parametrize(
    ("first", "others", "live", "dropped"),
    [
        ("p", set(), ("f", "n"), [1]),  # rows of the earlier writer lie below the result
        ("q", set(), ("n",), []),
        ("p", set(), ("n",), []),  # they were compacted away in the meantime
        ("q", {"x"}, ("x", "n"), [1]),
        ("q", {"x"}, ("n",), []),
        ("q", None, ("n",), [1]),
    ],
)
def test_a_compaction_of_own_new_files_is_dropped_for_rows_committed_before_them(first, others, live, dropped):
    earlier = bucket_changes(data_file("f"), partition=first.encode())
    new = data_file("n")
    later = bucket_changes(new, partition=b"p", compacted=Edit(deleted=(new,), added=(data_file("m", level=5),)), compact_base=Base(5))
    found = foreign_files([earlier, later], lambda base: others if base == Base(5) else set(), [entry(ADD, name) for name in live])
    assert sorted(found) == dropped
