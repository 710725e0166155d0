"""Types in public signatures, for annotations: `from paimon_py.types import Split, TableSchema`.

Classes that programs create are in `paimon_py`; this module contains the types of the values that they receive.
"""

from __future__ import annotations

from paimon_py.arguments import NameList
from paimon_py.catalog.view import View
from paimon_py.clones.result import CloneResult
from paimon_py.codec.partition_choice import PartitionChoice
from paimon_py.commit.changes import BucketChanges, Edit, KeyBase
from paimon_py.commit.result import CommittedSnapshots
from paimon_py.env import Clock, Env, Ids, Pool, SerialPool, SpillFile, SpillPlace
from paimon_py.executors import Executor, Job, NumberedTask, TaskResult
from paimon_py.expr.column import Calculable, Calculation, Column, Lit, VariantColumn
from paimon_py.expr.column_list import ColumnList
from paimon_py.expr.literal import BinaryValue, DateValue, DecimalValue, LiteralValue, TimestampValue, TimeValue
from paimon_py.expr.predicate import (
    And,
    Arithmetic,
    Case,
    ColumnValue,
    Compare,
    CompareColumns,
    Constant,
    FunctionCall,
    In,
    IsNull,
    IsTrue,
    Negative,
    Not,
    Operator,
    Or,
    Predicate,
    Ref,
    TextMatch,
    ValueTest,
    ValueTree,
)
from paimon_py.iceberg.publication import PublishedVersion
from paimon_py.iceberg.state import IcebergState
from paimon_py.imports.result import ImportResult, UnfitFile
from paimon_py.maintain.cleanup.expired import ExpiredPartitions, FastForwarded, RemovedEntries, RemovedOrphans
from paimon_py.metadata.commit_history import HistoryEntry
from paimon_py.metastores.server import CatalogPartition
from paimon_py.parallel import Budget
from paimon_py.progress import Progress
from paimon_py.queries.query import SqlQuery
from paimon_py.scan.blob_rows import BlobRow
from paimon_py.scan.explain import Analysis, Explanation, Pushed, RowGroups, Skipped
from paimon_py.scan.rows import Rows
from paimon_py.scan.split import Compared, Section, Split
from paimon_py.spec.clustering import Clustering
from paimon_py.spec.credentials import Credentials
from paimon_py.spec.data_file import DataFile, FileKind, FileSource, ManifestEntry, Stats
from paimon_py.spec.events import (
    BranchEvent,
    CatalogEvent,
    CommitEvent,
    CompactionEvent,
    ConflictEvent,
    ExpiryEvent,
    OrphanEvent,
    RaceEvent,
    RollbackEvent,
    SchemaEvent,
    TableEvent,
    TagEvent,
)
from paimon_py.spec.manifest import DeletionPlace, DeletionVectorRange, GlobalIndex, IndexEntry, ManifestFile
from paimon_py.spec.partition import Partition
from paimon_py.spec.postponed import WaitingOrder
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.snapshot import Base, CommitKind, SnapshotId
from paimon_py.spec.snapshot import Snapshot as SnapshotValue
from paimon_py.spec.statistics import ColumnStatistics, Statistics
from paimon_py.spec.types import (
    ArrayType,
    Atomic,
    DataType,
    Field,
    MapType,
    MultisetType,
    Root,
    RowType,
    VariantPart,
    VectorType,
)
from paimon_py.spec.users import UserCommit, Users
from paimon_py.system.metadata_scan import MetadataExplanation, MetadataScan, MetadataSplit
from paimon_py.system.metadata_table import MetadataTable
from paimon_py.system.table import SystemTable
from paimon_py.write.exported_files import Exported
from paimon_py.write.session import Writer

__all__ = [
    "Analysis",
    "And",
    "Arithmetic",
    "ArrayType",
    "Atomic",
    "Base",
    "BinaryValue",
    "BlobRow",
    "BranchEvent",
    "BucketChanges",
    "Budget",
    "Calculable",
    "Calculation",
    "Case",
    "CatalogEvent",
    "CatalogPartition",
    "Clock",
    "CloneResult",
    "Clustering",
    "Column",
    "ColumnList",
    "ColumnStatistics",
    "ColumnValue",
    "CommitEvent",
    "CommitKind",
    "CommittedSnapshots",
    "CompactionEvent",
    "Compare",
    "CompareColumns",
    "Compared",
    "ConflictEvent",
    "Constant",
    "Credentials",
    "DataFile",
    "DataType",
    "DateValue",
    "DecimalValue",
    "DeletionPlace",
    "DeletionVectorRange",
    "Edit",
    "Env",
    "Executor",
    "ExpiredPartitions",
    "ExpiryEvent",
    "Explanation",
    "Exported",
    "FastForwarded",
    "Field",
    "FileKind",
    "FileSource",
    "FunctionCall",
    "GlobalIndex",
    "HistoryEntry",
    "IcebergState",
    "Ids",
    "ImportResult",
    "In",
    "IndexEntry",
    "IsNull",
    "IsTrue",
    "Job",
    "KeyBase",
    "Lit",
    "LiteralValue",
    "ManifestEntry",
    "ManifestFile",
    "MapType",
    "MetadataExplanation",
    "MetadataScan",
    "MetadataSplit",
    "MetadataTable",
    "MultisetType",
    "NameList",
    "Negative",
    "Not",
    "NumberedTask",
    "Operator",
    "Or",
    "OrphanEvent",
    "Partition",
    "PartitionChoice",
    "Pool",
    "Predicate",
    "Progress",
    "PublishedVersion",
    "Pushed",
    "RaceEvent",
    "Ref",
    "RemovedEntries",
    "RemovedOrphans",
    "RollbackEvent",
    "Root",
    "RowGroups",
    "RowType",
    "Rows",
    "SchemaEvent",
    "Section",
    "SerialPool",
    "Skipped",
    "SnapshotId",
    "SnapshotValue",
    "SpillFile",
    "SpillPlace",
    "Split",
    "SqlQuery",
    "Statistics",
    "Stats",
    "SystemTable",
    "TableEvent",
    "TableSchema",
    "TagEvent",
    "TaskResult",
    "TextMatch",
    "TimeValue",
    "TimestampValue",
    "UnfitFile",
    "UserCommit",
    "Users",
    "ValueTest",
    "ValueTree",
    "VariantColumn",
    "VariantPart",
    "VectorType",
    "View",
    "WaitingOrder",
    "Writer",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
