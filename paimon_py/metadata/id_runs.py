"""Ids of snapshots as runs without gaps, and the run that is the history. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def current_run(ids: Sequence[int], earliest_hint: Callable[[], int | None]) -> range:
    """The ids of the history, out of all existing ascending ids: all of them unless there is a gap.

    With a gap it is the run with the oldest snapshot by the EARLIEST hint, or with snapshot 1; otherwise the last one.
    """
    runs = runs_of_ids(ids)
    if len(runs) == 1:
        return runs[0]
    earliest = earliest_hint() or 1
    return next((run for run in runs if earliest in run), runs[-1])


def runs_of_ids(ids: Sequence[int]) -> list[range]:
    """Ascending ids as runs without gaps. Pure."""
    runs: list[range] = []
    for number in ids:
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def shown_ids(what: str, ids: Sequence[int]) -> str:
    """Ascending ids as readable text: "snapshot 8", "snapshots 1 to 3, 8"."""
    runs = runs_of_ids(ids)
    shown = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)
    return f"{what} {shown}" if len(ids) == 1 else f"{what}s {shown}"
