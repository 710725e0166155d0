"""The largest sequence number of a table as a property of its snapshots (`write.sequence-number-init-mode` = snapshot).

Source: format.md §12.1; Java `SequenceSnapshotProperties`, release 2.0.
"""

from __future__ import annotations

from paimon_py.errors import CorruptionError
from paimon_py.spec.options import Options
from paimon_py.spec.snapshot import Snapshot

SEQUENCE_PROPERTY = "sequence.generation.max-sequence-number"


def keeps_sequence_property(options: Options) -> bool:
    """Whether commits write the property and writers count on from it."""
    return options.get_enum("write.sequence-number-init-mode") == "snapshot"


def stored_maximum(snapshot: Snapshot | None) -> int | None:
    """The largest sequence number that was ever committed, as a snapshot says; None where it says nothing.

    Raises: CorruptionError for a text that is not a number.
    """
    text = None if snapshot is None or snapshot.properties is None else snapshot.properties.get(SEQUENCE_PROPERTY)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        assert snapshot is not None
        raise CorruptionError(
            f"snapshot {snapshot.id} has the property {SEQUENCE_PROPERTY} = {text!r}, which is not a number"
        ) from error


def number_after(options: Options, snapshot: Snapshot | None) -> int:
    """The least number for the next row, as a snapshot says; 0 where the option or the property is not set."""
    known = stored_maximum(snapshot) if keeps_sequence_property(options) else None
    return 0 if known is None else known + 1
