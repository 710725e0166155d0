"""Files that others wrote under a later schema than that of a table object or a writer.

Rewritten under the older schema, their rows would lose columns that were added since, and values of widened types.
"""

from __future__ import annotations

from collections.abc import Iterable

from paimon_py.commit.conflicts import narrower
from paimon_py.errors import CommitConflictError
from paimon_py.metadata.open_table import OpenTable
from paimon_py.spec.data_file import DataFile


def is_narrower(table: OpenTable, files: Iterable[DataFile]) -> str | None:
    """The reason why rows of files cannot be rewritten under a schema without losing values; None if they can.

    Cost: nothing, unless a file has a later schema: then these schemas are fetched once.
    """
    later = sorted({file.schema_id for file in files if file.schema_id > table.schema.id})
    reasons = (narrower(table.root.schemas.get(number), table.schema) for number in later)
    return next((reason for reason in reasons if reason is not None), None)


def require_known(table: OpenTable, files: Iterable[DataFile]) -> None:
    """Refuse to rewrite rows of these files under a schema that cannot hold all of their values.

    Raises: CommitConflictError; refresh the table and repeat the call.
    """
    reason = is_narrower(table, files)
    if reason is not None:
        advice = "call refresh(), or open the table again"
        raise CommitConflictError(f"nothing was changed: {reason}; {advice}", table=table.root.path)
