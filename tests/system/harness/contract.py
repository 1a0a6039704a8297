"""Replies are what docs/openapi.yaml says, whoever gets them.

`check` looks at one reply; the harness calls it for each that it gets itself. What the command line
gets is seen by a Recorder: a relay in front of the manager that keeps a copy of what passes. It stands
outside of both, so neither has code that only tests use, and what is checked is what was on the wire.
"""
import contextlib
import http.client
import io
import socket
import sys
import threading
import urllib.parse
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "support"))
from openapi import Document  # noqa: E402

from . import netns, websocket  # noqa: E402

KEPT_MAX = 8 << 20  # of each direction of a connection; what comes later is passed on unseen
_documents = []


class ContractBroken(AssertionError):
    """Not an answer that docs/openapi.yaml has."""


def document():
    if not _documents:
        _documents.append(Document.load())
    return _documents[0]


def check_websocket(exchange, contract=None):
    """The text messages, both ways."""
    path = urllib.parse.unquote(exchange.path.split("?")[0])
    found = [line for side, data in (("client", exchange.sent), ("server", exchange.received))
             for kind, payload, _ in websocket.messages(data) if kind == websocket.TEXT
             for line in (contract or document()).check_text(exchange.method, path, payload, side)]
    if found:
        raise ContractBroken("not as docs/openapi.yaml says:\n  " + "\n  ".join(found))


def check(method, path, status, content_type, body, contract=None):
    path = urllib.parse.unquote(path.split("?")[0])
    found = (contract or document()).check_reply(method, path, status, content_type, body)
    if found:
        raise ContractBroken("not as docs/openapi.yaml says:\n  " + "\n  ".join(found))


class Copy(io.BytesIO):
    """A direction of a connection as http.client wants it."""

    def makefile(self, mode):
        return self

    def close(self):
        pass

    def line(self):
        return self.readline(65536).decode("latin-1").rstrip("\r\n")


class Exchange(NamedTuple):
    """A request and its whole reply; sent and received: what was said on its WebSocket."""
    method: str
    path: str
    headers: dict
    request: bytes
    status: int
    kind: str
    body: bytes
    sent: bytes = b""
    received: bytes = b""


def next_request(sent):
    """(method, path, headers, body) of the next request; None at the end."""
    words = sent.line().split(" ")
    if len(words) != 3:
        return None
    headers, body = {}, b""
    while line := sent.line():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if headers.get("transfer-encoding") == "chunked":
        while size := int(sent.line() or "0", 16):
            body += sent.read(size)
            sent.line()
        sent.line()
    else:
        body = sent.read(int(headers.get("content-length", 0)))
    return words[0], words[1], headers, body


def exchanges(sent, received):
    """Each of a connection, as far as it was whole."""
    sent, received = Copy(sent), Copy(received)
    while request := next_request(sent):
        reply = http.client.HTTPResponse(received, method=request[0])
        try:
            reply.begin()
        except (http.client.HTTPException, OSError):
            return  # the client left before the answer
        kind = reply.headers.get("Content-Type")
        if reply.status == 101:
            yield Exchange(*request, 101, None, b"", sent.read(), received.read())
            return
        try:
            body = reply.read()
        except http.client.IncompleteRead as e:
            if kind in ("application/x-ndjson", "text/event-stream"):  # what was whole of it
                partial = e.partial[:e.partial.rfind(b"\n") + 1]
                yield Exchange(*request, reply.status, kind, partial)
            return
        yield Exchange(*request, reply.status, kind, body)


class Connection:
    """What has passed, each way (> from who dialled, < to them), and in which order."""

    def __init__(self):
        self.kept = {">": bytearray(), "<": bytearray()}
        self.order = []  # (way, how much had passed that way then)

    @property
    def sent(self):
        return self.kept[">"]

    @property
    def received(self):
        return self.kept["<"]

    def relay(self, source, target, way):
        kept = self.kept[way]
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                kept += data[:max(0, KEPT_MAX - len(kept))]
                self.order.append((way, len(kept)))
                target.sendall(data)
        for s, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
            with contextlib.suppress(OSError):
                s.shutdown(how)

    def messages(self):
        """(way, opcode, payload) of a WebSocket, both ways as they passed."""
        found = []
        for way, kept in self.kept.items():
            data = bytes(kept)
            head = data.index(b"\r\n\r\n") + 4
            for kind, payload, end in websocket.messages(data[head:]):
                place = next(i for i, (w, n) in enumerate(self.order) if w == way and n >= head + end)
                found.append((place, way, kind, payload))
        return [m[1:] for m in sorted(found, key=lambda m: m[0])]


class Recorder:
    """Listens in a network namespace and passes all on to an address there."""

    def __init__(self, namespace, host, port):
        self.namespace, self.target = namespace, (host, port)
        self.connections, self.threads, self.open = [], [], []
        with netns.inside(namespace):
            self.listener = socket.create_server((host, 0), backlog=64)
        self.url = f"http://{host}:{self.listener.getsockname()[1]}"
        self._start(self._accept)

    def _start(self, fn, *args):
        thread = threading.Thread(target=fn, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                with netns.inside(self.namespace):
                    server = socket.create_connection(self.target, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            connection = Connection()
            self.connections.append(connection)
            self.open += [client, server]
            self._start(connection.relay, client, server, ">")
            self._start(connection.relay, server, client, "<")

    def close(self, contract=None):
        """What was wrong with what has passed, a text each."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in self.open:
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
        for thread in self.threads:
            thread.join(10)
        for s in self.open:
            s.close()
        problems = []
        for e in self.exchanges():
            try:
                check(e.method, e.path, e.status, e.kind, e.body, contract)
                if e.status == 101:
                    check_websocket(e, contract)
            except ContractBroken as broken:
                problems.append(str(broken))
        return sorted(set(problems))

    def exchanges(self):
        """Of all connections, in the order in which they were made."""
        return [e for c in list(self.connections) if max(len(c.sent), len(c.received)) < KEPT_MAX
                for e in exchanges(bytes(c.sent), bytes(c.received))]
