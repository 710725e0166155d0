"""Environments of their own for libraries that read or write our tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

SDK = {
    "pypaimon-1.3.2": ("pypaimon", ["pypaimon==1.3.2"]),
    "pypaimon-1.4.2": ("pypaimon", ["pypaimon==1.4.2", "backports.zstd"]),
    "pypaimon-2.0.0": ("pypaimon", ["pypaimon==2.0.0"]),
    "pypaimon-2.1.0": ("pypaimon", ["pypaimon==2.1.0"]),
    "rust-0.4.0": ("rust", ["pypaimon-rust==0.4.0", "pyarrow"]),
}
"""The releases of the official SDK and its Rust core: what our scripts call the library, and its packages."""


def python_with(home: Path, packages: Sequence[str]) -> Path:
    """The Python of a new environment that has some packages; the test is skipped where they cannot be installed."""
    subprocess.run([sys.executable, "-m", "venv", home], check=True)
    python = home / "bin" / "python"
    if subprocess.run(_installer(python) + list(packages), check=False).returncode:
        pytest.skip(f"{', '.join(packages)} cannot be installed here")
    return python


def _installer(python: Path) -> list[str]:
    """The command that installs packages: uv, which resolves what large programs need in a minute, else pip."""
    pip = [str(python), "-m", "pip", "install", "-q"]
    if subprocess.run([*pip, "uv"], check=False).returncode:
        return pip
    given = os.environ.get("PIP_FIND_LINKS", "").split()
    places = [f"--find-links={place}" for place in given if "://" in place or Path(place).exists()]
    return [str(python.parent / "uv"), "pip", "install", "-q", "--python", str(python), *places]
