"""Child processes: one step of one peer in a fresh process."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.environments import MODULES, PACKAGES, interpreter

HERE = Path(__file__).parent


class Failed(Exception):
    """A peer could not do it."""


def run(peer: str, step: str, settings: dict[str, Any]) -> dict[str, Any]:
    """One child process; its figures.

    Raises:
        Failed: with the last line that the child printed.
    """
    if peer == "native":
        settings = {**settings, "native": True}
    command = [interpreter(peer), str(HERE / "child.py"), MODULES[peer], step, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent, env=environment(peer))
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Failed(lines[-1][:300])
    return json.loads(done.stdout.strip().splitlines()[-1])


@functools.cache
def environment(peer: str) -> dict[str, str]:
    """What a peer's processes inherit: modules compiled beforehand, as an installed package has them."""
    inherited = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled = Path(tempfile.gettempdir()) / "paimon-bench-compiled"
    path = "" if peer in PACKAGES else f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    made = {**inherited, "PYTHONPYCACHEPREFIX": str(compiled), "PYTHONPATH": path}
    first = [interpreter(peer), str(HERE / "child.py"), MODULES[peer], "nothing", "{}"]
    subprocess.run(first, capture_output=True, check=False, cwd=HERE.parent, env=made)
    return made
