"""Data files outside the table, in another directory of it, or without key columns: one writes, the other reads and compacts."""

from __future__ import annotations

import itertools
import pathlib

import pytest
from pair import Kind, Pair

from paimon_py import Catalog
from paimon_py.spec.external_paths import entropy

pytestmark = pytest.mark.java

PLACES = {
    "round-robin": {"data-file.external-paths": "file://{here}/one, file:{here}/two/", "strategy": "round-robin"},
    "specific-fs": {"data-file.external-paths": "oss://b/no,file://{here}/one", "strategy": "specific-fs", "specific-fs": "FILE"},
    "entropy": {"data-file.external-paths": "file://{here}/one,file://{here}/two", "strategy": "entropy-inject"},
    "weights": {"data-file.external-paths": "file://{here}/one,file://{here}/two", "strategy": "weight-robin", "weights": "1, 3"},
    "none": {"data-file.external-paths": "file://{here}/one"},
    "directory": {"data-file.path-directory": "deep/data"},
    "directory-outside": {"data-file.path-directory": "data", "data-file.external-paths": "file://{here}/one", "strategy": "round-robin"},
}  # fmt: skip
KEYED = Kind([["k", "INT NOT NULL"], ["p", "STRING NOT NULL"], ["v", "STRING"]], ["k", "p"], ["p"], {"bucket": "2", "write-only": "true"})
APPEND = Kind([["k", "INT"], ["p", "STRING"], ["v", "STRING"]], [], ["p"], {"bucket": "-1", "write-only": "true"})
CASES = [
    *itertools.product(("2.0.0",), PLACES, ("keyed", "append")),
    *(("1.4.2", place, "keyed") for place in PLACES if place != "weights"),
]


def rows(*numbers: int, v: str = "v") -> list[dict]:
    return [{"k": number, "p": ("a", "b:%20 ü")[number % 2], "v": f"{v}{number}"} for number in numbers]


def options(place: str, here: pathlib.Path) -> dict[str, str]:
    prefix = "data-file.external-paths."
    return {
        name if name.startswith("data-file") else prefix + name: text.format(here=here) for name, text in PLACES[place].items()
    }


def data_files(directory: pathlib.Path) -> set[pathlib.Path]:
    return {path.relative_to(directory) for path in directory.rglob("data-*.*") if not path.name.endswith(".crc")}


def check_places(pair: Pair, place: str, here: pathlib.Path) -> None:
    """Files lie where the options say, whoever wrote them."""
    inside, outside = data_files(pair.path), data_files(here / "one") | data_files(here / "two")
    if place in ("none", "directory"):
        assert inside and not outside
        assert all(path.parts[:2] == ("deep", "data") for path in inside) == (place == "directory")
        return
    assert outside and not inside
    for path in outside:
        start = ("data",) if place == "directory-outside" else ()
        ending = tuple(entropy(path.name).split("/")) if place == "entropy" else ()
        assert path.parts[: len(start)] == start
        assert path.parts[len(start)].startswith("p=") and path.parts[len(start) + 1].startswith("bucket-")
        assert path.parts[len(start) + 2 : -1] == ending, "Java computes other directories"


@pytest.mark.parametrize(("version", "place", "kind"), CASES, ids=map("-".join, CASES))
def test_files_elsewhere_are_read_and_compacted_by_the_other(java, tmp_path, version, place, kind):
    base = KEYED if kind == "keyed" else APPEND
    base = Kind(base.columns, base.primary_key, base.partition_by, {**base.options, **options(place, tmp_path)})
    for creator, other in ("oj", "jo"):
        here = tmp_path / creator
        base = Kind(base.columns, base.primary_key, base.partition_by, {**base.options, **options(place, here)})
        pair = Pair(java(version), here / "w")
        pair.create(base, creator)
        pair.act(("write", rows(*range(40))), creator)
        pair.agree()
        pair.act(("write", rows(*range(30, 50), v="w")), other)
        pair.agree()
        pair.step("compact", full=True)
        before = pair.agree()
        pair.act(("write", rows(1, 2, 60, v="x")), "j")
        pair.act(("compact", True), "o")
        after = pair.agree()
        assert len(after) == len(before) + (1 if kind == "keyed" else 3)
        check_places(pair, place, here)


