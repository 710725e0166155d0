"""The public names are what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import paimon_py

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "paimon_py"


def test_every_name_in_all_resolves_and_nothing_else_is_public():
    lazy = {"LSMWriter", "convert_from_spark", "convert_to_spark"}
    here = {name for name in vars(paimon_py) if not name.startswith("_")}
    modules = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    public = here - modules - {"annotations", "TYPE_CHECKING"}
    assert public | lazy == set(paimon_py.__all__)
    assert list(paimon_py.__all__) == sorted(paimon_py.__all__, key=lambda name: (name.upper() == name, name))


def test_package_is_typed():
    assert (PACKAGE / "py.typed").exists()


ALLOWED = {
    "time": {"env.py"},
    "uuid": {"env.py"},
    "random": set(),
    "threading": {"env.py"},
    "concurrent": {"env.py"},
    "multiprocessing": set(),
    "subprocess": set(),
    "os": {"env.py", "storage/local_store.py", "spark/session.py"},
    "shutil": {"env.py", "storage/local_store.py", "spark/session.py"},
    "tempfile": {"env.py"},
    "fastavro": {"codec/avro.py", "codec/avro_data.py"},
    "fsspec": {"storage/fsspec_store.py"},
}


def test_the_outside_world_comes_in_through_its_doors_only():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith("testing/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
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
