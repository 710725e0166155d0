"""An interpreter for every peer: its own virtual environment, made on first use."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = {
    "pypaimon": ["pypaimon==2.1.0"],
    "native": ["pypaimon==2.1.0", "pypaimon-rust==0.4.0"],
    "rust": ["pypaimon-rust==0.4.0", "pyarrow"],
}
MODULES = {"ours": "ours", "raw": "raw", "pypaimon": "pypaimon_peer", "native": "pypaimon_peer", "rust": "rust"}


def interpreter(peer: str) -> str:
    """The Python that runs `peer`; ours and raw pyarrow share the one that runs this."""
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
