"""Bytes of a metastore: what is written is read again, and whatever a server sends gives an error of ours or a value."""

from __future__ import annotations

import io
import random

import pytest

from paimon_py import StorageError
from paimon_py.metastores.hive import thrift
from paimon_py.metastores.hive.records import is_external, is_paimon, location_of, parameters
from paimon_py.metastores.hive.registration import keys_of
from paimon_py.metastores.hive.thrift import Items, MalformedError, MessageReader, Pairs

RECORD = {
    1: thrift.of_text("tü"), 4: (thrift.I32, -5), 5: (thrift.I64, 2**62), 6: (thrift.DOUBLE, 1.5), 14: (thrift.BOOL, True),
    22: (thrift.BYTE, 3), 23: (thrift.I16, -1), 8: thrift.of_structs([{1: thrift.of_text("p"), 2: thrift.of_text("string")}]),
    9: thrift.of_mapping({"a": "b", "c": ""}), 12: thrift.of_text("MANAGED_TABLE"),
    7: (thrift.STRUCT, {1: thrift.of_structs([]), 2: thrift.of_text("file:/w/t"), 11: (thrift.STRUCT, {
        3: (thrift.MAP, Pairs(thrift.LIST, thrift.STRING, [(Items(thrift.STRING, [b"x"]), b"y")])),
    })}),
    24: (thrift.SET, Items(thrift.I32, [1, 2])),
}  # fmt: skip


def read(data):
    stream = io.BytesIO(data)

    def take(size):
        found = stream.read(size)
        if len(found) != size:
            raise EOFError
        return found

    return MessageReader(take).read()


def test_a_message_is_read_as_it_was_written():
    answer = read(thrift.message(thrift.REPLY, "get_table", 7, RECORD))
    assert answer == (thrift.REPLY, "get_table", 7, RECORD)
    assert keys_of(RECORD) == ("p",) and location_of(RECORD) == "file:/w/t" and parameters(RECORD) == {"a": "b", "c": ""}


@pytest.mark.parametrize("seed", range(10))
def test_damaged_messages_are_paimon_errors(seed):
    dice = random.Random(seed)
    whole = thrift.message(thrift.REPLY, "get_table", 7, RECORD)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.choice([0, 1, 11, 12, 13, 15, 127, 255, dice.randrange(256)])
        try:
            record = read(bytes(data[: dice.choice([len(data), dice.randrange(len(data))])])).body
            is_paimon(record), is_external(record), location_of(record), parameters(record), keys_of(record)
        except (EOFError, MalformedError) as error:
            assert isinstance(error, (EOFError, StorageError))


@pytest.mark.parametrize(
    "body",
    [
        b"\x0f\x00\x01\x0c\x7f\xff\xff\xff",  # a list of two thousand million structs
        b"\x0b\x00\x01\x7f\xff\xff\xff",  # a text of two gigabytes
        b"\x0b\x00\x01\xff\xff\xff\xff",  # a text of less than nothing
        b"\x0c\x00\x01" * 100,  # a hundred structs deep
        b"\x63\x00\x01",  # no type of Thrift
    ],
)
def test_sizes_and_depths_are_bounded(body):
    head = thrift.message(thrift.REPLY, "x", 1, {})[:-1]
    with pytest.raises(MalformedError):
        read(head + body)


def test_an_answer_that_is_not_thrift_is_an_error():
    with pytest.raises(MalformedError, match="strict binary"):
        read(b"HTTP/1.1 400 Bad Request\r\n\r\n")
