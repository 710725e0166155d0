"""Java's own REST catalog server, started by its launcher and stopped again."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

VERSIONS = ("1.4.2", "2.0.0")
"""Of the server; its commit compares the snapshot that was planned on since 2.0."""

_MISSING: dict[str, str] = {}


@contextlib.contextmanager
def running_server(place, version="1.4.2"):
    """The options that open the server's catalog; a server of its own, whose tables lie below `place`."""
    if version in _MISSING:
        pytest.skip(_MISSING[version])
    bases = Path(__file__).parents
    launcher = next((path for base in bases if (path := base / "shared" / "servers" / "rest").exists()), None)
    if launcher is None:
        pytest.skip("there is no launcher for rest")
    env = {**os.environ, "PAIMON_VERSION": version}
    done = subprocess.run([launcher, "start", "--dir", place], capture_output=True, text=True, check=False, env=env)
    if done.returncode:
        _MISSING[version] = f"rest {version} does not start here: {done.stderr.strip()[-300:]}"
        pytest.skip(_MISSING[version])
    try:
        said = dict(line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        yield {
            "metastore": "rest", "uri": said["PAIMON_TEST_REST"], "token.provider": "bear",
            "token": said["PAIMON_TEST_REST_TOKEN"], "fs.local.fsync": "false",
        }  # fmt: skip
    finally:
        subprocess.run([launcher, "stop", "--dir", place], check=False, capture_output=True)
