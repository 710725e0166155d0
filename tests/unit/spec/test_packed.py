"""PackedList lists hold what tuples hold."""

import random

import msgspec
import pytest

from paimon_py.spec import packed as packing
from paimon_py.spec.packed import Joined, PackedList, PackedType, encode_packed, join_lists, pack_list, with_label


class Value(msgspec.Struct, frozen=True):
    name: str
    weight: int = 1
    parts: tuple[int, ...] = ()


KIND = PackedType(Value, lambda value: value.weight, lambda value: frozenset(value.name[:1]))


@pytest.fixture(autouse=True)
def light_parts(monkeypatch):
    monkeypatch.setattr(packing, "PART_WEIGHT", 4)


def values_of(seed):
    chosen = random.Random(seed)
    count = chosen.randrange(30)
    return tuple(Value(f"{chosen.choice('ab')}{at}", chosen.randrange(4), (at, -at)) for at in range(count))


@pytest.mark.parametrize("seed", range(40))
def test_a_packed_list_is_like_the_tuple_of_its_values(seed):
    want = values_of(seed)
    found = pack_list(iter(want), KIND)
    assert isinstance(found, PackedList) or sum(value.weight for value in want[:-1]) < 4
    assert tuple(found) == want == found == pack_list(want, KIND)
    assert found == want
    assert hash(found) == hash(want)
    assert len(found) == len(want)
    for at in range(-len(want), len(want)):
        assert found[at] == want[at]
    for wrong in (len(want), -len(want) - 1):
        with pytest.raises(IndexError):
            found[wrong]
    assert (found[2:7], found[::-2], found[-3:]) == (want[2:7], want[::-2], want[-3:])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found, enc_hook=encode_packed), type=tuple[Value, ...]) == want
    for label in "abc":
        wanted = [value for value in want if value.name.startswith(label)]
        assert [value for value in with_label(found, label) if value.name.startswith(label)] == wanted


def test_other_lists_are_not_equal():
    found = pack_list([Value(str(at)) for at in range(9)], KIND)
    assert isinstance(found, PackedList)
    assert found != pack_list([Value(str(at)) for at in range(8)], KIND)
    assert found != (*found[:-1], Value("x"))
    assert found != list(found)
    assert repr(found) == "<9 values>"


def test_parts_are_left_closed_where_nothing_has_the_label():
    found = pack_list([Value(name) for name in "aaaaaabbbbbb"], KIND)
    assert isinstance(found, PackedList)
    assert len(list(with_label(found, "b"))) == 8
    assert list(with_label(found, "c")) == []
    assert [len(part) for part in found.parts()] == [4, 4, 4]


def test_joined_lists_are_copied_only_if_they_are_short():
    long = pack_list([Value(str(at)) for at in range(9)], KIND)
    assert join_lists((Value("a"),), (), (Value("b"),)) == (Value("a"), Value("b"))
    assert join_lists((), long) is long
    assert join_lists() == ()
    both = join_lists((Value("a"),), long)
    assert isinstance(both, Joined)
    assert (len(both), tuple(both), both[0], both[1:3]) == (10, (Value("a"), *long), Value("a"), long[:2])
    assert both == join_lists((Value("a"),), long)
    assert hash(both) == hash(join_lists((Value("a"),), long))
    assert both != join_lists((Value("b"),), long)


def test_nothing_else_is_encoded():
    with pytest.raises(NotImplementedError, match="object cannot be encoded"):
        msgspec.msgpack.encode(object(), enc_hook=encode_packed)
