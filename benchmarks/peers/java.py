"""Java Paimon, driven by the oracle of the interop tests: a JVM that has done the same work once before.

CPU is that of the JVM, its compiler and garbage collector included.
"""

import os
import sys
from pathlib import Path

from peers.common import check  # noqa: F401

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "interop" / "oracle"))

import oracle

# The tests start the JVM for short lives; here the whole compiler and enough memory shall help.
os.environ["ORACLE_JAVA_OPTIONS"] = "-XX:TieredStopAtLevel=4 -Xmx3g"
_sessions = []


def prepare(settings):
    """A running session; with a table, warmed by compacting its copy `warm.t`."""
    _sessions.append(oracle.Session(version="2.0.0", tz="UTC"))
    if "table" in settings:
        _compact(settings, "warm.t")


def cpu():
    """User and system seconds of the JVM."""
    with open(f"/proc/{_sessions[0]._jvm.pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compact(inputs, settings):
    """Every bucket into one sorted run."""
    return _compact(settings, "db.t")


def nothing(inputs, settings):
    return "java"


def _compact(settings, name):
    warehouse = os.path.dirname(os.path.dirname(settings["table"]))
    return _sessions[0].run(warehouse, [{"op": "compact", "table": name, "full": True}], check=True)[0]["result"]
