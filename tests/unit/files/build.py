"""Schemas, batches and fixed surroundings for tests of data files."""

import pyarrow as pa

from paimon_py.codec.arrow_types import to_arrow_schema
from paimon_py.files.layout import file_layout
from paimon_py.files.naming import DataFileNames, NameRules
from paimon_py.files.physical import readable_fields
from paimon_py.files.reader import FileReader
from paimon_py.files.writer import RollingWriter
from paimon_py.spec.options import Options
from paimon_py.spec.schema import TableSchema
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

DIRECTORY = "/t/bucket-0"


class FixedClock:
    def local_millis(self):
        return 1_700_000_000_123


class FixedIds:
    def uuid(self):
        return "u-u"

    def process(self):
        return 1


def fields(*columns):
    """`(id, name, type)` as fields."""
    return tuple(Field(number, name, parse_type(kind)) for number, name, kind in columns)


def schema(*columns, keys=(), options=None, schema_id=0):
    made = fields(*columns)
    return TableSchema(
        id=schema_id,
        fields=made,
        highest_field_id=max(field.id for field in made),
        primary_keys=tuple(keys),
        options=options or {},
    )


def batch(table_schema, **columns):
    arrow = to_arrow_schema(readable_fields(table_schema))
    return pa.RecordBatch.from_arrays([pa.array(columns[f.name], f.type) for f in arrow], schema=arrow)


def writer(store, table_schema, *, level=0, first_sequence=0, layout_of=file_layout, **options):
    options = {**table_schema.options, **{name.replace("_", "-"): text for name, text in options.items()}}
    names = DataFileNames(NameRules.of(Options(options)), FixedIds())
    layout = layout_of(
        TableSchema(
            id=table_schema.id,
            fields=table_schema.fields,
            highest_field_id=table_schema.highest_field_id,
            primary_keys=table_schema.primary_keys,
            options=options,
        ),
        level=level,
    )
    return RollingWriter(store, DIRECTORY, names, layout, FixedClock(), first_sequence=first_sequence)


def write(store, table_schema, *batches, **arguments):
    """Files of the batches."""
    rolling = writer(store, table_schema, **arguments)
    for rows in batches:
        rolling.write(rows)
    return rolling.close()


def read(store, file, table_schema, read_fields=None, **arguments):
    """Rows of a file as dicts, and check the schema of every batch."""
    wanted = readable_fields(table_schema) if read_fields is None else read_fields
    reader = FileReader(store, f"{DIRECTORY}/{file.name}", file, table_schema, wanted)
    batches = [rows for _, rows in reader.positions(**arguments)]
    for rows in batches:
        rows.validate(full=True)
        assert rows.schema.equals(to_arrow_schema(wanted))
    return [row for rows in batches for row in rows.to_pylist()]
