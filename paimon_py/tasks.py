"""All kinds of tasks by their tags: what a process looks up that is given a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paimon_py.compaction.compact import COMPACT
from paimon_py.executors.job import TaskKind
from paimon_py.maintain.analyze import ANALYZE
from paimon_py.maintain.file_tasks import DELETE, LIST
from paimon_py.maintain.rescale import REWRITE
from paimon_py.rows.row_tasks import CHANGE_ROWS

_ALL: tuple[TaskKind[Any, Any], ...] = (ANALYZE, CHANGE_ROWS, COMPACT, DELETE, LIST, REWRITE)

KINDS: Mapping[str, TaskKind[Any, Any]] = {kind.tag: kind for kind in _ALL}
