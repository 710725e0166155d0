"""Names for the types of numpy arrays, shared by all packages."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
"""True for the selected rows."""
Words = npt.NDArray[np.uint64]
AnyArray = npt.NDArray[Any]
