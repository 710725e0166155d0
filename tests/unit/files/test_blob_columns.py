"""BLOBs of `.blob` files: bytes, placeholders, and what damage of any kind gives."""

from __future__ import annotations

import io
import random

import pyarrow as pa
import pytest
from pyroaring import BitMap

from paimon_py.codec import blobs
from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
from paimon_py.codec.blobs import NULL, PLACEHOLDER, NestedBlobs
from paimon_py.errors import CorruptionError, PaimonError
from paimon_py.files import blob_columns
from paimon_py.files.blob_columns import BlobColumn, BlobFiles
from paimon_py.spec.data_file import DataFile
from paimon_py.spec.types import ArrayType, Atomic, Field, MapType, Root

BLOB = Atomic(Root.BLOB)
FIELD = Field(1, "a", BLOB)
OTHER = "elsewhere"


def file_bytes(values):
    """A file with these payloads; None is NULL, OTHER the value of an older file."""
    data, lengths = b"", []
    for value in values:
        if value is None or value is OTHER:
            lengths.append(NULL if value is None else PLACEHOLDER)
            continue
        head, tail = blobs.entry_parts(value)
        data += head + value + tail
        lengths.append(len(head) + len(value) + len(tail))
    return data + blobs.encode_index(lengths)


def column_of(parts, rows, field=FIELD, first=100):
    """The column of files given as (number of the snapshot, first row, values)."""
    held = {f"f{at}.blob": file_bytes(values) for at, (_, _, values) in enumerate(parts)}
    files = [
        DataFile(name=f"f{at}.blob", size_bytes=len(held[f"f{at}.blob"]), row_count=len(values), min_sequence=age, max_sequence=age, schema_id=0, level=0, first_row_id=first + start, write_columns=("a",))
        for at, (age, start, values) in enumerate(parts)
    ]
    files.sort(key=lambda file: -file.max_sequence)
    return BlobColumn(field, BlobFiles(tuple(files), lambda file: io.BytesIO(held[file.name]), lambda file: f"/t/{file.name}"), first, rows), held


def test_bytes_are_those_of_java():
    # written by Java 2.0.0: golden case blob-added, column b of snapshot 2
    assert file_bytes([bytes.fromhex("b1"), None]).hex() == "cf114e58b11100000000000000a697ad6322230200000001"


@pytest.mark.parametrize("seed", range(60))
def test_each_row_has_the_value_of_its_newest_file(seed, monkeypatch):
    rng = random.Random(seed)
    monkeypatch.setattr(blob_columns, "BATCH_BYTES", rng.choice([1, 40, 1 << 20]))
    monkeypatch.setattr(blob_columns, "_GAP_ROWS", rng.choice([0, 1, 5]))
    rows = rng.randrange(1, 40)
    expected, parts = [None] * rows, []
    for age in range(1, rng.randrange(2, 6)):
        start = rng.randrange(rows)
        stop = rng.randrange(start, rows) + 1
        values = [rng.choice([None, OTHER, OTHER, rng.randbytes(rng.choice([0, 1, 30]))]) for _ in range(start, stop)]
        cut = rng.randrange(len(values) + 1)
        for low, high in ((0, cut), (cut, len(values))):
            if low < high:
                parts.append((age, start + low, values[low:high]))
        for at, value in enumerate(values):
            if value is not OTHER:
                expected[start + at] = value
    column, held = column_of(parts, rows)
    wanted = None if rng.random() < 0.3 else BitMap(rng.sample(range(rows), rng.randrange(rows + 1)))
    found = {}
    for as_refs in (False, True):
        for position, batch in column.pieces(wanted, as_refs=as_refs):
            for at, value in enumerate(batch["a"].to_pylist(), position):
                if as_refs and value is not None and (wanted is None or at in wanted):
                    ref = BlobRef.from_bytes(value)
                    value = held[ref.uri.rpartition("/")[2]][ref.offset : ref.offset + ref.length]
                found[as_refs, at] = value
        for at in range(rows) if wanted is None else wanted:
            assert found[as_refs, at] == expected[at]


@pytest.mark.parametrize("changed", [[0], [1], [2], [0, 1], [0, 2], [1, 2]])
def test_neighbours_of_several_files_whose_offsets_follow_one_another(changed):
    """Values of one length: the end of an entry is where the next one begins in another file."""
    values = [b"a0", b"a1", b"a2", b"a3"]
    newer = [b"b%d" % at if at in changed else OTHER for at in range(4)]
    column, _ = column_of([(1, 0, values), (2, 0, newer)], 4)
    ((_, batch),) = column.pieces(None, as_refs=False)
    assert batch["a"].to_pylist() == [new if new is not OTHER else old for old, new in zip(values, newer, strict=True)]


@pytest.mark.parametrize("extra", [-30, -17, -1, 0, 1, 17, 30])
def test_an_index_accounts_for_every_byte_of_the_entries(extra):
    index = blobs.encode_deltas([20, NULL, 30, PLACEHOLDER])
    if extra == 0:
        assert blobs.decode_index(index, 50, "f").offsets.tolist() == [0, 20, 20, 50]
        return
    with pytest.raises(CorruptionError, match="the index of f does not match its length"):
        blobs.decode_index(index, 50 + extra, "f")


