"""Tables of every changelog producer, merge engine and bucket mode, with and without deletion vectors."""

from __future__ import annotations

from model.table_modes import AGGREGATES, BY_KEY, DYNAMIC, VECTORS, Mode

ENGINES = {
    "deduplicate": {},
    "partial update": {"merge-engine": "partial-update"},
    "aggregation": AGGREGATES,
    "first row": {"merge-engine": "first-row"},
}
PRODUCERS = {
    "none": {},
    "input": {"changelog-producer": "input"},
    "lookup": {"changelog-producer": "lookup"},
    "lookup, changed rows": {"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"},
    "full compaction": {"changelog-producer": "full-compaction"},
    "full compaction, often": {
        "changelog-producer": "full-compaction", "full-compaction.delta-commits": "2",
        "changelog-producer.row-deduplicate": "true", "changelog-producer.row-deduplicate-ignore-fields": "n",
    },
}  # fmt: skip
PLACES = {
    "one bucket": ({"bucket": "1"}, {}),
    "buckets in parts": ({"bucket": "2"}, {"parted": True}),
    "dynamic": (DYNAMIC, {}),
    "keys that move": (DYNAMIC, {"parted": True, "moves": True}),
    "write-only": ({"bucket": "2", "write-only": "true"}, {}),
}


def _is_allowed(engine: str, producer: str, place: str) -> bool:
    if engine == "first row" and producer not in ("none", "lookup"):
        return False
    return place != "keys that move" or engine in ("deduplicate", "partial update")


KEYED = tuple(
    Mode(name=f"{producer}: {engine}, {place}", options={**options, **ENGINES[engine], **PRODUCERS[producer]}, **more)
    for engine in ENGINES
    for producer in PRODUCERS
    for place, (options, more) in PLACES.items()
    if _is_allowed(engine, producer, place)
)
MARKED = tuple(
    Mode(
        name=f"{producer}: {engine}, {place} with vectors",
        options={**PLACES[place][0], **ENGINES[engine], **PRODUCERS[producer], **VECTORS}, **PLACES[place][1],
    )
    for engine in ("deduplicate", "partial update", "aggregation")
    for producer in ("none", "input", "lookup", "lookup, changed rows")
    for place in ("one bucket", "buckets in parts", "dynamic", "write-only")
)  # fmt: skip
PASSING = {"streaming-read-append-overwrite": "false"}
APPENDED = tuple(
    Mode(name=f"append {name}", options={**options, **PASSING}, keyed=False, parted=parted)
    for name, options, parted in (
        ("without buckets", {"bucket": "-1"}, False),
        ("in parts", {"bucket": "-1"}, True),
        ("with vectors", {"bucket": "-1", **VECTORS}, False),
        ("in buckets", BY_KEY, True),
    )
)
MODES = (*KEYED, *MARKED, *APPENDED)
