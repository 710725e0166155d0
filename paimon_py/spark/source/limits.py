"""The limits of a batch of a stream, from options of the data source. Pure.

Source: Java `SparkConnectorOptions`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.distributed import BatchLimits
from paimon_py.errors import OptionError, UsageError

FILES, BYTES = "read.stream.maxFilesPerTrigger", "read.stream.maxBytesPerTrigger"
ROWS = "read.stream.maxRowsPerTrigger"
LEAST, DELAY = "read.stream.minRowsPerTrigger", "read.stream.maxTriggerDelayMs"
LIMITS = (FILES, BYTES, ROWS, LEAST, DELAY)


def limits_of(own: Mapping[str, str]) -> BatchLimits:
    """The limits in the options.

    Raises: OptionError, UsageError
    """
    files, size, rows, least, delay = (_number(name, own.get(name)) for name in LIMITS)
    if (least is None) is not (delay is None):
        raise UsageError(f"{LEAST} and {DELAY} belong together: the delay limits the wait for rows")
    return BatchLimits(files=files, bytes=size, rows=rows, least=least, delay_millis=delay)


def _number(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) < 1:
        raise OptionError(f"option {name} is a number from 1, not {text!r}", option=name, value=text)
    return int(text)
