"""The interface for engine adapters besides executors: rows that an engine moves, and streams that it reads in batches.

An executor runs the tasks of a verb; the verbs here take rows that an engine holds in its own processes. Each verb has
a *part*, a value that is pickled once and runs in every process; the results of the parts go to the process that
commits once:

- `DistributedWrite`, `WritePart`: rows are written in place, or by the process to which `RowRouting` sends them; or,
  with `AssignPart` and `AssignedPart`, by the process to which those that assign buckets send them; or, with `KeysPart`
  and `KeySharePart`, by the process that knows where their keys are;
- `DistributedMerge`, `MergePart`: rows of a source are merged, each bucket by one process; or, with `ChangePart` and
  others, each file by a process that has all rows of the source;
- `LookupPart`: rows are looked up by their keys;
- `DistributedPlan`, `ManifestsPart`, `SharesPart`: a scan is planned where its manifests and its splits are read;
- `StreamBatches`: a stream as offsets and splits, for engines with their own checkpoints.

The other functions are for connectors: options in one mapping (`group_options`), a table created by a write
(`create_table_at`), and conversions between types and conditions of the engine and those of a table.
"""

from __future__ import annotations

from paimon_py.codec.arrow_types import from_arrow_type, to_arrow_schema, to_arrow_type
from paimon_py.codec.binary_row.hash import hash_words
from paimon_py.codec.row_size import row_bytes
from paimon_py.distributed.assigned_write import (
    AssignedMergePart,
    AssignedPart,
    AssignPart,
    assigned_changes,
    assigned_rows,
)
from paimon_py.distributed.batch_limits import BatchLimits
from paimon_py.distributed.bucket_rows import AssignedBucketsPart, AssignRowsPart, BucketsPart
from paimon_py.distributed.columns import cast_values, takes_type
from paimon_py.distributed.commits import commit_of, discard_changes, run_once
from paimon_py.distributed.conditions import condition_of, with_meaning
from paimon_py.distributed.lookup import LookupPart
from paimon_py.distributed.merge import DistributedMerge, MergePart
from paimon_py.distributed.moving_keys import KeySharePart, KeysPart, KeySteps
from paimon_py.distributed.offsets import Offset
from paimon_py.distributed.option_groups import OptionGroups, group_options
from paimon_py.distributed.planning import DistributedPlan, ManifestsPart, SharesPart
from paimon_py.distributed.routing import BucketRouting, RowRouting
from paimon_py.distributed.schema_merging import SchemaMerging, merge_columns
from paimon_py.distributed.sent import Sent
from paimon_py.distributed.spread_merge import ChangePart, InsertPart, NewRowsPart
from paimon_py.distributed.stream_batches import StreamBatches
from paimon_py.distributed.tables import create_table_at, with_options
from paimon_py.distributed.write import DistributedWrite, Overwrite, WritePart
from paimon_py.expr.bind import predicate_of
from paimon_py.expr.column import calculable, ref_of, tree_of
from paimon_py.expr.literal import parse_timestamp, to_literal
from paimon_py.expr.references import map_values, refs_of
from paimon_py.maintain.zones import zone_rules
from paimon_py.rows.clauses import MergeClauses
from paimon_py.spec.commit_label import CommitLabel
from paimon_py.spec.options import parse_size
from paimon_py.spec.schema import ROW_KIND_COLUMN
from paimon_py.spec.type_text import sql_type
from paimon_py.stream.reading import Reading

__all__ = [
    "ROW_KIND_COLUMN",
    "AssignPart",
    "AssignRowsPart",
    "AssignedBucketsPart",
    "AssignedMergePart",
    "AssignedPart",
    "BatchLimits",
    "BucketRouting",
    "BucketsPart",
    "ChangePart",
    "CommitLabel",
    "DistributedMerge",
    "DistributedPlan",
    "DistributedWrite",
    "InsertPart",
    "KeySharePart",
    "KeySteps",
    "KeysPart",
    "LookupPart",
    "ManifestsPart",
    "MergeClauses",
    "MergePart",
    "NewRowsPart",
    "Offset",
    "OptionGroups",
    "Overwrite",
    "Reading",
    "RowRouting",
    "SchemaMerging",
    "Sent",
    "SharesPart",
    "StreamBatches",
    "WritePart",
    "assigned_changes",
    "assigned_rows",
    "calculable",
    "cast_values",
    "commit_of",
    "condition_of",
    "create_table_at",
    "discard_changes",
    "from_arrow_type",
    "group_options",
    "hash_words",
    "map_values",
    "merge_columns",
    "parse_size",
    "parse_timestamp",
    "predicate_of",
    "ref_of",
    "refs_of",
    "row_bytes",
    "run_once",
    "sql_type",
    "takes_type",
    "to_arrow_schema",
    "to_arrow_type",
    "to_literal",
    "tree_of",
    "with_meaning",
    "with_options",
    "zone_rules",
]
