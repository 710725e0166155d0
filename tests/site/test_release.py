"""The release script: what stops it, which builds it takes for equal, and the list of packages."""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "docs" / "site" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_in_the_way_is_named(release, tmp_path):
    (tmp_path / "paimon_py").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.0"\n')
    (tmp_path / "paimon_py" / "__init__.py").write_text('__version__ = "1.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n")
    found = " | ".join(release.problems(tmp_path, " M a.py"))
    assert "commit them first" in found and "rename Unreleased" in found and "is 1.1.0, pyproject.toml has 1.2.0" in found
    (tmp_path / "paimon_py" / "__init__.py").write_text('__version__ = "1.2.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.0 (2026-12-01)\n")
    assert list(release.problems(tmp_path, "\n")) == []


def test_builds_are_compared_byte_by_byte(release, tmp_path):
    lists = []
    for number, data in enumerate((b"same", b"same", b"other")):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "a.whl").write_bytes(data)
        lists.append([place / "a.whl"])
    assert release.differing(lists[0], lists[1]) == []
    assert release.differing(lists[0], lists[2]) == release.differing(lists[0], []) == ["a.whl"]


def test_a_wheel_has_types_and_nothing_strange(release, tmp_path):
    wheel = tmp_path / "a.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tests/test_a.py", "")
        archive.writestr("paimon_py-1.dist-info/METADATA", "")
    assert list(release.wheel_problems(wheel)) == ["the wheel lacks paimon_py/py.typed", "the wheel contains tests"]
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("paimon_py/py.typed", "")
    assert list(release.wheel_problems(wheel)) == []


def test_the_list_of_packages_is_the_same_for_the_same_packages(release):
    hashes = {"archive_info": {"hashes": {"sha256": "ab"}}}
    items = [
        {"metadata": {"name": "zstandard", "version": "0.25", "license": "BSD\nmore"}, "download_info": hashes},
        {"metadata": {"name": "NumPy", "version": "2.4", "license_expression": "BSD-3-Clause"}},
        {"metadata": {"name": "paimon_py", "version": "0.1.0"}},
    ]
    bill = release.bill_of_materials({"install": items}, "0.1.0")
    assert bill == release.bill_of_materials({"install": items[::-1]}, "0.1.0")
    assert [one["purl"] for one in bill["components"]] == ["pkg:pypi/numpy@2.4", "pkg:pypi/zstandard@0.25"]
    assert bill["components"][0]["licenses"] == [{"expression": "BSD-3-Clause"}]
    assert bill["components"][1]["hashes"] == [{"alg": "SHA-256", "content": "ab"}]
    assert bill["components"][1]["licenses"] == [{"license": {"name": "BSD"}}]
    assert release.bill_of_materials({"install": items[1:]}, "0.1.0")["serialNumber"] != bill["serialNumber"]
