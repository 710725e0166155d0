"""Expiry of consumers: deletes those without recent progress, so that they no longer protect snapshots.

Source: format.md §16.5; docs/reliability.md §3 (i); Java `ConsumerManager.expire`.
"""

from __future__ import annotations

import msgspec

from paimon_py.maintain.observers import report
from paimon_py.metadata.root import TableRoot
from paimon_py.metadata.store_clock import store_lag
from paimon_py.spec.events import ExpiryEvent


class ExpiredConsumers(msgspec.Struct, frozen=True):
    """The result of consumer expiry.

    Attributes:
        names: the deleted consumers, sorted.
        due_millis: no other consumer expires before this time of this machine's clock, in epoch milliseconds.
    """

    names: tuple[str, ...]
    due_millis: int


def expire_consumers(root: TableRoot, idle_millis: int) -> ExpiredConsumers:
    """Delete consumers whose file was last written before the idle time, by the clock of the store.

    Cost: one list; if consumers look idle by this machine's clock, also three calls to read the store's clock, a
      stat for each of them, and a list and two deletes per deleted consumer.
    Raises: TableNotFoundError: another table is at the path.
    """
    now = root.env.clock.millis()
    written = root.consumers.write_times()
    idle = sorted(name for name, millis in written.items() if millis < now - idle_millis)
    lag = store_lag(root) if idle else 0
    latest_due = now + idle_millis + 1
    if lag is None:
        return ExpiredConsumers((), latest_due)
    gone = root.consumers.expire(idle, now - lag - idle_millis, root.schemas.latest)
    if gone:
        report(root, lambda: ExpiryEvent(**root.event_place(), what="consumers", count=len(gone)))
    dues = [millis + lag + idle_millis + 1 for name, millis in written.items() if name not in gone]
    return ExpiredConsumers(tuple(gone), min([latest_due, *dues]))
