"""An interpreter for every peer: its own virtual environment, made on first use."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = {
    "pypaimon": ["pypaimon==2.1.0"],
    "native": ["pypaimon==2.1.0", "pypaimon-rust==0.4.0"],
    "rust": ["pypaimon-rust==0.4.0", "pyarrow"],
    "delta": ["deltalake>=1.0", "pyarrow", "numpy"],
    "iceberg": ["pyiceberg[sql-sqlite,pyarrow,pyiceberg-core]>=0.10"],
}
MODULES = {"ours": "ours", "plain": "ours", "java": "java", "raw": "raw",
           "pypaimon": "pypaimon_peer", "native": "pypaimon_peer", "rust": "rust", "delta": "delta"}  # fmt: skip

_VERSIONS = """
import importlib.metadata as m, json, platform
found = {"python": platform.python_version()}
for name in ("pyarrow", "numpy", "pypaimon", "pypaimon-rust", "deltalake", "pyiceberg", "paimon-py"):
    try:
        found[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@functools.cache
def interpreter(peer: str) -> str:
    """The Python that runs `peer`; ours, raw pyarrow and what drives Java share the one that runs this.

    `plain` is ours at what a measure compares with: another engine, or without what it adds.
    """
    if peer not in PACKAGES:
        return sys.executable
    root = Path(os.environ.get("PAIMON_PY_BENCH", Path.home() / ".cache" / "paimon-py-bench")) / peer
    python = root / "bin" / "python"
    ready = root / "ready"
    if not ready.exists():
        venv.create(root, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES[peer]], check=True)
        ready.touch()
    return str(python)


def versions(peer: str) -> dict[str, str]:
    """What is installed for a peer."""
    done = subprocess.run([interpreter(peer), "-c", _VERSIONS], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
