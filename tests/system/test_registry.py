"""muster-import against a registry that misbehaves in every way that registries do.

Debian's docker-registry is used for what goes well (test_import.py); this one is made here, because
no real one stalls, drops, or answers 429 when it is told to.
"""

import base64
import hashlib
import http.server
import json
import os
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

from image_tools import Entry, Importer, make_tar, mounted, pack, reference, config_of, sha

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")

LAYERS = [[Entry("etc", "dir"), Entry("etc/a", data=b"text " * 1000)],
          [Entry("big", data=os.urandom(700_000))], [Entry("etc/.wh.a"), Entry("etc/b")]]
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"


class Registry:
    """One image, "team/app:1". faults: path ending -> list of what happens to requests for it."""

    def __init__(self, tls=None):
        self.faults, self.seen, self.who = {}, [], {}
        self.login = None  # None, "basic" or "bearer"
        self.blobs, self.stop = {}, threading.Event()
        tars = [make_tar(l) for l in LAYERS]
        packed = [pack(t, "gzip") for t in tars]
        config = config_of(tars)
        for data in [config, *packed]:
            self.blobs[sha(data)] = data
        self.layers = [sha(p) for p in packed]
        self.set_manifest(json.dumps({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "config": {"digest": sha(config), "size": len(config)},
            "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
                        "digest": sha(p), "size": len(p)} for p in packed]}).encode())
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                registry.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def set_manifest(self, data):
        self.manifest = data

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


@pytest.fixture
def registry():
    r = Registry()
    yield r
    r.close()


@pytest.fixture
def imp(tmp_path, registry):
    i = Importer(tmp_path / "i")

    def run(*opts, host=None, tag="1", name="team/app", insecure=True, **kw):
        host = host or registry.host
        return i(f"{host}/{name}:{tag}", "--stall=1s",
                 *([f"--insecure={registry.host}"] if insecure else []), *opts, **kw)
    run.i = i
    yield run
    assert i.leftovers() == []


def is_whole(imp, result):
    assert mounted(imp.i, result.image) == reference(*LAYERS)


def auth_file(tmp_path, host, user="bob", password="secret-word", form="auth"):
    path = tmp_path / "auth.json"
    entry = {"auth": base64.b64encode(f"{user}:{password}".encode()).decode()} \
        if form == "auth" else {"username": user, "password": password}
    path.write_text(json.dumps({"auths": {host: entry}}))
    return path


# ---- what goes wrong and then well ---------------------------------------------------------------


@pytest.mark.parametrize("fault", [500, 502, 429, "drop"])
def test_what_fails_once_is_tried_again(imp, registry, fault):
    registry.faults = {"/manifests/1": [fault], registry.layers[1]: [fault]}
    is_whole(imp, imp())


def test_a_layer_that_breaks_off_goes_on_where_it_ended(imp, registry):
    registry.faults = {registry.layers[1]: ["drop", "drop"]}
    is_whole(imp, imp())
    half = len(registry.blobs[registry.layers[1]]) // 2
    assert any(f"from bytes={half}-" in s for s in registry.seen)


def test_a_layer_that_stalls_is_asked_for_again(imp, registry):
    registry.faults = {registry.layers[1]: ["stall"]}
    is_whole(imp, imp())


def test_a_redirect_to_another_place_is_followed(imp, registry):
    registry.faults = {registry.layers[1]: ["elsewhere"]}
    is_whole(imp, imp())


# ---- what goes wrong for good ----------------------------------------------------------------------


@pytest.mark.parametrize("fault, said", [
    (500, "HTTP 500, it hurts"), (429, "HTTP 429, try later"), (403, "HTTP 403, it hurts"),
    ("stall", "it sends nothing"), ("more", "larger than the manifest says")])
def test_what_fails_always_is_said_with_the_registry_and_the_status(imp, registry, fault, said):
    registry.faults = {registry.layers[1]: ["always", fault]}
    text = imp().error
    assert text.startswith(f"registry '{registry.host}': ") and said in text, text
    assert imp.i.blob_files() == []


def test_a_layer_of_other_bytes_is_refused(imp, registry):
    registry.faults = {registry.layers[1]: ["other"]}
    assert "damaged: its digest should be" in imp().error or "cannot" in imp().error


