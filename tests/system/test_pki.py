"""Trust between machines: who may be a node, who is the manager, and how both end.

Each guard names the place without which its test fails.
"""
import contextlib
import json
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from harness.cluster import BUILD, MGMT, ROOT, Daemon, wait_for
from harness.netns import inside

NAME = "manager.muster"  # src/wire/join.h
HTTPS = f"https://{MGMT}.254:7480"


def openssl(*words, **more):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True,
                          **more).stdout


def fingerprint(path):
    text = openssl("x509", "-in", path, "-noout", "-fingerprint", "-sha256")
    return "sha256:" + text.strip().split("=")[1].replace(":", "").lower()


def client_cert(c, folder, subject, *extensions):
    """A certificate for clients by the cluster's own authority, with what a thief of no key could not
    have; PEM with its key."""
    folder.mkdir(exist_ok=True)
    tls = c.dir / "manager/tls"
    key, request, cert = folder / "key", folder / "request", folder / "cert"
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
            key, "-subj", subject, "-out", request)
    (folder / "ext").write_text("extendedKeyUsage=" + (extensions[0] if extensions else "clientAuth"))
    openssl("x509", "-req", "-in", request, "-CA", tls / "ca.crt", "-CAkey", tls / "ca.key", "-days", "1",
            "-extfile", folder / "ext", "-out", cert, "-set_serial", "77")
    (folder / "pem").write_text(key.read_text() + cert.read_text())
    return folder / "pem"


def connect(c, cert=None, name=NAME):
    """A TLS connection to the manager, as an agent makes it."""
    tls = ssl.create_default_context(cafile=c.dir / "manager/tls/ca.crt")
    if cert:
        tls.load_cert_chain(cert)
    with inside(c.namespace("hub")):
        plain = socket.create_connection((f"{MGMT}.254", 7480), 10)
    return tls.wrap_socket(plain, server_hostname=name)


