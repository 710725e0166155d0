"""The calls of a Hive Metastore that the catalog uses, and their exceptions.

Source: `hive_metastore.thrift` of Hive 2.3 to 4.0.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ALREADY_EXISTS = "AlreadyExistsException"
INVALID_OBJECT = "InvalidObjectException"
INVALID_OPERATION = "InvalidOperationException"
META = "MetaException"
NO_SUCH_LOCK = "NoSuchLockException"
NO_SUCH_OBJECT = "NoSuchObjectException"
NO_SUCH_TXN = "NoSuchTxnException"
TXN_ABORTED = "TxnAbortedException"


class Call(msgspec.Struct, frozen=True):
    """Whether a call may be repeated after its answer was lost, and its exceptions by field of the answer."""

    repeatable: bool
    errors: Mapping[int, str]


def _repeatable(*errors: str) -> Call:
    return Call(True, dict(enumerate(errors, 1)))


def _once(*errors: str) -> Call:
    return Call(False, dict(enumerate(errors, 1)))


CALLS: dict[str, Call] = {
    "set_ugi": _repeatable(META),
    "get_config_value": _repeatable("ConfigValSecurityException"),
    "get_all_databases": _repeatable(META),
    "get_database": _repeatable(NO_SUCH_OBJECT, META),
    "create_database": _once(ALREADY_EXISTS, INVALID_OBJECT, META),
    "drop_database": _once(NO_SUCH_OBJECT, INVALID_OPERATION, META),
    "get_all_tables": _repeatable(META),
    "get_table": _repeatable(META, NO_SUCH_OBJECT),
    "get_table_req": _repeatable(META, NO_SUCH_OBJECT),
    "get_table_objects_by_name": _repeatable(META, INVALID_OPERATION, "UnknownDBException"),
    "get_table_objects_by_name_req": _repeatable(META, INVALID_OPERATION, "UnknownDBException"),
    "create_table": _once(ALREADY_EXISTS, INVALID_OBJECT, META, NO_SUCH_OBJECT),
    "drop_table": _once(NO_SUCH_OBJECT, META),
    "alter_table_with_environment_context": _once(INVALID_OPERATION, META),
    "add_partitions_req": _repeatable(INVALID_OBJECT, ALREADY_EXISTS, META),
    "get_partition_names": _repeatable(NO_SUCH_OBJECT, META),
    "get_partitions": _repeatable(NO_SUCH_OBJECT, META),
    "get_partition": _repeatable(META, NO_SUCH_OBJECT),
    "alter_partitions": _repeatable(INVALID_OPERATION, META),
    "drop_partition": _repeatable(NO_SUCH_OBJECT, META),
    "lock": _once(NO_SUCH_TXN, TXN_ABORTED),
    "check_lock": _repeatable(NO_SUCH_TXN, TXN_ABORTED, NO_SUCH_LOCK),
    "unlock": _repeatable(NO_SUCH_LOCK, "TxnOpenException"),
    "heartbeat": _repeatable(NO_SUCH_LOCK, NO_SUCH_TXN, TXN_ABORTED),
    "show_locks": _repeatable(),
    "markPartitionForEvent": _repeatable(META, NO_SUCH_OBJECT),
}
"""All calls in use."""
