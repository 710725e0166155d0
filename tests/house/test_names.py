"""The public names are what they say."""

from __future__ import annotations

import ast
import inspect
import json
import pydoc
import subprocess
import sys
import types
import typing
from pathlib import Path

import pytest
from house.package import nodes_of, tree_of

import paimon_py
from paimon_py import spark

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "paimon_py"


def test_every_name_in_all_resolves_and_nothing_else_is_public():
    lazy = {"BlobRef", "BlobViewRef", "LSMWriter", "Scan", "sql", "Step", "Stream", "Variant", "variant", *spark.__all__}
    here = {name for name in vars(paimon_py) if not name.startswith("_")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    public = here - modules - {"annotations", "TYPE_CHECKING"}
    assert public | lazy == set(paimon_py.__all__)
    assert list(paimon_py.__all__) == sorted(paimon_py.__all__, key=lambda name: (name.upper() == name, name))


CALLABLE = [name for name in paimon_py.__all__ if name != "Predicate"]


@pytest.mark.parametrize("name", CALLABLE)
def test_a_public_name_can_be_looked_at(name):
    value = getattr(paimon_py, name)
    assert name in pydoc.render_doc(value)
    assert inspect.getdoc(value)
    inspect.signature(value)
    hints = typing.get_type_hints(value)
    if inspect.isfunction(value):
        assert set(hints) == {*inspect.signature(value).parameters, "return"}


@pytest.mark.parametrize("name", [name for name in CALLABLE if inspect.isclass(getattr(paimon_py, name))])
def test_hints_of_public_methods_name_what_is_there(name):
    for method, value in inspect.getmembers(getattr(paimon_py, name)):
        function = value.fget if isinstance(value, property) else value
        if not method.startswith("_") and (inspect.isfunction(function) or inspect.ismethod(function)):
            assert "return" in typing.get_type_hints(function, localns=_Later()), method


class _Later(dict):
    """Stands for packages that readers may not have, and for classes that load when they are first needed."""

    def __missing__(self, name):
        ours = (
            "Catalog", "Scan", "Writer", "Stream", "SystemTable", "MetadataTable", "Dataset", "IcebergState", "PublishedVersion", "SqlQuery",
            "ImportResult", "CloneResult", "Exported", "BlobRow", "HistoryEntry", "TorchRows", "Explanation",
        )  # fmt: skip
        if name == "ray":
            return types.SimpleNamespace(data=types.SimpleNamespace(Dataset=object))
        if name not in ("duckdb", "pandas", "polars", *ours):
            raise KeyError(name)
        return object if name in ours else __import__(name)


WITHOUT_SPARK = """
import sys
sys.modules["pyspark"] = None
import inspect, json
import paimon_py
from paimon_py import *

said = []
for call in (lambda: convert_to_spark([]), lambda: paimon_py.convert_from_spark(None)):
    try:
        call()
    except paimon_py.UsageError as error:
        said.append(str(error))
members = dict(inspect.getmembers(paimon_py))
print(json.dumps({
    "said": said,
    "members": all(hasattr(paimon_py, name) and members[name] is not None for name in paimon_py.__all__),
    "listed": set(paimon_py.__all__) <= set(dir(paimon_py)),
    "signature": str(inspect.signature(convert_to_spark)),
}))
"""


def test_all_names_are_there_without_pyspark_and_calls_say_what_to_install():
    done = subprocess.run([sys.executable, "-c", WITHOUT_SPARK], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    install = 'Spark needs PySpark, which is not installed: pip install "paimon-py[spark]"'
    assert found["said"] == [install, install]
    assert (found["members"], found["listed"]) == (True, True)
    assert found["signature"].startswith("(source: 'object', spark: 'SparkSession | None' = None, *, truncate_nanos: ")


TWICE = {
    "Snapshot": "what a user holds, and the format's value inside it, which only `spec` and what builds on it see",
}


def test_one_class_name_means_one_thing():
    where = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in where.items() if len(files) > 1 and name not in TWICE} == {}
    assert all(len(where[name]) > 1 for name in TWICE)


# names of others (Python, Arrow, the Protocols of `paimon_py.env`), and names that users type
PARTICIPLES = {
    "Clock.elapsed", "SystemClock.elapsed", "GuardedSource.closed", "RowGroups.skipped", "FaultStore.failed", "Outcome.crashed",
    "TableStreams.committed", "PaimonFileSystem.modified",
}  # fmt: skip
IRREGULAR = {
    "told", "shown", "given", "known", "taken", "held", "kept", "found", "gone", "seen", "made", "done", "lost",
    "left", "written", "drawn", "sent", "built", "begun", "chosen", "fallen", "got", "grown", "heard", "hidden",
    "laid", "led", "lent", "met", "paid", "said", "sold", "sought", "spent", "spread", "stood", "swept", "thought",
    "thrown", "torn", "woken", "won",
}  # fmt: skip
NOUNS_AND_VERBS = {"need", "shred", "unshred", "exceed", "feed", "seed", "embed"}


def _functions(node, within=""):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield within, child.name
            yield from _functions(child, within)
        else:
            yield from _functions(child, child.name if isinstance(child, ast.ClassDef) else within)


def _is_participle(name):
    word = name.strip("_")
    return word in IRREGULAR or (word.isalpha() and word.endswith("ed") and word not in NOUNS_AND_VERBS)


def test_no_function_is_named_by_a_participle_alone():
    """A function says what it does, or what it gives: `join`, `names_of`, never `joined` or `told`."""
    found = {
        f"{within}.{name}".strip(".")
        for path in PACKAGE.rglob("*.py")
        for within, name in _functions(tree_of(path))
        if _is_participle(name)
    }
    assert found - PARTICIPLES == set()


def test_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


ALLOWED = {
    "time": {"env.py"},
    "uuid": {"env.py"},
    "random": set(),
    "threading": {"env.py", "parallel.py"},
    "concurrent": {"env.py", "executors/processes.py"},
    "multiprocessing": {"executors/processes.py"},
    "subprocess": set(),
    "os": {
        "env.py", "file_locks.py", "parallel.py", "service/memory.py", "storage/local_store.py", "spark/session.py",
        "spark/package_zip.py",
    },
    "shutil": {"cli/load.py", "env.py", "storage/local_store.py", "spark/session.py", "spark/package_zip.py"},
    "tempfile": {"cli/load.py", "env.py", "spark/package_zip.py"},
    "fastavro": {"codec/avro/container.py", "codec/avro/data_files.py"},
    "fsspec": {"pvfs.py", "storage/fsspec_store.py"},
}


def test_the_outside_world_comes_in_through_its_doors_only():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("testing/"):
            continue
        for node in nodes_of(path):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or ""]
            for module in modules:
                top = module.split(".")[0]
                if top in ALLOWED and name not in ALLOWED[top]:
                    found.append(f"{name}:{node.lineno} imports {module}")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
                found.append(f"{name}:{node.lineno} calls open()")
    assert found == []


def test_nothing_is_unpickled_but_what_spark_carries_as_a_function():
    """`pickle.loads` and its like run what they read; see `paimon_py.spark.entry`."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name in ("spark/entry.py", "testing/store_suite.py"):
            continue
        for node in nodes_of(path):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module or "", *(alias.name for alias in node.names)]
            wrong = [module for module in modules if module.split(".")[-1] in ("pickle", "cloudpickle", "marshal", "dill")]
            found += [f"{name}:{node.lineno} imports {module}" for module in wrong]
    assert found == []


WITHOUT_LISTS = ("codec/manifest/", "codec/row_size.py", "lookup/", "lsm/key_", "metadata/manifest_cache.py")
"""Where sizes are those of numpy, of columns without lists, or of rows that were read from files."""


def test_the_size_of_rows_is_asked_of_one_function():
    """`nbytes` of Arrow ends the process on lists as Java sends them; see `paimon_py.codec.row_size`."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(WITHOUT_LISTS):
            continue
        nodes = nodes_of(path)
        found += [f"{name}:{one.lineno}" for one in nodes if isinstance(one, ast.Attribute) and one.attr == "nbytes"]
    assert found == []
