"""Whether one snapshot descends from another; no other module decides this.

A snapshot of paimon_py names the one it was built on. Of snapshots of other writers the manifests tell: the base of a
snapshot is what its parent had.

Source: docs/format.md §4.3; docs/reliability.md §3 (o).
"""

from __future__ import annotations

from paimon_py.metadata.manifests import Manifests
from paimon_py.spec.data_file import identifier
from paimon_py.spec.snapshot import Snapshot


def is_built_on(manifests: Manifests, child: Snapshot, parent: Snapshot) -> bool:
    """Whether a snapshot was built on another: it says so, or it goes on from the same files, by their names.

    Cost: none where the snapshot says it; else two lists, and all manifests if some were merged.
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
