"""The property of a new snapshot that contains the largest sequence number of its table.

Source: format.md §12.1; Java `FileStoreCommitImpl`, `SequenceSnapshotProperties`, release 2.0.
"""

from __future__ import annotations

import msgspec

from paimon_py.commit.next_snapshot import Author
from paimon_py.commit.snapshot_delta import SnapshotDelta
from paimon_py.commit.state import State
from paimon_py.metadata.entry_filter import EntryFilter
from paimon_py.spec.sequence_property import SEQUENCE_PROPERTY, stored_maximum


def with_maximum(author: Author, part: SnapshotDelta, state: State) -> Author:
    """The author with the property of the snapshot: the number so far, or a larger one of the new files.

    If the latest snapshot does not contain it, because the option was set later, it is computed from the live files.

    Cost: without the property in the latest snapshot, the manifests of all live files.
    Raises: SnapshotExpiredError
    """
    numbers = [max(entry.file.max_sequence for entry in part.adds)] if part.adds else []
    known = stored_maximum(state.latest)
    if known is None:
        live = state.live_columns(EntryFilter()).max_sequence
        numbers += [int(live.max())] if len(live) else []
    else:
        numbers.append(known)
    if not numbers:
        return author
    properties = {**(author.properties or {}), SEQUENCE_PROPERTY: str(max(numbers))}
    return msgspec.structs.replace(author, properties=properties)
