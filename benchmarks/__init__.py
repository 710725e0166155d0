"""Speed and memory beside raw pyarrow and the other Python SDKs; see README.md."""
