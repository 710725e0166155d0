"""Damage to bytes, texts and JSON: pure, and the same for the same seed.

Damage that knows the layout (JSON values, blocks of Avro containers, footers) gets behind the checks that random bytes
never pass.
"""

from __future__ import annotations

import copy
import json
import zlib

import zstandard

LONG_MAX, INT_MAX = 2**63 - 1, 2**31 - 1
WORDS = (0, 1, 2, 7, 127, 128, 255, 256, 65535, 65536, INT_MAX, INT_MAX + 1, 2**32 - 1, LONG_MAX, LONG_MAX + 1, 2**64 - 1)
NUMBERS = (0, 1, -1, 2, 127, 128, -128, 255, 32768, INT_MAX, INT_MAX + 1, -INT_MAX - 1, 2**53, LONG_MAX, LONG_MAX + 1, -LONG_MAX - 1, 2**200)
BOMB_BYTES = 48 << 20
MAGIC = b"Obj\x01"
_bombs = {}


def flipped(data, bit):
    """The bytes with one bit turned."""
    return data[: bit >> 3] + bytes([data[bit >> 3] ^ (1 << (bit & 7))]) + data[(bit >> 3) + 1 :]


def varint(value):
    """An unsigned varint of at most ten bytes."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def zigzag(value):
    """A signed number as Avro and thrift write it."""
    return varint(value << 1 if value >= 0 else ~(value << 1))


# -- plain bytes --------------------------------------------------------------------------------------------------------


def _place(rng, data):
    return rng.randrange(len(data))


def _span(rng, data):
    start = _place(rng, data)
    return start, min(len(data), start + rng.choice((1, 1, 2, 4, 8, 16, rng.randrange(1, len(data) + 1))))


def flip_bit(rng, data, others):
    return flipped(data, rng.randrange(8 * len(data)))


def set_byte(rng, data, others):
    at = _place(rng, data)
    return data[:at] + bytes([rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF, rng.randrange(256)))]) + data[at + 1 :]


def insert(rng, data, others):
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((1, 1, 2, 4, 8, 64))) + data[at:]


def delete(rng, data, others):
    start, end = _span(rng, data)
    return data[:start] + data[end:]


def double(rng, data, others):
    start, end = _span(rng, data)
    return data[:end] + data[start:end] + data[end:]


def blank(rng, data, others):
    start, end = _span(rng, data)
    return data[:start] + bytes(end - start) + data[end:]


def cut(rng, data, others):
    return data[: _place(rng, data)]


def splice(rng, data, others):
    other = rng.choice(others)
    return data[: _place(rng, data)] + other[rng.randrange(len(other) + 1) :]


def transplant(rng, data, others):
    other = rng.choice(others)
    start, end = _span(rng, data)
    at = rng.randrange(len(other) + 1)
    return data[:start] + other[at : at + end - start] + data[end:]


def set_word(rng, data, others):
    width = rng.choice((2, 4, 8))
    word = (rng.choice(WORDS) & (1 << 8 * width) - 1).to_bytes(width, rng.choice(("little", "big")))
    at = _place(rng, data)
    return (data[:at] + word + data[at + width :])[: len(data)]


def set_varint(rng, data, others):
    at = _place(rng, data)
    end = at
    while end < len(data) - 1 and data[end] & 128 and end - at < 9:
        end += 1
    value = rng.choice(NUMBERS[:-1])
    return data[:at] + rng.choice((varint, zigzag))(value) + data[end + 1 :]


PLAIN = (flip_bit, flip_bit, flip_bit, set_byte, insert, delete, double, blank, cut, splice, transplant, set_word, set_varint)


def bytes_damaged(rng, data, others, steps=PLAIN):
    """One to three damages of plain bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if not data:
            return rng.randbytes(rng.randrange(40))
        data = rng.choice(steps)(rng, data, others)
    return data


# -- texts --------------------------------------------------------------------------------------------------------------


