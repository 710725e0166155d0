"""Files of json, text and row that Java writes: we read the same rows, and refuse what Java itself merges wrongly."""

from __future__ import annotations

import random

import pytest
from pair import Kind, Pair

from paimon_py import UnsupportedError

pytestmark = pytest.mark.java

VALUES = {
    "bo": ("BOOLEAN", lambda rng: rng.random() < 0.5),
    "ti": ("TINYINT", lambda rng: rng.randrange(-128, 128)),
    "si": ("SMALLINT", lambda rng: rng.randrange(-32768, 32768)),
    "bi": ("BIGINT", lambda rng: rng.choice([0, -1, 2**63 - 1, -(2**63)])),
    "fl": ("FLOAT", lambda rng: rng.choice([0.0, 1.5, -3.25e10, "NaN", "Infinity"])),
    "do": ("DOUBLE", lambda rng: rng.choice([0.1, -0.0, 1e300, 5e-324, "-Infinity"])),
    "de": ("DECIMAL(10, 2)", lambda rng: rng.choice(["0.00", "-1.50", "99999999.99"])),
    "dw": ("DECIMAL(30, 5)", lambda rng: rng.choice(["0.00000", "-1234567890123456789.12345", "0.00001"])),
    "ch": ("CHAR(5)", lambda rng: rng.choice(["", "ab", "null "])),
    "vc": ("VARCHAR(10)", lambda rng: rng.choice(["", "x,y", "ü😀"])),
    "by": ("BYTES", lambda rng: rng.choice(["", "00ff10", "7b22"])),
    "bn": ("BINARY(3)", lambda rng: "010203"),
    "da": ("DATE", lambda rng: rng.choice(["2024-05-14", "1969-12-31", "0001-01-01"])),
    "tm": ("TIME(0)", lambda rng: rng.choice(["00:00", "23:59:59"])),
    "t0": ("TIMESTAMP(0)", lambda rng: rng.choice(["2024-01-02T03:04:05", "1960-01-01T00:00"])),
    "t3": ("TIMESTAMP(3)", lambda rng: rng.choice(["2024-01-02T03:04:05.678", "1960-01-01T00:00:00.001"])),
    "t6": ("TIMESTAMP(6)", lambda rng: rng.choice(["2024-01-02T03:04:05.678901", "1960-01-01T00:00:00.000001"])),
    "t9": ("TIMESTAMP(9)", lambda rng: "2024-01-02T03:04:05.678901234"),
    "lz": ("TIMESTAMP(6) WITH LOCAL TIME ZONE", lambda rng: "2024-01-02T03:04:05.678901"),
    "ar": ({"type": "ARRAY", "element": "STRING"}, lambda rng: ["a", None, ""][: rng.randrange(4)]),
    "ro": (
        {"type": "ROW", "fields": [{"id": 0, "name": "x", "type": "INT"}, {"id": 1, "name": "y", "type": "TIMESTAMP(3)"}]},
        lambda rng: {"x": rng.choice([1, None]), "y": "2024-01-02T03:04:05.678"},
    ),
    "ma": ({"type": "MAP", "key": "STRING NOT NULL", "value": "DOUBLE"}, lambda rng: [["k", 1.5], ["", None]][: rng.randrange(3)]),
}


def rows(rng: random.Random, count: int, names: list[str], keys: int) -> list[dict]:
    made = {name: [None if rng.random() < 0.2 else VALUES[name][1](rng) for _ in range(count)] for name in names}
    found = rng.sample(range(keys), count)
    texts = ["", "plain", 'say "hi"\n\\t', " ", "日本", "null"]
    return [{"k": found[at], "s": rng.choice(texts), **{name: made[name][at] for name in names}} for at in range(count)]


def play(java, tmp_path, form: str, seed: int) -> None:
    rng = random.Random(seed)
    pair = Pair(java("2.0.0"), tmp_path)
    keyed = form == "json" and seed % 2
    options = {"bucket": "1" if keyed else "-1", "file.format": form, "file.compression": rng.choice(["none", "gzip"])}
    if form == "row":
        options |= {"file.compression": "zstd", "file.block-size": rng.choice(["1 kb", "64 kb"])}
    elif rng.random() < 0.3:
        options["json.line-delimiter"] = "|~|"
    columns = [[name, kind] for name, (kind, _) in VALUES.items()]
    pair.create(Kind([["k", "INT NOT NULL"], ["s", "STRING"], *columns], ["k"] if keyed else [], [], options), "j")
    for _ in range(3):
        pair.step("write", rows=rows(rng, rng.randrange(1, 60), list(VALUES), 200))
        pair.agree()
        count = pair.table().scan().count()
        assert count == pair.table().scan(columns=["t6"]).to_arrow().num_rows == len(pair.java_rows())
    pair.step("alter", changes=[["add", "z", "INT"], ["rename", "s", "text"], ["type", "si", "BIGINT"], ["drop", "bn"]])
    pair.agree()
    pair.check_filters([["=", "text", "plain"], [">", "bi", 0], ["isNull", "da"]], pair.java_rows())
    with pytest.raises(UnsupportedError, match=f"file.format={form}"):
        pair.table().write_arrow([])


@pytest.mark.parametrize("form", ["json", "row"])
@pytest.mark.parametrize("seed", range(2))
def test_rows_are_those_of_java(form, seed, java, tmp_path):
    play(java, tmp_path, form, seed)


@pytest.mark.full
@pytest.mark.parametrize("form", ["json", "row"])
@pytest.mark.parametrize("seed", range(10, 40))
def test_many_rows_are_those_of_java(form, seed, java, tmp_path):
    play(java, tmp_path, form, seed)


@pytest.mark.parametrize("delimiter", ["\n", "--"])
def test_texts_are_those_of_java(delimiter, java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    options = {"bucket": "-1", "file.format": "text", "file.compression": "none", "text.line-delimiter": delimiter}
    pair.create(Kind([["line", "STRING"]], options=options), "j")
    for texts in (["one", "", "two words", "日本"], [""], ["ü"] * 100):
        pair.step("write", rows=[{"line": text} for text in texts])
        pair.agree()


def test_compressed_texts_which_java_cannot_read_are_refused(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    options = {"bucket": "-1", "file.format": "text", "file.compression": "gzip"}
    pair.create(Kind([["line", "STRING"]], options=options), "j")
    pair.step("write", rows=[{"line": "one"}, {"line": "two"}])
    assert [row[0] for row in pair.java_rows()] != ["one", "two"]
    with pytest.raises(UnsupportedError, match="compressed files of the format text"):
        pair.table().scan().to_arrow()


def test_files_of_the_format_row_beside_column_files_are_refused(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    options = {"bucket": "-1", "file.format": "row", "row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    pair.create(Kind([["k", "INT"]], options=options), "j")
    pair.step("write", rows=[{"k": 1}])
    with pytest.raises(UnsupportedError, match="files of the kind 'row'"):
        pair.table().scan().to_arrow()


def test_primary_keys_in_the_format_row_are_refused(java, tmp_path):
    pair = Pair(java("2.0.0"), tmp_path)
    pair.create(Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"], [], {"bucket": "1", "file.format": "row"}), "j")
    pair.step("write", rows=[{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    with pytest.raises(UnsupportedError, match="file.format=row and primary keys"):
        pair.table().scan().to_arrow()
    pair.step("alter", changes=[["set", "file.format", "parquet"]])
    with pytest.raises(UnsupportedError, match="file.format=row and primary keys"):
        pair.table().scan().to_arrow()