def ask(c, path, cert=None, token=None, sock=None):
    """(status, error code) of a WebSocket handshake; a certificate that TLS refuses is an OSError."""
    s = sock or connect(c, cert)
    head = (f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n")
    head += f"Authorization: Bearer {token}\r\n" if token else ""
    s.sendall(f"{head}\r\n".encode())
    answer = s.recv(65536).decode(errors="replace")
    if not answer:
        raise OSError("closed")
    with contextlib.suppress(OSError):
        while "\r\n\r\n" not in answer or (answer.startswith("HTTP/1.1 4") and "}}" not in answer):
            more = s.recv(65536).decode(errors="replace")
            if not more:
                break
            answer += more
    code = re.search(r'"code":"(\w+)"', answer)
    if not sock:
        s.close()
    return int(answer.split()[1]), code and code.group(1)


def stranger(c, name, node="n2"):
    """One more machine, that has not joined, at the place of a node."""
    model = c.agents[node]
    return Daemon(c, name, model.program, model.options | {
        "name": name, "state-dir": c.dir / "nodes" / name}, model.ns)


@pytest.fixture
def machine(cluster):
    """A machine that may join the shared cluster; what it was is forgotten afterwards."""
    before = set(cluster.nodes())
    d = stranger(cluster, "x1")
    yield d
    for name in set(cluster.nodes()) - before:
        cluster.api("DELETE", f"/v1/nodes/{name}")
    for t in cluster.api("GET", "/v1/join-tokens")["tokens"]:
        cluster.api("DELETE", f"/v1/join-tokens/{t['id']}")
    shutil.rmtree(d.options["state-dir"], ignore_errors=True)


def token(c, user="admin", **wanted):
    return c.api("POST", "/v1/join-tokens", wanted, user=user)


def tls_files(d):
    folder = Path(d.options["state-dir"]) / "tls"
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


# --- the authority --------------------------------------------------------------------------------


def test_the_first_start_makes_the_authority_and_a_restart_keeps_everything(new_cluster):
    c = new_cluster(nodes=1)
    tls = c.dir / "manager/tls"
    assert tls.stat().st_mode & 0o777 == 0o700
    assert (tls / "ca.key").stat().st_mode & 0o777 == 0o600
    before = {p.name: p.read_bytes() for p in tls.iterdir()}
    assert set(before) == {"ca.key", "ca.crt", "server.pem"}
    assert c.api("GET", "/v1/version", user=None)["ca"] == fingerprint(tls / "ca.crt")
    node = (c.dir / "nodes/n1/tls/node.pem").read_bytes()
    c.restart(c.manager)
    assert {p.name: p.read_bytes() for p in tls.iterdir()} == before
    assert (c.dir / "nodes/n1/tls/node.pem").read_bytes() == node
    c.restart(c.manager, c.agents["n1"])
    assert c.nodes()["n1"]["state"] == "up"


def test_an_authority_that_is_lost_is_not_silently_replaced(new_cluster):
    """Without the comparison with the store's fingerprint in open_folder() (pki.c) the manager would
    start, and every node be locked out."""
    c = new_cluster(nodes=1)
    c.manager.stop()
    shutil.move(c.dir / "manager/tls", c.dir / "tls")
    c.manager.start()
    assert c.manager.wait_dead() == 1
    assert "put back the folder from the backup, or see 'musterd --new-ca'" in c.manager.tail(1)
    shutil.copytree(c.dir / "tls", c.dir / "manager/tls")
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()


def test_a_new_authority_is_made_when_asked_for_and_nodes_join_again(new_cluster):
    c = new_cluster(nodes=1)
    old = fingerprint(c.dir / "manager/tls/ca.crt")
    c.manager.stop()
    r = subprocess.run([*c.manager.argv(), "--new-ca"], env=c.manager.env(), capture_output=True, text=True)
    assert r.returncode == 0 and "every node has to join again" in r.stderr, r.stderr
    c.manager.start()
    c.wait_manager()
    assert c.api("GET", "/v1/version")["ca"] != old
    agent = c.agents["n1"]
    wait_for(lambda: "certificate of the other side is not accepted" in agent.tail(5), 10, agent.tail)
    assert c.nodes()["n1"]["state"] == "unreachable" and c.nodes()["n1"]["certificate"] is None
    c.join(agent)
    c.wait_nodes()


# --- joining --------------------------------------------------------------------------------------


def test_a_machine_joins_by_the_line_that_node_add_prints(new_cluster):
    c = new_cluster(nodes=2)
    c.cli("group", "create", "fast", check=0)
    agent = stranger(c, "x1")
    line = shlex.split(c.cli("node", "add", "--group", "fast", "x1", check=0).stdout)
    assert line[:3] == ["muster-agent", "join", HTTPS]
    said = c.join_by(agent, line[2], line[4], line[6]).stdout
    assert "as 'x1'" in said and "systemctl enable --now muster-agent" in said
    assert tls_files(agent) == ["ca.crt", "joined.json", "node.pem"]
    folder = Path(agent.options["state-dir"]) / "tls"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "node.pem").stat().st_mode & 0o777 == 0o600
    assert c.nodes()["x1"]["state"] == "unreachable"  # until its agent says hello
    # No name, no manager, no address: it has joined with them.
    c.agents["n2"].stop()
    for option in ("name", "manager", "addr-mgmt"):
        del agent.options[option]
    agent.options["tag"] = c.agents["n2"].options["tag"]
    c.agents["x1"] = agent
    agent.start()
    c.wait_nodes(names=["x1"])
    node = c.nodes()["x1"]
    assert node["group"] == "fast" and node["addr"]["mgmt"] == f"{MGMT}.2"
    assert node["certificate"]["until"] > node["certificate"]["joined"]
    assert c.cli("run", "--group", "fast", "base", "hostname", check=0).stdout == "main1\n"
    agent.stop()
    del c.agents["x1"]
    c.agents["n2"].start()


def test_nothing_is_sent_to_a_manager_with_another_fingerprint(cluster, machine):
    """Without cert_find() in find_authority() (agent/join.c) the token would go to whoever answers."""
    made = token(cluster, node="x1")
    r = cluster.join_by(machine, made["urls"][0], made["token"], "sha256:" + "0" * 64, check=1)
    assert "another fingerprint than --ca says; nothing was sent" in r.stderr
    assert [t["id"] for t in cluster.api("GET", "/v1/join-tokens")["tokens"]] == [made["id"]]
    assert tls_files(machine) == []
    cluster.join_by(machine, made["urls"][0], made["token"], made["ca"])


