"""Paimon's BinaryRow: the bytes of partitions, keys and statistics, and the hash that picks buckets.

Everything works on whole Arrow columns. Source: format.md §6, §7.1.
"""

from __future__ import annotations

from paimon_py.codec.binary_row.decode import decode, decode_at
from paimon_py.codec.binary_row.encode import encode, encode_few
from paimon_py.codec.binary_row.hash import hash_rows
from paimon_py.codec.binary_row.single import decode_one, is_null_at

__all__ = ["decode", "decode_at", "decode_one", "encode", "encode_few", "hash_rows", "is_null_at"]
