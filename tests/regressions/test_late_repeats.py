"""Changes that were committed, compacted and lost with all their snapshots are not committed again in good faith."""

from __future__ import annotations

import pytest
from regressions.test_expiry_beside_writers import KINDS, rewritten
from regressions.test_rollbacks import opened, rows, store_with

from paimon_py import CommitConflictError


def found(store):
    read = opened(store, "reader").scan().to_arrow()
    return sorted(zip(read["k"].to_pylist(), read["v"].to_pylist()))


@pytest.mark.parametrize("who", [{}, {"user": "me"}], ids=["nobody", "user"])
@pytest.mark.parametrize("kind", ["fixed", "append", "dynamic", "vectors"])
def test_who_cannot_tell_whether_changes_were_committed_refuses_them(kind, who):
    options, more = KINDS[kind]
    store = store_with(options, **more)
    table = opened(store, "a")
    with table.writer() as writer:
        writer.write_arrow(rows([1, 2, 3], 1))
        changes = writer.changes()
    table.commit(changes, **who)
    rewritten(store)
    before = found(store)
    with pytest.raises(CommitConflictError, match="cannot be determined whether these changes were committed before"):
        opened(store, "again-").commit(changes, **who)
    assert found(store) == before
    assert (2, 1) in before


@pytest.mark.parametrize("kind", ["fixed", "append", "dynamic", "vectors"])
def test_a_number_is_known_whatever_has_expired_since(kind):
    options, more = KINDS[kind]
    store = store_with(options, **more)
    table = opened(store, "a")
    with table.writer() as writer:
        writer.write_arrow(rows([1, 2, 3], 1))
        changes = writer.changes()
    table.commit(changes, user="me", identifier=7)
    rewritten(store)
    before = found(store)
    assert opened(store, "again-").commit(changes, user="me", identifier=7).already_committed
    assert found(store) == before
