"""The public names and their signatures are those of docs/public-api.txt, and CHANGELOG.md announces the latest change."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RUN = 'tell users in CHANGELOG.md, then run python docs/site/api.py "words of that line"'


def tool():
    spec = importlib.util.spec_from_file_location("api", ROOT / "docs" / "site" / "api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_public_names_change_only_with_the_file_and_the_changelog():
    api = tool()
    found = api.PAGE.read_text(encoding="utf-8")
    first, second, body = found.split("\n", 2)
    now = api.api_text()
    gone = sorted(set(body.splitlines()) - set(now.splitlines()) - {""})
    come = sorted(set(now.splitlines()) - set(body.splitlines()))
    assert (gone, come) == ([], []), RUN
    assert body == "\n" + now, RUN
    assert second == f"digest: {api.digest(now)}", f"do not edit the file by hand: {RUN}"
    assert api.is_announced(first.removeprefix("announced: ")), RUN


def test_the_file_does_not_depend_on_the_version_of_python():
    """Python 3.10 calls such types classes."""
    assert not tool()._is_class(Callable[[int], str]) and tool()._is_class(dict)


def test_a_change_that_nobody_announces_is_not_written():
    command = [sys.executable, str(ROOT / "docs" / "site" / "api.py"), "words that the changelog does not have"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1 and "CHANGELOG.md" in done.stderr


def test_every_kind_of_change_is_seen(monkeypatch):
    import paimon_py

    api = tool()
    before = api.api_text()

    def compact(self, *, full: bool = True) -> None: ...

    monkeypatch.setattr(paimon_py.Table, "compact", compact)
    assert "  paimon_py.Table.compact(self, *, full: bool = True) -> None\n" in api.api_text()
    monkeypatch.undo()
    monkeypatch.setattr(paimon_py.Table, "vacuum", compact, raising=False)
    assert len(api.api_text().splitlines()) == len(before.splitlines()) + 1
    monkeypatch.undo()
    monkeypatch.setattr(paimon_py, "__all__", [name for name in paimon_py.__all__ if name != "lit"])
    assert set(before.splitlines()) - set(api.api_text().splitlines()) == {
        line for line in before.splitlines() if line.startswith("paimon_py.lit(")
    }


@pytest.mark.parametrize(("method", "shown"), [("__init__", ""), ("__call__", ".__call__")])
def test_the_constructor_and_the_call_are_shown_wherever_they_are_defined(monkeypatch, method, shown):
    from paimon_py.distributed import InsertPart

    def changed(self, something_else: int) -> None: ...

    owner = next(base for base in InsertPart.__mro__ if method in vars(base))
    monkeypatch.setattr(owner, method, changed)
    assert f"  paimon_py.distributed.InsertPart{shown}(self, something_else: int) -> None\n" in tool().api_text()
