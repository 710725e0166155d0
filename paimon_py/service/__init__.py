"""The maintenance runner: one process that maintains all tables of a warehouse, in rounds.

`paimon-py care` runs `CareRunner(catalog, CareSettings(…)).run()`. It uses only methods of tables, which are safe with
concurrent writers, readers and other runners; nothing is stored outside the tables.
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
