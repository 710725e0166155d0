"""A PostgreSQL that changes and the Debezium that tells of it, for tests; servers that cannot be had skip the test."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from store_servers import LAUNCHERS, stop

MARKER = "done"


@contextlib.contextmanager
def launched(name, place, environment):
    """What a launcher says of its server: variables of the environment."""
    if not (LAUNCHERS / name).exists():
        pytest.skip(f"there is no launcher for {name}")
    run = subprocess.run(
        [str(LAUNCHERS / name), "start", "--dir", str(place)], env={**os.environ, **environment}, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    if run.returncode:
        pytest.skip(f"{name} does not start here: {run.stderr[-300:]}")
    try:
        said = (line.removeprefix("export ").split("=", 1) for line in run.stdout.splitlines())
        yield {key: value.strip("'") for key, value in said}
    finally:
        stop(name, place)


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextlib.contextmanager
def postgres(place: Path):
    """Variables for clients of a PostgreSQL with logical decoding: that of Debian's package, else the launcher's.

    `place` is one where every user may go: PostgreSQL does not run as root.
    """
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if shutil.which("psql") is None:
        pytest.skip("there is no psql")
    if not programs:
        with launched("postgres", place, {}) as said:
            yield said
        return
    place.mkdir()
    who = {}
    if os.getuid() == 0:
        shutil.chown(place, "nobody")
        who = {"user": "nobody", "extra_groups": []}
    made = [programs[-1] / "initdb", "-D", place / "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale", "--no-sync"]
    done = subprocess.run(made, capture_output=True, text=True, timeout=120, cwd=place, **who)
    if done.returncode:
        pytest.skip(f"initdb does not work here: {done.stderr[-300:]}")
    port = _free_port()
    settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "wal_level=logical"]
    command = [programs[-1] / "postgres", "-D", place / "data", "-p", str(port)]
    server = subprocess.Popen(
        [*command, *(part for one in settings for part in ("-c", one))], cwd=place, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who,
    )  # fmt: skip
    said = {"PGHOST": "127.0.0.1", "PGPORT": str(port), "PGUSER": "postgres"}
    try:
        _until(lambda: subprocess.run([programs[-1] / "pg_isready", "-q"], env={**os.environ, **said}).returncode == 0)
        yield said
    finally:
        server.terminate()
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _until(true):
    waiting = threading.Event()
    for _ in range(600):
        if true():
            return
        waiting.wait(0.2)
    pytest.fail("waited in vain for two minutes")


class Source:
    """A database and the file that grows with its events."""

    def __init__(self, environment, lines: Path) -> None:
        self.environment = {**os.environ, **environment}
        self.lines = lines
        self._rounds = 0
        self.sql(f"CREATE TABLE {MARKER} (k int PRIMARY KEY);")

    def sql(self, text):
        done = subprocess.run(
            ["psql", "-qAt", "-v", "ON_ERROR_STOP=1", "-d", "postgres"], input=text, env=self.environment,
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def change(self, statements):
        """Do statements; afterwards all their events are in the file."""
        self._rounds += 1
        self.sql("\n".join([*statements, f"INSERT INTO {MARKER} VALUES ({self._rounds});"]))
        last = f'"after":{{"k":{self._rounds}}}'
        _until(lambda: self.lines.exists() and any(f".{MARKER}\t" in line and last in line for line in self.told()))

    def told(self):
        """The lines so far that are whole."""
        return self.lines.read_text(encoding="utf-8").split("\n")[:-1]


@contextlib.contextmanager
def source(place: Path):
    """A database whose events come with their schemas."""
    place.chmod(0o755)
    with contextlib.ExitStack() as servers:
        said = servers.enter_context(postgres(place / "postgres"))
        asked = {**said, "DEBEZIUM_SCHEMAS": "true"}
        debezium = servers.enter_context(launched("debezium", place / "debezium", asked))
        yield Source(said, Path(debezium["PAIMON_TEST_DEBEZIUM_EVENTS"]))


def plain(row):
    """A row as texts that do not depend on who prints numbers and times."""
    said = {}
    for name, value in row.items():
        if name == "at" and value is not None:
            value = str(value).replace("T", " ").removesuffix(".000000")
        numeric = name in ("price", "v", "total") and value is not None
        said[name] = float(value) if numeric else value if value is None else str(value)
    return said
