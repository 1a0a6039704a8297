"""A registry that misbehaves when it is told to: no real one stalls, drops or answers 429 on demand."""
import base64
import hashlib
import http.server
import json
import ssl
import threading

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


def sha(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Registry:
    """One image, "team/app:1". faults: path ending -> what happens to the next requests for it, or
    ["always", WHAT]. seen: what was asked for."""

    def __init__(self, manifest, blobs, tls=None, port=0):
        self.faults, self.seen = {}, []
        self.login = None  # None, "basic" or "bearer"
        self.stop = threading.Event()
        self.manifest, self.blobs = manifest, {sha(b): b for b in blobs}
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.stop.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def send(self, h, status, body=b"", **headers):
        h.send_response(status)
        for k, v in headers.items():
            h.send_header(k.replace("_", "-"), v)
        h.send_header("Content-Length", str(len(body)))
        h.end_headers()
        h.wfile.write(body)

    def refuse(self, h, status, code, message, **headers):
        self.send(h, status, json.dumps({"errors": [{"code": code, "message": message}]}).encode(),
                  **headers)

    def authorised(self, h):
        sent = h.headers.get("Authorization", "")
        if self.login == "basic":
            good = "Basic " + base64.b64encode(b"bob:secret-word").decode()
            challenge = 'Basic realm="x"'
        else:
            good, challenge = "Bearer good-token", \
                f'Bearer realm="http://{self.host}/token",service="a service",scope="x"'
        if self.login is None or sent == good:
            return True
        self.refuse(h, 401, "UNAUTHORIZED", "authentication required", WWW_Authenticate=challenge)
        return False

    def token(self, h, query):
        self.seen.append("token " + query)
        sent = h.headers.get("Authorization", "")
        if sent and sent != "Basic " + base64.b64encode(b"bob:secret-word").decode():
            self.refuse(h, 401, "UNAUTHORIZED", "wrong password")
            return
        token = "good-token" if sent else "anonymous"
        self.send(h, 200, json.dumps({"token": token}).encode())

    def fault(self, h, what, data):
        if isinstance(what, int):
            self.refuse(h, what, "ODD", "try later" if what == 429 else "it hurts",
                        **({"Retry_After": "1"} if what == 429 else {}))
        elif what == "stall":
            h.send_response(200)
            h.send_header("Content-Length", str(len(data)))
            h.end_headers()
            h.wfile.write(data[:100])
            h.wfile.flush()
            self.stop.wait(30)
            h.close_connection = True
        elif what == "drop":
            h.send_response(200)
            h.send_header("Content-Length", str(len(data)))
            h.end_headers()
            h.wfile.write(data[:len(data) // 2])
            h.close_connection = True
        elif what == "more":
            self.send(h, 200, data + b"x")
        elif what == "other":
            self.send(h, 200, bytes(len(data)))
        elif what == "elsewhere":
            self.send(h, 307, b"", Location=f"http://127.0.0.1:{self.server.server_port}/cdn/"
                      + h.path.rsplit("/", 1)[1])

    def answer(self, h):
        path, _, query = h.path.partition("?")
        self.seen.append(path + (f" from {h.headers['Range']}" if "Range" in h.headers else ""))
        if path == "/token":
            return self.token(h, query)
        data = None
        if path == "/v2/team/app/manifests/1" or path.endswith(sha(self.manifest)):
            data = self.manifest
        else:
            data = self.blobs.get(path.rsplit("/", 1)[1])
        for end, faults in self.faults.items():
            if path.endswith(end) and faults and not path.startswith("/cdn/"):
                return self.fault(h, faults.pop(0) if faults[0] != "always" else faults[1], data)
        if not path.startswith("/cdn/") and not self.authorised(h):
            return None
        if path == "/v2/":
            return self.send(h, 200)
        if data is None:
            return self.refuse(h, 404, "UNKNOWN", "manifest unknown")
        if "Range" in h.headers:
            start = int(h.headers["Range"][len("bytes="):].rstrip("-"))
            return self.send(h, 206, data[start:],
                             Content_Range=f"bytes {start}-{len(data) - 1}/{len(data)}")
        return self.send(h, 200, data, Content_Type=MANIFEST_TYPE)
