"""pypaimon 2.1.0, plain or with its native options on (`settings["native"]`)."""

import os

from peers.common import check, prepare  # noqa: F401
from pypaimon import CatalogFactory

NATIVE = {
    "scan.native-plan.enabled": "true",
    "read.native.enabled": "true",
    "commit.native.enabled": "true",
    "write.native.enabled": "true",
}


def _table(settings):
    catalog = CatalogFactory.create({"warehouse": os.path.dirname(os.path.dirname(settings["table"]))})
    table = catalog.get_table("db.t")
    return table.copy(NATIVE) if settings.get("native") else table


def write(inputs, settings):
    table = _table(settings)
    for data in inputs:
        builder = table.new_batch_write_builder()
        writer, commit = builder.new_write(), builder.new_commit()
        writer.write_arrow(data)
        commit.commit(writer.prepare_commit())
        writer.close()
        commit.close()


def _builder(settings):
    builder = _table(settings).new_read_builder()
    if "columns" in settings:
        builder = builder.with_projection(settings["columns"])
    if "range" in settings:
        low, high = settings["range"]
        builder = builder.with_filter(builder.new_predicate_builder().between("k", low, high))
    return builder


def read(inputs, settings):
    builder = _builder(settings)
    return builder.new_read().to_arrow(builder.new_scan().plan().splits())


def stream(inputs, settings):
    builder = _builder(settings)
    reader = builder.new_read().to_arrow_batch_reader(builder.new_scan().plan().splits())
    return sum(batch.num_rows for batch in reader)


def plan(inputs, settings):
    return len(_builder(settings).new_scan().plan().splits())


def nothing(inputs, settings):
    return "pypaimon"
