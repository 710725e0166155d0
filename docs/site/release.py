"""Make a release: check, build twice, compare, list what it depends on. `python docs/site/release.py dist`.

Writes the wheel, the source archive, `paimon_py-VERSION.cdx.json` (a CycloneDX list of all packages of an installation
with every extra brings, with versions, licences and hashes), and `SHA256SUMS`. Uploads nothing. See docs/releasing.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
import venv
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BUILDER = "hatchling==1.33.0"
"""One version, so that anybody gets the same bytes from the same commit."""


def problems(root: Path, status: str) -> Iterator[str]:
    """What is in the way of a release. `status`: of `git status --porcelain`."""
    version = version_of(root)
    if status.strip():
        yield "the working tree has changes: commit them first"
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$", changes, re.M):
        yield f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)': rename Unreleased"
    stated = re.search(r'__version__ = "(.*)"', (root / "paimon_py" / "__init__.py").read_text(encoding="utf-8"))
    if stated is not None and stated[1] != version:
        yield f"paimon_py.__version__ is {stated[1]}, pyproject.toml has {version}"


def version_of(root: Path) -> str:
    """The version that pyproject.toml has."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'^version = "(.*)"$', text, re.M)[0]


def build(commit: str, epoch: str, into: Path, python: Path) -> list[Path]:
    """Export a commit into a new directory and build it; `epoch`: the time that archives carry."""
    with tempfile.TemporaryDirectory() as place:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", place], input=archive, check=True)
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
        environment.pop("PYTHONPATH", None)
        command = [str(python), "-m", "hatchling", "build", "-d", str(into)]
        subprocess.run(command, cwd=place, env=environment, check=True, capture_output=True)
    return sorted(into.iterdir())


def differing(one: Sequence[Path], other: Sequence[Path]) -> list[str]:
    """Names of files that are not in both lists with the same bytes."""
    first, second = ({path.name: sha256(path) for path in paths} for paths in (one, other))
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def wheel_problems(wheel: Path) -> Iterator[str]:
    """What a wheel should not contain, or lacks."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    if "paimon_py/py.typed" not in names:
        yield "the wheel lacks paimon_py/py.typed"
    strange = {name.split("/")[0] for name in names} - {"paimon_py", "pyspark_paimon", "pyspark_paimon_py"}
    yield from (f"the wheel contains {name}" for name in sorted(strange) if not name.endswith(".dist-info"))


def bill_of_materials(report: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The packages of a report of pip as a CycloneDX document; the same report gives the same document."""
    packages = sorted(report["install"], key=lambda one: one["metadata"]["name"].lower())
    own = [one for one in packages if one["metadata"]["name"].lower().replace("_", "-") == "paimon-py"]
    others = [_component(one) for one in packages if one not in own]
    name = hashlib.sha256(json.dumps([version, others], sort_keys=True).encode()).hexdigest()
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}",
        "metadata": {"component": {
            "type": "library", "name": "paimon-py", "version": version, "purl": f"pkg:pypi/paimon-py@{version}",
            "bom-ref": f"pkg:pypi/paimon-py@{version}", "licenses": [{"expression": "Apache-2.0"}],
        }},
        "components": others,
    }  # fmt: skip


def _component(one: Mapping[str, Any]) -> dict[str, Any]:
    about = one["metadata"]
    purl = f"pkg:pypi/{about['name'].lower()}@{about['version']}"
    found: dict[str, Any] = {
        "type": "library", "name": about["name"], "version": about["version"], "purl": purl, "bom-ref": purl
    }
    digest = one.get("download_info", {}).get("archive_info", {}).get("hashes", {}).get("sha256")
    if digest:
        found["hashes"] = [{"alg": "SHA-256", "content": digest}]
    if about.get("license_expression"):
        found["licenses"] = [{"expression": about["license_expression"]}]
    elif about.get("license"):
        found["licenses"] = [{"license": {"name": about["license"].splitlines()[0][:100]}}]
    return found


def sums(paths: Sequence[Path]) -> str:
    """A file of checksums that `sha256sum -c` reads."""
    return "".join(f"{sha256(path)}  {path.name}\n" for path in sorted(paths))


def main(into: Path, *, trial: bool) -> None:
    """Do all steps; `trial`: go on although something is in the way."""
    status = _git("status", "--porcelain")
    for problem in problems(ROOT, status):
        print(("" if trial else "stopped: ") + problem)
        if not trial:
            raise SystemExit(1)
    commit, epoch, version = _git("rev-parse", "HEAD"), _git("log", "-1", "--format=%ct"), version_of(ROOT)
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        venv.create(place, with_pip=True)
        python = Path(place, "Scripts" if os.name == "nt" else "bin", "python")
        subprocess.run([str(python), "-m", "pip", "install", "-q", BUILDER], check=True)
        made = build(commit, epoch, into, python)
        again = build(commit, epoch, Path(place, "again"), python)
        wheel = next(path for path in made if path.suffix == ".whl")
        found = [f"{name} differs between two builds" for name in differing(made, again)] + list(wheel_problems(wheel))
        if found:
            raise SystemExit("stopped: " + "; ".join(found))
        ask = ["install", "-q", "--dry-run", "--ignore-installed", "--report", "-", f"{wheel}[all]"]
        said = subprocess.run([str(python), "-m", "pip", *ask], check=True, capture_output=True, text=True).stdout
    bill = into / f"paimon_py-{version}.cdx.json"
    bill.write_text(json.dumps(bill_of_materials(json.loads(said), version), indent=1) + "\n", encoding="utf-8")
    (into / "SHA256SUMS").write_text(sums([*made, bill]), encoding="utf-8")
    for path in sorted(into.iterdir()):
        print(f"{path.stat().st_size:>10,}  {path.name}")


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main(Path(next((word for word in sys.argv[1:] if not word.startswith("-")), "dist")), trial="--trial" in sys.argv)
