"""The case sensitivity of names in a Spark session: ignored, unless `spark.sql.caseSensitive` is true. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from paimon_py.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASE = "spark.sql.caseSensitive"


class CaseRule(msgspec.Struct, frozen=True):
    """The rule by which a session resolves column names; `matter`: whether A and a are different names."""

    matter: bool = False

    @staticmethod
    def of(spark: SparkSession) -> CaseRule:
        """The current rule of a session."""
        return CaseRule(str(spark.conf.get(CASE)).lower() == "true")

    def one_of(self, name: str, known: Collection[str]) -> str:
        """The known name that a name refers to; the name itself if there is none.

        Raises: UsageError if it refers to two names.
        """
        found = self.path_of((name,), ((one,) for one in known))
        return name if found is None else found[0]

    def path_of(self, path: tuple[str, ...], known: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
        """The known path that a path refers to; None if there is none.

        Raises: UsageError if it refers to two paths.
        """
        alike = [one for one in known if _lower(one) == _lower(path)]
        if self.matter or path in alike:
            return path if path in alike else None
        if len(alike) > 1:
            shown = " and ".join(repr(".".join(one)) for one in alike)
            raise UsageError(
                f"{'.'.join(path)!r} may be {shown}, which are one name in this session: write the name as it is"
            )
        return alike[0] if alike else None


    def rename(self, given: Sequence[str], known: Collection[str]) -> list[str]:
        """The columns of a DataFrame, renamed to the table's columns they refer to; others keep their names.

        Raises: UsageError if two columns refer to the same column of the table.
        """
        found = [self.one_of(name, known) for name in given]
        for at, name in enumerate(found):
            alike = [given[one] for one, other in enumerate(found) if other == name]
            if len(alike) > 1 and given[at] != name and name in alike:
                found[at] = given[at]
            elif len(alike) > 1 and name not in alike:
                raise UsageError(
                    f"{' and '.join(map(repr, alike))} are both the column {name!r} of the table in this session: "
                    "leave one out, or rename one"
                )
        return found


def _lower(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(step.lower() for step in path)
