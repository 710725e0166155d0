"""Output that was never handed over: deleted on abort, reported when the writer is garbage-collected.

The finaliser runs wherever Python collects the writer, so it takes no lock, starts no thread, and never waits. At the
end of the process it only warns: stores and their threads may be gone by then, and remaining files are orphans.
"""

from __future__ import annotations

import contextlib
import warnings
import weakref

from paimon_py.compaction.writer_compaction import WriterCompaction
from paimon_py.env import is_ending
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.redact import shown_url
from paimon_py.write.open_buckets import OpenBuckets
from paimon_py.write.packed_blobs import PackedBlobs
from paimon_py.write.routing import Routing


class UncommittedOutput:
    """Rows and files of one writer that `changes()` has not handed over; knows nothing of the writer itself."""

    def __init__(
        self, root: TableRoot, buckets: OpenBuckets, compaction: WriterCompaction | None, routing: Routing,
        packs: PackedBlobs | None = None,
    ) -> None:  # fmt: skip
        self._root = root
        self._process = root.env.ids.process()
        self._buckets = buckets
        self._compaction = compaction
        self._routing = routing
        self._packs = packs

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked child: buffers, open files and spilled data belong to the parent."""
        return self._root.env.ids.process() == self._process

    def delete(self) -> None:
        """Discard the rows and delete the files, as far as the store allows; does nothing in a forked child."""
        if not self.is_of_this_process:
            return
        self._buckets.abort()
        if self._compaction is not None:
            self._compaction.abort()
        self._routing.abort()
        if self._packs is not None:
            self._packs.abort()

    def watch(self, writer: object) -> None:
        """Warn when the writer is collected, or the process ends, while output is left; and delete it."""
        weakref.finalize(writer, self._on_forgotten)

    def _on_forgotten(self) -> None:
        """Delete remaining output, then warn; if warnings are errors, Python prints the error and continues.

        Warns: ResourceWarning
        """
        if not self._buckets or not self.is_of_this_process:
            return
        place = shown_url(self._root.path)
        lost = f"a writer of {place} was dropped with rows that changes() did not hand over: they are lost"
        way = (
            "pass writer.changes() to table.commit(…), inside the `with` block or after it, or call writer.abort(); "
            "table.write_arrow(data) does all of it in one call"
        )
        if is_ending():
            with contextlib.suppress(ResourceWarning):
                warnings.warn(f"{lost}, and their files are orphans; {way}", ResourceWarning, stacklevel=3)
            return
        try:
            self.delete()
        finally:
            warnings.warn(f"{lost}, and their files are deleted; {way}", ResourceWarning, stacklevel=3)
