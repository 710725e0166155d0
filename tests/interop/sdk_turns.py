"""A library that takes turns with us at tables of one warehouse, in a process of its own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa


class Player:
    """The SDK, or its Rust core; see `sdk_player.py`."""

    def __init__(self, python: Path, library: str, warehouse: Path):
        script = Path(__file__).with_name("sdk_player.py")
        self._scratch = warehouse / "step.arrow"
        self._process = subprocess.Popen(
            [python, "-W", "ignore", script, library, warehouse], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def step(self, op: str, table: str, data: pa.Table | None = None, **extra) -> pa.Table | None:
        """One step; the rows of a read."""
        if data is not None:
            with pa.ipc.new_file(self._scratch, data.schema) as file:
                file.write_table(data)
        self._process.stdin.write(json.dumps({"op": op, "table": table, "path": str(self._scratch), **extra}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer == {"ok": True}, (op, answer)
        if op != "read":
            return None
        with pa.ipc.open_file(self._scratch) as file:
            return file.read_all()

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
