"""A table as Java's child and as ours: twins that start from the same files, so that the same sizes decide.

After every compaction the twins must hold the same rows, on the same levels, in files that are described alike (row and
delete counts, sequence numbers, keys, statistics), with the same rows of the same files dead. Then one of them lives on
and is copied for the next compaction, so that each side goes on from what the other one made.
"""

from __future__ import annotations

import json
import random
import shutil

from pair import Kind, Pair, differences, forgive, sorted_facts
from values import difference


def kind_with(kind: Kind, **options: str) -> Kind:
    """The kind with more options, or others."""
    return Kind(kind.columns, kind.primary_key, kind.partition_by, {**kind.options, **options})


class Twins:
    """One table as Java's child and as ours."""

    def __init__(self, java, tmp_path, kind: Kind, rng: random.Random) -> None:
        self.kind = kind
        self.rng = rng
        self.theirs = Pair(java, tmp_path / "theirs")
        self.ours = Pair(java, tmp_path / "ours")
        self.theirs.create(kind, rng.choice("oj"))

    def write(self, rows: list[dict], by: str) -> None:
        self.theirs.act(("write", rows), by)

    def compact(self, *, full: bool, alike: bool = True) -> None:
        """Compact both; `alike`: every file is compared, not only rows."""
        shutil.rmtree(self.ours.warehouse, ignore_errors=True)
        shutil.copytree(self.theirs.warehouse, self.ours.warehouse)
        self.theirs.step("compact", full=full)
        table = self.ours.table()
        for _ in range(2 if self.kind.primary_key and not full else 1):  # Java picks once more before it commits
            table.compact(full=full)
        self.check(alike)
        if self.rng.random() < 0.5:
            shutil.rmtree(self.theirs.warehouse)
            shutil.copytree(self.ours.warehouse, self.theirs.warehouse)

    def check(self, alike: bool) -> None:
        columns = self.theirs.columns()
        rows = self.theirs.agree()
        assert difference(columns, rows, self.ours.agree()) is None, "we compacted to other rows than Java"
        for pair in (self.theirs, self.ours):
            assert pair.table().scan().count() == len(rows)
        if alike:
            theirs, ours = (sorted_facts(pair.step("files")) for pair in (self.theirs, self.ours))
            forgive(ours, theirs, columns, self.kind.options.get("file.format", "parquet"))
            assert not (unlike := differences(ours, theirs)), unlike
            theirs, ours = dead(self.theirs), dead(self.ours)
            assert ours == theirs, f"we have {ours} dead, Java {theirs}"


def dead(pair: Pair) -> list:
    """The dead rows of every file, and what the index manifest says of their number; files by their place."""
    files = {file["fileName"]: file for file in pair.step("files")}
    found = []
    for entry in pair.step("manifests").get("index") or []:
        assert entry["kind"] == "ADD"
        vectors = entry["deletionVectors"] or {}
        assert entry["rowCount"] == len(vectors)
        for name, vector in vectors.items():
            assert vector["cardinality"] == len(vector["positions"])
            file = files[name]
            place = [file["partition"], file["bucket"], file["level"], file["minKey"], file["rowCount"]]
            found.append(json.dumps([place, vector["positions"]]))
    return sorted(found)
