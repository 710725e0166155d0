"""What a target of the fuzz suite is: a name, its weight, and how one seeded input runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

RIGHT, SAME_BYTES, UNDETECTED, REFUSED = "right", "same bytes", "undetected", "refused"


class Target(NamedTuple):
    """Something that takes bytes or texts from outside.

    `run(rng)` damages one input and says what came of it: `RIGHT`, `SAME_BYTES` (nothing was damaged) or `UNDETECTED`
    (another answer than the sound input gives, without an error). What it raises is judged by the worker.
    `sweep`: tells how many inputs there are, numbered from 0, where they are not seeded; `run(number)`.
    `named`: errors must name the path, since a file is what was damaged. `raises`: what it may raise besides, by contract.
    """

    name: str
    run: Callable
    weight: int = 1
    sweep: Callable | None = None
    named: bool = True
    raises: tuple = ()


class Wrong(Exception):
    """Something happened that no error and no answer may be."""
