"""Repeats a request while a server is busy.

The clients of Paimon's and of Iceberg's REST catalogs use it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from paimon_py.metastores.rest.http import Answer, Reply, Unanswered, Unsent

BUSY = frozenset((429, 503))
"""The HTTP statuses that ask the client to repeat the request later."""


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """The number of times to repeat a request.

    Attributes:
        attempts: the maximum number of calls.
        repeats_unanswered: whether the request can be repeated although the server may have executed it.
        wait: waits before the next call. Its arguments are the answer of the busy server, or None without one, and
            the number of the call, from 1.
    """

    attempts: int
    repeats_unanswered: bool
    wait: Callable[[Answer | None, int], None]


def send_until_answered(send: Callable[[], Reply], retries: Retries) -> tuple[Reply, bool]:
    """Send a request until the server returns an answer and is not busy.

    Returns: the last reply, and whether the server may have executed an earlier call.
    """
    may_be_done = False
    for attempt in range(1, retries.attempts + 1):
        reply = send()
        is_last = attempt == retries.attempts
        if isinstance(reply, Unsent):
            return reply, may_be_done
        if isinstance(reply, Unanswered):
            if is_last or reply.slow or not retries.repeats_unanswered:
                return reply, may_be_done
        elif reply.status not in BUSY or is_last:
            return reply, may_be_done
        may_be_done = True
        retries.wait(None if isinstance(reply, Unanswered) else reply, attempt)
    raise AssertionError("the last attempt ends in a reply")