def hostile(rng, text):
    """A text that leaves its place, made of one that stands in the table."""
    return rng.choice((
        "../" + text, "../../" + text, "/" + text, "/etc/" + text, "file:///" + text, "file:/tmp/" + text, "ftp://h/" + text,
        text + "/", text + "/../..", text + "\0", text + "\n", "", ".", "..", text.upper(), " " + text, text * 40, text[: len(text) // 2],
        text + "\u202e", "\ud800".encode("utf-16", "surrogatepass").decode("utf-16", "replace") + text, text.replace("-", "/"),
        text + "%2F..", "~/" + text, "${" + text + "}", text + "é" * 300, "C:\\" + text, text + "$branch_x", "-" + text,
    ))  # fmt: skip


def text_damaged(rng, text, words):
    """A text whose letters, words and brackets were moved about."""
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 1, 1, 3, 9)))
        what = rng.randrange(9)
        if what == 0:
            text = text[:at] + text[end:]
        elif what == 1:
            text = text[:at] + rng.choice(words) + text[end:]
        elif what == 2:
            text = text[:end] + text[at:end] + text[end:]
        elif what == 3:
            text = text[:at] + rng.choice("()<>',.;:%_\\\"`=!&|~-+*/ \0\n\u00e9\u2028\U0001f600" + chr(rng.randrange(32, 0x2000))) + text[end:]
        elif what == 4:
            text = text[:at] + rng.choice((str(rng.choice(NUMBERS)), "1e999", "-0.0", "9" * 50, "0x1F", "1_0", "²", "١", "nan", "NULL")) + text[end:]
        elif what == 5:
            text = text[:at] + rng.choice(("(", "<", "NOT ", "ARRAY<", "ROW<a ", "-")) * rng.choice((2, 40, 3000)) + text[at:]
        elif what == 6:
            text = text[:at]
        elif what == 7:
            text = text + rng.choice(words)
        else:
            text = hostile(rng, text)
        text = text[:20_000]
    return text


# -- JSON ---------------------------------------------------------------------------------------------------------------


def _nodes(value, found, parent=None, key=None):
    found.append((parent, key))
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        _nodes(item, found, value, name)
    return found


def _other_value(rng, old, words, values):
    if isinstance(old, bytes) and rng.random() < 0.8:
        return bytes_damaged(rng, old, [old or b"\0"])
    text = old if isinstance(old, str) and rng.random() < 0.7 else rng.choice(words)
    what = rng.randrange(10)
    if what == 0:
        return rng.choice(NUMBERS)
    if what == 1:
        return rng.choice((None, True, False, 1.5, -0.0, 1e300, "", [], {}, [None], {"": None}))
    if what <= 4:
        return hostile(rng, text)
    if what == 5:
        return text_damaged(rng, text, words)
    if what == 6 and isinstance(old, (int, float)):
        return old + rng.choice((-1, 1, 2**31, 2**62, -(2**62)))
    if what == 7:
        return {rng.choice(words): old, "type": rng.choice(words)}
    if what == 8:
        return [old] * rng.choice((1, 2, 50))
    return rng.choice(values)


