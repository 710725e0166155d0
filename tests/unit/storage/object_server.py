"""A small object store over HTTP in this process, which speaks as much of S3 and OSS as their clients ask for.

It checks no signature. It can ignore the condition of a creation, as some servers do.
"""

import contextlib
import datetime
import re
import threading
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

CONDITIONS = {"If-None-Match": "*", "x-oss-forbid-overwrite": "true"}
PUBLISHED = formatdate(1_700_000_000, usegmt=True)


class ObjectServer:
    """Objects by `/bucket/key`.

    Attributes:
        honours: whether a creation under a condition is refused where the object exists.
        allowed: None, or the tokens and keys of which one must be named in `Authorization` or a token header.
        roles: what was asked of the service that gives roles.
        lasting: whether the keys of a role last for an hour; else for five minutes, which asks for new ones at once.
        requests: (method, path with query, headers) in order.
    """

    def __init__(self, *, honours=True):
        self.honours = honours
        self.allowed = None
        self.objects = {}
        self.uploads = {}
        self.requests = []
        self.roles = []
        self.lasting = True
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"owner": self}))
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def role(self, asked):
        """An answer of the service that gives roles: keys that say how many have been given, and end in an hour."""
        self.roles.append({name: values[0] for name, values in asked.items()})
        ends = formatted(3600 if self.lasting else 300)
        return (
            '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
            f"<AccessKeyId>ROLE{len(self.roles)}</AccessKeyId><SecretAccessKey>sesame-role</SecretAccessKey>"
            f"<SessionToken>sesame-role-{len(self.roles)}</SessionToken><Expiration>{ends}</Expiration></Credentials>"
            "</AssumeRoleResult></AssumeRoleResponse>"
        )

    def asked(self, method):
        """Keys that were asked for by a method, in order."""
        return [urlsplit(path).path for verb, path, _ in self.requests if verb == method]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # one packet for an answer: else each waits for an acknowledgement
    disable_nagle_algorithm = True
    owner = None

    def log_message(self, *_):
        """Say nothing."""

    def handle(self):
        with contextlib.suppress(ConnectionError):
            super().handle()

    def handle_expect_100(self):
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", headers.get("size") or str(len(body)))
        self.send_header("x-oss-request-id", "R")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self.answer(status, (f"<ErrorResponse>{text}</ErrorResponse>" if self.key == "/" else text).encode())

    def begin(self):
        parts = urlsplit(self.path)
        self.key = unquote(parts.path)
        self.query = parse_qs(parts.query, keep_blank_values=True)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" in (self.headers.get("Content-Encoding") or ""):
            body = unchunked(body)
        self.owner.requests.append((self.command, self.path, dict(self.headers)))
        if self.owner.allowed is not None:
            shown = " ".join(str(self.headers.get(name)) for name in ("Authorization", "x-oss-security-token", "x-amz-security-token"))
            if not any(token in shown for token in self.owner.allowed):
                self.refuse(403, "AccessDenied")
                return None
        return body

    def do_PUT(self):
        body = self.begin()
        if body is None:
            return
        owner = self.owner
        if "partNumber" in self.query:
            owner.uploads[self.query["uploadId"][0]][int(self.query["partNumber"][0])] = body
            self.answer(200, ETag=tag(body))
            return
        conditional = any(self.headers.get(name) == value for name, value in CONDITIONS.items())
        with owner.lock:
            taken = self.key in owner.objects and conditional and owner.honours
            if not taken:
                owner.objects[self.key] = body
        if taken:
            oss = "x-oss-forbid-overwrite" in self.headers
            self.refuse(409 if oss else 412, "FileAlreadyExists" if oss else "PreconditionFailed")
        else:
            self.answer(200, ETag=tag(body))

    def do_POST(self):
        body = self.begin()
        if body is None:
            return
        owner = self.owner
        if b"Action=AssumeRole" in body:
            self.answer(200, owner.role(parse_qs(body.decode())).encode(), Content_Type="text/xml")
        elif "delete" in self.query:
            for key in re.findall(rb"<Key>(.*?)</Key>", body):
                owner.objects.pop(f"{self.key.rstrip('/')}/{unquote(key.decode())}", None)
            self.answer(200, b"<DeleteResult></DeleteResult>")
        elif "uploads" in self.query:
            name = str(len(owner.uploads))
            owner.uploads[name] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId></InitiateMultipartUploadResult>"
            self.answer(200, text.encode())
        else:
            parts = owner.uploads.pop(self.query["uploadId"][0])
            owner.objects[self.key] = b"".join(parts[number] for number in sorted(parts))
            text = f"<CompleteMultipartUploadResult><ETag>{tag(b'')}</ETag></CompleteMultipartUploadResult>"
            self.answer(200, text.encode(), ETag=tag(b""))

    def do_DELETE(self):
        if self.begin() is None:
            return
        if "uploadId" in self.query:
            self.owner.uploads.pop(self.query["uploadId"][0], None)
        else:
            self.owner.objects.pop(self.key, None)
        self.answer(204)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        if self.begin() is None:
            return
        if "list-type" in self.query or self.key.strip("/").count("/") == 0 and self.key not in self.owner.objects:
            self.answer(200, self.listing().encode(), Content_Type="application/xml")
            return
        data = self.owner.objects.get(self.key)
        if data is None:
            self.refuse(404, "NoSuchKey")
            return
        given = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if given:
            first, last = int(given[1]), min(int(given[2] or len(data)), len(data) - 1)
            part = data[first : last + 1]
            self.answer(206, part, ETag=tag(data), Last_Modified=PUBLISHED, Content_Range=f"bytes {first}-{last}/{len(data)}")
        elif self.command == "HEAD":
            self.answer(200, b"", size=str(len(data)), ETag=tag(data), Last_Modified=PUBLISHED)
        else:
            self.answer(200, data, ETag=tag(data), Last_Modified=PUBLISHED)

    def listing(self):
        bucket = self.key.strip("/")
        prefix, mark = self.query.get("prefix", [""])[0], self.query.get("delimiter", [""])[0]
        most = int(self.query.get("max-keys", ["1000"])[0])
        after = self.query.get("continuation-token", self.query.get("start-after", [""]))[0]
        found = {}
        for path, data in list(self.owner.objects.items()):
            home, _, key = path.lstrip("/").partition("/")
            if home != bucket or not key.startswith(prefix):
                continue
            head, there, _ = key[len(prefix) :].partition(mark) if mark else (key, "", "")
            found[prefix + head + mark if there else key] = None if there else data
        names = sorted(name for name in found if name > after)
        shown = names[:most]
        spelled = quote if self.query.get("encoding-type") else escape
        rows = [
            f"<CommonPrefixes><Prefix>{spelled(name)}</Prefix></CommonPrefixes>"
            if found[name] is None
            else f"<Contents><Key>{spelled(name)}</Key><Size>{len(found[name])}</Size><ETag>{tag(found[name])}</ETag><Type>Normal</Type>"
            "<StorageClass>Standard</StorageClass><LastModified>2023-11-14T22:13:20.000Z</LastModified></Contents>"
            for name in shown
        ]
        more = len(names) > most
        rest = f"<NextContinuationToken>{spelled(shown[-1])}</NextContinuationToken>" if more else ""
        encoding = "<EncodingType>url</EncodingType>" if self.query.get("encoding-type") else ""
        return (
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{spelled(prefix)}</Prefix><KeyCount>{len(shown)}</KeyCount>"
            f"<MaxKeys>{most}</MaxKeys>{encoding}<IsTruncated>{str(more).lower()}</IsTruncated>{rest}{''.join(rows)}</ListBucketResult>"
        )


def formatted(seconds):
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def tag(data):
    return f'"{md5(data).hexdigest()}"'


def unchunked(body):
    """The bytes of a body in chunks with their sizes, as botocore sends them with a checksum."""
    found = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        count = int(size.partition(b";")[0], 16)
        if count == 0:
            return found
        found, body = found + body[:count], body[count + 2 :]
    return found
