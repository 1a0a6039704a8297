"""As much of RFC 6455 as tests need: frames in a copy of a connection, and a client."""
import base64
import os
import socket
import struct

from . import netns

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def unmask(data, key):
    return bytes(b ^ key[i % 4] for i, b in enumerate(data))


def messages(data):
    """(opcode, payload, end) of each whole message in a direction of a connection."""
    at, parts, kind = 0, b"", None
    while at + 2 <= len(data):
        first, second = data[at], data[at + 1]
        size, at = second & 0x7f, at + 2
        if size == 126:
            size, at = struct.unpack_from(">H", data, at)[0], at + 2
        elif size == 127:
            size, at = struct.unpack_from(">Q", data, at)[0], at + 8
        key = b""
        if second & 0x80:
            key, at = data[at:at + 4], at + 4
        if at + size > len(data):
            return
        payload = bytes(data[at:at + size])
        at += size
        parts += unmask(payload, key) if key else payload
        kind = first & 0x0f or kind
        if first & 0x80:
            yield kind, parts, at
            parts = b""


class WebSocket:
    """A client in a network namespace."""

    def __init__(self, namespace, host, port, path, token, timeout=20):
        with netns.inside(namespace):
            self.socket = socket.create_connection((host, port), timeout=timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n".encode())
        self.file = self.socket.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, kind, payload):
        head = bytes([0x80 | kind])
        if len(payload) < 126:
            head += bytes([0x80 | len(payload)])
        elif len(payload) < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", len(payload))
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", len(payload))
        key = os.urandom(4)
        self.socket.sendall(head + key + unmask(payload, key))

    def receive(self):
        """(opcode, payload) of the next message; EOFError at the end."""
        data = b""
        while True:
            head = self.file.read(2)
            if len(head) < 2:
                raise EOFError
            size = head[1] & 0x7f
            more = {126: 2, 127: 8}.get(size, 0)
            length = self.file.read(more)
            size = int.from_bytes(length, "big") if more else size
            data += head + length + self.file.read(size)
            found = list(messages(data))
            if found:
                return found[0][:2]
