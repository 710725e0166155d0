"""Apache Paimon tables in pure Python. Contains only the public names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.catalog.catalog import Catalog
from paimon_py.commit.changes import Changes
from paimon_py.commit.result import CommitResult
from paimon_py.compaction.task import CompactionTask
from paimon_py.doctor.finding import Finding
from paimon_py.errors import (
    AlreadyExistsError,
    BranchNotFoundError,
    CommitConflictError,
    CommitError,
    CommitRetriesExhaustedError,
    CommitUnknownError,
    ConsumerNotFoundError,
    CorruptionError,
    DatabaseNotFoundError,
    LockTimeoutError,
    NotFoundError,
    OptionError,
    PaimonError,
    PaimonWarning,
    ResourceError,
    SchemaError,
    SnapshotExpiredError,
    SnapshotNotFoundError,
    StorageError,
    StorageUnknownError,
    TableNotFoundError,
    TagNotFoundError,
    UnsupportedError,
    UsageError,
)
from paimon_py.expr.column import col, lit
from paimon_py.expr.predicate import Predicate
from paimon_py.maintain.cleanup.expired import ExpiredChangelogs, ExpiredSnapshots, RolledBack
from paimon_py.metadata.consumers import Consumer
from paimon_py.rows.result import RowsResult
from paimon_py.spec.bad_row import BadRow
from paimon_py.spec.new_schema import Schema
from paimon_py.spec.schema_changes import (
    AddColumn,
    After,
    Before,
    DropColumn,
    First,
    Last,
    RemoveOption,
    RenameColumn,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefault,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from paimon_py.spec.views_and_functions import (
    AddDefinition,
    AddDialect,
    CatalogFunction,
    CatalogView,
    DropDefinition,
    DropDialect,
    FileDefinition,
    FunctionResource,
    LambdaDefinition,
    SqlDefinition,
    UpdateDefinition,
    UpdateDialect,
)
from paimon_py.table.snapshots import Manifest, Snapshot, Tag
from paimon_py.table.table import Table

if TYPE_CHECKING:
    from paimon_py.codec.blob_refs import BlobRef, BlobViewRef
    from paimon_py.expr.sql import sql
    from paimon_py.files.variant_value import Variant, variant
    from paimon_py.lsm.writer import LSMWriter
    from paimon_py.scan.scan import Scan
    from paimon_py.spark import (
        analyze_spark,
        compact_spark,
        convert_from_spark,
        convert_to_spark,
        delete_spark,
        expire_snapshots_spark,
        lookup_spark,
        merge_spark,
        register,
        remove_orphans_spark,
        rescale_spark,
        ship,
        update_spark,
        write_spark,
    )
    from paimon_py.stream.step import Step
    from paimon_py.stream.stream import Stream

__version__ = "0.1.0"

__all__ = [
    "AddColumn",
    "AddDefinition",
    "AddDialect",
    "After",
    "AlreadyExistsError",
    "BadRow",
    "Before",
    "BlobRef",
    "BlobViewRef",
    "BranchNotFoundError",
    "Catalog",
    "CatalogFunction",
    "CatalogView",
    "Changes",
    "CommitConflictError",
    "CommitError",
    "CommitResult",
    "CommitRetriesExhaustedError",
    "CommitUnknownError",
    "CompactionTask",
    "Consumer",
    "ConsumerNotFoundError",
    "CorruptionError",
    "DatabaseNotFoundError",
    "DropColumn",
    "DropDefinition",
    "DropDialect",
    "ExpiredChangelogs",
    "ExpiredSnapshots",
    "FileDefinition",
    "Finding",
    "First",
    "FunctionResource",
    "LSMWriter",
    "LambdaDefinition",
    "Last",
    "LockTimeoutError",
    "Manifest",
    "NotFoundError",
    "OptionError",
    "PaimonError",
    "PaimonWarning",
    "Predicate",
    "RemoveOption",
    "RenameColumn",
    "ResourceError",
    "RolledBack",
    "RowsResult",
    "Scan",
    "Schema",
    "SchemaError",
    "SetOption",
    "Snapshot",
    "SnapshotExpiredError",
    "SnapshotNotFoundError",
    "SqlDefinition",
    "Step",
    "StorageError",
    "StorageUnknownError",
    "Stream",
    "Table",
    "TableNotFoundError",
    "Tag",
    "TagNotFoundError",
    "UnsupportedError",
    "UpdateColumnComment",
    "UpdateColumnDefault",
    "UpdateColumnNullability",
    "UpdateColumnPosition",
    "UpdateColumnType",
    "UpdateComment",
    "UpdateDefinition",
    "UpdateDialect",
    "UsageError",
    "Variant",
    "analyze_spark",
    "col",
    "compact_spark",
    "convert_from_spark",
    "convert_to_spark",
    "delete_spark",
    "expire_snapshots_spark",
    "lit",
    "lookup_spark",
    "merge_spark",
    "register",
    "remove_orphans_spark",
    "rescale_spark",
    "ship",
    "sql",
    "update_spark",
    "variant",
    "write_spark",
]


def __getattr__(name: str) -> object:
    if name == "LSMWriter":
        from paimon_py.lsm.writer import LSMWriter

        return LSMWriter
    if name == "Scan":
        from paimon_py.scan.scan import Scan

        return Scan
    if name in ("BlobRef", "BlobViewRef"):
        from paimon_py.codec import blob_refs

        return getattr(blob_refs, name)
    if name == "sql":
        from paimon_py.expr.sql import sql

        return sql
    if name in ("Variant", "variant"):
        from paimon_py.files import variant_value

        return getattr(variant_value, name)
    if name == "Step":
        from paimon_py.stream.step import Step

        return Step
    if name == "Stream":
        from paimon_py.stream.stream import Stream

        return Stream
    if name == "metrics":
        import paimon_py.metrics as metrics

        return metrics
    if name in __all__:
        from paimon_py import spark

        return getattr(spark, name)
    from paimon_py.api_hints import unknown_name

    raise AttributeError(unknown_name(name, __all__))


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
