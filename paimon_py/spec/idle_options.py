"""Options that a table may have and that paimon_py does nothing for yet. Rows disappear as features arrive. Pure.

An option is idle if it decides what a table keeps, which commits happen, or what others are told or read, and paimon_py
neither acts on it nor refuses the table by name. Options that only set the pace of an engine (threads, caches, buffers,
sinks) are not, and neither are those of a feature whose tables are refused (`supported.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.spec.options import OPTIONS, check_values, is_default

_METASTORE = "no metastore is told"
_CLUSTERING = "clustering does without it"

PARTITIONED = "metastore.partitioned-table"
OF_METASTORES = (PARTITIONED, "metastore.tag-to-partition")
"""Idle only where a catalog does not keep partitions."""

IDLE: Mapping[str, str] = {
    "snapshot.watermark-idle-timeout": "commits without rows make no snapshot to be tagged",
    "scan.plan-auto-tag-for-read.time-retained": "reads make no tag",
    PARTITIONED: _METASTORE,
    "metastore.tag-to-partition": _METASTORE,
    "visibility-callback.enabled": "commits do not wait until rows are visible",
    "commit.force-compact": "commits do not compact more than the other options say",
    "commit.strict-mode.last-safe-snapshot": "commits are not refused for it",
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
"""What does not happen, by option."""


def idle_options(options: Mapping[str, str]) -> dict[str, str]:
    """What does not happen, by the idle options among some, older names included; none that says the default.

    Raises: OptionError for a text that does not fit its option.
    """
    names = {given: name for name in IDLE for given in (name, *OPTIONS[name].fallbacks) if given in options}
    check_values({given: options[given] for given in names})
    return {given: IDLE[name] for given, name in names.items() if not is_default(name, options[given])}
