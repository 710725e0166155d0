"""VARIANT columns that we write are read and compacted by Java and read by us again, shredded or not; and the other way."""

from __future__ import annotations

import json
import random

import pytest
from pair import Kind, Pair
from unit.codec.variant_values import json_text, json_value, value

from paimon_py import Variant, variant

pytestmark = pytest.mark.java

COLUMNS = [["id", "INT NOT NULL"], ["j", "VARIANT"], ["a", {"type": "ARRAY", "element": "VARIANT"}]]
SHREDDED = {
    "variant.shreddingSchema": json.dumps({
        "type": "ROW", "fields": [{"id": 0, "name": "j", "type": {"type": "ROW", "fields": [
            {"id": 1, "name": "a", "type": "INT"}, {"id": 2, "name": "b", "type": {"type": "ARRAY", "element": "STRING"}},
            {"id": 3, "name": "c", "type": {"type": "ROW", "fields": [{"id": 4, "name": "a", "type": "DECIMAL(10, 2)"}, {"id": 5, "name": "b", "type": "VARIANT"}]}},
            {"id": 6, "name": "key", "type": "DOUBLE"}, {"id": 7, "name": "中", "type": "BOOLEAN"}, {"id": 8, "name": "a b", "type": "BIGINT"},
        ]}}],
    })
}  # fmt: skip
KINDS = {
    "plain": Kind(COLUMNS, options={"bucket": "-1"}),
    "pk": Kind(COLUMNS, primary_key=["id"], options={"bucket": "1"}),
    "shredded": Kind(COLUMNS, options={"bucket": "-1", **SHREDDED}),
    "shredded pk": Kind(COLUMNS, primary_key=["id"], options={"bucket": "1", **SHREDDED}),
    "inferred": Kind(COLUMNS, options={"bucket": "-1", "variant.inferShreddingSchema": "true"}),
    "inferred adaptive": Kind(
        COLUMNS, options={"bucket": "-1", "variant.inferShreddingSchema": "true", "variant.shredding.inferenceMode": "adaptive", "target-file-row-num": "7"}
    ),
}


def text_of(rng: random.Random) -> str | None:
    """Objects for the most part, whose fields are often of one type."""
    kind = rng.random()
    if kind < 0.1:
        return None
    if kind < 0.3:
        return json_text(json_value(rng))
    made = {key: json_value(rng, 2) for key in rng.sample(["a", "b", "c", "key", "中", "", "x"], rng.randrange(6))}
    if rng.random() < 0.7:
        made |= {"a": rng.randrange(-300, 300), "b": ["x", "y"][: rng.randrange(3)], "c": {"a": json_value(rng, 4), "z": 1}}
    return json_text(made)


def with_named_keys(text: str | None) -> str | None:
    """The text without empty keys, of which Java cannot infer a shredding."""
    return text and text.replace('"": ', '"blank": ')


def rows(rng: random.Random, count: int, text_of=text_of) -> list[tuple[int, str | None, list | None]]:
    made = []
    for at in rng.sample(range(60), count):
        items = None if rng.random() < 0.3 else [text_of(rng) for _ in range(rng.randrange(3))]
        made.append((at, text_of(rng), items))
    return made


def printed(text: str | None) -> str | None:
    return None if text is None else variant(text).to_json()


def ours_of(found: dict | None) -> str | None:
    return None if found is None else Variant(**found).to_json()


def theirs_of(found: dict | None) -> str | None:
    """What Java printed; its own bytes mean the same to us."""
    if found is None:
        return None
    ours = Variant(bytes.fromhex(found["value"]), bytes.fromhex(found["metadata"])).to_json()
    assert json.loads(ours) == json.loads(found["json"])
    return ours


def agree(pair: Pair, expected: list) -> None:
    ours = sorted(str((row["id"], ours_of(row["j"]), row["a"] and [ours_of(item) for item in row["a"]])) for row in pair.table().to_arrow().to_pylist())
    theirs = sorted(str((row["id"], theirs_of(row["j"]), row["a"] and [theirs_of(item) for item in row["a"]])) for row in pair.step("read"))
    wanted = sorted(str((at, printed(text), items and [printed(item) for item in items])) for at, text, items in expected)
    assert ours == wanted
    assert theirs == wanted


