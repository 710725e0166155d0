"""The page of errors knows every class, and quotes messages that the package has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import paimon_py.errors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
FOREIGN = {"ModuleNotFoundError: No module named 'pyarrow'"}


def test_every_class_of_errors_is_on_the_page():
    classes = {
        name
        for name, value in vars(paimon_py.errors).items()
        if inspect.isclass(value) and value.__module__ == "paimon_py.errors" and not name.startswith("_")
    }
    table = PAGE.split("## Errors by class")[1].split("## Errors by message")[0]
    found = set(re.findall(r"`([A-Z]\w+(?:Error|Warning))`", table))
    assert classes - {"PaimonError"} <= found, classes - found
    assert found <= classes


def test_messages_of_the_page_are_those_of_the_package():
    source = re.sub(r"\"\s*f?\s*\"", "", "".join(path.read_text() for path in sorted((ROOT / "paimon_py").rglob("*.py"))))
    source = re.sub(r"[\"'](\s*\n\s*)f?[\"']", "", source)
    unknown = []
    for message in re.findall(r"^\*\*`(.+?)`\*\*", PAGE, re.M):
        if message in FOREIGN:
            continue
        pieces = [piece.strip(" :;") for piece in message.split("…") if len(piece.strip(" :;")) > 6]
        if not all(piece in source for piece in pieces):
            unknown.append(message)
    assert unknown == []
