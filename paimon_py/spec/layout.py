"""The grammar of paths and file names: building and parsing them, and rules for names.

Source: format.md §1; Java `FileStorePathFactory`, `PartitionPathUtils`, `SnapshotManager`, `BranchManager`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

from paimon_py.errors import CorruptionError, OptionError, UsageError
from paimon_py.spec.schema import TableSchema

PATH_DIRECTORY = "data-file.path-directory"
DEFAULT_PARTITION_NAME = "__DEFAULT_PARTITION__"
MAIN_BRANCH = "main"
LATEST = "LATEST"
EARLIEST = "EARLIEST"
CUT = "CUT"
CLONE_DIRECTORY = "clone"
"""The directory of a clone in progress, in the directory of the new table. paimon_py only: Java does not know it."""

SNAPSHOT_PREFIX = "snapshot-"
SCHEMA_PREFIX = "schema-"
CHANGELOG_PREFIX = "changelog-"
TAG_PREFIX = "tag-"
BRANCH_PREFIX = "branch-"
CONSUMER_PREFIX = "consumer-"
CONSUMER_MARK_PREFIX = "mark-"
DATABASE_SUFFIX = ".db"
POSTPONE_BUCKET = -2
NAME_BYTES_MAX = 255
PREFIXES = ("data-file.prefix", "changelog-file.prefix")
"""Options with the prefixes of new files."""

PREFIX_BYTES_MAX = 100
_PATTERNS = ("%", "?", "#", "*")
_AFFIX_BYTES = {
    "database": len(DATABASE_SUFFIX), "tag": len(TAG_PREFIX), "branch": len(BRANCH_PREFIX),
    "consumer": len(CONSUMER_PREFIX),
}  # fmt: skip
_INVISIBLE = {
    "Cc": "control characters", "Cf": "invisible characters", "Cs": "halves of characters",
    "Zl": "line breaks", "Zp": "line breaks",
}  # fmt: skip
_JOINERS = "\u200c\u200d"
"""Invisible characters that Persian, Indic scripts and emoji need."""


_ESCAPED = frozenset({*map(chr, range(0x20)), "\x7f", *"\"#%'*/:=?\\{}[]^"})
_HEX_ESCAPE = re.compile("%([0-9a-fA-F]{2})")
_NUMBERED = re.compile("[0-9]{1,19}")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp")
_JAVA_BLANKS = frozenset(
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)
"""The characters that Java's `Character.isWhitespace` accepts (no-break spaces are not included)."""


def join(*parts: str) -> str:
    """Path parts joined by single slashes; empty parts are dropped; `scheme://` is preserved."""
    head, *rest = parts
    return "/".join([head.rstrip("/"), *(part.strip("/") for part in rest if part.strip("/"))])


def branch_root(table: str, branch: str | None) -> str:
    """The directory that contains `schema/`, `snapshot/`, `tag/` … of a branch; the table itself for main."""
    if branch is None or branch == MAIN_BRANCH:
        return table
    return join(table, "branch", BRANCH_PREFIX + check_name("branch", branch))


def branch_directory(table: str) -> str:
    """The directory of branches."""
    return join(table, "branch")


def schema_directory(table: str) -> str:
    """The directory of schemas."""
    return join(table, "schema")


def schema_path(table: str, schema_id: int) -> str:
    """The file of a schema."""
    return join(table, "schema", f"{SCHEMA_PREFIX}{schema_id}")


def snapshot_directory(table: str) -> str:
    """The directory of snapshots and hints."""
    return join(table, "snapshot")


def snapshot_path(table: str, snapshot_id: int) -> str:
    """The file of a snapshot."""
    return join(table, "snapshot", f"{SNAPSHOT_PREFIX}{snapshot_id}")


def changelog_directory(table: str) -> str:
    """The directory of changelogs that outlive their snapshots."""
    return join(table, "changelog")


def changelog_path(table: str, snapshot_id: int) -> str:
    """The file of the changelog of an expired snapshot."""
    return join(table, "changelog", f"{CHANGELOG_PREFIX}{snapshot_id}")


def latest_hint_path(table: str) -> str:
    """The file of the LATEST hint."""
    return join(table, "snapshot", LATEST)


def earliest_hint_path(table: str) -> str:
    """The file of the EARLIEST hint."""
    return join(table, "snapshot", EARLIEST)


def tag_directory(table: str) -> str:
    """The directory of tags."""
    return join(table, "tag")


def tag_path(table: str, name: str) -> str:
    """The file of a tag."""
    return join(table, "tag", TAG_PREFIX + check_name("tag", name))


