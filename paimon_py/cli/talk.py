"""Talk with people on stderr: progress of long work, and the question before something goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

Report = Callable[[int, int, str], None]
"""Takes how much is done, of how much, and of what."""


@contextmanager
def progress(doing: str) -> Iterator[Report]:
    """A bar on stderr while the block runs, if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(doing, total=None)

        def report(done: int, total: int, what: str) -> None:
            bars.update(bar, completed=done, total=total or None, description=f"{doing} {what}")

        yield report


def ask(question: str, *, yes: bool) -> None:
    """Go on if `yes`, or if somebody says so.

    Raises: click.Abort if nobody does.
    """
    if not yes:
        click.confirm(question, abort=True, err=True)


def takes_yes(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: the option `--yes`, which comes in as `yes`."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)
