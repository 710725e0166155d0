"""Manifests, statistics and snapshots: ours are described by Java as its own of the same rows are."""

from __future__ import annotations

import json
import re

import pytest
from pair import Kind, differences, play, same_histories, same_metadata
from values import canonical_rows, difference

pytestmark = pytest.mark.java

COLUMNS = [["k", "INT NOT NULL"], ["s", "STRING"], ["b", "BYTES"], ["d", "DECIMAL(24, 4)"], ["t", "TIMESTAMP(6)"],
           ["f", "DOUBLE"], ["a", {"type": "ARRAY", "element": "INT"}]]  # fmt: skip
LONG = "hello world this is long"
ROWS = [
    {"k": 1, "s": LONG, "b": "00" * 40, "d": "1.0000", "t": "2024-01-02T03:04:05.000001", "f": 1.5, "a": [1]},
    {"k": 2, "s": "z" * 15 + "\U0010ffff" * 4, "b": "ff" * 40, "d": "-5.0000", "t": "1969-12-31T23:59:58.500000", "f": -2.0},
    {"k": 3, "s": "", "a": []},
    {"k": 4, "_kind": "-D"},
]
MODES = {
    "none": {"metadata.stats-mode": "none"},
    "counts": {"metadata.stats-mode": "counts"},
    "full": {"metadata.stats-mode": "full"},
    "truncate-3": {"metadata.stats-mode": "truncate(3)"},
    "default": {},
    "per-field": {"metadata.stats-mode": "counts", "fields.s.stats-mode": "truncate(2)", "fields.d.stats-mode": "full", "fields.k.stats-mode": "none"},
    "first-columns": {"metadata.stats-keep-first-n-columns": "2"},
    "per-level": {"metadata.stats-mode": "full", "metadata.stats-mode.per.level": "0:none"},
}  # fmt: skip

_OURS_ALONE = re.compile(r'  "properties" : \{\n(?:    "paimon-py\..*\n)+  \},\n')
"""Properties of a snapshot, none of which Java knows."""


@pytest.mark.parametrize("fmt", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("mode", MODES)
def test_statistics_are_kept_alike_in_every_mode(mode, fmt, java, tmp_path):
    kind = Kind(COLUMNS, ["k"], options={"bucket": "1", "file.format": fmt, "write-only": "true", **MODES[mode]})
    pairs = play(java("2.0.0"), tmp_path, kind, [("write", ROWS), ("write", ROWS[:1]), ("write", ROWS[2:3])])
    same_histories(pairs)
    same_metadata(pairs)
    rows = pairs["o"].agree()
    for pair in pairs.values():
        pair.check_filters([["=", "s", LONG], ["isNull", "b"], [">", "d", "0"], ["<", "t", "1970-01-01T00:00:00"]], rows)


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_many_commits_merge_their_manifests(keyed, java, tmp_path):
    options = {"bucket": "1", "manifest.merge-min-count": "2", "manifest.full-compaction-threshold-size": "1 b"}
    options |= {"write-only": "true"} if keyed else {"bucket-key": "k"}
    kind = Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"] if keyed else [], options=options)
    script = [("write", [{"k": k, "v": f"v{k}"}, {"k": 0, "v": f"last {k}"}]) for k in range(1, 8)]
    script[4:4] = [("overwrite", {}, [{"k": 50, "v": "over"}])]
    pairs = play(java("2.0.0"), tmp_path, kind, script)
    same_histories(pairs)
    same_metadata(pairs)
    for turn, pair in pairs.items():
        made = pair.step("manifests")
        assert len(made["base"]) <= 2, f"{turn}: manifests are not merged"
        before = pair.agree()
        pair.step("compact", manifests=True)
        pair.step("compact", options={"write-only": "false"})
        pair.our_write([{"k": 1000, "v": "after"}])
        want = [*before, *canonical_rows(pair.columns(), [{"k": 1000, "v": "after"}])]
        assert difference(pair.columns(), want, pair.agree()) is None, turn


def test_manifests_are_described_alike(java, tmp_path):
    columns = [["p", "STRING NOT NULL"], ["k", "INT NOT NULL"], ["v", "STRING"]]
    kind = Kind(columns, ["p", "k"], ["p"], {"bucket": "3", "write-only": "true"})
    rows = [{"p": p, "k": k, "v": "x"} for p in ("b", "a", " ") for k in range(6)]
    pairs = play(java("2.0.0"), tmp_path, kind, [("write", rows), ("overwrite", {"p": "a"}, rows[6:8]), ("write", rows[:3])], turns=("o", "j"))
    described = {}
    for turn, pair in pairs.items():
        described[turn] = [manifest_facts(pair.step("manifests", snapshot=number)) for number in (1, 2, 3)]
    assert differences(described["o"], described["j"]) == []


def manifest_facts(made: dict) -> dict:
    """What manifests say, without names, sizes and entries."""
    return {
        part: [{k: v for k, v in each.items() if k not in ("fileName", "fileSize", "entries")} for each in made[part]]
        for part in ("base", "delta")
    }


@pytest.mark.parametrize("fmt", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "append"])
def test_small_target_files_roll_and_stay_in_order(keyed, fmt, java, tmp_path):
    options = {"bucket": "1", "target-file-size": "20 kb", "file.format": fmt, "file.compression": "null" if fmt == "avro" else "none"}
    options |= {"write-only": "true"} if keyed else {"bucket-key": "k"}
    kind = Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"] if keyed else [], options=options)
    rows = [{"k": (k * 7919) % 3000, "v": f"{k:04d}" * 30} for k in range(3000)]
    pairs = play(java("2.0.0"), tmp_path, kind, [("write", rows), ("write", rows[::10])], turns=("o", "j"))
    same_histories(pairs)
    files = pairs["o"].step("files")
    assert len(files) > 3, "one file of everything"
    assert max(file["fileSize"] for file in files) < 3 * max(file["fileSize"] for file in pairs["j"].step("files"))
    for pair in pairs.values():
        before = pair.agree()
        pair.check_filters([["=", "k", 17], ["between", "k", 100, 120]], before)
        pair.step("compact", options={"write-only": "false"})
        assert difference(pair.columns(), before, pair.agree()) is None


def test_the_json_of_snapshots_and_schemas_has_the_keys_of_java(java, tmp_path):
    kind = Kind([["k", "INT NOT NULL"], ["v", "STRING"]], ["k"], options={"bucket": "1", "write-only": "true"})
    script = [("write", [{"k": 1}], {"watermark": 7}), ("alter", ["add", "w", "INT"]), ("overwrite", {}, [{"k": 2}]), ("truncate",), ("tag", "t")]
    pairs = play(java("2.0.0"), tmp_path, kind, script, turns=("o", "j"))
    names = ["schema/schema-0", "schema/schema-1", "snapshot/snapshot-1", "snapshot/snapshot-2", "snapshot/snapshot-3", "tag/tag-t"]
    for name in names:
        ours, theirs = (_OURS_ALONE.sub("", (pairs[turn].path / name).read_text()) for turn in ("o", "j"))
        assert list(json.loads(ours)) == list(json.loads(theirs)), name
        blank = [" : ".join(line.split(" : ")[:-1]) for line in ours.splitlines()]
        assert blank == [" : ".join(line.split(" : ")[:-1]) for line in theirs.splitlines()], f"{name} is laid out otherwise"
    assert {turn: (pairs[turn].path / "snapshot" / "LATEST").read_text() for turn in ("o", "j")} == {"o": "3", "j": "3"}