def test_the_fingerprint_of_a_certificate_that_signs_nothing_is_no_authority(cluster, machine):
    made = token(cluster, node="x1")
    server = fingerprint(cluster.dir / "manager/tls/server.pem")
    r = cluster.join_by(machine, made["urls"][0], made["token"], server, check=1)
    assert "--ca is the fingerprint of a certificate that is no authority's" in r.stderr


def test_a_token_is_good_once(cluster, machine):
    """Without invite_forget() in api_join() the second machine would take the first one's place."""
    made = token(cluster, node="x1")
    cluster.join_by(machine, made["urls"][0], made["token"], made["ca"])
    mark = (Path(machine.options["state-dir"]) / "tls/node.pem").read_bytes()
    shutil.rmtree(machine.options["state-dir"])
    r = cluster.join_by(machine, made["urls"][0], made["token"], made["ca"], check=1)
    assert "the join token is not valid: it was used, has expired or was revoked" in r.stderr
    assert "'muster node add' makes another one" in r.stderr
    assert mark and tls_files(machine) == []


def test_a_token_ends_with_its_time_and_when_it_is_revoked(cluster, machine):
    """Without the comparison with until_usec in call_invite() and joins_tick() the first would be
    good."""
    made = token(cluster, node="x1", ttl="1s")
    time.sleep(1.1)
    r = cluster.join_by(machine, made["urls"][0], made["token"], made["ca"], check=1)
    assert "the join token is not valid" in r.stderr
    made = token(cluster, node="x1")
    listed = cluster.cli("node", "tokens", check=0).stdout
    assert re.search(rf"^ *{made['id']} +x1 ", listed, re.M) and made["token"] not in listed
    cluster.cli("node", "tokens", "--revoke", str(made["id"]), check=0)
    r = cluster.join_by(machine, made["urls"][0], made["token"], made["ca"], check=1)
    assert "the join token is not valid" in r.stderr
    r = cluster.cli("node", "tokens", "--revoke", str(made["id"]), check=1)
    assert "it was used, has expired or was revoked" in r.stderr


def test_a_token_for_a_name_is_for_no_other_and_one_for_any_takes_no_nodes_place(cluster, machine):
    """Without the two comparisons in check_node() (api_join.c) a token for a new machine would make
    anybody the node n1."""
    made = token(cluster, node="x1")
    r = cluster.join_by(machine, made["urls"][0], made["token"], made["ca"], "--name", "x2", check=1)
    assert "the join token is for the node 'x1', not for 'x2'" in r.stderr
    cluster.join_by(machine, made["urls"][0], made["token"], made["ca"])  # it is not spent by that
    shutil.rmtree(machine.options["state-dir"])
    made = token(cluster)
    r = cluster.join_by(machine, made["urls"][0], made["token"], made["ca"], "--name", "n1", check=1)
    assert "there is a node 'n1' already" in r.stderr and "muster node add n1" in r.stderr
    assert cluster.nodes()["n1"]["state"] == "up"


def test_tokens_are_not_in_the_store_and_not_in_the_log(cluster, machine):
    made = token(cluster, node="x1")
    with pytest.raises(AssertionError):
        cluster.join_by(machine, made["urls"][0], made["token"] + "x", made["ca"])
    secret = made["token"].encode()
    for path in cluster.dir.glob("manager/muster.db*"):
        assert secret not in path.read_bytes(), path
    assert secret not in cluster.manager.log.read_bytes()


def test_who_may_make_tokens(cluster):
    for method, path in (("POST", "/v1/join-tokens"), ("GET", "/v1/join-tokens"),
                         ("DELETE", "/v1/join-tokens/1"), ("POST", "/v1/nodes/n1/revoke")):
        assert cluster.request(method, path, {} if method == "POST" else None, user="alice")[0] == 403
        assert cluster.request(method, path, {} if method == "POST" else None, user=None)[0] == 401


