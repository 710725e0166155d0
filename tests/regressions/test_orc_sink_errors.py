"""A store that fails while an ORC file is written used to end the process: pyarrow's ORC library ran into the error in a
destructor. Now the error arrives, whichever write fails."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from paimon_py.errors import StorageError
from paimon_py.formats.base import WriteSettings
from paimon_py.formats.registry import format_of
from paimon_py.spec.type_text import parse_type
from paimon_py.spec.types import Field

FIELDS = (Field(0, "k", parse_type("BIGINT")), Field(1, "v", parse_type("STRING")))
BATCH = pa.record_batch({"k": pa.array(range(3000), pa.int64()), "v": [str(n) * 9 for n in range(3000)]})


class Failing(io.BytesIO):
    def __init__(self, at, error):
        super().__init__()
        self.left = at
        self.error = error

    def write(self, data):
        self.left -= 1
        if self.left == 0:
            raise self.error
        return super().write(data)


def written(sink):
    writer = format_of("orc").create(sink, FIELDS, WriteSettings(compression="none", zstd_level=1, block_size_bytes=4096))
    try:
        for _ in range(3):
            writer.write(BATCH)
        writer.close()
    except BaseException:
        writer.abort()
        raise


@pytest.mark.parametrize("error", [StorageError("away", path="f", operation="write"), OSError("away"), KeyboardInterrupt()], ids=lambda error: type(error).__name__)
def test_whichever_write_of_an_orc_file_fails_the_error_arrives_and_nothing_is_written_after_it(error):
    whole = Failing(0, error)
    written(whole)
    count = -whole.left
    assert count > 3
    for at in range(1, count + 1):
        sink = Failing(at, error)
        with pytest.raises(type(error)) as caught:
            written(sink)
        assert caught.value is error
        assert whole.getvalue().startswith(sink.getvalue())
        assert sink.left == 0, "more was written after the error"
