"""The contract is served and shown, and every reply that a test gets is held to it: with a document
in which a field, a status, an error code or a route is missing, the same replies fail."""
import json
import re

import pytest
import yaml

from harness.cluster import ROOT
from harness.contract import ContractBroken, Document, exchanges

TEXT = (ROOT / "docs/openapi.yaml").read_text()


def doctored(pattern, new=""):
    text, count = re.subn(pattern, new, TEXT, count=1, flags=re.M)
    assert count == 1, pattern
    return Document(text)


def without_route(path):
    doc = yaml.safe_load(TEXT)
    del doc["paths"][path]
    return Document(yaml.safe_dump(doc))


@pytest.fixture
def contract(cluster):
    """Sets another document for the cluster."""
    yield lambda document: setattr(cluster, "contract", document)
    cluster.contract = None


MISSING = [
    (doctored(r"^        fabric_mtu: \{.*\n"), "/v1/nodes",
     "GET /v1/nodes: 200: nodes.0: Additional properties are not allowed ('fabric_mtu' was unexpected)"),
    (doctored(r"enum: \[up, unreachable, lost\]", "enum: [down, unreachable, lost]"), "/v1/nodes",
     "GET /v1/nodes: 200: nodes.0.state: 'up' is not one of ['down', 'unreachable', 'lost']"),
    (doctored(r"^  - \{ code: not_found,.*\n"), "/v1/nodes/n9",
     "404: the error code 'not_found' is not in x-muster-errors with this status"),
    (doctored(r"enum: \[not_found\]", "enum: [gone]"), "/v1/nodes/n9",
     "GET /v1/nodes/{node}: 404: error.code: 'not_found' is not one of ['gone']"),
    (without_route("/v1/nodes"), "/v1/nodes",
     "GET /v1/nodes: no such operation, but answered with 200"),
]


@pytest.mark.parametrize("document, path, says", MISSING)
def test_a_reply_that_is_not_in_the_contract_fails_the_test_that_got_it(
        cluster, contract, document, path, says):
    contract(document)
    with pytest.raises(ContractBroken) as e:
        cluster.request("GET", path)
    assert says in str(e.value)
    contract(None)
    cluster.request("GET", path)


def test_what_only_the_command_line_got_is_looked_at_too(cluster, contract):
    with cluster.recorded():
        cluster.cli("node", "ls", check=0)
    contract(doctored(r"^        fabric_mtu: \{.*\n"))
    with pytest.raises(ContractBroken, match="'fabric_mtu' was unexpected"):
        with cluster.recorded():
            cluster.cli("node", "ls", check=0)


def test_lines_of_an_import_and_events_are_looked_at(cluster, contract):
    contract(doctored(r"^ +- node\.up\n"))
    with pytest.raises(ContractBroken, match="'node.up' is not one of"):
        cluster.request("GET", "/v1/events?after=0&follow=0")


def test_what_is_said_on_a_websocket_is_looked_at(cluster, contract):
    ref = cluster.create("base")
    with cluster.recorded():
        cluster.exec(ref, "true")
    contract(doctored(r"required: \[exit\]", "required: [exit, why]"))
    with pytest.raises(ContractBroken, match="from the server: text .* 'why' is a required property"):
        with cluster.recorded():
            cluster.exec(ref, "true")
    contract(doctored(r"^        tty: \{ type: boolean, default: false \}\n"))
    with pytest.raises(ContractBroken, match="from the client: text .*'tty' was unexpected"):
        with cluster.recorded():
            cluster.exec(ref, "true")


def test_a_body_without_what_it_needs_is_invalid_not_an_address_that_is_not_found(cluster):
    status, _, body = cluster.request("POST", "/v1/images", {"name": "x"})
    assert status == 422 and json.loads(body)["error"] == {
        "code": "invalid", "message": "'ref' is missing"}


def test_two_requests_of_one_connection_are_told_apart():
    sent = (b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"
            b"PUT /v1/y?z=1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            b"GET /v1/z HTTP/1.1\r\nHost: a\r\n\r\n")
    received = (b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]"
                b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\"}\r\n0\r\n\r\n"
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99\r\n\r\n"
                b"data: {}\ndata: {")
    found = [(e.method, e.path, e.request, e.status, e.kind, e.body)
             for e in exchanges(sent, received)]
    assert found == [
        ("POST", "/v1/x", b"{}", 201, "application/json", b"[]"),
        ("PUT", "/v1/y?z=1", b"abc", 200, "application/x-ndjson", b'{"a"}'),
        ("GET", "/v1/z", b"", 200, "text/event-stream", b"data: {}\n"),
    ]


def test_the_contract_is_served_to_everybody(cluster):
    status, headers, body = cluster.request("GET", "/v1/openapi.json", user=None)
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert json.loads(body) == yaml.safe_load(TEXT)


@pytest.mark.parametrize("path, kind, has", [
    ("/docs", "text/html", b"<script src=\"/docs/docs.js\" defer>"),
    ("/docs/docs.js", "text/javascript", b"fetch(\"/v1/openapi.json\")"),
    ("/docs/docs.css", "text/css", b"prefers-color-scheme"),
])
def test_the_page_that_shows_it_needs_no_token_and_may_load_nothing_else(cluster, path, kind, has):
    status, headers, body = cluster.request("GET", path, user=None)
    assert status == 200 and headers["Content-Type"] == kind and has in body
    assert headers["Content-Security-Policy"].startswith("default-src 'self'; ")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert not re.search(rb"https?://|innerHTML|<style|style=", body)