@pytest.mark.parametrize("body, text", [
    ({"ttl": "8d"}, "'ttl' must be from 1s to 7d"), ({"ttl": []}, "'ttl' must be seconds"),
    ({"node": "a b"}, "a node's name"), ({"group": "none"}, "there is no group 'none'"),
])
def test_a_token_that_makes_no_sense_is_refused(cluster, body, text):
    status, _, data = cluster.request("POST", "/v1/join-tokens", body)
    assert status in (404, 422) and text in json.loads(data)["error"]["message"]


@pytest.mark.parametrize("request_text", ["", "none", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END "
                                          "CERTIFICATE REQUEST-----\n"])
def test_what_is_no_certificate_request_does_not_spend_the_token(cluster, machine, request_text):
    made = token(cluster, node="x1")
    status, _, data = cluster.request(
        "POST", "/v1/join", {"token": made["token"], "request": request_text}, user=None)
    assert status == 422 and "the certificate request: " in json.loads(data)["error"]["message"]
    cluster.join_by(machine, made["urls"][0], made["token"], made["ca"])


def test_wrong_tokens_are_throttled_by_address(new_cluster):
    """Without throttle_wait_usec() in call_invite() all would be answered 403."""
    c = new_cluster(nodes=1)
    wrong = [c.request("POST", "/v1/join", {"token": f"mjt_{i}"}, user=None) for i in range(12)]
    assert [w[0] for w in wrong] == [403] * 10 + [429] * 2
    assert "try again in" in json.loads(wrong[-1][2])["error"]["message"]
    made = token(c, node="n1")
    c.join_by(c.agents["n1"], made["urls"][0], made["token"], made["ca"])  # from another address


def test_one_machine_is_one_node(cluster, machine):
    cluster.join(machine)
    made = token(cluster, node="x2")
    r = cluster.join_by(machine, made["urls"][0], made["token"], made["ca"], "--name", "x2", check=1)
    assert "this machine is the node 'x1' already" in r.stderr


@pytest.mark.parametrize("words, text", [
    ([], "expects the manager's address"),
    ([HTTPS], "--token is missing"),
    ([HTTPS, "--token", "x"], "--ca must be the fingerprint that 'muster node add' printed"),
    ([HTTPS, "--token", "x", "--ca", "sha256:12"], "--ca must be the fingerprint"),
    ([HTTPS, "more", "--token", "x", "--ca", "sha256:" + "0" * 64], "expects the manager's address"),
])
def test_a_line_that_lost_a_part_is_refused_before_anything_is_done(tmp_path, words, text):
    (tmp_path / "none.yaml").write_text("{}\n")
    r = subprocess.run([BUILD / "src/agent/muster-agent", "join", *words, "--config", tmp_path / "none.yaml"],
                       capture_output=True, text=True)
    assert r.returncode == 2 and text in r.stderr


# --- who is who -----------------------------------------------------------------------------------


def test_agents_routes_want_a_nodes_certificate(cluster):
    """Each refusal is another line of call_admit_agent() and admit_cert() (joins.c)."""
    c, tmp = cluster, cluster.dir / "certs"
    agents_token = (c.dir / "manager/agent.token").read_text().strip()
    own = c.dir / "nodes/n1/tls/node.pem"
    streams = "/v1/agent/streams/00000000-0000-4000-8000-000000000000"
    for path in ("/v1/agent/link", streams, "/v1/blobs/sha256:00"):
        assert ask(c, path) == (401, "no_certificate")
        assert ask(c, path, token=c.admin_token) == (403, "forbidden")
        assert ask(c, path, token=agents_token) == (403, "forbidden")  # not from the network
        role = client_cert(c, tmp, "/CN=n1/OU=manager")
        assert ask(c, path, role) == (403, "forbidden")
        for subject in ("/CN=n1/OU=node", "/CN=n1/OU=node/serialNumber=x", "/CN=x9/OU=node/serialNumber=x"):
            assert ask(c, path, client_cert(c, tmp, subject)) == (403, "revoked")
    assert ask(c, streams, own) == (404, "not_found")
    assert ask(c, "/v1/blobs/sha256:00", own) == (400, "bad_digest")
    # A node's certificate is nobody's of people.
    assert ask(c, "/v1/sessions/x/exec", own) == (401, "not_signed_in")
    shutil.rmtree(tmp)