def test_a_manifest_of_100_mb_is_refused(imp, registry):
    registry.set_manifest(b" " * 100_000_000)
    assert "larger than 4 MiB" in imp().error


def test_a_manifest_that_is_not_what_its_digest_says_is_refused(imp, registry):
    text = imp.i(f"{registry.host}/team/app@{sha(b'other')}",
                 f"--insecure={registry.host}").error
    assert "HTTP 404, manifest unknown" in text
    whole = sha(registry.manifest)
    is_whole(imp, imp.i(f"{registry.host}/team/app@{whole}", f"--insecure={registry.host}"))
    registry.blobs[sha(b"other")] = registry.manifest
    text = imp.i(f"{registry.host}/team/app@{sha(b'other')}", f"--insecure={registry.host}").error
    assert "the manifest's digest should be" in text


def test_sizes_over_the_limit_are_refused_before_they_are_fetched(imp, registry):
    assert "larger than the limit of 10000 bytes" in imp("--max-size=10000").error
    assert not any("/blobs/" in s for s in registry.seen)


# ---- who asks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("login", ["basic", "bearer"])
@pytest.mark.parametrize("form", ["auth", "username"])
def test_a_private_image_is_fetched_with_credentials(imp, tmp_path, registry, login, form):
    registry.login = login
    is_whole(imp, imp(f"--authfile={auth_file(tmp_path, registry.host, form=form)}"))
    if login == "bearer":
        asked = [s for s in registry.seen if s.startswith("token ")]
        assert asked == ["token service=a%20service&scope=repository:team/app:pull"]


def test_credentials_come_through_a_descriptor(imp, tmp_path, registry):
    registry.login = "basic"
    with open(auth_file(tmp_path, registry.host)) as f:
        argv = imp.i.argv(f"{registry.host}/team/app:1", f"--insecure={registry.host}",
                          f"--auth-fd={f.fileno()}")
        assert subprocess.run(argv, pass_fds=[f.fileno()], capture_output=True).returncode == 0


@pytest.mark.parametrize("login", ["basic", "bearer"])
def test_without_credentials_that_is_said(imp, registry, login):
    registry.login = login
    text = imp().error
    assert "HTTP 401, authentication required" in text and "asked without credentials" in text


@pytest.mark.parametrize("login", ["basic", "bearer"])
def test_wrong_credentials_are_named_and_the_password_is_not(imp, tmp_path, registry, login):
    registry.login = login
    path = auth_file(tmp_path, registry.host, password="a-wrong-word")
    r = imp(f"--authfile={path}")
    assert "HTTP 401" in r.error and f"with the credentials of 'bob' ({path})"[:60] in r.error
    assert "a-wrong-word" not in r.stderr + json.dumps(r.lines)


def test_credentials_of_another_registry_are_not_sent(imp, tmp_path, registry):
    registry.login = "basic"
    assert "asked without credentials" in \
        imp(f"--authfile={auth_file(tmp_path, 'other.example:5000')}").error


def test_a_credentials_file_that_is_none_is_refused_with_the_entry(imp, tmp_path, registry):
    (tmp_path / "c").write_text('{"auths": {"h.example": {}}}')
    assert "'h.example' has neither 'auth'" in imp(f"--authfile={tmp_path}/c").error


# ---- which registry --------------------------------------------------------------------------------


def test_a_mirror_is_asked_first_and_the_registry_when_it_fails(imp, registry):
    nowhere = "127.0.0.1:1"
    is_whole(imp, imp(f"--mirror={nowhere}={registry.host}", host=nowhere))
    is_whole(imp, imp(f"--mirror={registry.host}={nowhere}", f"--insecure={nowhere}"))
    text = imp(f"--mirror={registry.host}={nowhere}", f"--insecure={nowhere}", tag="2").error
    assert "HTTP 404" in text and f"its mirror '{nowhere}' failed too" in text


def test_a_registry_with_a_certificate_of_its_own(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-keyout", key, "-out", cert, "-subj", "/CN=x", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    i = Importer(tmp_path / "i")
    r = Registry(tls=(cert, key))
    try:
        ref = f"{r.host}/team/app:1"
        assert "certificate" in i(ref).error
        assert mounted(i, i(ref, f"--ca={r.host}={cert}").image) == reference(*LAYERS)
        i(ref, f"--insecure={r.host}").image
    finally:
        r.close()
