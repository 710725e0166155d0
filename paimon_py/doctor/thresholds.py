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
        trigger: more runs than this slow readers down, and compactions begin at it.
        stop: more files on level 0 than this are a pile-up; writers that compact wait then.
    """

    trigger: int
    stop: int

    @classmethod
    def of(cls, options: Options) -> RunLimits:
        """The limits that a table asks for.

        Raises: OptionError if an option has a bad text.
        """
        settings = PickerSettings.of(options)
        return cls(settings.compaction_trigger, settings.stop_trigger)

    @classmethod
    def of_any(cls, options: Options) -> RunLimits:
        """The limits that a table asks for, or those of all tables where its options cannot be read."""
        try:
            return cls.of(options)
        except OptionError:
            return cls(PickerSettings().compaction_trigger, PickerSettings().stop_trigger)

    def is_piled_up(self, level0_files: int) -> bool:
        """Whether compaction falls behind in a bucket with so many files on level 0."""
        return level0_files > self.stop

    def is_amplified(self, runs: float) -> bool:
        """Whether readers merge too many sorted runs."""
        return runs > self.trigger


def has_many_manifests(small: int, settings: ManifestSettings) -> bool:
    """Whether there are more small manifests than commits leave."""
    return small > settings.merge_min_count
