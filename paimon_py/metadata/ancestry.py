"""Decides whether one snapshot descends from another; no other module decides this.

A snapshot of paimon_py contains the mark of its parent. For snapshots of other writers the manifests decide: the base
of a snapshot is the contents of its parent.

Source: docs/format.md §4.3; docs/reliability.md §3 (o).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paimon_py.spec.data_file import identifier
from paimon_py.spec.snapshot import Snapshot

if TYPE_CHECKING:
    from paimon_py.metadata.manifests import Manifests


def is_built_on(manifests: Manifests, child: Snapshot, parent: Snapshot) -> bool:
    """Whether a snapshot was built on another: it states so, or it continues from the same files, by name.

    Cost: none if the snapshot states its parent; otherwise two lists, and all manifests if some were merged.
    Raises: FileMissingError, CorruptionError
    """
    said = child.follows(parent)
    if said is not None:
        return said
    base = manifests.read_list(child.base_manifest_list)
    delta = {file.name for file in manifests.read_list(parent.delta_manifest_list)}
    if delta and delta <= {file.name for file in base}:
        return True
    ours = manifests.base_and_delta(parent)
    before, after = ({identifier(entry) for entry in manifests.live(files).entries()} for files in (ours, base))
    return before == after
