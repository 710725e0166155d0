"""`python -m paimon_py` and the script `paimon-py`: the command line, or a hint what to install for it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

try:
    from paimon_py.cli.app import main
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("click", "rich"):
        raise
    _MISSING = error.name

    def main(arguments: Sequence[str] | None = None) -> int:  # noqa: ARG001 - the same call as the real one
        """Print what to install. Returns: 1"""
        install = "pip install 'paimon-py[cli]'"
        sys.stderr.write(f"error: the command line needs {_MISSING}, which is not installed: {install}\n")
        return 1


__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
