"""Java's own REST catalog server, started by its launcher and stopped again."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest


@contextlib.contextmanager
def running_server(place):
    """The options that open the server's catalog; a server of its own, whose tables lie below `place`."""
    bases = Path(__file__).parents
    launcher = next((path for base in bases if (path := base / "shared" / "servers" / "rest").exists()), None)
    if launcher is None:
        pytest.skip("there is no launcher for rest")
    done = subprocess.run([launcher, "start", "--dir", place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"rest does not start here: {done.stderr.strip()[-300:]}")
    try:
        said = dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        yield {
            "metastore": "rest", "uri": said["PAIMON_TEST_REST"], "token.provider": "bear",
            "token": said["PAIMON_TEST_REST_TOKEN"], "fs.local.fsync": "false",
        }  # fmt: skip
    finally:
        subprocess.run([launcher, "stop", "--dir", place], check=False, capture_output=True)
