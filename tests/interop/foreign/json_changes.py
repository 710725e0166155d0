"""Metadata in JSON as other writers, other releases and people leave it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from foreign.place import Place

JSON_FILES = ("snapshot", "schema", "tag", "consumer", "changelog", "statistics")
EXTRAS = (
    None, True, 0, 1.5, -(2**63), "", "text", [], {}, [1, "a", None], {"a": {"b": [None, {}]}}, "2026-01-02T03:04:05Z",
)  # fmt: skip
EXTRA_NAMES = ("nextField", "x", "rowTracking", "table-uuid", "snapshotType", "", "ID", "schemaid", "fields2", "größe", "comment2")
ATOMS = {
    "INT": ("int", "INTEGER", "Int ", "  INT", "INT NULL"),
    "BIGINT": ("bigint", "BigInt"),
    "STRING": ("string", "VARCHAR(2147483647)", "varchar(2147483647)", "VARCHAR( 2147483647 )", "STRING NULL"),
    "BYTES": ("bytes", "VARBINARY(2147483647)"),
    "DOUBLE": ("double", "DOUBLE PRECISION", "Double  Precision"),
    "BOOLEAN": ("boolean",),
    "DATE": ("date",),
    "FLOAT": ("float",),
    "SMALLINT": ("smallint",),
    "TINYINT": ("tinyint",),
    "DECIMAL(10, 2)": ("DECIMAL(10,2)", "decimal( 10 , 2 )", "NUMERIC(10, 2)", "DEC(10, 2)"),
    "TIMESTAMP(6)": ("TIMESTAMP", "timestamp(6)", "TIMESTAMP (6)", "TIMESTAMP(6) WITHOUT TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE"),
    "TIMESTAMP(3)": ("timestamp(3)", "TIMESTAMP(3) without time zone", "TIMESTAMP( 3 )"),
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": ("TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(6)", "TIMESTAMP_LTZ", "timestamp_ltz(6)"),
    "TIMESTAMP(3) WITH LOCAL TIME ZONE": ("TIMESTAMP_LTZ(3)", "timestamp(3) with local time zone"),
    "TIME(0)": ("TIME", "time(0)", "TIME(0) WITHOUT TIME ZONE", "TIME WITHOUT TIME ZONE"),
    "TIME(3)": ("time(3)", "TIME(3) WITHOUT TIME ZONE"),
}
OPTIONS = {
    "bucket": ("{} ", " {}", "0{}", "+{}"),
    "file.format": ("UPPER", " {}", "{} "),
    "merge-engine": ("UPPER", "under", "Title"),
    "changelog-producer": ("UPPER", "under", "Title"),
    "deletion-vectors.enabled": ("UPPER", "Title", " {} "),
    "write-only": ("UPPER", "Title"),
    "sequence.field": (" {}", "{} ", "{},"),
    "ignore-delete": ("UPPER", "Title"),
}
MORE_OPTIONS = {
    "bucket": ("1", "-1", "abc", ""), "path": ("/somewhere/else", "s3://bucket/db.db/t"), "owner": ("me", ""),
    "target-file-size": ("128 mb", "128MB", "128m", "134217728", "128 MiB", "1 gb", "1GB"),
    "snapshot.time-retained": ("1 h", "1h", "60 min", "3600 s", "P1D", "1 d", "1 hour", "2 hours"),
    "snapshot.num-retained.min": ("10", " 10", "10.0", "1e1"), "write-buffer-size": ("256 mb", "256 MB", "1gb", "64 kb"),
    "file.compression": ("ZSTD", "zstd", "Lz4", "none", "NONE", "snappy"), "manifest.compression": ("ZSTD", "zstd", "none"),
    "file.format": ("PARQUET", "Orc", "avro", "csv"), "metadata.stats-mode": ("FULL", "truncate(16)", "TRUNCATE(16)", "none", "counts"),
    "merge-engine": ("DEDUPLICATE", "deduplicate"), "scan.mode": ("DEFAULT", "latest-full", "latest"),
    "changelog-producer": ("NONE", "none"), "bucket-function.type": ("DEFAULT", "default"), "sequence.field": ("", " "),
    "full-compaction.delta-commits": ("3", ""), "num-sorted-run.compaction-trigger": ("5", "05"), "comment": ("x",),
    "fields.default-aggregate-function": ("last_value",), "partition.default-name": ("__DEFAULT_PARTITION__",),
    "data-file.prefix": ("data-", "part-"), "manifest.format": ("AVRO", "avro"), "type": ("table", "TABLE"),
    "branch": ("main",), "tag.automatic-creation": ("none", "NONE"), "metastore.partitioned-table": ("true",),
    "deletion-vectors.enabled": ("false", "FALSE"), "row-tracking.enabled": ("false", "FALSE"), "auto-create": ("true",),
    "file-index.read.enabled": ("TRUE", "false"), "read.batch-size": ("1024", "1_024"), "parquet.block.size": ("128mb",),
    "snapshot.expire.limit": ("50",), "consumer.expiration-time": ("1 d",), "lookup-wait": ("true",), "format": ("x",),
    "sink.parallelism": ("2",), "scan.infer-parallelism": ("true",), "bucket-key": ("",), "partition.timestamp-formatter": ("yyyy",),
    "file.block-size": ("64 mb",), "cross-partition-upsert.index-ttl": ("",), "primary-key": ("",), "partition": ("",),
}  # fmt: skip


def _chosen(place: Place, *kinds: str) -> tuple[Path, dict] | None:
    path = place.one(*(kinds or JSON_FILES))
    if path is None:
        return None
    value = place.json(path)
    return (path, value) if isinstance(value, dict) and value else None


def _objects(value: Any) -> list[dict]:
    """All objects within a value."""
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in _objects(item))]
    return [found for item in value for found in _objects(item)] if isinstance(value, list) else []


def _write(path: Path, value: Any, how: str, **layout: Any) -> str:
    path.write_text(json.dumps(value, **layout))
    return f"{path.parent.name}/{path.name}: {how}"


def _inner(place: Place, value: dict) -> dict:
    """The outermost object mostly, else one within."""
    return value if place.draw.random() < 0.7 else place.draw.choice([item for item in _objects(value) if item])


def field_missing(place: Place) -> str | None:
    if (chosen := _chosen(place)) is None:
        return None
    path, value = chosen
    inner = _inner(place, value)
    key = place.draw.choice(sorted(inner))
    del inner[key]
    return _write(path, value, f"without {key}")


def field_null(place: Place) -> str | None:
    if (chosen := _chosen(place)) is None:
        return None
    path, value = chosen
    inner = _inner(place, value)
    key = place.draw.choice(sorted(inner))
    inner[key] = None
    return _write(path, value, f"{key} is null")


def optional_nulls(place: Place) -> str | None:
    """Every key that Java may leave out, as null, as writers of maps of fields put them."""
    if (chosen := _chosen(place, "snapshot", "tag", "changelog")) is None:
        return None
    path, value = chosen
    for key in (
        "uuid", "baseManifestListSize", "changelogManifestList", "changelogManifestListSize", "indexManifest", "writerVersion",
        "logOffsets", "watermark", "statistics", "properties", "nextRowId", "operation", "changelogRecordCount",
    ):  # fmt: skip
        value.setdefault(key)
    return _write(path, value, "with all optional keys as null")


def field_extra(place: Place) -> str | None:
    if (chosen := _chosen(place)) is None:
        return None
    path, value = chosen
    inner = _inner(place, value)
    name, extra = place.draw.choice(EXTRA_NAMES), place.draw.choice(EXTRAS)
    items = list(inner.items())
    items.insert(place.draw.randrange(len(items) + 1), (name, extra))
    inner.clear()
    inner.update(items)
    return _write(path, value, f"with {name!r} = {extra!r}")


def fields_shuffled(place: Place) -> str | None:
    if (chosen := _chosen(place)) is None:
        return None
    path, value = chosen
    for inner in _objects(value):
        items = list(inner.items())
        place.draw.shuffle(items)
        inner.clear()
        inner.update(items)
    return _write(path, value, "fields in another order")


def laid_out(place: Place) -> str | None:
    """Another layout of the same text."""
    if (chosen := _chosen(place)) is None:
        return None
    path, value = chosen
    text = json.dumps(value)
    forms = {
        "compact": json.dumps(value, separators=(",", ":")),
        "tabs": json.dumps(value, indent="\t"),
        "crlf": json.dumps(value, indent=2).replace("\n", "\r\n"),
        "blank around": f"\n\n  {text}  \n",
        "newline behind": text + "\n",
        "slashes": text.replace("/", "\\/"),
        "escapes": re.sub(r'(?<=")([a-z])', lambda found: f"\\u{ord(found[1]):04x}", text),
        "byte order mark": "\ufeff" + text,
        "more behind": text + ' {"a": 1}',
        "garbage behind": text + "}}",
        "twice": re.sub(r"^\{(.*?),", r"{\1,\1,", text, count=1),
        "comment": text.replace("{", "{ /* made by hand */ ", 1),
        "comma": re.sub(r"\}$", ",}", text),
        "zeros behind": text + "\0\0\0",
        "utf-16": None,
    }
    name = place.draw.choice(sorted(forms))
    form = forms[name]
    path.write_bytes(text.encode("utf-16") if form is None else form.encode())
    return f"{path.parent.name}/{path.name}: laid out as {name}"


def number_otherwise(place: Place) -> str | None:
    if (chosen := _chosen(place)) is None:
        return None
    path, value = chosen
    inner = _inner(place, value)
    numbers = [key for key, item in inner.items() if isinstance(item, int) and not isinstance(item, bool)]
    if not numbers:
        return None
    key = place.draw.choice(sorted(numbers))
    number = inner[key]
    forms = [
        f"{number}.0", f'"{number}"', f"{number}e0", f"{number}.7", f'" {number}"', f'"{number}.0"', '""', "true", f"[{number}]",
        str(number + 2**32), str(number + 2**64), "-1", "0", f"{number}.00000000000000000001",
    ]  # fmt: skip
    form = place.draw.choice(forms)
    inner[key] = "@@"
    path.write_text(json.dumps(value).replace('"@@"', form))
    return f"{path.parent.name}/{path.name}: {key} is {form}"


def text_otherwise(place: Place) -> str | None:
    if (chosen := _chosen(place)) is None:
        return None
    path, value = chosen
    inner = _inner(place, value)
    texts = [key for key, item in inner.items() if isinstance(item, str)]
    if not texts:
        return None
    key = place.draw.choice(sorted(texts))
    inner[key] = place.draw.choice([1, 1.5, True, "", " " + inner[key], inner[key].lower(), inner[key].upper(), [inner[key]], {}])
    return _write(path, value, f"{key} is {inner[key]!r}")


def empty_maps(place: Place) -> str | None:
    if (chosen := _chosen(place, "snapshot", "tag", "changelog")) is None:
        return None
    path, value = chosen
    key = place.draw.choice(["logOffsets", "properties"])
    value[key] = place.draw.choice(
        [{}, {"0": 5}, {"0": None}, {"a": "b"}, {"": ""}, {"a": None}, {"0": "7"}, {"a": 1}, {"a": True}, {"a": [1]}, {"0": 1.0}]
    )
    return _write(path, value, f"{key} is {value[key]!r}")


def version_otherwise(place: Place) -> str | None:
    if (chosen := _chosen(place, "snapshot", "schema", "tag")) is None:
        return None
    path, value = chosen
    version = place.draw.choice([None, 1, 2, 3, 4, 0, -1, "3", "absent"])
    value["version"] = version
    if version == "absent":
        del value["version"]
    return _write(path, value, f"version {version}")


def older_snapshot(place: Place) -> str | None:
    """As releases before 1.0 wrote snapshots."""
    if (chosen := _chosen(place, "snapshot", "tag")) is None:
        return None
    path, value = chosen
    gone = ["uuid", "baseManifestListSize", "deltaManifestListSize", "changelogManifestListSize", "properties", "nextRowId", "writerVersion", "operation"]
    if place.draw.random() < 0.5:
        gone += ["totalRecordCount", "deltaRecordCount", "changelogRecordCount"]
    for key in gone:
        value.pop(key, None)
    value["version"] = place.draw.choice([1, 2, 3])
    value.setdefault("logOffsets", {})
    return _write(path, value, f"as an old release, version {value['version']}")


def counts_missing_everywhere(place: Place) -> str | None:
    """No snapshot tells sizes or counts."""
    for path in place.files("snapshot", "tag"):
        value = place.json(path)
        for key in [key for key in value if key.endswith(("Size", "RecordCount"))]:
            del value[key]
        path.write_text(json.dumps(value))
    return "no snapshot tells sizes or counts"


def count_wrong(place: Place) -> str | None:
    if (chosen := _chosen(place, "snapshot")) is None:
        return None
    path, value = chosen
    keys = sorted(key for key in value if key.endswith(("RecordCount", "ListSize")) and isinstance(value[key], int))
    if not keys:
        return None
    key = place.draw.choice(keys)
    value[key] = place.draw.choice([0, -1, value[key] + 1, value[key] - 1, value[key] * 10, 2**40])
    return _write(path, value, f"{key} is {value[key]}")


def _types(fields: list) -> list[dict]:
    return [item for item in _objects(fields) if isinstance(item.get("type"), str)]


def type_text(place: Place) -> str | None:
    """A type spelled in another way."""
    if (chosen := _chosen(place, "schema")) is None:
        return None
    path, value = chosen
    found = []
    for item in _types(value["fields"]):
        text = item["type"]
        bare = text.removesuffix(" NOT NULL")
        found += [(item, form + text[len(bare) :]) for form in ATOMS.get(bare, ())]
        found += [(item, form) for form in (text.lower(), text.replace(" ", "  "), text + " ")]
    if not found:
        return None
    item, form = place.draw.choice(found)
    was, item["type"] = item["type"], form
    return _write(path, value, f"type {was!r} as {form!r}")


def type_object(place: Place) -> str | None:
    """A type as an object that may be a text, or the other way round."""
    if (chosen := _chosen(place, "schema")) is None:
        return None
    path, value = chosen
    field = place.draw.choice(value["fields"])
    kind = field["type"]
    if isinstance(kind, str):
        field["type"] = {"type": kind}
    else:
        head = kind["type"].split()[0]
        inner = {"ARRAY": "<INT>", "MAP": "<STRING NOT NULL, INT>", "MULTISET": "<STRING>", "ROW": "<a INT>"}.get(head, "")
        if place.draw.random() < 0.5:
            kind["type"] = head + inner + kind["type"][len(head) :]
        else:
            kind["type"] = kind["type"].lower()
    return _write(path, value, f"type as {field['type']!r}")


def schema_lists(place: Place) -> str | None:
    if (chosen := _chosen(place, "schema")) is None:
        return None
    path, value = chosen
    key = place.draw.choice(["partitionKeys", "primaryKeys", "highestFieldId", "timeMillis", "comment", "options"])
    forms = {
        "partitionKeys": [None, "absent", [], value["partitionKeys"] * 2],
        "primaryKeys": [None, "absent", [], value["primaryKeys"][::-1], value["primaryKeys"] * 2],
        "highestFieldId": [0, -1, 1, 99, "absent", None, 2**31 - 1, 2**31],
        "timeMillis": [0, -1, "absent", None, 2**62, "5"],
        "comment": ["", None, "x\n\u2028", 5, "absent"],
        "options": [None, "absent", {}],
    }
    form = place.draw.choice(forms[key])
    value[key] = form
    if form == "absent":
        del value[key]
    return _write(path, value, f"{key} is {form!r}")


def field_details(place: Place) -> str | None:
    """Details of a column that readers do not need."""
    if (chosen := _chosen(place, "schema")) is None:
        return None
    path, value = chosen
    field = place.draw.choice([item for item in _objects(value["fields"]) if "name" in item])
    name, form = place.draw.choice(
        [
            ("description", None), ("description", ""), ("description", "a\tb"), ("defaultValue", None), ("defaultValue", "7"),
            ("description", 5), ("defaultValue", 7), ("defaultValue", ""), ("comment", "x"), ("nullable", True), ("id", str(field["id"])),
            ("id", float(field["id"])), ("id", field["id"] + 50), ("name", field["name"].upper()), ("doc", {"a": 1}),
        ]
    )  # fmt: skip
    field[name] = form
    return _write(path, value, f"column {field['name']}: {name} is {form!r}")


def columns_shuffled(place: Place) -> str | None:
    """The columns of the newest schema in another order, as a change of positions leaves them."""
    files = place.files("schema")
    if not files:
        return None
    path = max(files, key=lambda path: (len(path.name), path.name))
    value = place.json(path)
    if not (place.path / "schema" / "schema-1").exists():
        newer = path.with_name("schema-1")
        value["id"] = 1
        place.draw.shuffle(value["fields"])
        return _write(newer, value, "columns in another order")
    place.draw.shuffle(value["fields"])
    return _write(path, value, "columns in another order")


def option_form(place: Place) -> str | None:
    if (chosen := _chosen(place, "schema")) is None:
        return None
    path, value = chosen
    options = value.get("options") or {}
    names = sorted(name for name in options if name in OPTIONS)
    if not names:
        return None
    name = place.draw.choice(names)
    text, form = options[name], place.draw.choice(OPTIONS[name])
    made = {"UPPER": text.upper(), "under": text.upper().replace("-", "_"), "Title": text.title()}.get(form, form.format(text))
    options[name] = made
    return _write(path, value, f"option {name} = {made!r}")


def option_more(place: Place) -> str | None:
    files = place.files("schema")
    if not files:
        return None
    name = place.draw.choice(sorted(MORE_OPTIONS))
    text = place.draw.choice(MORE_OPTIONS[name])
    for path in files:
        value = place.json(path)
        value["options"].setdefault(name, text)
        path.write_text(json.dumps(value))
    return f"option {name} = {text!r} in every schema"


def option_value(place: Place) -> str | None:
    """Options that are not texts."""
    if (chosen := _chosen(place, "schema")) is None:
        return None
    path, value = chosen
    options = value["options"]
    if not options or place.draw.random() < 0.5:
        options["x.y"] = place.draw.choice([None, 1, True, 1.5, ""])
        return _write(path, value, f"option x.y = {options['x.y']!r}")
    name = place.draw.choice(sorted(options))
    text = options[name]
    options[name] = int(text) if re.fullmatch(r"-?\d+", text) else {"true": True, "false": False}.get(text)
    return _write(path, value, f"option {name} = {options[name]!r}")


def tag_times(place: Place) -> str | None:
    if (chosen := _chosen(place, "tag")) is None:
        return None
    path, value = chosen
    times = [[2026, 1, 2, 3, 4], [2026, 1, 2, 3, 4, 5], [2026, 1, 2, 3, 4, 5, 6000], "2026-01-02T03:04:05", None, [2026, 1, 2], 1767312000000, ""]
    spans = [3600.0, 3600, "PT1H", None, 0, 1.5e3, "3600", "P1D", -1.0]
    value["tagCreateTime"] = place.draw.choice(times)
    if place.draw.random() < 0.6:
        value["tagTimeRetained"] = place.draw.choice(spans)
    return _write(path, value, f"created {value['tagCreateTime']!r}, kept {value.get('tagTimeRetained')!r}")


def consumer_value(place: Place) -> str | None:
    path = place.one("consumer")
    if path is None:
        return None
    text = place.draw.choice(
        ['{"nextSnapshot": 1.0}', '{"nextSnapshot": "1"}', '{"nextSnapshot": 1, "x": {}}', "{}", '{"nextSnapshot": null}', "",
         '{"nextSnapshot":99}\n', '{"nextSnapshot": -1}', '{"nextSnapshot": 0}', '{"nextsnapshot": 1}', '{"nextSnapshot": 1} x']
    )  # fmt: skip
    path.write_text(text)
    return f"{path.name}: {text!r}"


CHANGES = (
    field_missing, field_null, optional_nulls, field_extra, fields_shuffled, laid_out, number_otherwise, text_otherwise, empty_maps,
    version_otherwise, older_snapshot, counts_missing_everywhere, count_wrong, type_text, type_object, schema_lists, field_details,
    columns_shuffled, option_form, option_more, option_value, tag_times, consumer_value,
)  # fmt: skip
