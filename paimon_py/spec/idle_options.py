"""Options that a table may have but that have no effect in paimon_py yet; shrinks as features are added. Pure.

An option is idle if it affects what a table retains, which commits happen, or what others are notified of or read, and
paimon_py neither implements it nor refuses the table. Not idle: options that only tune an engine (threads, caches,
buffers, sinks), and those of a feature whose tables are refused (`supported.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.spec.options import OPTIONS, check_values, is_default

_METASTORE = "no metastore is notified"
_CLUSTERING = "clustering does without it"

PARTITIONED = "metastore.partitioned-table"
OF_METASTORES = (PARTITIONED, "metastore.tag-to-partition")
"""Idle only if the catalog does not manage partitions."""

IDLE: Mapping[str, str] = {
    "snapshot.watermark-idle-timeout": "commits without rows make no snapshot to be tagged",
    "scan.plan-auto-tag-for-read.time-retained": "reads make no tag",
    PARTITIONED: _METASTORE,
    "metastore.tag-to-partition": _METASTORE,
    "visibility-callback.enabled": "commits do not wait until rows are visible",
    "commit.discard-duplicate-files": "files that the table has already are not left out of a commit",
    "manifest-sort.enabled": "manifests are not sorted",
    "manifest.delete-file-drop-stats": "DELETE entries keep their statistics",
    "delete.force-produce-changelog": "deletes write no changelog",
    "scan.ignore-corrupt-files": "a damaged file stops the read",
    "scan.ignore-lost-files": "a missing file stops the read",
    "clustering.incremental.mode": _CLUSTERING,
    "clustering.incremental.optimize-write": _CLUSTERING,
    "clustering.history-partition.limit": _CLUSTERING,
    "clustering.history-partition.idle-to-full-sort": _CLUSTERING,
    "vector-field": "the columns keep their types",
}
"""The missing effect, by option."""


def idle_options(options: Mapping[str, str]) -> dict[str, str]:
    """The missing effects of the idle options in `options`, including older names; options with their default are
    skipped.

    Raises: OptionError for an invalid value.
    """
    names = {given: name for name in IDLE for given in (name, *OPTIONS[name].fallbacks) if given in options}
    check_values({given: options[given] for given in names})
    return {given: IDLE[name] for given, name in names.items() if not is_default(name, options[given])}