def value_damaged(rng, top, words):
    """Change nested dictionaries and lists in place: other values, names and shapes."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        nodes = _nodes(top, [])
        parent, key = rng.choice(nodes)
        values = [copy.deepcopy(where[name]) for where, name in rng.sample(nodes[1:], min(3, len(nodes) - 1))] or [0]
        if parent is None:
            continue
        what = rng.randrange(8)
        if what == 0:
            del parent[key]
        elif what == 1 and isinstance(parent, dict):
            parent[hostile(rng, str(key)) if rng.random() < 0.5 else rng.choice(words)] = parent.pop(key)
        elif what == 2 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif what == 3 and isinstance(parent, dict):
            parent[rng.choice(words)] = _other_value(rng, parent[key], words, values)
        else:
            parent[key] = _other_value(rng, parent[key], words, values)


def json_damaged(rng, data, others, words):
    """JSON with other values, keys and shapes; sometimes nested deeply, sometimes damaged as bytes."""
    try:
        top = json.loads(data)
    except ValueError:
        return bytes_damaged(rng, data, others)
    if rng.random() < 0.15:
        return bytes_damaged(rng, data, others)
    value_damaged(rng, top, words)
    text = json.dumps(top)
    if rng.random() < 0.03:
        depth = rng.choice((100, 1000, 5000, 60_000))
        at = rng.choice([place for place, char in enumerate(text) if char == ":"] or [0]) + 1
        opening, closing = rng.choice((("[", "]"), ('{"a":', "}"), ('{"type":"ARRAY","element":', "}")))
        text = text[:at] + opening * depth + "1" + closing * depth + "," + '"z":' + text[at:]
    return text.encode()


# -- Avro containers ----------------------------------------------------------------------------------------------------


def _long(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


def take_apart(data):
    """Metadata, sync marker, and [count, raw bytes] of every block of a sound container."""
    if data[:4] != MAGIC:
        raise ValueError("not a container")
    metadata, at = {}, 4
    while True:
        count, at = _long(data, at)
        if count == 0:
            break
        if count < 0:
            _, at = _long(data, at)
        for _ in range(abs(count)):
            pair = []
            for _ in range(2):
                size, at = _long(data, at)
                pair.append(data[at : at + size])
                at += size
            metadata[pair[0]] = pair[1]
    sync, at, blocks = data[at : at + 16], at + 16, []
    while at < len(data):
        count, at = _long(data, at)
        size, at = _long(data, at)
        blocks.append([count, data[at : at + size]])
        at += size + 16
    return metadata, sync, blocks


def put_together(metadata, sync, blocks, sizes=None):
    """The container of these parts; `sizes` may claim other lengths for blocks by their index."""
    out = [MAGIC, zigzag(len(metadata))]
    for key, value in metadata.items():
        out += (zigzag(len(key)), key, zigzag(len(value)), value)
    out += (b"\0", sync)
    for index, (count, raw) in enumerate(blocks):
        out += (zigzag(count), zigzag((sizes or {}).get(index, len(raw))), raw, sync)
    return b"".join(out)


def _inflate(codec, raw):
    if codec == b"zstandard":
        return zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    if codec == b"deflate":
        return zlib.decompress(raw, -15)
    return raw


def _deflate(codec, data):
    if codec == b"zstandard":
        return zstandard.ZstdCompressor(level=1).compress(data)
    if codec == b"deflate":
        stream = zlib.compressobj(1, zlib.DEFLATED, -15)
        return stream.compress(data) + stream.flush()
    return data


def _bomb(codec, byte):
    if (codec, byte) not in _bombs:
        _bombs[codec, byte] = _deflate(codec, byte * BOMB_BYTES)
    return _bombs[codec, byte]


def avro_damaged(rng, data, others, words):
    """A container with other counts, lengths, markers, blocks, records or schemas, and valid compression around them."""
    try:
        metadata, sync, blocks = take_apart(data)
        codec = metadata.get(b"avro.codec", b"null")
        what = rng.randrange(12)
        if what <= 1 or not blocks:
            return bytes_damaged(rng, data, others)
        index = rng.randrange(len(blocks))
        count, raw = blocks[index]
        if what == 2:
            blocks[index][0] = rng.choice((0, -1, count + 1, count - 1, 2 * count, 10**6, INT_MAX, 2**40, LONG_MAX, -LONG_MAX))
        elif what == 3:
            blocks.insert(rng.randrange(len(blocks) + 1), list(blocks[index]))
        elif what == 4:
            blocks.pop(index)
        elif what == 5:
            return put_together(metadata, sync, blocks, {index: rng.choice((0, -1, len(raw) + 1, len(raw) - 1, INT_MAX, LONG_MAX))})
        elif what == 6:
            metadata[b"avro.schema"] = json_damaged(rng, metadata[b"avro.schema"], [metadata[b"avro.schema"]], words)
        elif what == 7:
            name = rng.choice((b"null", b"deflate", b"zstandard", b"snappy", b"bzip2", b"xz", b"", b"zst\xff", codec.upper()))
            metadata[b"avro.codec"] = name
            if rng.random() < 0.5:
                blocks[index][1] = _deflate(name, _inflate(codec, raw))
        elif what == 8:
            donor = take_apart(rng.choice(others))
            blocks[index] = list(rng.choice(donor[2] or blocks))
            if rng.random() < 0.5:
                metadata[b"avro.codec"] = donor[0].get(b"avro.codec", b"null")
        elif what == 9 and rng.random() < 0.2:
            blocks[index][1] = _bomb(codec, rng.choice((b"\0", b"\2", b"\xff"))) if codec != b"null" else raw
            blocks[index][0] = rng.choice((count, 10**6, BOMB_BYTES, LONG_MAX))
        else:
            payload = _inflate(codec, raw)
            blocks[index][1] = _deflate(codec, bytes_damaged(rng, payload, [payload]))
        return put_together(metadata, sync, blocks)
    except (ValueError, IndexError, zlib.error, zstandard.ZstdError):
        return bytes_damaged(rng, data, others)


# -- footers ------------------------------------------------------------------------------------------------------------


def parquet_footer(data):
    """Where the footer of a Parquet file begins and ends."""
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data)


def orc_footer(data):
    """Where the last kilobytes of an ORC file, footer and postscript, begin and end."""
    return max(0, len(data) - 1 - data[-1] - 400), len(data)


def footer_damaged(rng, data, others, bounds):
    """A data file damaged in its footer half the time, else anywhere."""
    if rng.random() < 0.4:
        return bytes_damaged(rng, data, others)
    start, end = bounds(data)
    tail = data[start:end]
    return data[:start] + bytes_damaged(rng, tail, [tail])


def any_damaged(rng, data, others, words, name=""):
    """Damage that fits a file's name and first bytes."""
    if data[:4] == MAGIC and rng.random() < 0.8:
        return avro_damaged(rng, data, others, words)
    if data[:4] == b"PAR1":
        return footer_damaged(rng, data, others, parquet_footer)
    if data[:3] == b"ORC":
        return footer_damaged(rng, data, others, orc_footer)
    if data[:1] in (b"{", b"["):
        return json_damaged(rng, data, others, words)
    return bytes_damaged(rng, data, others)
