"""What every peer needs: inputs as Arrow tables mapped into memory, and a look at what came out."""

import pyarrow as pa
import pyarrow.compute as pc


def prepare(settings):
    """The input tables of a writing step, not copied; else nothing."""
    return [pa.ipc.open_file(pa.memory_map(path)).read_all() for path in settings.get("inputs", [])]


def check(result):
    """Of a table: rows, and per number column the sum, per text column all bytes; else the result itself."""
    if not isinstance(result, pa.Table):
        return result
    found = {"rows": result.num_rows}
    for name, column in zip(result.column_names, result.columns, strict=True):
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            found[name] = pc.sum(pc.binary_length(column)).as_py()
        elif pa.types.is_floating(column.type):
            found[name] = float(f"{pc.sum(column).as_py() or 0:.9g}")
        elif pa.types.is_integer(column.type):
            # in two halves: the whole may not fit into 64 bits
            found[name] = [
                pc.sum(pc.shift_right(column, 32)).as_py(),
                pc.sum(pc.bit_wise_and(column, 0xFFFFFFFF)).as_py(),
            ]
    return found
