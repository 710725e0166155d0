"""The REST catalog: a server stores names, schemas and snapshots, and may issue credentials for the data.

Contains the protocol of Java's REST catalog and its metastore: requests and signatures (`http.py`, `authority.py`,
`signing.py`), the client with retries and errors, the messages, and the server's part in a table. Data and metadata
files are read and written through the stores of `paimon_py/storage`, never through the server.
"""
