"""The health endpoint: whether a runner completes its rounds, metrics for Prometheus, and the last round as JSON."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import msgspec

from paimon_py.env import Pool, ThreadPool
from paimon_py.errors import ResourceError

if TYPE_CHECKING:
    from paimon_py.env import Clock
    from paimon_py.service.runner import CareRunner


class HealthPage(msgspec.Struct, frozen=True):
    """A response: status, content type and text."""

    status: int
    content_type: str
    text: str


def health_page(runner: CareRunner, path: str, now_millis: int) -> HealthPage:
    """Respond to one request: `/healthz` is 200 or 503, `/metrics` is for Prometheus, `/` is the state as JSON."""
    state = runner.state
    if path == "/metrics":
        return HealthPage(200, "text/plain; version=0.0.4; charset=utf-8", runner.metrics.prometheus())
    is_healthy = state.is_healthy(now_millis, runner.settings)
    if path == "/healthz":
        return HealthPage(200 if is_healthy else 503, "text/plain", "ok\n" if is_healthy else "no recent round\n")
    if path == "/":
        shown = msgspec.json.encode({"healthy": is_healthy, **msgspec.to_builtins(state)}).decode()
        return HealthPage(200 if is_healthy else 503, "application/json", shown + "\n")
    return HealthPage(404, "text/plain", "the pages are /, /healthz and /metrics\n")


class HealthServer:
    """Answers GET requests about a runner, in its own threads, until `close`."""

    def __init__(
        self, runner: CareRunner, host: str = "127.0.0.1", port: int = 0, *, clock: Clock, pool: Pool | None = None
    ) -> None:
        """`port` 0: any free port.

        Raises: ResourceError if the port is not available.
        """

        class _Answer(BaseHTTPRequestHandler):
            """One request."""

            def do_GET(self) -> None:
                page = health_page(runner, self.path.partition("?")[0], clock.millis())
                data = page.text.encode()
                self.send_response(page.status)
                self.send_header("Content-Type", page.content_type)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: probes come every few seconds."""

        try:
            self._server = ThreadingHTTPServer((host, port), _Answer)
        except OSError as error:
            raise ResourceError(f"cannot listen at {host}:{port}: {error}") from error
        self._server.daemon_threads = True
        (pool or ThreadPool()).behind(self._server.serve_forever)

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop the server after the current requests."""
        self._server.shutdown()
        self._server.server_close()
