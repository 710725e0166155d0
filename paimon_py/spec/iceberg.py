"""Iceberg metadata of a table: its options, and unsupported features.

Source: docs/format.md §25; Java `IcebergOptions`, `IcebergDataField`, `IcebergCommitCallback`.
"""

from __future__ import annotations

import msgspec

from paimon_py.errors import OptionError, UnsupportedError
from paimon_py.spec.file_rules import PACKAGED_FORMATS, data_formats
from paimon_py.spec.layout import DATABASE_SUFFIX, join
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import children, sql_type
from paimon_py.spec.types import Atomic, DataType, Root, VectorType

STORAGE = "metadata.iceberg.storage"
LOCATION = "metadata.iceberg.storage-location"
FORMAT_VERSION = "metadata.iceberg.format-version"
HIVE, REST = "hive-catalog", "rest-catalog"
REST_OPTIONS = "metadata.iceberg.rest."
"""Options of a REST catalog of Iceberg: what follows is the name that Iceberg's own clients give it."""

_VERSIONS = (2, 3)
_COMPRESSIONS = ("snappy", "zstandard", "zstd", "deflate", "null", "none")
_OTHER_TYPES = frozenset((Root.VARIANT, Root.BLOB, Root.GEOMETRY, Root.GEOGRAPHY))
_STAMPS = frozenset((Root.TIMESTAMP, Root.TIMESTAMP_LTZ))
_NANOS_VERSION = 3


class IcebergOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options for the Iceberg metadata of a table. Units: bytes, milliseconds.

    Attributes:
        in_catalog: store the metadata in the layout of Iceberg's Hadoop catalog, not in the table.
        catalog: the kind of catalog that each version is published to, HIVE or REST; None without one.
        format_version: 2 or 3.
        compression: the codec of manifests and lists, as named in options.
        legacy: name the fields of manifest lists as Iceberg 1.4 does.
        merge_min, merge_max: number of small manifests that are merged if they fill one, or in any case.
        deletes_old, previous_max: whether old metadata files are deleted, and how many are kept.
        target_bytes: size of a manifest.
        retained_min, retained_max, retained_millis: which Iceberg snapshots are kept.
        shows_vectors: publish deletion vectors.
        top_level: for a primary-key table without published vectors, the only level that is published.
    """

    in_catalog: bool
    catalog: str | None
    format_version: int
    compression: str
    legacy: bool
    merge_min: int
    merge_max: int
    deletes_old: bool
    previous_max: int
    target_bytes: int
    retained_min: int
    retained_max: int
    retained_millis: int
    shows_vectors: bool
    top_level: int


def writes_iceberg(schema: TableSchema) -> bool:
    """Whether Iceberg metadata is written for a table. Cost: one dictionary lookup."""
    storage = schema.options.get(STORAGE)
    return storage is not None and storage.lower() != "disabled"


def iceberg_options(schema: TableSchema) -> IcebergOptions:
    """The Iceberg options of a table that writes Iceberg metadata.

    Raises: OptionError
    """
    options = Options(schema.options)
    place, storage = options.find_str(LOCATION), options.get_enum(STORAGE)
    if place is not None:
        options.get_enum(LOCATION)
    in_table = storage == "table-location" if place is None else place.lower() == "table-location"
    version = options.get_int(FORMAT_VERSION)
    levels = options.find_int("num-levels") or options.get_int("num-sorted-run.compaction-trigger") + 1
    wants_vectors = options.get_bool("deletion-vectors.enabled") and options.get_bool("deletion-vectors.bitmap64")
    return IcebergOptions(
        in_catalog=not in_table,
        catalog=storage if storage in (HIVE, REST) else None,
        format_version=version,
        compression=options.get_str("metadata.iceberg.manifest-compression"),
        legacy=options.get_bool("metadata.iceberg.manifest-legacy-version"),
        merge_min=options.get_int("metadata.iceberg.compaction.min.file-num"),
        merge_max=options.get_int("metadata.iceberg.compaction.max.file-num"),
        deletes_old=options.get_bool("metadata.iceberg.delete-after-commit.enabled"),
        previous_max=max(options.get_int("metadata.iceberg.previous-versions-max"), int(storage in (HIVE, REST))),
        target_bytes=options.get_memory("manifest.target-file-size"),
        retained_min=options.get_int("snapshot.num-retained.min"),
        retained_max=options.get_int("snapshot.num-retained.max"),
        retained_millis=options.get_duration("snapshot.time-retained"),
        shows_vectors=version >= _NANOS_VERSION and wants_vectors,
        top_level=levels - 1,
    )


def iceberg_directory(table: str, options: IcebergOptions) -> str:
    """The directory of a table's Iceberg metadata.

    Raises: OptionError if the Hadoop catalog layout is configured and the table is not in a database directory.
    """
    if not options.in_catalog:
        return join(table, "metadata")
    database, _, name = table.rstrip("/").rpartition("/")
    warehouse, _, database_name = database.rpartition("/")
    if not warehouse or not database_name.endswith(DATABASE_SUFFIX):
        raise OptionError(
            f"Iceberg metadata for a catalog is stored next to the database of a table, and {table} is not in a"
            f" directory <database>{DATABASE_SUFFIX}; set {LOCATION}=table-location",
            option=LOCATION, value="catalog-location",
        )  # fmt: skip
    return join(warehouse, "iceberg", database_name.removesuffix(DATABASE_SUFFIX), name, "metadata")


def iceberg_feature(schema: TableSchema, options: Options) -> str | None:
    """The feature of a table that its Iceberg metadata cannot express here; None: no such feature."""
    if not writes_iceberg(schema):
        return None
    storage = options.get_enum(STORAGE)
    if storage == REST:
        found = _rest_feature(schema)
        if found is not None:
            return found
    named = next((name for name in data_formats(options) if name in PACKAGED_FORMATS), None)
    if named is not None:
        return f"file.format={named} and {STORAGE}={storage}"
    version = options.get_int(FORMAT_VERSION)
    for field in schema.fields:
        found = _unknown_type(field.type, version)
        if found is not None:
            return f"{found} in tables with {STORAGE}={storage}"
    for field in schema.partition_fields:
        if isinstance(field.type, Atomic) and field.type.root in _STAMPS and (field.type.precision or 0) > 6:
            return f"partitions by {sql_type(field.type)} in tables with {STORAGE}={storage}"
    return None


def check_iceberg(schema: TableSchema, before: TableSchema | None) -> None:
    """Refuse schemas that Iceberg metadata cannot express, before the table is created or altered.

    Raises:
        OptionError: an invalid format version or codec, a version lower than before, or a catalog without an address.
        UnsupportedError: an authentication that is not supported, or a type that Iceberg does not have.
    """
    if not writes_iceberg(schema):
        return
    options = Options(schema.options)
    version = options.get_int(FORMAT_VERSION)
    if version not in _VERSIONS:
        raise OptionError(
            f"option {FORMAT_VERSION!r} is {version}; it must be 2 or 3", option=FORMAT_VERSION, value=str(version)
        )
    compression = options.get_str("metadata.iceberg.manifest-compression")
    if compression.lower() not in _COMPRESSIONS:
        raise OptionError(
            f"option 'metadata.iceberg.manifest-compression' is {compression!r}; it must be one of"
            f" {', '.join(_COMPRESSIONS)}",
            option="metadata.iceberg.manifest-compression", value=compression,
        )  # fmt: skip
    _check_catalog(schema, options)
    if before is not None and writes_iceberg(before) and Options(before.options).get_int(FORMAT_VERSION) > version:
        raise OptionError(
            f"option {FORMAT_VERSION!r} cannot fall to {version}: readers keep to the version that they have seen",
            option=FORMAT_VERSION, value=str(version),
        )  # fmt: skip
    found = iceberg_feature(schema, options)
    if found is not None and (before is None or found != iceberg_feature(before, Options(before.options))):
        raise UnsupportedError(f"paimon_py cannot write tables with {found} yet", feature=found)


def iceberg_names(table: str, schema: TableSchema) -> tuple[tuple[str, ...], str]:
    """The databases and the name of a table in Hive and REST catalogs of Iceberg.

    Raises: OptionError if neither the options nor the directory of the table name a database.
    """
    options = Options(schema.options)
    above, _, name = table.rstrip("/").rpartition("/")
    text = options.find_str("metadata.iceberg.database") or ""
    databases = tuple(one.strip() for one in text.split(";") if one.strip())
    own = above.rpartition("/")[2]
    if not databases and own.endswith(DATABASE_SUFFIX):
        databases = (own.removesuffix(DATABASE_SUFFIX),)
    if not databases:
        raise OptionError(
            f"{table} is not in a directory <database>{DATABASE_SUFFIX}: set metadata.iceberg.database to the name of"
            " its database in the Iceberg catalog",
            option="metadata.iceberg.database",
        )
    return databases, options.find_str("metadata.iceberg.table") or name


def rest_options(schema: TableSchema) -> dict[str, str]:
    """The options of a table for its Iceberg REST catalog, by the names of Iceberg's clients."""
    start = len(REST_OPTIONS)
    return {name[start:]: text for name, text in schema.options.items() if name.startswith(REST_OPTIONS)}


