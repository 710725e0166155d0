"""The command that maintains a warehouse, round after round."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone

import click
import msgspec

from paimon_py import Catalog
from paimon_py.cli.output import on_one_line
from paimon_py.cli.sizes import count_text, size, size_text
from paimon_py.cli.values import age, positive_age, takes_place
from paimon_py.env import Env, SystemClock
from paimon_py.service import CareEntry, CareRound, CareRunner, CareSettings, HealthServer, StopFlag
from paimon_py.service.memory import release_free_memory, runner_bytes


def _age_or_never(text: str) -> timedelta | None:
    return None if text == "never" else age(text)


def _address(text: str) -> tuple[str, int]:
    """Parse the address of the health endpoint: a port, or host:port."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) < 65536:
        raise click.BadParameter(f"{text!r} is not a port such as 8080, or 0.0.0.0:8080")
    return host or "127.0.0.1", int(port)


@click.command()
@click.argument("warehouse")
@click.option(
    "--every", type=positive_age, default="10min", show_default=True, metavar="AGE", help="Time between rounds."
)
@click.option("--once", is_flag=True, help="Run one round and exit; for cron.")
@click.option("--database", "-d", "databases", multiple=True, help="Only this database; may be repeated.")
@click.option("--budget-bytes", type=size, metavar="SIZE", help="Bytes to compact per round, such as 20gb.")
@click.option("--budget-time", type=age, metavar="AGE", help="Start no more work in a round after this time.")
@click.option("--compact/--no-compact", "compacts", default=True, help="Whether to compact files.")
@click.option("--expire/--no-expire", "expires", default=True, help="Whether to expire snapshots and partitions.")
@click.option("--orphans-every", type=_age_or_never, default="1d", show_default=True, metavar="AGE|never")
@click.option("--orphans-older-than", type=age, default="1d", show_default=True, metavar="AGE", help="Orphan age.")
@click.option("--threads", type=click.IntRange(1), help="Parallel merges; default: one per core.")
@click.option("--memory", type=size, metavar="SIZE", help="Memory to use; default: the container's limit, or 256mb.")
@click.option("--health", type=_address, metavar="[HOST:]PORT", help="Serve /healthz and /metrics on this address.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@takes_place
def care(  # noqa: PLR0913
    warehouse: str, every: timedelta, once: bool, databases: tuple[str, ...], budget_bytes: int | None,
    budget_time: timedelta | None, compacts: bool, expires: bool, orphans_every: timedelta | None,
    orphans_older_than: timedelta, threads: int | None, memory: int | None, health: tuple[str, int] | None, form: str,
    options: Mapping[str, str],
) -> None:  # fmt: skip
    """Maintain all tables of a warehouse: compact, expire, and delete orphans; the most urgent tables first.

    Runs until SIGTERM or Ctrl-C, which stop work in progress cleanly. Any number of such processes may run.
    """
    release_free_memory()
    env = Env(threads=threads, memory_bytes=memory or runner_bytes())
    catalog = Catalog.open(warehouse, options, create=False, env=env)
    settings = CareSettings(
        every=every, databases=databases, compacts=compacts, expires=expires, orphans_every=orphans_every,
        orphans_older_than=orphans_older_than, budget_bytes=budget_bytes, budget_time=budget_time,
    )  # fmt: skip
    stop, failed = StopFlag(), list[str]()
    runner = CareRunner(catalog, settings, stop=stop)

    def show(found: CareRound) -> None:
        failed[:] = found.errors
        _show(found, form)

    with ExitStack() as stack:
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.signal(number, lambda *_: stop.request())
            stack.callback(signal.signal, number, before)
        if health is not None:
            server = HealthServer(runner, *health, clock=SystemClock())
            stack.callback(server.close)
            click.echo(f"health at http://{health[0]}:{server.port}/healthz", err=True)
        runner.run(show, rounds=1 if once else None)
    if once and failed:
        click.get_current_context().exit(1)


def _show(found: CareRound, form: str) -> None:
    if form == "json":
        click.echo(msgspec.json.encode(found).decode())
    else:
        for line in round_lines(found):
            click.echo(line)
    sys.stdout.flush()


def round_lines(found: CareRound) -> list[str]:
    """The summary of a round: a line per table that changed or failed, and one for the round."""
    lines = [f"  {entry.table}: {_entry_text(entry)}" for entry in found.entries if entry.did_something or entry.error]
    changed = sum(entry.did_something for entry in found.entries)
    when = datetime.fromtimestamp(found.began_millis / 1000, timezone.utc).isoformat(timespec="seconds")
    tables = count_text(len(found.entries), "table")
    head = f"{when.replace('+00:00', 'Z')} {tables}, {changed} changed, {found.seconds:.1f} s"
    waiting = sum(entry.waiting_files for entry in found.entries)
    head += f", {count_text(waiting, 'file')} left for the next round" if waiting else ""
    head += f", no time for {count_text(len(found.out_of_time), 'table')}" if found.out_of_time else ""
    return [head + (", stopped" if found.stopped else ""), *lines]


def _entry_text(entry: CareEntry) -> str:
    said = []
    if entry.compacted_files:
        said.append(f"{count_text(entry.compacted_files, 'file')} of {size_text(entry.compacted_bytes)} merged")
    if entry.expired_snapshots:
        said.append(f"{count_text(entry.expired_snapshots, 'snapshot')} expired")
    if entry.expired_others:
        said.append(f"{entry.expired_others} changelogs, tags, partitions or consumers expired")
    if entry.orphans:
        said.append(f"{entry.orphans} orphans deleted")
    if entry.error is not None:
        said.append(f"error: {on_one_line(entry.error)}")
    return ", ".join(said)
