"""The HTTP status of an error, wherever an SDK puts it, and however deep it lies under others."""

from __future__ import annotations

import pytest

from paimon_py.storage.fsspec_failures import http_status


def with_(**attributes):
    error = OSError("of an SDK")
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


def under(inner, *, is_cause):
    outer = OSError("around it")
    outer.__cause__, outer.__context__ = (inner, None) if is_cause else (None, inner)
    return outer


@pytest.mark.parametrize("status", [404, "404", 412, "503"])
@pytest.mark.parametrize("place", ["code", "status", "status_code", "response"])
@pytest.mark.parametrize("layers", [(), (True,), (False,), (True, False, True)])
def test_a_status_is_found_as_a_number_or_digits(status, place, layers):
    error = with_(response={"ResponseMetadata": {"HTTPStatusCode": status}}) if place == "response" else with_(**{place: status})
    for is_cause in layers:
        error = under(error, is_cause=is_cause)
    assert http_status(error) == int(status)


@pytest.mark.parametrize("other", ["NoSuchKey", "", "-1", "4.4", 0, -1, None, 4.4, b"404"])
def test_what_is_no_status_is_passed_over(other):
    assert http_status(with_(code=other)) is None and http_status(with_(response={})) is None and http_status(None) is None
    assert http_status(under(with_(code=409), is_cause=True)) == 409
    outer = with_(code=other)
    outer.__cause__ = with_(status=409)
    assert http_status(outer) == 409


def test_a_circle_of_causes_ends():
    one, other = with_(), with_()
    one.__cause__, other.__cause__ = other, one
    assert http_status(one) is None