THIN_KEYS = [["k", "INT NOT NULL"], ["s", "STRING NOT NULL"], ["d", "DECIMAL(20, 2) NOT NULL"], ["v", "STRING"], ["n", {"type": "ARRAY", "element": "INT"}]]
THIN = Kind(THIN_KEYS, ["s", "k", "d"], options={"bucket": "2", "write-only": "true", "data-file.thin-mode": "true"})


def thin_rows(*numbers: int, v: str = "v") -> list[dict]:
    return [{"k": n, "s": f"s{n % 3}", "d": f"{n}.25", "v": None if n % 5 == 0 else f"{v}{n}", "n": [n, None]} for n in numbers]


@pytest.mark.parametrize("version", ["2.0.0", "1.4.2"])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_without_key_columns_are_read_and_compacted_by_the_other(java, tmp_path, version, file_format):
    kind = Kind(THIN.columns, THIN.primary_key, options={**THIN.options, "file.format": file_format})
    for creator, other in ("oj", "jo"):
        pair = Pair(java(version), tmp_path / creator)
        pair.create(kind, creator)
        pair.act(("write", thin_rows(*range(60))), creator)
        pair.agree()
        pair.act(("write", thin_rows(*range(50, 70), v="w") + [{**row, "_kind": "-D"} for row in thin_rows(3, 4)]), other)
        assert len(pair.agree()) == 68
        pair.step("compact", full=True)
        assert len(pair.agree()) == 68
        pair.act(("alter", ["set", "data-file.thin-mode", "false"]), "o")
        pair.act(("write", thin_rows(1, 100, v="fat")), "o")
        pair.act(("alter", ["set", "data-file.thin-mode", "true"]), "o")
        pair.act(("write", thin_rows(2, 101, v="thin")), "o")
        assert len(pair.agree()) == 70
        pair.act(("compact", True), "o")
        rows_now = pair.agree()
        where = "s = 's2' and k >= 50"
        assert len(pair.our_rows(where=where)) == sum(row[1] == "s2" and row[0] >= 50 for row in rows_now)


@pytest.mark.parametrize("beside", ["true", "false"])
def test_deletion_vectors_of_files_outside_are_read_and_replaced_by_the_other(java, tmp_path, beside):
    more = {"deletion-vectors.enabled": "true", "index-file-in-data-file-dir": beside}
    for creator, other in ("oj", "jo"):
        here = tmp_path / creator
        kind = Kind(KEYED.columns, KEYED.primary_key, KEYED.partition_by, {**KEYED.options, **options("round-robin", here), **more})
        pair = Pair(java("2.0.0"), here / "w")
        pair.create(kind, creator)
        for start, by in ((0, creator), (10, other), (5, creator)):
            pair.act(("write", rows(*range(start, start + 30), v=f"v{start}")), by)
            pair.act(("compact", start == 0), by)
            pair.agree()
        assert data_files(here / "one") | data_files(here / "two") and not data_files(pair.path)
        pair.act(("compact", True), other)
        assert len(pair.agree()) == 40
        Catalog.open(str(pair.warehouse)).drop_table(pair.name)
        left = [path for path in here.rglob("*") if path.is_file() and "w" not in path.relative_to(here).parts[:1]]
        assert not [path for path in left if path.suffix != ".crc"]


def test_java_expires_our_files_outside_the_table(java, tmp_path):
    kind = Kind(KEYED.columns, KEYED.primary_key, KEYED.partition_by, {**KEYED.options, **options("round-robin", tmp_path)})
    pair = Pair(java("2.0.0"), tmp_path / "w")
    pair.create(kind, "o")
    for start in (0, 5):
        pair.our_write(rows(*range(start, start + 20)))
    ours = data_files(tmp_path / "one") | data_files(tmp_path / "two")
    pair.step("compact", full=True)
    assert pair.step("expire", min=1, max=1, retainMillis=0) == 2
    left = data_files(tmp_path / "one") | data_files(tmp_path / "two")
    assert left and not left & ours
    pair.agree()
