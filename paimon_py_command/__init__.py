"""The script `paimon-py`: the command line, with a short end if Ctrl-C is pressed while Python still loads modules."""

from __future__ import annotations

import sys


def main() -> int:
    """Run one command. Returns: the exit code; 130 after an interrupt."""
    try:
        from paimon_py.__main__ import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        return 130
