"""Messages on stderr: progress of long operations, the log, and confirmation before deletions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from paimon_py.cli.output import on_one_line
from paimon_py.logs import GENERAL

Report = Callable[[int, int, str], None]
"""Called with the amount done, the total, and the unit."""


@contextmanager
def progress(doing: str) -> Iterator[Report]:
    """Show a progress bar on stderr while the block runs, if stderr is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(doing, total=None)

        def report(done: int, total: int, what: str) -> None:
            bars.update(bar, completed=done, total=total or None, description=on_one_line(f"{doing} {what}"))

        yield report


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with a message that says what was done and how to continue."""


@contextmanager
def explained_interrupt(explain: Callable[[], str]) -> Iterator[None]:
    """Run a block; after Ctrl-C, `explain` says what was done.

    Raises: Interrupted
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise Interrupted(explain()) from error


class _Lines(logging.Handler):
    """Prints log records as lines on stderr, above a progress bar."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"{record.levelname.lower()}: {on_one_line(record.getMessage())}", err=True)


@contextmanager
def shown_log() -> Iterator[None]:
    """Print the package's log while the block runs; warnings are always shown, as Python warnings."""
    handler, level = _Lines(), GENERAL.level
    handler.addFilter(lambda record: record.name != GENERAL.name)
    GENERAL.addHandler(handler)
    GENERAL.setLevel(logging.INFO)
    try:
        yield
    finally:
        GENERAL.removeHandler(handler)
        GENERAL.setLevel(level)


def ask(question: str, *, yes: bool) -> None:
    """Continue if `yes`, or if the user confirms.

    Raises: click.Abort if the user does not confirm.
    """
    if not yes:
        click.confirm(question, abort=True, err=True)


def takes_yes(command: Callable[..., None]) -> Callable[..., None]:
    """A decorator: adds the option `--yes`, passed as `yes`."""
    return click.option("--yes", "-y", is_flag=True, help="Do not ask.")(command)
