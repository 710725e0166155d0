"""Every schema file that Java wrote is understood, and written back byte for byte."""

from __future__ import annotations

import tarfile

import golden
import pytest
from locate import CORPUS

from paimon_py.codec.json import schema_from_json, schema_to_json
from paimon_py.spec.option_names import check_names
from paimon_py.spec.options import check_values
from paimon_py.spec.supported import check_readable, check_writable
from paimon_py.spec.validation import validate

CASES = golden.cases(str(CORPUS))


def schemas(case):
    with tarfile.open(f"{case.path}/warehouse.tar.gz") as archive:
        for member in archive:
            if "/schema/schema-" in member.name and member.isfile():
                yield member.name, archive.extractfile(member).read()


@pytest.mark.parametrize("java", ["2.0.0", "1.4.2", "0.9.0"])
def test_schemas_of_java_come_back_byte_for_byte_and_are_valid(java):
    found = [item for case in CASES if case.data["java"] == java for item in schemas(case)]
    assert found
    for path, data in found:
        schema = schema_from_json(data, path)
        assert schema_to_json(schema) == data, path
        validate(schema)
        check_names(schema.options)
        check_values(schema.options)


def test_every_table_of_this_scope_is_handled():
    for case in CASES:
        if case.stage == 1:
            for path, data in schemas(case):
                check_readable(schema_from_json(data, path))
                check_writable(schema_from_json(data, path))
