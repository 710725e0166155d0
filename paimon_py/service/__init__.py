"""The maintenance runner: one process that looks after all tables of a warehouse, round after round.

`CareRunner(catalog, CareSettings(…)).run()` is what `paimon-py care` does. All of it are verbs of tables, which
are safe beside writers, readers and other runners; nothing is kept outside the tables.
"""

from __future__ import annotations

from paimon_py.service.health import HealthServer
from paimon_py.service.pressure import wait_for_compaction
from paimon_py.service.runner import CareRunner, CareState
from paimon_py.service.settings import CareSettings
from paimon_py.service.stop import StopFlag
from paimon_py.service.values import CareEntry, CareRound

__all__ = [
    "CareEntry", "CareRound", "CareRunner", "CareSettings", "CareState", "HealthServer", "StopFlag",
    "wait_for_compaction",
]  # fmt: skip


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
