"""Proxies that damage the network between a client and a server (toxiproxy), and the faults to choose from."""

from __future__ import annotations

import json
import re
import urllib.request
import uuid

FAULTS = {
    "none": [],
    "slow": [("latency", "downstream", {"latency": 60, "jitter": 60})],
    "thin": [("bandwidth", "downstream", {"rate": 20})],
    "answers reset": [("reset_peer", "downstream", {"timeout": 0})],
    "requests reset": [("reset_peer", "upstream", {"timeout": 0})],
    "answers cut": [("limit_data", "downstream", {"bytes": 300})],
    "requests cut": [("limit_data", "upstream", {"bytes": 300})],
    "answers lost": [("timeout", "downstream", {"timeout": 300})],
    "closed late": [("slow_close", "downstream", {"delay": 200})],
}
"""What a network does, by name: toxics with the direction and their settings."""

_PART = 0.4
"""Part of the connections that suffer: clients that are patient get through at last."""


class Proxy:
    """A proxy before a server. `place`: host and port of the proxy."""

    def __init__(self, api, upstream):
        self._api = api
        self._name = f"p{uuid.uuid4().hex[:8]}"
        made = self._call("POST", "/proxies", {"name": self._name, "listen": "127.0.0.1:0", "upstream": upstream})
        self.place = made["listen"]
        self._toxics = []

    def suffer(self, fault):
        """Have this fault, and none that was there before. Connections that are open suffer as well."""
        for name in self._toxics:
            self._call("DELETE", f"/proxies/{self._name}/toxics/{name}")
        self._toxics = []
        for kind, stream, settings in FAULTS[fault]:
            toxic = {"type": kind, "stream": stream, "attributes": settings, "toxicity": _PART}
            self._call("POST", f"/proxies/{self._name}/toxics", toxic)
            self._toxics.append(f"{kind}_{stream}")

    def cut(self):
        """Close all connections, and take no others."""
        self._call("POST", f"/proxies/{self._name}", {"enabled": False})

    def mend(self):
        self._call("POST", f"/proxies/{self._name}", {"enabled": True})

    def heal(self):
        """No fault any more."""
        self.mend()
        self.suffer("none")

    def before(self, url):
        """A URL that leads through the proxy."""
        return re.sub(r"(://(?:[^/@]*@)?)[^/@]+", rf"\g<1>{self.place}", url, count=1)

    def delete(self):
        self._call("DELETE", f"/proxies/{self._name}")

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self._api + path, data, method=method), timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None
