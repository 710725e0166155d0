"""The checks before a verb of a table runs.

A verb that changes something works on the table that was opened, and not on another one that lies at its path by now;
and not on a table of which a rollback or fast-forward was left in the middle. So it is for each verb that does not say
otherwise: what a verb says stands beside it, so that no verb can forget the check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from paimon_py.arguments import with_location
from paimon_py.metadata.open_table import OpenTable
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.schema import TableSchema

V = TypeVar("V", bound=Callable[..., Any])


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What is made sure of before a verb is called.

    Attributes:
        same_table: the table is the one that was opened. Cost: a list, and a get the first time.
        whole_history: no rollback and no fast-forward is at work, or was left in the middle. Cost: a stat.
    """

    same_table: bool = True
    whole_history: bool = True


_RULE = "table_rule"


def reads(verb: V) -> V:
    """A verb that changes nothing."""
    return _with_rule(verb, Rule(same_table=False, whole_history=False))


def commits(verb: V) -> V:
    """A verb of which all effects are commits: these make sure of everything when they are published."""
    return _with_rule(verb, Rule(same_table=False, whole_history=False))


def cuts_history(verb: V) -> V:
    """A verb that works on what a rollback or fast-forward left, or looks for it by itself."""
    return _with_rule(verb, Rule(whole_history=False))


def _with_rule(verb: V, rule: Rule) -> V:
    setattr(verb, _RULE, rule)
    return verb


def guard(table: Any, verb: Callable[..., Any]) -> None:
    """Make sure of what a verb asks for.

    Raises:
        TableNotFoundError: the table was dropped, renamed or created again.
        CommitConflictError: a rollback or fast-forward is at work, or was left in the middle.
    """
    rule: Rule = getattr(verb, _RULE, Rule())
    root: TableRoot = table._root
    if rule.same_table:
        root.require_same(table._schema)
    if rule.whole_history and root.history is None and root.cuts.is_there():
        root.cuts.refuse()


at_table_door = with_location(lambda table: table._root.path, lambda table: table._root.schemas.latest(), guard)
"""A class decorator for those that hold verbs of `Table`."""


class TableVerbs:
    """What the classes that hold verbs of `Table` have in common: the table, and the schema it was opened with."""

    _root: TableRoot
    _schema: TableSchema

    @property
    def _open_table(self) -> OpenTable:
        """Both as one value."""
        return OpenTable(self._root, self._schema)

    @property
    def _newest(self) -> TableSchema:
        """The latest schema: what care goes by, whatever options were when the table object was opened.

        Cost: none after `guard`; else a list.
        """
        return self._root.newest(self._schema)

    @property
    def _newest_table(self) -> OpenTable:
        """The table under its latest schema. Cost: as `_newest`"""
        return self._open_table.under(self._newest)

    @property
    def _rules(self) -> TableSchema:
        """What rows are written anew under: the latest schema if its columns are those that this table object knows.

        Cost: as `_newest`
        """
        newest = self._newest
        return newest if newest.fields == self._schema.fields else self._schema
