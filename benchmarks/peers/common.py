"""What every peer needs: inputs as Arrow tables mapped into memory, and checks."""

import pyarrow as pa
import pyarrow.compute as pc


def mapped(path):
    """An Arrow file as a table without copying it."""
    return pa.ipc.open_file(pa.memory_map(path)).read_all()


def prepare(step, settings):
    """The input tables of a writing step, else nothing."""
    return [mapped(path) for path in settings.get("inputs", [])]


def check(table):
    """Row count and the sum of the key column."""
    return [table.num_rows, int(pc.sum(table["k"]).as_py() or 0)] if "k" in table.column_names else [table.num_rows]
