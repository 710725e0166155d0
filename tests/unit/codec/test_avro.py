"""Avro containers: codecs, broken files, bombs."""

import bz2
import lzma
import subprocess
import sys
import tracemalloc
import zlib

import fastavro
import pytest
import zstandard

from paimon_py.codec.avro import container as avro
from paimon_py.errors import CorruptionError, UnsupportedError

SCHEMA = b'{"type":"record","name":"r","fields":[{"name":"a","type":"long"}]}'
RECORDS = [avro.write_long(value) for value in (0, -1, 63, 64, -(2**63), 2**63 - 1, 10**12)]


def raw_deflate(data):
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


def written(codec: str, block_bytes: int = 64_000) -> bytes:
    return avro.write_container(
        avro.header_bytes(SCHEMA, codec), avro.pack(RECORDS, avro.deflater(codec), block_bytes)
    )


def blocks_of(data: bytes) -> list[avro.Block]:
    header = avro.read_header(data, "f")
    return avro.read_blocks(data, header, "f", avro.inflater(header.codec, "f"))


def with_block(codec: str, raw: bytes, count: int = 1) -> bytes:
    return avro.write_container(avro.header_bytes(SCHEMA, codec), [(count, raw)])


@pytest.mark.parametrize("codec", ["zstandard", "null", "snappy", "deflate"])
@pytest.mark.parametrize("block_bytes", [1, 64_000])
def test_written_files_read_back_here_and_with_fastavro(codec, block_bytes, tmp_path):
    data = written(codec, block_bytes)
    blocks = blocks_of(data)
    assert b"".join(block.payload for block in blocks) == b"".join(RECORDS)
    assert sum(block.records for block in blocks) == len(RECORDS)
    assert len(blocks) == (len(RECORDS) if block_bytes == 1 else 1)
    path = tmp_path / "f"
    path.write_bytes(data)
    if codec != "snappy":
        with path.open("rb") as file:
            assert [r["a"] for r in fastavro.reader(file)] == [0, -1, 63, 64, -(2**63), 2**63 - 1, 10**12]


@pytest.mark.parametrize(("codec", "pack"), [("bzip2", bz2.compress), ("xz", lzma.compress)])
def test_rare_codecs_are_read_within_bounds(codec, pack):
    raw = b"".join(RECORDS)
    assert blocks_of(with_block(codec, pack(raw), len(RECORDS)))[0].payload == raw
    for broken in (b"", pack(raw)[:-5], b"x" + pack(raw), pack(bytes(avro.MAX_BLOCK_BYTES + 1))):
        with pytest.raises(CorruptionError):
            blocks_of(with_block(codec, broken, len(RECORDS)))


def test_equal_content_gives_equal_bytes():
    assert written("zstandard") == written("zstandard")


def test_longs_read_back():
    for value in (0, 1, -1, 63, -64, 64, 2**31, -(2**31), 2**63 - 1, -(2**63)):
        raw = avro.write_long(value)
        assert avro.read_long(raw, 0) == (value, len(raw))


def test_long_of_eleven_bytes_is_refused():
    with pytest.raises(IndexError):
        avro.read_long(b"\xff" * 10 + b"\x01", 0)


@pytest.mark.parametrize("codec", ["zstandard", "null", "snappy", "deflate"])
def test_every_cut_and_every_flipped_byte_is_corruption_or_reads_the_same_number_of_records(codec):
    data = written(codec)
    for end in range(len(data)):
        if end == avro.read_header(data, "f").end:
            continue
        with pytest.raises(CorruptionError) as caught:
            blocks_of(data[:end])
        assert caught.value.path == "f"
    for at in range(len(data)):
        broken = data[:at] + bytes((data[at] ^ 0x41,)) + data[at + 1 :]
        try:
            blocks_of(broken)
        except CorruptionError as error:
            assert error.offset is not None


@pytest.mark.parametrize(
    ("codec", "raw"),
    [
        ("zstandard", zstandard.ZstdCompressor().compress(bytes(avro.MAX_BLOCK_BYTES + 1))),
        ("zstandard", zstandard.ZstdCompressor(write_content_size=False).compress(bytes(avro.MAX_BLOCK_BYTES + 1))),
        ("deflate", raw_deflate(bytes(avro.MAX_BLOCK_BYTES + 1))),
        ("snappy", b"\xff\xff\xff\xff\x07" + b"\xfe\x01\x00" * 100 + bytes(4)),
    ],
)
def test_bomb_is_refused_within_bounded_memory(codec, raw):
    data = with_block(codec, raw)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptionError):
            blocks_of(data)
        assert tracemalloc.get_traced_memory()[1] < 3 * avro.MAX_BLOCK_BYTES
    finally:
        tracemalloc.stop()


def test_zstandard_frames_one_after_the_other_are_one_block():
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    raw = compressor.compress(b"abc") + compressor.compress(b"def")
    assert blocks_of(with_block("zstandard", raw))[0].payload == b"abcdef"


def test_snappy_checksum_is_checked():
    raw = avro.deflater("snappy")(b"some text")
    with pytest.raises(CorruptionError, match="checksum"):
        blocks_of(with_block("snappy", raw[:-1] + bytes((raw[-1] ^ 1,))))


def test_more_records_than_bytes_is_corruption():
    with pytest.raises(CorruptionError):
        blocks_of(with_block("null", b"ab", count=3))


def test_codec_that_is_not_handled_is_named():
    with pytest.raises(UnsupportedError) as caught:
        avro.inflater("lz4", "f")
    assert caught.value.feature == "Avro codec lz4"
    with pytest.raises(CorruptionError):
        avro.inflater("zstandasd", "f")
    with pytest.raises(UnsupportedError, match="lzma"):
        avro.codec_name("lzma")
    assert avro.codec_name("ZSTD") == "zstandard" and avro.codec_name("none") == "null"


def test_reading_metadata_does_not_load_fastavro():
    code = "import sys; import paimon_py.metadata.root, paimon_py.codec.avro.container; print('fastavro' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"
    assert avro.fastavro() is fastavro
