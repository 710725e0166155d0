"""The data source of Spark 4: `format("paimon")`, and `format("paimon_py")` if Java's jar is loaded, too.

Spark runs a data source in separate processes next to the driver. The location of the table and all settings are
options: strings whose names Spark converts to lower case.
"""
