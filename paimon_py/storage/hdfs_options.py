"""Converts Paimon's options for HDFS to settings and arguments of its client. Pure.

Source: Java `HadoopUtils.getHadoopConfiguration`, `SecurityConfiguration`, release 2.0.
"""

from __future__ import annotations

from collections.abc import Mapping

from paimon_py.errors import OptionError
from paimon_py.spec.redact import is_harmless_hadoop

HADOOP_PREFIX = "hadoop."
"""Options with this prefix are Hadoop settings: `hadoop.dfs.nameservices`."""

CONF_DIR = "hadoop-conf-dir"
PRINCIPAL = "security.kerberos.login.principal"
KEYTAB = "security.kerberos.login.keytab"
TICKET_CACHE = "security.kerberos.login.use-ticket-cache"
CONF_DIR_ARGUMENT = "config_dir"


def hdfs_config(options: Mapping[str, str]) -> dict[str, str]:
    """The Hadoop settings among options; they take precedence over core-site.xml and hdfs-site.xml."""
    size = len(HADOOP_PREFIX)
    return {name[size:]: value for name, value in options.items() if name.startswith(HADOOP_PREFIX)}


def hdfs_arguments(options: Mapping[str, str]) -> dict[str, str]:
    """The arguments of the client: the directory of Hadoop's files, and the Kerberos login.

    Raises: OptionError for a principal without keytab, a keytab without principal, or neither and no ticket cache.
    """
    given = {name: options.get(option, "").strip() for name, option in _ARGUMENTS.items()}
    if bool(given["kerberos_principal"]) != bool(given["kerberos_keytab"]):
        raise OptionError(f"options {PRINCIPAL} and {KEYTAB} must be set together", option=KEYTAB)
    if options.get(TICKET_CACHE, "true").strip().lower() != "true" and not given["kerberos_keytab"]:
        message = f"without {KEYTAB} the ticket cache is used: leave {TICKET_CACHE} out, or set it to true"
        raise OptionError(message, option=TICKET_CACHE, value=options[TICKET_CACHE])
    return {name: value for name, value in given.items() if value}


def harmless_config(config: Mapping[str, str]) -> dict[str, str]:
    """The Hadoop settings that are known to contain no secret."""
    return {name: value for name, value in config.items() if is_harmless_hadoop(name)}


_ARGUMENTS = {CONF_DIR_ARGUMENT: CONF_DIR, "kerberos_principal": PRINCIPAL, "kerberos_keytab": KEYTAB}