@pytest.mark.parametrize(("number", "stored"), [(0, "00"), (-1, "01"), (63, "7e"), (-64, "7f"), (64, "8001"), (-65, "8101"), (8191, "fe7f"), (8192, "808001")])
def test_numbers_take_as_few_bytes_as_they_can(number, stored):
    assert blobs.encode_deltas([number]).hex() == stored and blobs.decode_deltas(bytes.fromhex(stored), "f").tolist() == [number]


def test_files_of_one_age_do_not_overlap():
    column, _ = column_of([(1, 0, [b"a", b"b"]), (1, 1, [b"c"])], 2)
    with pytest.raises(CorruptionError, match="one column of the same rows"):
        list(column.pieces(None, as_refs=False))


@pytest.mark.parametrize("kind, value, nested", [
    (ArrayType(BLOB), [b"x", None, b""], NestedBlobs(None, [b"x", None, b""])),
    (ArrayType(BLOB), [], NestedBlobs(None, [])),
    (MapType(Atomic(Root.VARCHAR), BLOB), [("é", b"x"), ("", None)], NestedBlobs(["é", ""], [b"x", None])),
    (MapType(Atomic(Root.SMALLINT), BLOB), [(-300, b"")], NestedBlobs([-300], [b""])),
])  # fmt: skip
def test_lists_of_blobs(kind, value, nested):
    payload = blobs.encode_nested(kind, nested)
    column, held = column_of([(1, 0, [payload, None])], 2, Field(1, "a", kind))
    ((_, batch),) = column.pieces(None, as_refs=False)
    assert batch["a"].to_pylist() == [value, None]
    ((_, batch),) = column.pieces(None, as_refs=True)
    refs = batch["a"].to_pylist()[0]
    for part, ref in zip(value, refs, strict=True):
        blob, ref = (part[1], ref[1]) if isinstance(part, tuple) else (part, ref)
        if blob is None:
            assert ref is None
        else:
            where = BlobRef.from_bytes(ref)
            assert held["f0.blob"][where.offset : where.offset + where.length] == blob


@pytest.mark.parametrize("seed", range(300))
def test_damage_ends_in_right_rows_or_an_error_of_ours(seed):
    rng = random.Random(seed)
    kind = rng.choice([BLOB, ArrayType(BLOB), MapType(Atomic(Root.INT), BLOB)])
    values = {0: b"abc", 1: blobs.encode_nested(ArrayType(BLOB), NestedBlobs(None, [b"q", None])), 2: blobs.encode_nested(MapType(Atomic(Root.INT), BLOB), NestedBlobs([7], [b"z"]))}
    payload = values[[Atomic, ArrayType, MapType].index(type(kind))]
    column, held = column_of([(1, 0, [payload, None, payload])], 3, Field(1, "a", kind))
    ((_, right),) = column.pieces(None, as_refs=False)
    data = bytearray(held["f0.blob"])
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    held["f0.blob"] = bytes(data[: rng.randrange(len(data) + 1)]) if rng.random() < 0.2 else bytes(data)
    try:
        found = [batch for _, batch in column.pieces(None, as_refs=False)]
    except PaimonError:
        return
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([right])) or _index_was_hit(data, payload)


def _index_was_hit(data, payload):
    """A length of the index that became another kind of nothing: no checksum covers the index."""
    return bytes(data[-12:]) != file_bytes([payload, None, payload])[-12:]


@pytest.mark.parametrize("seed", range(300))
def test_damaged_lists_are_errors_of_ours(seed):
    rng = random.Random(seed)
    kind = rng.choice([ArrayType(BLOB), MapType(Atomic(Root.BIGINT), BLOB), MapType(Atomic(Root.VARCHAR), BLOB)])
    nested = NestedBlobs(None, [b"q" * 9, None]) if isinstance(kind, ArrayType) else NestedBlobs(["7", "é"] if kind.key.root is Root.VARCHAR else [7, -1], [b"z" * 5, None])
    data = bytearray(blobs.encode_nested(kind, nested))
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    data = data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data
    try:
        found = blobs.decode_nested(kind, memoryview(bytes(data)), "/t/f")
    except CorruptionError:
        return
    assert len(found.blobs) == 2


def test_references_are_those_of_java():
    ref = BlobRef("/golden/blob-descriptors/warehouse/db.db/t/schema/schema-0", 4, 15)
    text = "0243534544424f4c423a0000002f676f6c64656e2f626c6f622d64657363726970746f72732f77617265686f7573652f64622e64622f742f736368656d612f736368656d612d3004000000000000000f00000000000000"
    assert bytes(ref).hex() == text and BlobRef.from_bytes(bytes.fromhex(text)) == ref
    assert BlobRef.from_bytes(bytes(BlobRef("x"))) == BlobRef("x")
    view = bytes.fromhex("0157454956424f4c420400000064622e75010000000200000000000000")
    assert BlobViewRef.from_bytes(view) == BlobViewRef("db.u", 1, 2)


@pytest.mark.parametrize("seed", range(200))
def test_damaged_references_are_errors_of_ours(seed):
    rng = random.Random(seed)
    data = bytearray(bytes(BlobRef("s3://b/x", 5, 7)))
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    data = data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data
    for kind in (BlobRef, BlobViewRef):
        try:
            kind.from_bytes(bytes(data))
        except CorruptionError:
            continue
