"""An oracle session with more jars on its class path: drivers of databases, clients of metastores."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading

import oracle

SQLITE = ("org.xerial:sqlite-jdbc:3.46.1.3", "org.slf4j:slf4j-api:1.7.36")
POSTGRES = ("org.postgresql:postgresql:42.7.4",)
MYSQL = ("com.mysql:mysql-connector-j:8.4.0",)


class SessionWithJars(oracle.Session):
    """One JVM of a version of Paimon, with jars by their Maven coordinates, and others that lie in files."""

    def __init__(self, version: str, jars: tuple[str, ...], tz: str = "UTC", files: tuple[str, ...] = ()) -> None:
        self.version, self.tz = version, tz
        self._mutex = threading.Lock()
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed by Session.close
        command = list(oracle._command(version, tz, "--serve"))
        place = command.index("-cp") + 1
        command[place] = os.pathsep.join([command[place], *map(oracle._jar, jars), *files])
        self._jvm = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, encoding="utf-8"
        )