def tag_success_path(table: str, name: str) -> str:
    """The success file of a tag, written if the option `tag.create-success-file` is on."""
    return join(table, "tag", "tag-success-file", check_name("tag", name) + "_SUCCESS")


def consumer_directory(table: str) -> str:
    """The directory of consumers."""
    return join(table, "consumer")


def consumer_path(table: str, name: str) -> str:
    """The file of a consumer."""
    return join(table, "consumer", CONSUMER_PREFIX + check_name("consumer", name))


def consumer_mark_path(table: str, name: str) -> str:
    """The file with the mark of the snapshot that a consumer has read. paimon_py only: Java does not know it."""
    return join(table, "consumer", CONSUMER_MARK_PREFIX + check_name("consumer", name))


def user_directory(table: str) -> str:
    """The directory of the users' last identifiers. paimon_py only: Java does not know it."""
    return join(table, "user")


def cut_path(table: str) -> str:
    """The file of a rollback or fast-forward in progress. paimon_py only: Java does not know it."""
    return join(table, "tag", CUT)


def tag_ancestor_path(table: str) -> str:
    """The file that records from which tag the oldest snapshot descends. paimon_py only: Java does not know it."""
    return join(table, "tag", "ANCESTOR")


def origin_path(table: str) -> str:
    """The file in a branch's directory that records where the branch began. paimon_py only: Java does not know it."""
    return join(table, "ORIGIN")


def manifest_directory(table: str) -> str:
    """The directory of manifests, manifest lists and index manifests."""
    return join(table, "manifest")


def manifest_path(table: str, name: str) -> str:
    """The file of a manifest, manifest list or index manifest that another file names."""
    return join(table, "manifest", check_file_name(name))


def index_directory(table: str) -> str:
    """The directory of index files that are not stored next to data files."""
    return join(table, "index")


def statistics_directory(table: str) -> str:
    """The directory of statistics."""
    return join(table, "statistics")


def statistics_path(table: str, name: str) -> str:
    """The file of statistics that a snapshot names."""
    return join(table, "statistics", check_file_name(name))


def parse_number(prefix: str, file_name: str) -> int | None:
    """The id in a name such as `snapshot-17`; None if the name is not the prefix followed by digits."""
    digits = file_name.removeprefix(prefix)
    if digits == file_name or not _NUMBERED.fullmatch(digits):
        return None
    return int(digits)


def escape(text: str) -> str:
    """A partition name or value as part of a directory name."""
    if _ESCAPED.isdisjoint(text):
        return text
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)


def unescape(text: str) -> str:
    """The inverse of `escape`; a percent sign without two hex digits is kept."""
    return _HEX_ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)


def partition_path(
    names: Sequence[str], texts: Sequence[str | None], default_name: str = DEFAULT_PARTITION_NAME
) -> str:
    """The directory of a partition relative to the table, without surrounding slashes; "" without partition keys.

    A value that is null, empty or blank becomes `default_name`.
    """
    return "/".join(
        f"{escape(name)}={escape(default_name if text is None or is_blank(text) else text)}"
        for name, text in zip(names, texts, strict=True)
    )


def bucket_dir(bucket: int) -> str:
    """The directory name of a bucket."""
    return "bucket-postpone" if bucket == POSTPONE_BUCKET else f"bucket-{bucket}"


def bucket_path(table: str, schema: TableSchema, partition: str, bucket: int) -> str:
    """The directory of a bucket; `partition` as returned by `partition_path`."""
    return join(table, relative_bucket_path(schema, partition, bucket))


def relative_bucket_path(schema: TableSchema, partition: str, bucket: int) -> str:
    """The directory of a bucket relative to the table, or to an external path."""
    data_directory = schema.options.get(PATH_DIRECTORY, "")
    if data_directory and not is_plain_directory(data_directory):
        raise CorruptionError(
            f"option {PATH_DIRECTORY} {data_directory!r} must be a plain relative directory", path=data_directory
        )
    return join(data_directory, partition, bucket_dir(bucket)).lstrip("/")


def data_file_path(directory: str, name: str) -> str:
    """A data file, or a file next to it, that a manifest names, in its bucket's (or an external) directory."""
    return f"{directory}/{check_file_name(name)}"


def database_path(warehouse: str, database: str) -> str:
    """The directory of a database."""
    return join(warehouse, check_name("database", database) + DATABASE_SUFFIX)


