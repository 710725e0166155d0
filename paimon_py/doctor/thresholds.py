"""Limits beyond which a table needs care, for the findings of the doctor and the order of the maintenance runner."""

from __future__ import annotations

import msgspec

from paimon_py.compaction.picker import PickerSettings
from paimon_py.errors import OptionError
from paimon_py.metadata.manifest_merge import ManifestSettings
from paimon_py.spec.options import Options


class RunLimits(msgspec.Struct, frozen=True):
    """Sorted runs of a bucket.

    Attributes:
        trigger: more runs than this slow down readers, and compactions begin at this number.
        stop: with more files on level 0 than this, compaction has fallen behind; writers that compact then wait.
    """

    trigger: int
    stop: int

    @classmethod
    def of(cls, options: Options) -> RunLimits:
        """The limits in the options of a table.

        Raises: OptionError if an option is invalid.
        """
        settings = PickerSettings.of(options)
        return cls(settings.compaction_trigger, settings.stop_trigger)

    @classmethod
    def of_any(cls, options: Options) -> RunLimits:
        """The limits in the options of a table, or the default limits if its options cannot be read."""
        try:
            return cls.of(options)
        except OptionError:
            return cls(PickerSettings().compaction_trigger, PickerSettings().stop_trigger)

    def is_piled_up(self, level0_files: int) -> bool:
        """Whether compaction has fallen behind in a bucket with `level0_files` files on level 0."""
        return level0_files > self.stop

    def is_amplified(self, runs: float) -> bool:
        """Whether readers merge too many sorted runs."""
        return runs > self.trigger


def has_many_manifests(small: int, settings: ManifestSettings) -> bool:
    """Whether there are more small manifests than commits normally leave."""
    return small > settings.merge_min_count