def hidden_vectors(schema: TableSchema) -> str | None:
    """Why Iceberg readers see deleted rows, and how to fix it; None: they do not."""
    options = Options(schema.options)
    if not writes_iceberg(schema) or not options.get_bool("deletion-vectors.enabled"):
        return None
    asked = [] if options.get_int(FORMAT_VERSION) >= _NANOS_VERSION else [f"{FORMAT_VERSION}=3"]
    asked += [] if options.get_bool("deletion-vectors.bitmap64") else ["deletion-vectors.bitmap64=true"]
    if not asked:
        return None
    return f"deletion vectors are not part of the Iceberg metadata without {' and '.join(asked)}"


def decimal_partitions(schema: TableSchema) -> tuple[str, ...]:
    """The partition columns that most Iceberg readers cannot read."""
    fields = schema.partition_fields if writes_iceberg(schema) else ()
    return tuple(f.name for f in fields if isinstance(f.type, Atomic) and f.type.root is Root.DECIMAL)


def _rest_feature(schema: TableSchema) -> str | None:
    """An authentication that is not supported; None if the options ask for none."""
    given = rest_options(schema)
    if given.get("rest.sigv4-enabled", "false").strip().lower() == "true":
        return f"{REST_OPTIONS}rest.sigv4-enabled=true"
    auth = given.get("rest.auth.type", "none").strip().lower()
    return None if auth in ("none", "oauth2") else f"{REST_OPTIONS}rest.auth.type={auth}"


def _check_catalog(schema: TableSchema, options: Options) -> None:
    """Raises: OptionError if the options name a catalog without its address."""
    storage = options.get_enum(STORAGE)
    name = f"{REST_OPTIONS}uri" if storage == REST else "metadata.iceberg.uri"
    address = rest_options(schema).get("uri") if storage == REST else options.find_str(name)
    has_address = bool((address or "").strip()) or "metadata.iceberg.hive-conf-dir" in schema.options
    if storage in (HIVE, REST) and not has_address:
        raise OptionError(f"{STORAGE}={storage} needs the address of the catalog: set {name!r}", option=name)


def _unknown_type(kind: DataType, version: int) -> str | None:
    if isinstance(kind, VectorType):
        return "VECTOR columns"
    if isinstance(kind, Atomic):
        return _unknown_atomic(kind, version)
    for child in children(kind):
        found = _unknown_type(child, version)
        if found is not None:
            return found
    return None


def _unknown_atomic(kind: Atomic, version: int) -> str | None:
    precision = kind.precision or 0
    if kind.root in _OTHER_TYPES:
        return f"{kind.root.value} columns"
    if kind.root is Root.TIME and precision > 3:
        return f"{sql_type(kind)} columns"
    if kind.root in _STAMPS:
        if precision < 3:
            return f"{sql_type(kind)} columns (TIMESTAMP(3) to TIMESTAMP(9) can be had)"
        if precision > 6 and version < _NANOS_VERSION:
            return f"{sql_type(kind)} columns ({FORMAT_VERSION}=3 has them)"
    return None