def table_path(warehouse: str, database: str, table: str) -> str:
    """The directory of a table."""
    return join(database_path(warehouse, database), check_name("table", table))


def check_name(kind: str, name: str) -> str:
    """Returns `name` if it is a valid name for a database, table, tag or branch, which become directories or files.

    Raises:
        UsageError: empty, too long for a file name, with a slash, backslash, control or invisible character or `%`,
            with a leading dot, or with a blank at either end.
    """
    if not isinstance(name, str):
        raise UsageError(f"a {kind} name is a string, not {name!r}")
    problem = _name_problem(name, NAME_BYTES_MAX - _AFFIX_BYTES.get(kind, 0))
    if problem is None and any(mark in name for mark in _PATTERNS):
        problem = f"must not contain any of {' '.join(_PATTERNS)}"
    if problem:
        raise UsageError(f"{kind} name {name!r} {problem}")
    return name


def check_column_name(name: str) -> str:
    """Returns `name` if it is a valid column name: not blank, without control characters.

    Raises:
        UsageError: it is not, or it is longer than 255 bytes.
    """
    if not isinstance(name, str):
        raise UsageError(f"a column name is a string, not {name!r}")
    if not name or name.isspace():
        raise UsageError(f"column name {name!r} is empty")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in name):
        raise UsageError(f"column name {name!r} has control characters")
    if len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES_MAX:
        raise UsageError(f"column name {name[:40]!r}… is longer than {NAME_BYTES_MAX} bytes")
    return name


def check_text(what: str, text: str | None) -> str | None:
    """Returns `text` if it can be stored in a metadata file.

    Raises:
        UsageError: it is not a string, or contains lone surrogates.
    """
    if text is not None and (not isinstance(text, str) or any(unicodedata.category(char) == "Cs" for char in text)):
        raise UsageError(f"{what} is a string, not {text!r}")
    return text


def check_default(value: object, what: str = "default") -> str | None:
    """The default of a column, if it is a string.

    Raises: UsageError for anything else, with the text to write for a number or truth value.
    """
    if isinstance(value, (bool, int, float)):
        text = str(value).lower() if isinstance(value, bool) else str(value)
        raise UsageError(f"{what} is a string, not {value!r}; write {text!r}")
    return check_text(what, value)  # type: ignore[arg-type]


def check_file_name(name: str) -> str:
    """Returns `name` if it is a plain file name, as every name inside metadata must be.

    Raises:
        CorruptionError: the path would leave its directory.
    """
    if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
        raise CorruptionError(f"metadata names a file {name!r}, which is not a plain file name", path=name or None)
    return name


def check_prefixes(options: Mapping[str, str]) -> None:
    """Refuse prefixes that would produce file names which leave their directory or cannot be parsed.

    Raises:
        OptionError: a prefix contains slashes, control or invisible characters or any of `% ? # *`, begins with a dot,
            or is too long.
    """
    for option in PREFIXES:
        text = options.get(option)
        if not text:
            continue
        problem = _name_problem(text + "x", PREFIX_BYTES_MAX + 1)
        if problem is None and any(mark in text for mark in _PATTERNS):
            problem = f"must not contain any of {' '.join(_PATTERNS)}"
        if problem:
            message = f"option {option!r} is {text!r}; a part of file names {problem}"
            raise OptionError(message, option=option, value=text)


def _name_problem(name: str, bytes_max: int) -> str | None:
    if not name:
        return "is empty"
    if name != name.strip():
        return "must not begin or end with a blank"
    if name.startswith("."):
        return "must not begin with a dot"
    if "/" in name or "\\" in name:
        return "must not contain slashes"
    if not name.isascii() or not name.isprintable():
        for letter in name:
            if letter not in _JOINERS and (what := _INVISIBLE.get(unicodedata.category(letter))):
                return f"must not contain {what}"
    if len(name.encode("utf-8", "surrogatepass")) > bytes_max:
        return f"must not be longer than {bytes_max} bytes"
    return None


def is_temporary(file_name: str) -> bool:
    """Whether a file has a temporary name, which it keeps until it is complete; Java uses the same form."""
    return _TEMPORARY.fullmatch(file_name) is not None


def is_plain_directory(directory: str) -> bool:
    """Whether a path is relative and stays below its start."""
    parts = directory.rstrip("/").split("/")
    return not any(part in ("", ".", "..") or "\0" in part for part in parts)


def is_blank(text: str) -> bool:
    """Whether a string is blank for Java; a blank partition value has no directory of its own."""
    return _JAVA_BLANKS.issuperset(text)
