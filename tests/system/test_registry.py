"""muster-import against a registry that misbehaves in every way that registries do.

Debian's docker-registry is used for what goes well (test_import.py); this one is made here, because
no real one stalls, drops, or answers 429 when it is told to.
"""

import base64
import json
import os
import subprocess

import pytest

from harness.registry import Registry
from image_tools import Entry, Importer, config_of, make_tar, mounted, pack, reference, sha

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")

LAYERS = [[Entry("etc", "dir"), Entry("etc/a", data=b"text " * 1000)],
          [Entry("big", data=os.urandom(700_000))], [Entry("etc/.wh.a"), Entry("etc/b")]]


def image_of(layers):
    """Manifest and blobs of an image."""
    tars = [make_tar(l) for l in layers]
    packed, config = [pack(t, "gzip") for t in tars], config_of(tars)
    manifest = json.dumps({
        "schemaVersion": 2, "config": {"digest": sha(config), "size": len(config)},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": sha(p),
                    "size": len(p)} for p in packed]}).encode()
    return manifest, [config, *packed]


@pytest.fixture
def registry():
    r = Registry(*image_of(LAYERS))
    r.layers = list(r.blobs)[1:]
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
    registry.manifest = b" " * 100_000_000
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
    r = Registry(*image_of(LAYERS), tls=(cert, key))
    try:
        ref = f"{r.host}/team/app:1"
        assert "certificate" in i(ref).error
        assert mounted(i, i(ref, f"--ca={r.host}={cert}").image) == reference(*LAYERS)
        i(ref, f"--insecure={r.host}").image
    finally:
        r.close()
