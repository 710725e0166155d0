"""The branches of one table: directories next to the main branch, with their own schemas, snapshots and tags.

A branch exists if it has its oldest schema: that file is written last and deleted first.

Source: format.md §15.5; Java `BranchManager`, `FileSystemBranchManager`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import BranchNotFoundError, OptionError, UsageError
from paimon_py.metadata.root import TableRoot
from paimon_py.spec.layout import BRANCH_PREFIX, MAIN_BRANCH, branch_directory, check_name
from paimon_py.spec.option_names import near_text

FALLBACK = "scan.fallback-branch"
PRIMARY = "scan.primary-branch"
_OTHERS = (FALLBACK, PRIMARY)


def check_branch_options(root: TableRoot, options: Mapping[str, str]) -> None:
    """Refuse options that name a missing branch to read from, as Java does; and two of them.

    Cost: a list for each such option.
    Raises: OptionError
    """
    named = [option for option in _OTHERS if options.get(option, "").strip()]
    if len(named) > 1:
        raise OptionError(f"give {FALLBACK} or {PRIMARY}, not both", option=PRIMARY)
    for option in named:
        if not root.on_branch(options[option]).schemas.ids():
            message = f"option {option}: branch {options[option]!r} does not exist; create_branch creates it"
            raise OptionError(message, option=option, value=options[option])


def require_unnamed(options: Mapping[str, str], branch: str) -> None:
    """Check that no option names a branch that is to be deleted.

    Raises: UsageError
    """
    for option in _OTHERS:
        if option in options and options[option] == branch:
            raise UsageError(f"the option {option} names the branch {branch!r}: remove the option first")


def is_complete(root: TableRoot, branch: TableRoot) -> bool:
    """Whether a branch exists: its oldest schema is written last and deleted first.

    Cost: a list; another one for a branch without schema 0.
    """
    ids = branch.schemas.ids()
    return bool(ids) and (ids[0] == 0 or ids[0] == min(root.on_branch(MAIN_BRANCH).schemas.ids(), default=0))


def branch_names(root: TableRoot) -> list[str]:
    """The names of the branches other than main, sorted. Cost: a list, and one for each branch."""
    return [name for name in branch_directories(root) if is_complete(root, root.on_branch(name))]


def other_branches(root: TableRoot) -> list[TableRoot]:
    """All branches of the table except this one, including main and branches that are partly created or deleted.

    Cost: one list.
    """
    names = [MAIN_BRANCH, *branch_directories(root)]
    return [root.on_branch(name) for name in names if name != root.branch]


def require_branch(root: TableRoot, name: str) -> TableRoot:
    """An existing branch.

    Raises: BranchNotFoundError, UsageError
    """
    if not isinstance(name, str):
        raise UsageError(f"a branch name must be a string, not {name!r}")
    branch = root.on_branch(name)
    if not is_complete(root, branch):
        way = near_text(name, branch_names(root), "branches")
        raise BranchNotFoundError(f"no branch {name!r} in {root.path}{way}", path=branch.branch_path)
    return branch


def check_new_branch(name: str) -> str:
    """`name` if a branch may have this name.

    Raises: UsageError
    """
    check_name("branch", name)
    if name == MAIN_BRANCH:
        raise UsageError(f"a branch cannot be named {name!r}, the name of the table's own history")
    if name.isdigit():
        raise UsageError(f"a branch cannot be named {name!r}, a number alone")
    return name


def branch_directories(root: TableRoot) -> list[str]:
    """The names of all branches, sorted, including those partly created or deleted. Cost: one list."""
    statuses = root.store.list(branch_directory(root.path))
    return sorted(
        status.name[len(BRANCH_PREFIX) :]
        for status in statuses
        if status.is_directory and status.name.startswith(BRANCH_PREFIX) and status.name != BRANCH_PREFIX
    )
