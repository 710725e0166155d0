"""Avro files, metadata and data alike, as other libraries write them: other codecs, blocks, names, fields and nullability."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from foreign import avro_bytes
from foreign.avro_bytes import CODECS, Branch, Container, Style
from foreign.place import Place, plain

METADATA = ("manifest", "list", "index")
NUMBERS = ("int", "long")
NEW_FIELDS = (
    (["null", "long"], Branch(0, None)), (["null", "string"], Branch(1, "x")), ("int", 7), ("string", "é"), ("bytes", b"\0\1"),
    ({"type": "array", "items": "long"}, [1, 2]), ({"type": "map", "values": "string"}, [("a", "b")]), ("boolean", True), ("double", 1.5),
    ({"type": "record", "name": "extra_r", "fields": [{"name": "a", "type": ["null", "int"], "default": None}]}, {"a": Branch(1, 5)}),
    ({"type": "enum", "name": "extra_e", "symbols": ["A", "B"]}, 1), ({"type": "fixed", "name": "extra_f", "size": 3}, b"abc"),
    (["string", "null"], Branch(0, "y")), (["null", "int", "string"], Branch(2, "z")), ({"type": "int", "logicalType": "date"}, 3),
)  # fmt: skip


@dataclasses.dataclass
class Slot:
    """A field of a record, and all records of the file that hold it."""

    record: dict
    field: dict
    values: list[dict]

    @property
    def name(self) -> str:
        return self.field["name"]


def record_of(schema: Any) -> dict:
    """The record of a schema, which may be nullable."""
    return next(part for part in schema if part != "null") if isinstance(schema, list) else schema


def slots(schema: Any, values: list[Any]) -> Iterator[Slot]:
    """All fields of a schema, also within records and arrays of them."""
    if isinstance(schema, list):
        for index, part in enumerate(schema):
            if isinstance(part, dict):
                yield from slots(part, [value.value for value in values if value.index == index])
    elif isinstance(schema, dict) and schema.get("type") == "record":
        for field in schema["fields"]:
            yield Slot(schema, field, values)
            yield from slots(field["type"], [value[field["name"]] for value in values])
    elif isinstance(schema, dict) and schema.get("type") == "array":
        yield from slots(schema["items"], [item for value in values for item in value])


Change = Callable[[Place, Container], tuple[Style, str] | None]
"""Changes schema and records in place."""


def _style(container: Container, **how: Any) -> Style:
    return Style(container.codec)._replace(**how)


def codec(place: Place, container: Container) -> tuple[Style, str]:
    name = place.draw.choice(CODECS)
    return _style(container, codec=name), f"codec {name}"


def codec_untold(place: Place, container: Container) -> tuple[Style, str]:
    return _style(container, codec="null", is_codec_told=False), "no codec in the header"


def blocks(place: Place, container: Container) -> tuple[Style, str]:
    count = place.draw.choice([0, 1, 2, 3])
    empties = tuple(place.draw.random() < 0.5 for _ in range(3))
    name = place.draw.choice(["null", "zstandard", "deflate", "snappy"])
    return _style(container, per_block=count, empties=empties, codec=name), f"{count} records in a {name} block, empty ones {empties}"


def arrays(place: Place, container: Container) -> tuple[Style, str]:
    sized, split = place.draw.choice([(True, False), (False, True), (True, True)])
    return _style(container, sized=sized, split=split), f"arrays in blocks: with sizes {sized}, split {split}"


def header(place: Place, container: Container) -> tuple[Style, str]:
    more = tuple(place.draw.sample([("writer.name", b"x"), ("a", b""), ("avro.other", b"1"), ("iceberg.schema", b"{}"), ("z\u00e9", b"\xff")], 2))
    return _style(container, metadata=more, indent=place.draw.choice([None, 2]), sync=place.draw.randbytes(16)), f"header with {more}"


def names(place: Place, container: Container) -> tuple[Style, str]:
    """Other names of records and other name spaces."""
    for number, record in enumerate(_records(container.schema)):
        form = place.draw.choice(["r{}", "org.example.R{}", "record_{}_", "keep"])
        if form != "keep":
            record["name"] = form.format(number)
            record.pop("namespace", None)
        if place.draw.random() < 0.4:
            record["namespace"] = "org.other"
    return _style(container), "other names of records"


def notes(place: Place, container: Container) -> tuple[Style, str]:
    """Documentation, aliases, properties and defaults, which no bytes depend on."""
    for slot in slots(container.schema, container.records):
        pick = place.draw.random()
        if pick < 0.2:
            slot.field["doc"] = "a field"
        elif pick < 0.4:
            slot.field["aliases"] = ["alias_" + slot.name]
        elif pick < 0.6:
            slot.field["field-id"] = place.draw.randrange(1000)
        elif pick < 0.7:
            slot.field["order"] = "ignore"
        if slot.field["type"] == "string" and pick > 0.5:
            slot.field["type"] = {"type": "string", "avro.java.string": "String"}
        elif slot.field["type"] in NUMBERS and pick > 0.8:
            slot.field["type"] = {"type": slot.field["type"]}
        if pick > 0.9:
            slot.field.pop("default", None)
    return _style(container), "notes in the schema"


def order(place: Place, container: Container) -> tuple[Style, str]:
    """Fields in another order, as the writer has them by name."""
    for record in _records(container.schema):
        place.draw.shuffle(record["fields"])
    return _style(container), "fields in another order"


def extra(place: Place, container: Container) -> tuple[Style, str]:
    kind, value = copy.deepcopy(place.draw.choice(NEW_FIELDS))
    slot = _slot(place, container)
    at = place.draw.choice([0, len(slot.record["fields"]), place.draw.randrange(len(slot.record["fields"]) + 1)])
    field = {"name": place.draw.choice(["_NEW", "extra_field", "_ROW_TRACKING"]), "type": kind}
    if isinstance(kind, list) and kind[0] == "null":
        field["default"] = None
    slot.record["fields"].insert(at, field)
    for value_of in slot.values:
        value_of[field["name"]] = value
    return _style(container), f"extra field {field['name']} of {kind} beside {slot.name}"


def missing(place: Place, container: Container) -> tuple[Style, str]:
    slot = _slot(place, container)
    slot.record["fields"].remove(slot.field)
    return _style(container), f"without {slot.name}"


def missing_tail(place: Place, container: Container) -> tuple[Style, str] | None:
    """As an older release: the last nullable fields of a record are not there."""
    tails = [(record, _tail(record)) for record in _records(container.schema)]
    tails = [(record, tail) for record, tail in tails if tail]
    if not tails:
        return None
    record, tail = place.draw.choice(tails)
    count = place.draw.randint(1, tail)
    gone = [field["name"] for field in record["fields"][-count:]]
    del record["fields"][-count:]
    return _style(container), f"without the last fields {gone}"


def _tail(record: dict) -> int:
    count = 0
    for field in reversed(record["fields"]):
        if not (isinstance(field["type"], list) and "null" in field["type"]):
            break
        count += 1
    return min(count, len(record["fields"]) - 1)


def nullable(place: Place, container: Container) -> tuple[Style, str] | None:
    """A field that is never null becomes nullable."""
    found = [slot for slot in slots(container.schema, container.records) if not isinstance(slot.field["type"], list)]
    if not found:
        return None
    whole = place.draw.random() < 0.2
    last = place.draw.random() < 0.5
    chosen = found if whole else [place.draw.choice(found)]
    for slot in chosen:
        kind = slot.field["type"]
        slot.field["type"] = [kind, "null"] if last else ["null", kind]
        for value in slot.values:
            value[slot.name] = Branch(0 if last else 1, value[slot.name])
    return _style(container), f"{'every field' if whole else chosen[0].name} is nullable, null {'behind' if last else 'first'}"


def not_null(place: Place, container: Container) -> tuple[Style, str] | None:
    """Nullable fields that hold no null become plain."""
    found = [
        slot for slot in slots(container.schema, container.records)
        if isinstance(slot.field["type"], list) and all(value[slot.name].value is not None for value in slot.values)
    ]  # fmt: skip
    if not found:
        return None
    slot = place.draw.choice(found)
    slot.field["type"] = next(part for part in slot.field["type"] if part != "null")
    slot.field.pop("default", None)
    for value in slot.values:
        value[slot.name] = value[slot.name].value
    return _style(container), f"{slot.name} is not nullable"


def null_last(place: Place, container: Container) -> tuple[Style, str] | None:
    found = [slot for slot in slots(container.schema, container.records) if isinstance(slot.field["type"], list)]
    if not found:
        return None
    for slot in found if place.draw.random() < 0.3 else [place.draw.choice(found)]:
        slot.field["type"].reverse()
        slot.field.pop("default", None)
        for value in slot.values:
            value[slot.name] = Branch(1 - value[slot.name].index, value[slot.name].value)
    return _style(container), f"null is the last branch of {slot.name}"


def items_nullable(place: Place, container: Container) -> tuple[Style, str] | None:
    """Items of arrays become nullable, or are no longer."""
    found = [slot for slot in slots(container.schema, container.records) if _array(slot.field["type"])]
    if not found:
        return None
    slot = place.draw.choice(found)
    array = _array(slot.field["type"])
    lists = [value for value in (plain(value[slot.name]) for value in slot.values) if value is not None]
    if isinstance(array["items"], list):
        if any(item.value is None for items in lists for item in items):
            return None
        array["items"] = next(part for part in array["items"] if part != "null")
        for items in lists:
            items[:] = [item.value for item in items]
    else:
        array["items"] = ["null", array["items"]]
        for items in lists:
            items[:] = [Branch(1, item) for item in items]
    return _style(container), f"items of {slot.name} are {array['items']}"


def promoted(place: Place, container: Container) -> tuple[Style, str] | None:
    """Another type of the same meaning: int for long, bytes for string, and the other way round."""
    others = {"int": ["long", "float"], "long": ["int", "double"], "string": ["bytes"], "bytes": ["string"], "float": ["double"], "boolean": ["int"]}
    found = [slot for slot in slots(container.schema, container.records) if _base(slot.field["type"]) in others]
    if not found:
        return None
    slot = place.draw.choice(found)
    was = _base(slot.field["type"])
    to = place.draw.choice(others[was])
    values = [plain(value[slot.name]) for value in slot.values]
    if to == "int" and any(isinstance(value, int) and abs(value) >= 2**31 for value in values):
        return None
    if to == "string" and not all(value is None or value.isascii() for value in values):
        return None
    kind = slot.field["type"]
    slot.field["type"] = [to if part == "null" or _base(part) == was and part != "null" else part for part in kind] if isinstance(kind, list) else to
    if isinstance(kind, list):
        slot.field["type"] = ["null" if part == "null" else to for part in kind]
    slot.field.pop("default", None)
    return _style(container), f"{slot.name} is {to}, not {was}"


def union_wide(place: Place, container: Container) -> tuple[Style, str] | None:
    """A branch more that no value takes."""
    found = [slot for slot in slots(container.schema, container.records) if isinstance(slot.field["type"], list)]
    if not found:
        return None
    slot = place.draw.choice(found)
    more = next(kind for kind in ("boolean", "double") if kind not in slot.field["type"])
    slot.field["type"].append(more)
    return _style(container), f"{slot.name} may be {more}, too"


def named_once(place: Place, container: Container) -> tuple[Style, str] | None:
    """Records of one shape are defined once and named where they come again."""
    found = [slot for slot in slots(container.schema, container.records) if isinstance(slot.field["type"], dict) and slot.field["type"].get("type") == "record"]
    for one in found:
        for other in found:
            alike = other.record is one.record and other.field["type"]["fields"] == one.field["type"]["fields"]
            if alike and one.record["fields"].index(one.field) < one.record["fields"].index(other.field):
                other.field["type"] = one.field["type"]["name"]
                return _style(container), f"{other.name} by the name of the type of {one.name}"
    return None


def outer_union(place: Place, container: Container) -> tuple[Style, str]:
    """The record itself, nullable or not."""
    if isinstance(container.schema, list):
        records = [record.value for record in container.records]
        schema = record_of(container.schema)
    else:
        last = place.draw.random() < 0.4
        schema = [container.schema, "null"] if last else ["null", container.schema]
        records = [Branch(0 if last else 1, record) for record in container.records]
    container.records[:] = records
    return _style(container, metadata=()), f"outermost {'record' if isinstance(schema, dict) else 'union'}", schema  # type: ignore[return-value]


def case_of_names(place: Place, container: Container) -> tuple[Style, str]:
    slot = _slot(place, container)
    name = slot.name
    slot.field["name"] = name.lower() if name != name.lower() else name.upper()
    for value in slot.values:
        value[slot.field["name"]] = value.pop(name)
    return _style(container), f"field {name} is called {slot.field['name']}"


SCHEMA_CHANGES: tuple[Change, ...] = (
    codec, codec_untold, blocks, arrays, header, names, notes, order, extra, missing, missing_tail, nullable, not_null, null_last,
    items_nullable, promoted, union_wide, named_once, outer_union, case_of_names,
)  # fmt: skip


def change_container(place: Place, path: Path, change: Change) -> str | None:
    container = avro_bytes.read(path.read_bytes())
    done = change(place, container)
    if done is None:
        return None
    style, about = done[:2]
    schema = done[2] if len(done) > 2 else container.schema
    place.keep(path, schema, container.records, style)
    return f"{path.name}: {about}"


def of_metadata(change: Change) -> Callable[[Place], str | None]:
    def changed(place: Place) -> str | None:
        path = place.one(place.draw.choice(METADATA))
        about = None if path is None else change_container(place, path, change)
        if about is not None:
            _settle_above(place, path)
        return about

    changed.__name__ = f"avro_{change.__name__}"
    return changed


def of_data(change: Change) -> Callable[[Place], str | None]:
    def changed(place: Place) -> str | None:
        paths = [path for path in place.files("data") if path.suffix == ".avro"]
        if not paths:
            return None
        about = [change_container(place, path, change) for path in (paths if place.draw.random() < 0.5 else [place.draw.choice(paths)])]
        if about[0] is None:
            return None
        place.settle()
        return str(about[0])

    changed.__name__ = f"data_avro_{change.__name__}"
    return changed


def _settle_above(place: Place, path: Path) -> None:
    """The sizes that name a metadata file, where it can still be taken apart."""
    if path.name.startswith("manifest-list"):
        place.settle_lists(place.files("list"))
    elif path.name.startswith("manifest-"):
        place.settle_metadata()


# -- values of metadata ---------------------------------------------------------------------------------------------------


def value_otherwise(place: Place) -> str | None:
    """One number, text or list of one record is another one that a writer might leave there."""
    path = place.one(place.draw.choice(METADATA))
    if path is None:
        return None
    container = avro_bytes.read(path.read_bytes())
    found = [slot for slot in slots(container.schema, container.records) if slot.values and not isinstance(slot.field["type"], dict)]
    if not found:
        return None
    slot = place.draw.choice(found)
    targets = slot.values if place.draw.random() < 0.3 else [place.draw.choice(slot.values)]
    forms = {
        "int": [0, 1, -1, 2, 5, 2**31 - 1], "long": [0, 1, -1, 2, 99, 2**62], "string": ["", "x"], "bytes": [b"", b"\0" * 12],
        "array": [[]], "boolean": [True],
    }  # fmt: skip
    base = _base(slot.field["type"])
    form = place.draw.choice(forms.get(base, [None]))
    if isinstance(slot.field["type"], list) and (form is None or place.draw.random() < 0.6):
        form = None
    elif form is None:
        return None
    for value in targets:
        is_union = isinstance(slot.field["type"], list)
        at = 0 if not is_union else slot.field["type"].index("null") if form is None else _not_null(slot.field["type"])
        value[slot.name] = Branch(at, form) if is_union else form
    place.keep(path, container.schema, container.records, Style(container.codec))
    _settle_above(place, path)
    return f"{path.name}: {slot.name} is {form!r} in {len(targets)} records"


def stats_gone(place: Place) -> str | None:
    """Statistics are empty, as writers that keep none leave them."""
    path = place.one(place.draw.choice(["manifest", "list"]))
    if path is None:
        return None
    container = avro_bytes.read(path.read_bytes())
    forms = place.draw.choice(["empty rows", "no bytes", "no counts"])
    key = place.draw.choice(["_VALUE_STATS", "_KEY_STATS", "_PARTITION_STATS"])
    for record in container.records:
        stats = record.get(key) or record.get("_FILE", {}).get(key)
        if stats is None:
            return None
        if forms != "no counts":
            stats["_MIN_VALUES"] = stats["_MAX_VALUES"] = bytes(12) if forms == "empty rows" else b""
        if isinstance(stats["_NULL_COUNTS"], Branch):
            stats["_NULL_COUNTS"] = Branch(0, None) if place.draw.random() < 0.5 else Branch(1, [])
    place.keep(path, container.schema, container.records, Style(container.codec))
    _settle_above(place, path)
    return f"{path.name}: {key} with {forms}"


def entries_moved(place: Place) -> str | None:
    """Entries or manifests in another order, or one of them twice."""
    path = place.one(place.draw.choice(METADATA))
    if path is None:
        return None
    container = avro_bytes.read(path.read_bytes())
    how = place.draw.choice(["shuffled", "reversed", "one twice", "one gone"])
    if not container.records:
        return None
    if how == "shuffled":
        place.draw.shuffle(container.records)
    elif how == "reversed":
        container.records.reverse()
    elif how == "one twice":
        container.records.append(copy.deepcopy(place.draw.choice(container.records)))
    else:
        del container.records[place.draw.randrange(len(container.records))]
    place.keep(path, container.schema, container.records, Style(container.codec))
    _settle_above(place, path)
    return f"{path.name}: entries {how}"


def sizes_wrong(place: Place) -> str | None:
    """Sizes that are off where nothing is read by them."""
    path = place.one("list", "manifest")
    if path is None:
        return None
    container = avro_bytes.read(path.read_bytes())
    by = place.draw.choice([0, 1, -1, 10**6])
    for record in container.records:
        file = record.get("_FILE", record)
        file["_FILE_SIZE"] = by and max(file["_FILE_SIZE"] + by, 0)
    place.keep(path, container.schema, container.records, Style(container.codec))
    _settle_above(place, path)
    return f"{path.name}: sizes by {by}"


CHANGES = (
    *(of_metadata(change) for change in SCHEMA_CHANGES), *(of_data(change) for change in SCHEMA_CHANGES),
    value_otherwise, stats_gone, entries_moved, sizes_wrong,
)  # fmt: skip


def _slot(place: Place, container: Container) -> Slot:
    return place.draw.choice(list(slots(container.schema, container.records)))


def _records(schema: Any) -> list[dict]:
    if isinstance(schema, list):
        return [found for part in schema for found in _records(part)]
    if not isinstance(schema, dict):
        return []
    if schema.get("type") == "record":
        return [schema, *(found for field in schema["fields"] for found in _records(field["type"]))]
    return [found for key in ("items", "values", "type") if isinstance(schema.get(key), (dict, list)) for found in _records(schema[key])]


def _array(kind: Any) -> dict | None:
    for part in kind if isinstance(kind, list) else [kind]:
        if isinstance(part, dict) and part.get("type") == "array":
            return part
    return None


def _base(kind: Any) -> str | None:
    """The plain name of a type that may be nullable; None for records."""
    if isinstance(kind, list):
        parts = [part for part in kind if part != "null"]
        return _base(parts[0]) if len(parts) == 1 else None
    if isinstance(kind, dict):
        return kind["type"] if kind["type"] in ("array",) else None
    return kind


def _not_null(kind: list) -> int:
    return next(index for index, part in enumerate(kind) if part != "null")
