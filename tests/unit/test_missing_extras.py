"""What is not installed is named with the command that installs it, for every store and every catalog."""

import json
import subprocess
import sys

import fsspec
import pytest

from paimon_py import Catalog, PaimonError, UsageError

CASES = {
    "s3fs": ("s3", "s3://b/w", {}), "gcsfs": ("gcs", "gs://b/w", {}),
    "adlfs": ("azure", "abfss://c@a.dfs.core.windows.net/w", {}),
    "oss2": ("oss", "oss://b/w", {"fs.oss.endpoint": "http://127.0.0.1:1"}), "hdfs_native": ("hdfs", "hdfs://h/w", {}),
    "urllib3": ("rest", "w", {"metastore": "rest", "uri": "http://127.0.0.1:1", "token.provider": "bear", "token": "sesame"}),
    "sqlalchemy": ("jdbc", "memory://w", {"metastore": "jdbc", "uri": "jdbc:postgresql://127.0.0.1:1/d"}),
    "psycopg": ("jdbc", "memory://w", {"metastore": "jdbc", "uri": "jdbc:postgresql://127.0.0.1:1/d", "jdbc.password": "sesame"}),
    "pymysql": ("jdbc", "memory://w", {"metastore": "jdbc", "uri": "jdbc:mysql://127.0.0.1:1/d", "jdbc.password": "sesame"}),
}  # fmt: skip
"""Package: the extra that brings it, a warehouse that needs it, and options."""

SCRIPT = """
import json, sys
from unit.test_missing_extras import CASES, told
print(json.dumps({package: told(package) for package in CASES}))
"""


def told(package):
    """What a user is told who lacks a package."""
    from paimon_py import Catalog

    gone = {name: module for name, module in sys.modules.items() if name == package or name.startswith(f"{package}.")}
    for name in gone:
        del sys.modules[name]
    sys.modules[package] = None
    _, warehouse, options = CASES[package]
    try:
        Catalog.open(warehouse, options)
    except PaimonError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        del sys.modules[package]
        sys.modules.update(gone)
    return "nothing"


def test_a_missing_package_is_named_with_its_command():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env={
        "PYTHONPATH": ":".join(path for path in sys.path if path), "PATH": "",
    })  # fmt: skip
    found = json.loads(done.stdout)
    wrong = {
        package: text for package, text in found.items()
        if "pip install" not in text or f"paimon-py[{CASES[package][0]}]" not in text or "sesame" in text
    }  # fmt: skip
    assert wrong == {}
    assert {text.partition(":")[0] for text in found.values()} <= {"UsageError", "UnsupportedError"}


def test_a_scheme_that_fsspec_knows_from_its_package_is_no_unknown_scheme(monkeypatch):
    """adlfs itself registers abfss."""

    def unknown(scheme):
        raise ValueError(f"Protocol not known: {scheme}")

    monkeypatch.setattr(fsspec, "get_filesystem_class", unknown)
    with pytest.raises(UsageError, match=r'abfss:// needs a package .*: pip install "paimon-py\[azure\]"'):
        Catalog.open("abfss://c@a.dfs.core.windows.net/w")
    with pytest.raises(UsageError, match="unknown URL scheme gopher://; those of stores are"):
        Catalog.open("gopher://w")
