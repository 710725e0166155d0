"""What all rules of the house have in common."""

from __future__ import annotations

import pytest
from house import package


@pytest.fixture(scope="module", autouse=True)
def trees():
    """Trees live as long as the tests of a file."""
    yield
    package.forget()
