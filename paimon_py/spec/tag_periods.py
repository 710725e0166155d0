"""The periods of automatic tags, and their names. Pure.

Times are local times, represented as if they were epoch milliseconds.

Source: Java `TagPeriodHandler`, `TagTimeExtractor`, `TagAutoCreation`.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.options import Options

_STYLES = ("with_dashes", "without_dashes", "without_dashes_and_spaces")
_DAY = ("%Y-%m-%d", "%Y%m%d", "%Y%m%d")
_HOUR = ("%Y-%m-%d %H", "%Y%m%d %H", "%Y%m%d%H")
_MINUTE = "%Y%m%d%H%M"
_HOUR_MILLIS = 3_600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class TagPeriod(msgspec.Struct, frozen=True):
    """The periods that automatic tags stand for.

    Attributes:
        millis: the length of a period.
        pattern: the format of tag names, applied to the beginning of the period.
        daily: the part of a name after a blank is ignored.
    """

    millis: int
    pattern: str
    daily: bool = False

    @classmethod
    def of(cls, options: Options) -> TagPeriod:
        """The period of `tag.creation-period`, `tag.creation-period-duration` and `tag.period-formatter`."""
        style = _STYLES.index(options.get_enum("tag.period-formatter"))
        duration = options.find_duration("tag.creation-period-duration")
        if duration is not None:
            if duration < 1:
                name = "tag.creation-period-duration"
                raise OptionError(f"option {name!r} is not a valid period for tags", option=name)
            return cls(duration, _MINUTE)
        match options.get_enum("tag.creation-period"):
            case "daily":
                return cls(24 * _HOUR_MILLIS, _DAY[style], daily=True)
            case "hourly":
                return cls(_HOUR_MILLIS, _HOUR[style])
        return cls(2 * _HOUR_MILLIS, _HOUR[0])

    def begins(self, name: str) -> int | None:
        """The beginning of the period of a tag; None if the tag is not an automatic one."""
        text = name.split(" ")[0] if self.daily else name
        try:
            found = datetime.strptime(text, self.pattern).replace(tzinfo=timezone.utc)
        except ValueError:
            return None
        return (found - _EPOCH) // timedelta(milliseconds=1) if found.strftime(self.pattern) == text else None

    def name(self, begins: int) -> str:
        """The name of the tag for a period."""
        return (_EPOCH + timedelta(milliseconds=begins)).strftime(self.pattern)

    def before(self, moment: int) -> int:
        """The beginning of the last period that had ended at a moment."""
        return moment // self.millis * self.millis - self.millis


class TagRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule by which commits create tags.

    Attributes:
        by_watermark: the time is that of the snapshots' watermarks instead of the clock.
        delay_millis: how long after a period its tag is created.
        completes: a later commit creates the tags of periods that had no commit after them.
        zone: the time zone of local times; None: this machine's.
    """

    period: TagPeriod
    by_watermark: bool
    delay_millis: int
    completes: bool
    zone: str | None

    @classmethod
    def of(cls, options: Options) -> TagRule | None:
        """The rule from the options `tag.*`; None if commits create no tags by time.

        Raises: OptionError if the delay is not shorter than the period.
        """
        mode = options.get_enum("tag.automatic-creation")
        if mode not in ("process-time", "watermark"):
            return None
        period, delay = TagPeriod.of(options), options.get_duration("tag.creation-delay")
        if delay >= period.millis:
            name = "tag.creation-delay"
            raise OptionError(f"option {name!r} must be less than the period of tags", option=name)
        by_watermark = mode == "watermark"
        clock, watermarks = options.find_str("sink.process-time-zone"), options.get_str("sink.watermark-time-zone")
        return cls(
            period=period,
            by_watermark=by_watermark,
            delay_millis=delay,
            completes=options.get_bool("tag.automatic-completion"),
            zone=watermarks if by_watermark else clock,
        )

    def tag_at(self, moment: int, last: int | None) -> int | None:
        """The period whose tag a snapshot at a moment gets; None if it gets none.

        `last`: the period after that of the last tag; None if there are no tags yet.
        """
        if last is not None and moment - self.delay_millis < last + self.period.millis:
            return None
        return last if last is not None and self.completes else self.period.before(moment)
