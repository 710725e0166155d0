"""Locations of new data files outside the table: the rules of `data-file.external-paths`. Pure.

Source: Java `AbstractFileStore.createExternalPaths`, `ExternalPathProvider` and its strategies.
"""

from __future__ import annotations

import re
from contextlib import suppress

import msgspec

from paimon_py.errors import OptionError
from paimon_py.spec.options import Options
from paimon_py.spec.redact import shown_url

PATHS = "data-file.external-paths"
STRATEGY = f"{PATHS}.strategy"
SPECIFIC_FS = f"{PATHS}.specific-fs"
WEIGHTS = f"{PATHS}.weights"

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(/.*)")
_WORD = 0xFFFFFFFF
_ENTROPY_BITS = 20
_ENTROPY_PARTS = ((0, 4), (4, 8), (8, 12), (12, 20))


class ExternalPaths(msgspec.Struct, frozen=True):
    """Directories for new data files, and the strategy that chooses one for each file.

    Attributes:
        roots: URLs without a trailing slash, at least one.
        strategy: `round-robin`, `entropy-inject` or `weight-robin`.
        weights: one weight per root, for `weight-robin`.
    """

    roots: tuple[str, ...]
    strategy: str
    weights: tuple[int, ...] = ()

    def first_position(self, draw: float) -> int:
        """The start position of the rotation; `draw` is random in [0, 1)."""
        return 0 if self.strategy == "entropy-inject" else int(draw * len(self.roots))

    def path(self, bucket_directory: str, name: str, position: int, draw: float) -> str:
        """The URL of a new file.

        Args:
            bucket_directory: the directory of the bucket, relative to the table.
            position: the index of the file among those of one writer, starting at `first_position` + 1.
            draw: random in [0, 1); used only with weights.
        """
        root = self.roots[self._heaviest(draw) if self.strategy == "weight-robin" else position % len(self.roots)]
        parts = [root, bucket_directory, name]
        if self.strategy == "entropy-inject":
            parts.insert(2, entropy(name))
        return "/".join(parts)

    def _heaviest(self, draw: float) -> int:
        """The root whose share of the weights contains `draw`."""
        point, total = draw * sum(self.weights), 0
        for index, weight in enumerate(self.weights):
            total += weight
            if point < total:
                return index
        return len(self.weights) - 1


def external_paths(options: Options) -> ExternalPaths | None:
    """The external paths in a table's options; None if its files are stored below the table.

    Raises:
        OptionError: a path without scheme, a strategy without its option, or invalid weights.
    """
    weights = _weights(options)
    text = options.find_str(PATHS)
    strategy = options.get_enum(STRATEGY)
    if not text or strategy == "none":
        return None
    roots = tuple(_root(part.strip()) for part in text.split(","))
    if strategy == "specific-fs":
        roots = _of_scheme(roots, options)
    if strategy == "weight-robin" and weights is not None and len(roots) > 1:
        if len(weights) != len(roots):
            raise OptionError(
                f"options {PATHS!r} and {WEIGHTS!r} must be equally long, not {len(roots)} paths and {len(weights)} "
                "weights",
                option=WEIGHTS,
                value=options.find_str(WEIGHTS),
            )
        return ExternalPaths(roots, strategy, weights)
    return ExternalPaths(roots, strategy if strategy == "entropy-inject" else "round-robin")


def declared_roots(text: str | None) -> tuple[str, ...]:
    """The directories in a value of `data-file.external-paths`; parts that are not URLs are ignored."""
    found = []
    for part in text.split(",") if text else ():
        with suppress(OptionError):
            found.append(_root(part.strip()))
    return tuple(found)


def entropy(name: str) -> str:
    """Directories derived from a file's name, which spread files over the prefixes of an object store."""
    bits = f"{murmur3(name.encode()) | 1 << 31:032b}"[-_ENTROPY_BITS:]
    return "/".join(bits[start:end] for start, end in _ENTROPY_PARTS)


def murmur3(data: bytes) -> int:
    """MurmurHash3 x86 32 bit with seed 0, unsigned.

    Source: the public-domain reference by Austin Appleby; Guava `Hashing.murmur3_32`.
    """
    value = 0
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        value ^= _mix(int.from_bytes(data[start : start + 4], "little"))
        value = (_rotate(value, 13) * 5 + 0xE6546B64) & _WORD
    if len(data) > whole:
        value ^= _mix(int.from_bytes(data[whole:], "little"))
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & _WORD
    value = (value ^ value >> 13) * 0xC2B2AE35 & _WORD
    return value ^ value >> 16


def _mix(word: int) -> int:
    return _rotate(word * 0xCC9E2D51 & _WORD, 15) * 0x1B873593 & _WORD


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD


def _root(text: str) -> str:
    """A URL in Java's form: one slash between parts, none at the end, `file:` without slashes for the host."""
    match, shown = _URL.fullmatch(text), shown_url(text)
    if shown != text:
        raise OptionError(
            f"option {PATHS!r}: {shown!r} must not have a user, a query or a fragment; credentials are given when a"
            " table is opened",
            option=PATHS,
            value=shown,
        )
    if match is None:
        raise OptionError(
            f"option {PATHS!r}: {text!r} is not a URL; write it with its scheme, such as file:///data or s3://bucket/data",
            option=PATHS,
            value=text,
        )
    scheme, rest = match.groups()
    has_authority = rest.startswith("//") and not rest.startswith("///")
    parts = [part for part in rest.split("/") if part]
    climbs = not parts or any(part in (".", "..") or "\0" in part for part in parts)
    if climbs or (scheme == "file" and has_authority):
        raise OptionError(
            f"option {PATHS!r}: {text!r} must be a plain absolute URL of a directory, without host for file: and"
            " without '.' and '..'",
            option=PATHS,
            value=text,
        )
    return f"{scheme}:{'//' if has_authority else '/'}{'/'.join(parts)}"


def _of_scheme(roots: tuple[str, ...], options: Options) -> tuple[str, ...]:
    scheme = options.find_str(SPECIFIC_FS)
    if not scheme:
        raise OptionError(f"option {STRATEGY!r} = 'specific-fs' needs {SPECIFIC_FS!r}", option=SPECIFIC_FS)
    found = tuple(root for root in roots if root.partition(":")[0].lower() == scheme.lower())
    if not found:
        raise OptionError(
            f"option {SPECIFIC_FS!r}: none of the external paths has the scheme {scheme!r}",
            option=SPECIFIC_FS,
            value=scheme,
        )
    return found


def _weights(options: Options) -> tuple[int, ...] | None:
    text = options.find_str(WEIGHTS)
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and int(part) for part in parts):
        raise OptionError(
            f"option {WEIGHTS!r} must be positive whole numbers, separated by commas, not {text!r}",
            option=WEIGHTS,
            value=text,
        )
    return tuple(map(int, parts))
