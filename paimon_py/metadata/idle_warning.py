"""Warnings of paimon_py, and the one about options that it does nothing for."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping

from paimon_py.errors import PaimonWarning
from paimon_py.logs import GENERAL
from paimon_py.metadata.registration import CountsPartitions, KeepsPartitions
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.idle_options import OF_METASTORES, PARTITIONED, idle_options


def warn_of_idle_options(root: TableRoot, options: Mapping[str, str]) -> None:
    """Log and warn, with the line of the caller outside the package, of idle options that the root was not warned of.

    Raises: PaimonWarning where warnings are errors.
    """
    entry = root.registration
    kept = OF_METASTORES if isinstance(entry, KeepsPartitions) else ()
    if isinstance(entry, CountsPartitions) and entry.counts_partitions:
        kept = (PARTITIONED,)
    found = {
        name: why
        for name, why in idle_options(options).items()
        if (name, options[name]) not in root.warned_of and name not in kept
    }
    if not found:
        return
    root.warned_of.update((name, options[name]) for name in found)
    shown = "; ".join(f"{name} = {options[name]!r}: {why}" for name, why in found.items())
    warn(f"{root.path}: paimon_py does nothing yet for these options: {shown}")


def warn(message: str) -> None:
    """Log and warn, with the line of the caller outside the package.

    Raises: PaimonWarning where warnings are errors.
    """
    GENERAL.warning(message)
    warnings.warn(message, PaimonWarning, stacklevel=_frames_inside() + 1)


def _frames_inside() -> int:
    """How many frames of the package lie between here and its caller."""
    frame, count = sys._getframe(1), 0
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "paimon_py":
        frame, count = frame.f_back, count + 1
    return count
