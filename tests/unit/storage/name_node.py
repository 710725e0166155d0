"""A stand-in for the client of HDFS: one tree in memory, which answers as a real NameNode was seen to answer."""

import threading
from types import SimpleNamespace

STACK = "\n\tat org.apache.hadoop.hdfs.server.namenode.FSNamesystem"


def refused(name, text):
    return RuntimeError(f'RPCError("{name}", "{text}\\n\\tat org.apache.hadoop")')


class NameNode:
    """Files by path, None for a directory; every client of one `NameNode` sees the same."""

    def __init__(self):
        self.tree = {"/": None}
        self.lock = threading.RLock()
        self.errors = {}
        self.clients = []

    def client(self, url, config, **arguments):
        self.clients.append((url, dict(config), arguments))
        return Client(self)


class Client:
    def __init__(self, node):
        self.node = node
        self.tree = node.tree

    def _enter(self, verb):
        if self.node.errors.get(verb):
            raise self.node.errors[verb].pop(0)

    def _parent(self, path, *, make):
        parent = path.rpartition("/")[0] or "/"
        if parent in self.tree:
            if self.tree[parent] is not None:
                raise refused("org.apache.hadoop.fs.ParentNotDirectoryException", f"{parent} is not a directory")
        elif not make:
            raise FileNotFoundError(f"Parent directory doesn't exist: {parent}{STACK}")
        else:
            self._parent(parent, make=True)
            self.tree[parent] = None

    def _info(self, path):
        if path not in self.tree:
            raise FileNotFoundError(path)
        data = self.tree[path]
        return SimpleNamespace(path=path, isdir=data is None, length=len(data or b""), modification_time=1_700_000_000_000)

    def get_file_info(self, path):
        with self.node.lock:
            self._enter("get_file_info")
            return self._info(path)

    def list_status(self, path, recursive):
        with self.node.lock:
            if not self._info(path).isdir:
                return iter([self._info(path)])
            return iter([self._info(child) for child in self.tree if child != "/" and child.rpartition("/")[0] == path])

    def mkdirs(self, path, mode, create_parent):
        with self.node.lock:
            self._enter("mkdirs")
            self._parent(path, make=create_parent)
            if self.tree.setdefault(path, None) is not None:
                raise FileExistsError(f"{path} already exists as a FILE{STACK}")

    def create(self, path, options):
        with self.node.lock:
            self._enter("create")
            self._parent(path, make=options.create_parent)
            if path in self.tree and not options.overwrite:
                raise FileExistsError(f"{path} for client 127.0.0.1 already exists{STACK}")
            self.tree[path] = b""
        return Writer(self.node, path)

    def read(self, path):
        with self.node.lock:
            self._enter("read")
            if self._info(path).isdir:
                raise FileNotFoundError(f"Path is not a file: {path}{STACK}")
            return Reader(self.tree[path])

    def rename(self, source, target, overwrite):
        with self.node.lock:
            self._enter("rename")
            if source not in self.tree:
                raise FileNotFoundError(f"rename source {source} is not found.{STACK}")
            if target in self.tree and not overwrite:
                raise FileExistsError(f"rename destination {target} already exists{STACK}")
            if (target.rpartition("/")[0] or "/") not in self.tree:
                raise FileNotFoundError(f"rename destination parent {target} not found.{STACK}")
            for path in [path for path in self.tree if path == source or path.startswith(source + "/")]:
                self.tree[target + path[len(source) :]] = self.tree.pop(path)
            self._enter("renamed")

    def delete(self, path, recursive):
        with self.node.lock:
            self._enter("delete")
            below = [other for other in self.tree if other.startswith(path + "/")]
            if below and not recursive:
                raise refused("org.apache.hadoop.fs.PathIsNotEmptyDirectoryException", f"`{path} is non empty'")
            for other in below:
                del self.tree[other]
            return self.tree.pop(path, False) is not False


class Writer:
    def __init__(self, node, path):
        self.node = node
        self.path = path

    def write(self, data):
        self.node.tree[self.path] += data
        return len(data)

    def close(self):
        """Nothing is left to do: what was written is in the tree."""


class Reader:
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return len(self.data)

    def read(self, size):
        return self.data

    def read_range(self, offset, size):
        assert offset + size <= len(self.data)
        return self.data[offset : offset + size]
