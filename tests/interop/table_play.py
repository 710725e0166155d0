"""Plays scripts about bucket modes and rows as engine scripts are played, and compares buckets and first rows as well."""

from __future__ import annotations

import json

import golden
from engine_play import Disagreement, Played
from engine_play import check as check_rows
from engine_scripts import Script
from values import ours

DRAWN = ("dynamic-bucket.max-buckets",)
"""Options with which Java draws lots for the bucket of a new key."""


def check(script: Script, tables: dict[str, Played]) -> None:
    """All tables hold the same after every step, the same keys in the same buckets.

    Raises: Disagreement.
    """
    rows = check_rows(script, tables)
    if tables["j"].failed is not None:
        return
    found = {turn: _buckets(script, played) for turn, played in tables.items()}
    if not buckets_differ(script):
        for turn, steps in found.items():
            for number, (mine, theirs) in enumerate(zip(steps, found["j"], strict=True)):
                if mine != theirs:
                    raise Disagreement(f"{turn}: buckets after step {number} are {mine}, Java's {theirs}")
    for turn, played in tables.items():
        _check_first_rows(turn, played, rows.get(turn, []))


def buckets_differ(script: Script) -> bool:
    """Whether the bucket of a row is not a matter of the rows alone."""
    verbs = {step[0] for step in script.steps}
    begun_anew = _is_dynamic(script) and "overwrite" in verbs  # by Java's engines and us, not by the oracle
    return begun_anew or "shared" in verbs or any(option in script.options for option in DRAWN)


def _is_dynamic(script: Script) -> bool:
    return bool(script.primary_key) and script.options.get("bucket", "-1") == "-1"


def _buckets(script: Script, played: Played) -> list:
    """After each step: the bucket of every key, and what the hash index says."""
    if not script.primary_key and "bucket-key" not in script.options:
        return [None for _ in played.ends]
    ends = sorted({end for end in played.ends if end})
    asked = [{"op": "manifests", "snapshot": end} for end in ends]
    index = played.pair.steps(asked) if _is_dynamic(script) else [None for _ in ends]
    states = {0: None}
    for end, manifests in zip(ends, index, strict=True):
        states[end] = (_places(played, end), manifests and _hashes(manifests["index"]))
    return [states[end] for end in played.ends]


def _places(played: Played, end: int) -> dict[str, int]:
    """The bucket of every key, whose columns may change their names and places."""
    table = played.pair.table()
    schema = json.loads((played.pair.path / "schema" / f"schema-{table.snapshot(end).schema_id}").read_text())
    types = {field["name"]: field["type"] for field in schema["fields"]}
    names = [*schema["partitionKeys"], *(schema["primaryKeys"] or schema["options"]["bucket-key"].split(","))]
    columns = [[name, types[name]] for name in dict.fromkeys(names)]
    places: dict[str, int] = {}
    scan = table.scan(snapshot_id=end, columns=[name for name, _ in columns])
    for split in scan.splits():
        for row in ours(columns, scan.read(split).read_all()):
            key = json.dumps(row)
            if places.setdefault(key, split.bucket) != split.bucket:
                raise Disagreement(f"{played.pair.name}: {key} lies in buckets {places[key]} and {split.bucket} of snapshot {end}")
    return places


def _hashes(index: list[dict]) -> list:
    return sorted((str(entry["partition"]), entry["bucket"], sorted(entry["hashes"])) for entry in index or [] if entry["indexType"] == "HASH")


def _check_first_rows(turn: str, played: Played, theirs: list) -> None:
    """The first rows in an order, any few rows, and how many there are, as all rows that Java reads say."""
    table = played.pair.table()
    columns = played.pair.columns(table.snapshot().schema_id)
    rows = [dict(zip((name for name, _ in columns), row)) for row in theirs]
    if table.scan().count() != len(rows) or table.scan(limit=3).to_arrow().num_rows != min(3, len(rows)):
        raise Disagreement(f"{turn}: we count {table.scan().count()} rows, Java reads {len(rows)}")
    for name, backwards in (("n", True), ("v", False)):
        kind = golden.parse_type(dict(columns)[name])
        known = sorted((row[name] for row in rows if row[name] is not None), key=lambda value: golden.order_key(value, kind), reverse=backwards)
        want = [*known, *(None for _ in rows[len(known) :])][:4]
        got = table.scan(columns=[name], order_by=(name, "descending" if backwards else "ascending"), limit=4).to_arrow()
        if got[name].to_pylist() != want:
            raise Disagreement(f"{turn}: first values of {name} are {got[name].to_pylist()}, Java's {want}")
