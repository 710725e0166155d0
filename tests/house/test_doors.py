"""What everybody needs has one door: who else makes paths, opens data files or begins new ones is named here."""

from __future__ import annotations

import ast
from pathlib import Path

from house.package import nodes_of

PACKAGE = Path(__file__).parents[2] / "paimon_py"

BUCKET_FILES, NEW_FILES, PLACES = "metadata/open_table.py", "metadata/new_files.py", "files/places.py"

DOORS = {
    "partition_directory": {BUCKET_FILES, "write/exported_files.py"},  # exports lie outside of tables
    "bucket_path": {BUCKET_FILES},
    "relative_bucket_path": {NEW_FILES},
    # to look for files that no metadata name
    "index_directory": {BUCKET_FILES, "maintain/cleanup/file_directories.py"},
    "data_file_path": {BUCKET_FILES, PLACES},
    "path_in": {BUCKET_FILES},
    # to delete a table, whatever its schema: files outside its directory, with those beside them
    "paths_in": {BUCKET_FILES, "metadata/external_files.py"},
}
"""Functions that make paths of buckets and their files, and the modules that import them."""

MAKERS = {
    "FileReader": {BUCKET_FILES},
    "BucketFiles": {BUCKET_FILES},
    "RollingWriter": {NEW_FILES, "files/writer.py"},  # for the vectors beside each file, in the same place
    "DataFileNames": {NEW_FILES},
}
"""Classes, and the modules that make objects of them. Others may name them as types."""


def nodes():
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        for node in nodes_of(path):
            yield module, node


def test_paths_of_data_files_and_index_files_are_made_behind_one_door():
    found: dict[str, set[str]] = {name: set() for name in DOORS}
    for module, node in nodes():
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name in DOORS:
                    found[alias.name].add(module)
    assert found == DOORS


def test_data_files_are_opened_and_begun_behind_one_door():
    found: dict[str, set[str]] = {name: set() for name in MAKERS}
    for module, node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MAKERS:
            found[node.func.id].add(module)
    assert found == MAKERS