def test_tls_itself_refuses_strangers_certificates(cluster):
    """By the demand for certificates of the own authority in server_context() (tls_module.c)."""
    c, tmp = cluster, cluster.dir / "certs"
    tmp.mkdir()
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
            tmp / "key", "-out", tmp / "cert", "-subj", "/CN=n1/OU=node", "-days", "1")
    (tmp / "own").write_text((tmp / "key").read_text() + (tmp / "cert").read_text())
    with pytest.raises(OSError):
        ask(c, "/v1/agent/link", tmp / "own")
    with pytest.raises(OSError):  # by the right authority, and for servers
        ask(c, "/v1/agent/link", client_cert(c, tmp, "/CN=n1/OU=node", "serverAuth"))
    shutil.rmtree(tmp)


def test_a_nodes_certificate_makes_no_manager(cluster, machine):
    """A node that stands between another one and the manager has a certificate by the right
    authority; it is not for servers, and not of the manager's name."""
    c = cluster
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(c.dir / "nodes/n1/tls/node.pem")
    made = token(c, node="x1")
    with inside(c.namespace("n2")):
        listener = socket.create_server(("127.0.0.1", 7480))
    join = subprocess.Popen(
        ["nsenter", f"--net={c.namespace('n2')}", str(machine.program), "join", "https://127.0.0.1:7480",
         "--token", made["token"], "--ca", made["ca"], "--config", str(c.dir / "none.yaml"),
         "--state-dir", str(machine.options["state-dir"])], env=machine.env(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True)
    heard = b""
    with listener:
        listener.settimeout(10)
        for _ in range(2):  # to look, and to speak
            peer = listener.accept()[0]
            with contextlib.suppress(OSError):
                peer = tls.wrap_socket(peer, server_side=True)
                peer.settimeout(5)
                heard += peer.recv(65536)
            peer.close()
    out, err = join.communicate(timeout=20)
    assert join.returncode == 1 and "certificate of the other side is not accepted" in err, out + err
    assert heard == b""


def test_an_agent_speaks_for_its_own_node_only(new_cluster):
    """Without joins_speaks_for() in hello() (links.c) n2 would take the place of n1."""
    c = new_cluster(nodes=2)
    n2 = c.agents["n2"]
    n2.stop()
    n2.options["name"] = "n1"
    n2.start()
    assert n2.wait_dead() == 2
    assert "'name' is 'n1', but this machine joined as 'n2'" in n2.tail(1)
    joined = c.dir / "nodes/n2/tls/joined.json"  # a liar changes that, too
    before = joined.read_text()
    joined.write_text(before.replace('"n2"', '"n1"'))
    n2.start()
    wait_for(lambda: "its certificate is another node's" in n2.tail(5), 10, n2.tail)
    assert "calls itself 'n1' was refused: its certificate is another node's (n2)" in c.manager.tail(200)
    node = c.nodes()["n1"]
    assert node["state"] == "up" and node["addr"]["mgmt"] == f"{MGMT}.1"
    n2.stop()
    joined.write_text(before)
    n2.options["name"] = "n2"
    n2.start()
    c.wait_nodes()


def test_the_agents_token_speaks_for_no_node_that_has_a_certificate(new_cluster):
    """Without joins_speaks_for() in hello() whoever reads agent.token would be any node."""
    c = new_cluster(nodes=1)
    liar = Daemon(c, "liar", c.agents["n1"].program, c.agents["n1"].options | {
        "manager": "http://127.0.0.1:7480", "token-file": c.dir / "manager/agent.token",
        "run-dir": c.dir / "run/liar", "state-dir": c.dir / "nodes/liar", "addr-mgmt": "127.0.0.1",
        "addr-fabric": "127.0.0.1", "tag": f"{c.tag}n9"}, f"{c.tag}-hub")
    c.agents["liar"] = liar
    liar.start()
    try:
        wait_for(lambda: "has a certificate, and this agent shows none" in liar.tail(5), 15, liar.tail)
        node = c.nodes()["n1"]
        assert node["state"] == "up" and node["addr"]["mgmt"] == f"{MGMT}.1"
    finally:
        liar.stop()
        subprocess.run([BUILD / "src/agent/clean/muster-agent-clean", "--run-dir", c.dir / "run/liar",
                        "--tag", f"{c.tag}n9"], capture_output=True)
        del c.agents["liar"]


# --- ends -----------------------------------------------------------------------------------------


def test_a_revoked_node_is_cut_off_at_once_and_joins_again(new_cluster):
    """Without links_drop() the node would be up until the next tick (has_run_out() in links.c), without
    gateway_drop_node() the terminal would stay, without the comparison of marks in admit_cert() the
    certificate would be good for months."""
    c = new_cluster(nodes=1)
    sid = c.create("base")
    stolen = c.dir / "stolen.pem"
    shutil.copy(c.dir / "nodes/n1/tls/node.pem", stolen)
    held = connect(c, stolen)  # kept from before
    assert ask(c, "/v1/blobs/sha256:00", sock=held) == (400, "bad_digest")
    shell = c.popen("exec", sid, "sh", "-c", "echo on; sleep 1000")
    assert shell.stdout.readline() == b"on\n"
    c.cli("node", "revoke", "n1", check=0)
    assert c.nodes()["n1"]["state"] == "unreachable" and c.nodes()["n1"]["certificate"] is None
    assert ask(c, "/v1/blobs/sha256:00", sock=held) == (403, "revoked")
    held.close()
    assert ask(c, "/v1/agent/link", stolen) == (403, "revoked")
    assert shell.wait(10) != 0
    shell.communicate()
    agent = c.agents["n1"]
    wait_for(lambda: "it does not take this node" in agent.tail(5), 10, agent.tail)
    assert "join again ('muster node add')" in agent.tail(5)
    assert c.cli("node", "revoke", "n1", check=1).stderr == "muster: node 'n1' has no certificate\n"
    c.join(agent)
    c.wait_nodes()  # the same agent, without a restart
    assert c.sh(sid, "echo still here") == "still here\n"
    assert ask(c, "/v1/agent/link", stolen) == (403, "revoked")
    c.restart(c.manager)
    assert ask(c, "/v1/agent/link", stolen) == (403, "revoked")


def test_a_removed_node_stays_away(new_cluster):
    """Without node_cut_off() in api_node_delete() its agent would be back at once."""
    c = new_cluster(nodes=2)
    sid = c.create("--cpus", "4", "--mem", "64M", "base")
    on = c.session(sid)["containers"][0]["node"]
    r = c.cli("node", "rm", on, check=1)
    assert "has sessions" in r.stderr
    other, = set(c.node_names) - {on}
    c.cli("node", "rm", other, check=0)  # its agent is connected
    agent = c.agents[other]
    wait_for(lambda: "it does not take this node" in agent.tail(5), 10, agent.tail)
    c.manager.stop()
    c.manager.start()
    c.wait_manager()
    time.sleep(2)
    assert other not in c.nodes()
    assert ask(c, "/v1/agent/link", c.dir / f"nodes/{other}/tls/node.pem") == (403, "revoked")
    c.join(agent)
    c.wait_nodes()


def test_certificates_renew_themselves_and_nothing_is_cut(new_cluster):
    """Without identity_tick() (agent) the link would be closed by has_run_out() (links.c), without
    listen_tick() (manager) new connections would fail."""
    c = new_cluster(nodes=1, manager={"tls-lifetime": "9s"})
    agent, pem = c.agents["n1"], c.dir / "nodes/n1/tls/node.pem"
    server = c.dir / "manager/tls/server.pem"
    sid = c.create("base")
    first = pem.read_text(), server.read_text()
    shell = c.popen("exec", sid, "sh", "-c", "sleep 14; echo whole")
    time.sleep(12)  # longer than the first ones are good
    assert pem.read_text() != first[0] and server.read_text() != first[1]
    assert pem.stat().st_mode & 0o777 == 0o600
    assert c.sh(sid, "echo new connection") == "new connection\n"
    assert shell.communicate(timeout=20)[0] == b"whole\n"
    assert "its certificate was renewed" in c.manager.tail(100)
    assert "connections go on" in c.manager.tail(200)
    for daemon in c.daemons:
        assert "link closed" not in daemon.tail(500) and "no link" not in daemon.tail(500)
    old = c.dir / "old.pem"
    old.write_text(first[0])
    with pytest.raises(OSError):
        ask(c, "/v1/agent/link", old)
    # One that slept through its renewal says what is to be done.
    agent.freeze()
    time.sleep(10)
    agent.thaw()
    wait_for(lambda: "has run out" in agent.tail(20), 15, agent.tail)
    assert "is the clock right? Else join again: 'muster node add n1'" in agent.tail(20)
    c.join(agent)
    c.wait_nodes()


def test_a_link_ends_with_its_certificate_when_that_is_not_renewed(new_cluster):
    """Without has_run_out() (links.c) whoever keeps a connection open would need no renewal."""
    c = new_cluster(nodes=1, manager={"tls-lifetime": "8s"})
    agent = c.agents["n1"]
    pem = c.dir / "nodes/n1/tls/node.pem"
    s = connect(c, pem)
    agent.stop()
    assert ask(c, "/v1/agent/link", sock=s)[0] == 101
    hello = {"type": "hello", "version": "x", "node": "n1", "cluster": "", "seen_epoch": 0,
             "boot_id": "00000000-0000-4000-8000-000000000000",
             "capacity.cpu_milli": 1000, "capacity.mem": 1, "gpus": [],
             "addr_mgmt": f"{MGMT}.1", "addr_fabric": f"{MGMT}.1", "fabric_mtu": 1500, "inventory": []}
    data = json.dumps(hello).encode()
    s.sendall(b"\x81" + bytes([0x80 | 126]) + len(data).to_bytes(2, "big") + b"\0\0\0\0" + data)
    wait_for(lambda: "its certificate has run out" in c.manager.tail(20), 15, c.manager.tail)
    s.close()
    c.join(agent)
    agent.start()
    c.wait_nodes()


# --- people ---------------------------------------------------------------------------------------


def test_a_person_signs_in_by_the_fingerprint(cluster, tmp_path):
    c = cluster
    env = {"MUSTER_URL": "", "XDG_CONFIG_HOME": str(tmp_path)}
    own = c.api("GET", "/v1/version", user=None)["ca"]
    assert f"authority {own}\n" in c.cli("version", check=0).stdout
    r = subprocess.run(["setsid", *c.cli_argv("login", HTTPS)], env=c.cli_env("admin") | env,
                       capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert r.returncode == 1 and f"--fingerprint {own}" in r.stderr
    assert list(tmp_path.iterdir()) == []
    r = c.cli("login", HTTPS, "--fingerprint", "sha256:" + "0" * 64, env=env, check=1)
    assert "shows an authority with another fingerprint" in r.stderr
    c.cli("login", HTTPS, "--fingerprint", own, env=env, check=0)
    kept = tmp_path / f"muster/ca-{MGMT}.254-7480.crt"
    assert kept.read_bytes() == (c.dir / "manager/tls/ca.crt").read_bytes()
    later = env | {"MUSTER_TOKEN": ""}
    assert HTTPS in c.cli("whoami", env=later, check=0).stdout
    assert c.cli("run", "base", "echo", "by tls", env=later, check=0).stdout == "by tls\n"
    sid = c.create("base")
    assert c.cli("exec", sid, "echo", "too", env=later, check=0).stdout == "too\n"
    c.cli("login", HTTPS, env=env, check=0)  # it is known now
    shutil.rmtree(tmp_path / "muster")
    c.cli("login", HTTPS, "--ca", str(c.dir / "manager/tls/ca.crt"), env=env, check=0)
    c.cli("ls", env=later, check=0)


def test_plain_http_to_a_port_with_tls_is_told_so(cluster):
    r = cluster.cli("ls", "--url", f"http://{MGMT}.254:7480", check=1)
    assert "this address speaks TLS only: use https" in r.stderr


def test_people_see_the_sites_certificate_and_agents_the_own(new_cluster, tmp_path):
    def make(name, serial):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-keyout", tmp_path / "new.key", "-out", tmp_path / "new.crt", "-subj", f"/CN={name}",
                "-days", "1", "-set_serial", serial, "-addext", f"subjectAltName=IP:{MGMT}.254")
        (tmp_path / "new.key").rename(tmp_path / "site.key")
        (tmp_path / "new.crt").rename(tmp_path / "site.crt")
        return fingerprint(tmp_path / "site.crt")

    def shown():
        with inside(c.namespace("hub")):
            pem = ssl.get_server_certificate((f"{MGMT}.254", 7480))
        (tmp_path / "shown").write_text(pem)
        return fingerprint(tmp_path / "shown")
    first = make("site", 1)
    c = new_cluster(nodes=1, manager={"tls-cert": tmp_path / "site.crt", "tls-key": tmp_path / "site.key"})
    assert shown() == first
    env = {"MUSTER_URL": HTTPS, "MUSTER_CA": str(tmp_path / "site.crt")}
    c.cli("ls", env=env, check=0)
    with connect(c) as s:
        assert s.getpeercert()["subject"][0][0] == ("commonName", NAME)
    second = make("site", 2)  # as the site's own renewal does it
    wait_for(lambda: shown() == second, 10, "the new one is not shown")
    (tmp_path / "site.key").write_text("broken")
    wait_for(lambda: "the old ones stay" in c.manager.tail(5), 10, c.manager.tail)
    assert shown() == second and c.nodes()["n1"]["state"] == "up"


# --- configuration --------------------------------------------------------------------------------


@pytest.mark.parametrize("words, text", [
    (["--tls-cert", "/x"], "'tls.cert' and 'tls.key' go together"),
    (["--tls-cert", "/x", "--tls-key", "/y", "--tls-off"], "'tls.off' and 'tls.cert' exclude each other"),
    (["--tls-names", "a,DNS:b"], "must be a name or an address, without a port"),
    (["--tls-lifetime", "2s"], "must be at least 6s"),
])
def test_a_manager_with_settings_that_contradict_does_not_start(tmp_path, words, text):
    (tmp_path / "none.yaml").write_text("{}\n")
    r = subprocess.run([BUILD / "src/manager/musterd", "--config", tmp_path / "none.yaml", *words],
                       capture_output=True, text=True)
    assert r.returncode == 2 and text in r.stderr


def test_a_manager_whose_sites_certificate_is_not_there_says_which(new_cluster, tmp_path):
    c = new_cluster(nodes=1)
    c.manager.stop()
    c.manager.options |= {"tls-cert": tmp_path / "none.crt", "tls-key": tmp_path / "none.key"}
    c.manager.start()
    assert c.manager.wait_dead() == 1
    assert f"TLS certificate '{tmp_path}/none.crt': No such file" in c.manager.tail(1)
    del c.manager.options["tls-cert"], c.manager.options["tls-key"]
    c.manager.start()
    c.wait_manager()


def test_an_agent_does_not_speak_plainly_over_the_network(cluster, machine):
    """Without check_managers() (agent/config.c) the agents' token would cross the network."""
    machine.options["manager"] = f"http://{MGMT}.254:7480"
    machine.start()
    assert machine.wait_dead() == 2
    assert "use https and join ('muster node add' says how), or set 'tls.off'" in machine.tail(1)
    machine.options["manager"] = HTTPS
    machine.start()
    assert machine.wait_dead() == 1
    assert "this machine has not joined the cluster: run 'muster node add'" in machine.tail(1)


def test_without_tls_everything_works_by_the_token_and_says_that_it_is_open(new_cluster, tmp_path):
    (tmp_path / "off.yaml").write_text("tls:\n  off: true\n")
    c = new_cluster(nodes=0, manager={"config": tmp_path / "off.yaml"})
    assert "can be read and changed by others" in c.manager.tail(20)
    assert c.api("GET", "/v1/version")["ca"] is None
    r = c.cli("node", "add", check=1)
    assert r.stderr == "muster: there are no certificates here: 'tls.off' is set\n"
    c.cli("ls", "--url", f"http://{MGMT}.254:7480", check=0)


def test_a_manager_on_loopback_only_needs_no_authority(new_cluster):
    c = new_cluster(nodes=0, manager={"listen": "127.0.0.1:7480"})
    r = c.cli("node", "add", check=1)
    assert "let it listen on an address of the network" in r.stderr


def test_the_unit_starts_an_agent_without_a_configuration_file():
    unit = (ROOT / "docs/systemd/muster-agent.service").read_text()
    assert re.search(r"^ExecStart=/usr/local/bin/muster-agent$", unit, re.M)
