"""Opens the store of a URL, by options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from paimon_py.errors import OptionError, UnsupportedError, UsageError
from paimon_py.spec.redact import shown_url, without_user
from paimon_py.storage.local_store import LocalStore, absolute_path
from paimon_py.storage.memory_store import MemoryStore
from paimon_py.storage.oss_options import OssSettings
from paimon_py.storage.retry import RetryStore
from paimon_py.storage.store import Store
from paimon_py.storage.store_options import check_store_options

FSYNC_OPTION = "fs.local.fsync"
"""`false`: do not wait for local disks; a power failure may then lose commits."""

_RETRIED_BY_SDK = {"s3", "gs", "az", "abfs", "abfss"}
_CHAINED = re.compile(r"::(?=[A-Za-z][A-Za-z0-9+.\-]*:/)")
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]+):(?=/)")
_memory = MemoryStore(name="memory")


def open_store(url: str, options: Mapping[str, str]) -> tuple[Store, str]:
    """The store of a URL, and the URL as a path of that store.

    Plain paths and `file:` are local, `memory://` belongs to the process; everything else uses fsspec. Options have
    Paimon's own names (`s3.access-key`, `fs.s3a.endpoint`, `fs.azure.account.key.…`); the cloud's own chain of
    credentials supplies the rest. A user in the URL is passed to the store; the path does not contain it.

    Raises:
        UsageError: the URL is malformed, contains a password, or a user that its scheme does not support; or a package
            for its scheme is not installed.
        OptionError: an option's value is not allowed, or a store has no option with that name.
    """
    if not isinstance(options, Mapping):
        raise UsageError(f"options map names to strings, got a {type(options).__name__}")
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise OptionError(f"option {name!r} needs a string, not a {type(value).__name__}", option=str(name))
    check_store_options(options)
    if not url or "\0" in url or (not url.isascii() and any("\ud800" <= character <= "\udfff" for character in url)):
        raise UsageError(f"not a path or URL: {shown_url(url)!r}")
    if _CHAINED.search(url):
        raise UsageError(
            f"{shown_url(url)} chains file systems with '::', which tables do not support: name the store itself, such"
            f" as s3://bucket/warehouse"
        )
    match = _SCHEME.match(url)
    scheme = match.group(1).lower() if match else "file"
    if scheme == "local":  # fsspec's name for file:
        scheme, url = "file", "file" + url[len("local") :]
    if scheme == "file":
        return LocalStore(fsync=_fsync(options)), _local_path(url)
    if scheme == "memory":
        _refuse_secrets(url, scheme)
        return _memory, _normalise(url, "memory")
    if scheme == "hdfs":
        return _open_hdfs(url, options)
    if scheme == "oss":
        return _open_oss(url, options)
    from paimon_py.storage import fsspec_store  # imported here only

    scheme = fsspec_store.ALIASES.get(scheme, scheme)
    _refuse_secrets(url, scheme)
    root = _normalise(url, scheme)
    store = fsspec_store.FsspecStore.open(scheme, root, options)
    return (store if scheme in _RETRIED_BY_SDK else RetryStore(store)), without_user(root)


def _open_hdfs(url: str, options: Mapping[str, str]) -> tuple[Store, str]:
    """Open HDFS, whose client repeats calls after transient failures itself."""
    _refuse_secrets(url, "hdfs")
    try:
        from paimon_py.storage import hdfs_store
    except ImportError as error:
        if error.name != "hdfs_native":
            raise
        raise UsageError('hdfs:// needs a package that is not installed: pip install "paimon-py[hdfs]"') from error
    authority, _, path = url.split(":", 1)[1].removeprefix("//").partition("/")
    parts = [part for part in path.split("/") if part]
    if not parts or any(part in (".", "..") for part in parts):
        raise UsageError(f"{shown_url(url)} must name a directory, without '.' and '..' in it")
    root = f"hdfs://{authority}/" + "/".join(parts)
    return hdfs_store.HdfsStore.open(root, options), root


def _open_oss(url: str, options: Mapping[str, str]) -> tuple[Store, str]:
    """Open OSS, whose client repeats requests itself."""
    _refuse_secrets(url, "oss")
    try:
        from paimon_py.storage.oss_store import OssStore
    except ImportError as error:
        if error.name != "oss2":
            raise
        raise UsageError('oss:// needs a package that is not installed: pip install "paimon-py[oss]"') from error
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise UsageError("an oss:// URL must not hold a user; give credentials as options")
    return OssStore(OssSettings.of(options)), _normalise(url, "oss")


def _refuse_secrets(url: str, scheme: str) -> None:
    """Refuse a URL with a password or signature: the location of a table appears in messages, pickles and errors."""
    authority, _, rest = url.split(":", 1)[1].lstrip("/").partition("/")
    if ":" in authority.rpartition("@")[0]:
        raise UsageError(f"a {scheme}:// URL must not hold a password; give it as an option, or in the environment")
    if scheme == "memory" and "@" in authority:
        raise UsageError("a memory:// URL has no user")
    if "?" in authority + rest:
        raise UsageError(f"a {scheme}:// URL must not have a query ('?…'); give credentials as options")


def _fsync(options: Mapping[str, str]) -> bool:
    text = options.get(FSYNC_OPTION, "true").strip().lower()
    if text not in ("true", "false"):
        raise OptionError(f"option {FSYNC_OPTION} must be true or false, not {text!r}", option=FSYNC_OPTION, value=text)
    return text == "true"


def _local_path(url: str) -> str:
    if url[:5].lower() == "file:":
        parts = urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise UnsupportedError(
                f"{shown_url(url)} names a host; file: URLs are file:///path", feature="file: URL with a host"
            )
        url = unquote(parts.path) if "%" in parts.path else parts.path
    return absolute_path(url)


def _normalise(url: str, scheme: str) -> str:
    rest = url.split(":", 1)[1].strip("/")
    parts = [part for part in rest.split("/") if part]
    if not parts or any(part in (".", "..") for part in parts):
        raise UsageError(f"{shown_url(url)} must name a bucket or directory, without '.' and '..' in it")
    return f"{scheme}://" + "/".join(parts)
