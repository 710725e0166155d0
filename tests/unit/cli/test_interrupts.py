"""Ctrl-C ends the command line with one line and code 130, whatever it is doing."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import os, signal, sys

class Interrupting:  # presses Ctrl-C when a module is looked for
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["paimon-py", "tree", {place!r}]
from paimon_py_command import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "module", ["paimon_py", "pyarrow", "paimon_py.cli.app", "rich.tree"]
)
def test_an_interrupt_while_modules_are_loaded_prints_one_line(tmp_path, module):
    program = textwrap.dedent(PROGRAM).format(module=module, place=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n"), done.stdout
