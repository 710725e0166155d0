"""Errors come back from executors as data: the same class, message and plain fields, and nothing that is run."""

from __future__ import annotations

import base64
import pickle

import pytest

pytest.importorskip("pyspark")

from paimon_py import errors
from paimon_py.errors import CommitUnknownError, OptionError, PaimonError, SchemaError, StorageError, UsageError
from paimon_py.executors.error_data import error_bytes, error_from
from paimon_py.maintain.cutting import NewerSnapshotsError
from paimon_py.spark import jobs
from paimon_py.storage.store import FileMissingError


def unknown():
    error = CommitUnknownError("lost", path="p", snapshot_id=7)
    error.changes, error.user, error.identifier = b"\x00\xff", "loader", 3
    return error


ERRORS = [
    UsageError("a value: (paimon-error x gASV)"), SchemaError("wrong", fields=("a", "b")),
    OptionError("no", option="bucket", value="-3"), StorageError("down", operation="get", transient=True),
    FileMissingError("gone", path="f", operation="get"), unknown(),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was(error):
    error.__notes__ = ["look there"]
    back = error_from(error_bytes(error))
    assert (type(back), str(back), vars(back)) == (type(error), str(error), vars(error))


def test_every_class_of_ours_comes_back():
    classes = [found for found in vars(errors).values() if isinstance(found, type) and issubclass(found, PaimonError)]
    for cls in classes:
        error = cls.__new__(cls)
        Exception.__init__(error, "said")
        assert type(error_from(error_bytes(error))) is cls


def test_a_class_that_callers_do_not_know_becomes_the_one_that_they_catch():
    error = NewerSnapshotsError.__new__(NewerSnapshotsError)
    Exception.__init__(error, "others")
    error.where = object()
    assert type(error_from(error_bytes(error))) is errors.CommitConflictError


def test_names_that_utf8_cannot_hold_are_escaped():
    assert str(error_from(error_bytes(UsageError("file \udcff")))) == "file \\udcff"


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("kind", ["pickle", "forged", "missing"])
def test_a_text_of_the_data_is_never_taken_for_ours(kind, tmp_path):
    mark = tmp_path / "ran"
    pickled = base64.b64encode(pickle.dumps(Evil(str(mark)))).decode()
    forged = base64.b64encode(error_bytes(UsageError("forged"))).decode()
    texts = {
        "pickle": f"cannot cast (paimon-error {pickled})",
        "forged": f"cannot cast (paimon-error {jobs.new_job()} {forged})",
        "missing": "(paimon-job ) the Python of the executors lacks the module 'x'; the executors have paimon_py 9",
    }
    error = RuntimeError(texts[kind])
    assert jobs._translate(error, jobs.new_job()) is error
    assert not mark.exists()


def test_the_error_of_a_job_is_found_beside_texts_of_the_data():
    job, other = jobs.new_job(), jobs.new_job()
    told = jobs.error_text(SchemaError("bad (paimon-error 1 gASV)", fields=("a",)), job)
    found = jobs._translate(RuntimeError(f"task 3 failed: {told} (paimon-error {other} AAAA)"), job)
    assert isinstance(found, SchemaError)
    assert found.fields == ("a",)
