"""What an installation of each library takes: packages, megabytes, and CPU time of the import.

`python docs/comparison/installed.py` prints a table. paimon_py is installed from this checkout, for this once.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.environments import interpreter

PEERS = {"pypaimon": "pypaimon", "deltalake": "delta", "pyiceberg": "iceberg"}
BEGIN = {
    "paimon_py": "from paimon_py import Catalog",
    "pypaimon": "from pypaimon import CatalogFactory",
    "deltalake": "from deltalake import DeltaTable",
    "pyiceberg": "from pyiceberg.catalog import load_catalog",
}
"""What a program begins with."""
OWN = ("pip", "setuptools", "wheel")
"""What an environment has of itself."""
IMPORT = "import resource; {begin}; u = resource.getrusage(resource.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
COUNT = f"import importlib.metadata as m; print(len({{d.name for d in m.distributions()}} - set({OWN!r})))"


def line(name: str, python: str) -> str:
    """The line of one library."""
    packages = next(Path(python).parents[1].glob("lib/python*/site-packages"))
    parts = [part for part in packages.iterdir() if not part.name.startswith(OWN)]
    size = sum(file.stat().st_size for part in parts for file in (part.rglob("*") if part.is_dir() else [part]))
    code = IMPORT.format(begin=BEGIN[name])
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    runs = [subprocess.run([python, "-c", code], env=clean, capture_output=True, check=True) for _ in range(10)]
    times = [float(run.stdout) for run in runs[1:]]
    count = subprocess.run([python, "-c", COUNT], capture_output=True, text=True, check=True).stdout.strip()
    return f"| {name} | {count} | {size / 1e6:.0f} MB | {statistics.median(times):.2f} s |"


def main() -> None:
    """Print the table."""
    print("| | packages with all they need | on disk | CPU of the import |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        python = f"{directory}/bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True)
        print(line("paimon_py", python))
    for name, environment in PEERS.items():
        print(line(name, interpreter(environment)))


if __name__ == "__main__":
    main()