def play(java, tmp_path, kind: str, first: str, seed: int, turns: int = 4) -> None:
    rng = random.Random(f"{kind} {first} {seed}")
    pair = Pair(java("2.0.0"), tmp_path, f"t{seed}")
    pair.create(KINDS[kind], first)
    expected: dict[int, tuple] = {}
    for turn in range(turns):
        new = rows(rng, 15, (lambda rng: with_named_keys(text_of(rng))) if "inferred" in kind else text_of)
        if (turn % 2 == 0) == (first == "o"):
            pair.table().write_arrow([{"id": at, "j": text, "a": items and [item and variant(item) for item in items]} for at, text, items in new])
        else:
            box = lambda text: text and {"json": text}  # noqa: E731
            pair.step("write", rows=[{"id": at, "j": box(text), "a": items and [box(item) for item in items]} for at, text, items in new])
        by = (lambda row: row[0]) if KINDS[kind].primary_key else (lambda _: len(expected))
        for row in new:
            expected[by(row)] = row
        if turn == 2:
            who = rng.choice("oj")
            pair.table().compact(full=True) if who == "o" else pair.step("compact", full=True)
        agree(pair, list(expected.values()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", "oj")
def test_variants_are_the_same_for_both(java, tmp_path, kind, first):
    for seed in range(2):
        play(java, tmp_path, kind, first, seed)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", "oj")
def test_variants_are_the_same_for_both_many_times(java, tmp_path, kind, first):
    for seed in range(100, 160):
        play(java, tmp_path, kind, first, seed)


def test_values_that_json_does_not_have_are_read_by_java(java, tmp_path):
    """Dates, times, bytes and UUIDs of ours, as Java prints them."""
    pair, rng = Pair(java("2.0.0"), tmp_path), random.Random(3)
    pair.create(Kind([["id", "INT"], ["j", "VARIANT"]], options={"bucket": "-1"}), "o")
    made = [variant([value(rng)]) for _ in range(150)]
    pair.table().write_arrow([{"id": at, "j": one} for at, one in enumerate(made)])
    for row in pair.step("read"):
        one = made[row["id"]]
        assert (row["j"]["value"], row["j"]["metadata"]) == (one.value.hex(), one.metadata.hex())
        assert json.loads(row["j"]["json"]) == json.loads(one.to_json())


def test_casts_are_those_of_java(java, tmp_path):
    """What `variant_get` gives, or refuses, for random values and types."""
    rng = random.Random(5)
    kinds = ["BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "STRING", "VARCHAR(4)", "DATE", "TIMESTAMP(3)"]
    texts = [json_text(json_value(rng, 2)) for _ in range(120)]
    for or_null in (False, True):
        steps = [{"op": "variant", "value": {"json": text}, "get": [["$", kind] for kind in kinds], "failOnError": not or_null} for text in texts]
        for text, output in zip(texts, java("2.0.0").run(str(tmp_path), steps, check=True)):
            for kind, theirs in zip(kinds, output["result"]["get"]):
                if isinstance(theirs, dict) and "scale must be" in theirs["error"]:
                    continue  # Java takes zeros at the end of a large integer for a negative scale
                same_cast(text, kind, or_null, theirs)


def same_cast(text: str, kind: str, or_null: bool, theirs) -> None:
    from paimon_py import SchemaError

    try:
        ours = variant(text).get("$", kind, or_null=or_null)
    except SchemaError:
        assert isinstance(theirs, dict) and "error" in theirs, (text, kind, theirs)
        return
    if kind.startswith("TIMESTAMP"):
        ours = None if ours is None else ours.isoformat(timespec="milliseconds")
        theirs = None if theirs is None else (theirs + ":00" if theirs.count(":") == 1 else theirs)
        theirs = theirs if theirs is None or "." in theirs else theirs + ".000"
    elif isinstance(ours, float):
        assert str(theirs) == str(ours) or float(theirs) == pytest.approx(ours, rel=1e-6), (text, kind)
        return
    elif kind.startswith(("DECIMAL", "DATE")):
        ours = None if ours is None else str(ours)
    assert ours == theirs, (text, kind)
