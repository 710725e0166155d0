"""What all tests of faults have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where a store fails, the care after a commit may fail, too; a warning says so, and the commit stands."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore:.*a later commit tries again"))
