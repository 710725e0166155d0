"""The REST catalog: a server keeps names, schemas and snapshots, and may hand out credentials for the data.

Here live the protocol of Java's REST catalog and its metastore: requests and signatures (`http.py`, `authority.py`,
`signing.py`), the client with its retries and errors, the messages, and what a table asks its server for. Data and
metadata files are read and written through the stores of `paimon_py/storage`, never through the server.
"""
