"""The visibility of rows in a primary-key table whose compactions keep one live row per key.

Source: format.md §13.5, §17; Java `CoreOptions.batchScanSkipLevel0`, `MergeTreeSplitGenerator`.
"""

from __future__ import annotations

from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema


def kills_older_rows(schema: TableSchema) -> bool:
    """Whether compaction leaves one live row per key in all levels above 0, so that these need no merging."""
    options = Options(schema.options)
    return options.get_bool("deletion-vectors.enabled") or options.get_enum("merge-engine") == "first-row"


def clusters_keys(schema: TableSchema) -> bool:
    """Whether files above level 0 are sorted by `clustering.columns` in place of the key, and their smallest and
    largest keys are values of these columns.

    Source: format.md §28; Java `CoreOptions.pkClusteringOverride`, release 2.0.
    """
    return bool(schema.primary_keys) and Options(schema.options).get_bool("pk-clustering-override")


def skips_level_zero(schema: TableSchema, *, every_level: bool = False) -> bool:
    """Whether batch reads skip files that have not been compacted yet (level 0).

    Args:
        every_level: the reader must include all rows, whatever the table's options say.
    """
    options = Options(schema.options)
    if clusters_keys(schema):
        return True  # rows of both orders cannot be merged
    if every_level or not schema.primary_keys:
        return False
    if options.get_bool("deletion-vectors.enabled"):
        return not options.get_bool("deletion-vectors.merge-on-read")
    return options.get_enum("merge-engine") == "first-row"


def waits_for_writers(schema: TableSchema) -> bool:
    """Whether rows are read, or their changes reported, only after their writer has compacted and committed them.

    Of several writers of one bucket only one can compact it, so that a bucket needs one writer.
    """
    options = Options(schema.options)
    if not schema.primary_keys or options.get_bool("write-only"):
        return False
    return skips_level_zero(schema) or options.get_enum("changelog-producer") == "lookup"
