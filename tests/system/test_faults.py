"""Machines reboot, managers of the past come back, nodes return, names clash, and starts fail: what
was promised holds, and whoever looks is told why."""
import base64
import hashlib
import json
import os
import re
import shutil
import socket
import ssl
import struct
import time

import pytest

from harness.cluster import MGMT, Daemon, wait_for
from harness.netns import inside

FOUR = ("--size", "4", "--mode", "multi-node", "--cpus", "2", "--mem", "128M")


def only_on(c, node, *words, **more):
    """A session on this node, though others have room."""
    others = [n for n in c.node_names if n != node]
    for n in others:
        c.cli("node", "drain", n, check=0)
    sid = c.create(*words, user="alice", **more)
    for n in others:
        c.cli("node", "resume", n, check=0)
    return sid


def inits(c, sid):
    """Processes 1 of a session's containers."""
    ids = [x["id"] for x in c.session(sid)["containers"]]
    found = []
    for pid in (p for p in os.listdir("/proc") if p.isdigit()):
        try:
            if "muster-init" in open(f"/proc/{pid}/cmdline").read() and any(
                    i in open(f"/proc/{pid}/cgroup").read() for i in ids):
                found.append(int(pid))
        except OSError:
            pass
    return sorted(found)


# --- a machine reboots ----------------------------------------------------------------------------


@pytest.mark.parametrize("forget", [False, True])
def test_a_reboot_ends_the_nodes_sessions_and_starts_none_again(new_cluster, forget):
    c = new_cluster(nodes=2)
    c.cli("volume", "create", "count", user="alice", check=0)
    path = c.api("GET", "/v1/volumes", user="alice")["volumes"][0]["path"]
    small = ("--cpus", "1", "--mem", "64M")
    debug = only_on(c, "n2", *small, "base")
    train = only_on(c, "n2", *small, "--kind", "train", "--volume", "count:/count", "base", "sh", "-c",
                    "echo started >>/count/times; sleep 1000")
    wait_for(lambda: os.path.exists(f"{path}/times"), 10, "the command does not start")
    other = only_on(c, "n1", *small, "base")
    tolerant = c.create(*FOUR[:4], *small, "--on-failure", "tolerant", "base", user="alice")
    assert {x["node"] for x in c.session(tolerant)["containers"]} == {"n1", "n2"}
    c.reboot("n2", forget=forget)
    for sid in (debug, train):
        s = c.wait_state(sid, "ended")
        assert s["result"] == "lost" and "n2" in s["reason"]["text"], s["reason"]
        assert s["reason"]["text"].endswith(": the node was rebooted"), s["reason"]
        assert "rebooted" in c.cli("why", sid, user="alice", check=0).stdout
    assert c.session(other)["state"] == "running" and c.sh(other, "echo on") == "on\n"
    c.cli("stop", "--now", tolerant, user="alice", check=0)
    c.wait_state(tolerant, "ended")
    c.wait_free(names=["n2"])
    new = only_on(c, "n2", "--cpus", "4", "--mem", "64M", "base")
    assert c.session(new)["containers"][0]["node"] == "n2" and c.sh(new, "echo works") == "works\n"
    assert open(f"{path}/times").read() == "started\n"


def test_a_start_that_a_reboot_cuts_is_tried_again(new_cluster):
    c = new_cluster(nodes=1)
    c.agents["n1"].stop()
    c.agents["n1"].start(crash="container.after_mount=delay:60s@*")
    c.wait_nodes()
    sid = c.create("base", "sh", "-c", "echo once; sleep 100", user="alice", wait=False)
    c.wait_state(sid, "preparing")
    spec = c.dir / f"nodes/n1/sessions/{sid}.json"
    wait_for(spec.exists, 10, "the agent has no order")
    key = json.loads(spec.read_text())["assignment"]["ssh_private"]
    c.reboot("n1")
    s = c.wait_state(sid, "running")
    assert s["attempt"] == 2
    # keys are made once: of the session, not of the start
    assert c.api("GET", f"/v1/sessions/{sid}/ssh", user="alice")["private_key"] == key
    wait_for(lambda: c.cli("logs", sid, user="alice").stdout == "once\n", 10, "no log")


# --- managers that are not the one -----------------------------------------------------------------


class FakeManager:
    """Speaks the link's language on the manager's address, and says what a test wants. It has the
    manager's certificate, as one of the past or another's copy would."""

    def __init__(self, c):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(c.dir / "manager/tls/server.pem")
        with inside(c.namespace("hub")):
            self.listener = socket.socket()
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind((f"{MGMT}.254", 7480))
            self.listener.listen()
            self.listener.settimeout(20)
        self.peer = None

    def accept(self):
        """The agent's hello."""
        peer = self.listener.accept()[0]
        peer.settimeout(20)
        self.peer = self.tls.wrap_socket(peer, server_side=True)
        head = b""
        while b"\r\n\r\n" not in head:
            head += self.peer.recv(4096)
        key = next(line.split(b": ")[1] for line in head.split(b"\r\n")
                   if line.lower().startswith(b"sec-websocket-key:"))
        answer = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        self.peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          b"Sec-WebSocket-Accept: " + answer + b"\r\n\r\n")
        return json.loads(self.read()[1])

    def _bytes(self, n):
        data = b""
        while len(data) < n:
            part = self.peer.recv(n - len(data))
            assert part, "the agent hung up"
            data += part
        return data

    def read(self):
        """(opcode, data) of the next frame."""
        first, second = self._bytes(2)
        n = second & 127
        if n >= 126:
            n = int.from_bytes(self._bytes(2 if n == 126 else 8), "big")
        mask = self._bytes(4)
        return first & 15, bytes(b ^ mask[i % 4] for i, b in enumerate(self._bytes(n)))

    def say(self, **message):
        data = json.dumps(message).encode()
        assert 126 <= len(data) < 65536 or len(data) < 126
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data))
        self.peer.sendall(b"\x81" + size + data)

    def welcome(self, cluster, epoch):
        self.say(type="welcome", cluster=cluster, epoch=epoch, heartbeat_usec=1_000_000,
                 fence_usec=60_000_000, peers=[], blocked=[])

    def closed(self):
        """The reason with which the agent closes the link."""
        while True:
            opcode, data = self.read()
            if opcode == 8:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()

    def pong(self):
        """The agent has read all until here."""
        self.say(type="ping", seq=7)
        while True:
            opcode, data = self.read()
            if opcode == 1 and json.loads(data)["type"] == "pong":
                return

    def close(self):
        if self.peer:
            self.peer.close()
        self.listener.close()


def test_an_agent_refuses_a_manager_of_the_past_and_orders_of_others(new_cluster):
    c = new_cluster(nodes=1, manager={"agent-fence": "60s", "agent-lost": "120s"})
    sid = c.create("base", user="alice")
    c.restart(c.manager)  # so that there is an older epoch
    before = inits(c, sid)
    assert len(before) == 1
    c.manager.stop()
    fake = FakeManager(c)
    try:
        hello = fake.accept()
        cluster, epoch = hello["cluster"], hello["seen_epoch"]
        assert [s["session"] for s in hello["inventory"]] == [sid]
        fake.welcome(cluster, epoch - 1)
        assert fake.closed() == (1008, "older epoch")
        fake.peer.close()
        assert fake.accept()["seen_epoch"] == epoch
        fake.welcome(cluster, epoch)
        other = "00000000-0000-4000-8000-000000000000"
        for who, when in ((cluster, epoch - 1), (other, epoch), (other, epoch + 1)):
            fake.say(type="remove", cluster=who, epoch=when, session=sid)
            fake.say(type="quarantine", cluster=who, epoch=when, session=sid)
        fake.pong()
        log = c.agents["n1"].tail(30)
        assert log.count("refused: the last known is") == 6, log
    finally:
        fake.close()
    c.manager.start()
    c.wait_manager()
    c.wait_nodes()
    assert inits(c, sid) == before and c.session(sid)["state"] == "running"
    c.cli("stop", "--now", sid, user="alice", check=0)
    c.wait_state(sid, "ended")


def test_a_manager_of_another_cluster_kills_nothing_and_the_own_one_goes_on(new_cluster):
    c = new_cluster(nodes=1, manager={"agent-fence": "60s", "agent-lost": "120s"})
    sid = c.create("base", user="alice")
    before = inits(c, sid)
    own = c.api("GET", "/v1/version")["cluster"]
    c.manager.stop()
    os.rename(c.dir / "manager", c.dir / "own")
    (c.dir / "manager").mkdir()
    shutil.copytree(c.dir / "own/tls", c.dir / "manager/tls")
    c.manager.start()
    c.wait_manager()
    c.join(c.agents["n1"])
    c.wait_nodes()
    assert c.api("GET", "/v1/version")["cluster"] != own
    assert c.nodes()["n1"]["quarantined"] == [sid] and c.sessions() == []
    c.manager.stop()
    shutil.rmtree(c.dir / "manager")
    os.rename(c.dir / "own", c.dir / "manager")
    c.manager.start()
    c.wait_manager()
    c.join(c.agents["n1"])
    c.wait_nodes()
    assert inits(c, sid) == before
    assert c.session(sid)["state"] == "running" and c.nodes()["n1"]["quarantined"] == []
    assert c.sh(sid, "echo here") == "here\n"
    c.cli("stop", "--now", sid, user="alice", check=0)
    c.wait_state(sid, "ended")


# --- nodes that are away, return, or are not who they say ------------------------------------------


def test_what_an_unreachable_node_holds_is_not_given_away_until_it_is_removed(cluster):
    c = cluster
    held = only_on(c, "n2", "--cpus", "4", "--mem", "64M", "base")
    only_on(c, "n1", "--cpus", "4", "--mem", "64M", "base")
    c.agents["n2"].kill9()
    wait_for(lambda: c.nodes()["n2"]["state"] == "unreachable", 20, "n2 is not unreachable")
    waits = c.create("--cpus", "1", "--mem", "64M", "base", user="bob", wait=False)
    c.cli("stop", "--now", held, user="alice", check=0)
    time.sleep(0.5)
    assert c.session(held)["state"] == "stopping" and c.nodes()["n2"]["used"]["cpus"] == 4
    assert c.session(waits)["state"] == "pending"
    assert "n2 (unreachable" in c.cli("why", waits, user="bob", check=0).stdout
    c.agents["n2"].start(crash="remove.after_runtime=delay:2s")
    c.wait_nodes()
    assert c.session(waits)["state"] == "pending" and c.session(held)["state"] == "stopping"
    c.wait_state(held, "ended")
    c.wait_state(waits, "running")


def test_a_node_that_returns_removes_what_ended_meanwhile_before_it_takes_work(cluster):
    c = cluster
    gone = only_on(c, "n2", "--cpus", "1", "--mem", "64M", "base")
    pid, = inits(c, gone)
    only_on(c, "n1", "--cpus", "4", "--mem", "64M", "base")
    c.agents["n2"].kill9()
    wait_for(lambda: c.nodes()["n2"]["state"] == "unreachable", 20, "n2 is not unreachable")
    c.cli("node", "lost", "n2", check=0)
    assert c.session(gone)["state"] == "ended" and os.path.exists(f"/proc/{pid}")
    waits = c.create("--cpus", "1", "--mem", "64M", "base", user="bob", wait=False)
    c.agents["n2"].start(crash="remove.after_runtime=delay:2s")
    wait_for(lambda: c.nodes()["n2"]["cleaning"] == 1, 10, lambda: str(c.nodes()["n2"]))
    node = c.nodes()["n2"]
    assert node["state"] != "up" and c.session(waits)["state"] == "pending", node
    assert c.wait_state(waits, "running")["containers"][0]["node"] == "n2"
    assert not os.path.exists(f"/proc/{pid}") and c.nodes()["n2"]["cleaning"] == 0


def test_a_second_agent_of_a_name_changes_nothing_for_the_first(new_cluster):
    c = new_cluster(nodes=2)
    sid = only_on(c, "n1", "base")
    before = inits(c, sid)
    c.agents["n2"].stop()
    copy = c.dir / "nodes/copy"  # of the other one's disk
    shutil.copytree(c.dir / "nodes/n1/tls", copy / "tls")
    options = dict(c.agents["n2"].options, name="n1", **{"state-dir": copy})
    second = Daemon(c, "second", c.agents["n2"].program, options, c.agents["n2"].ns)
    c.agents["second"] = second
    second.start()
    try:
        wait_for(lambda: "a node of that name is connected" in second.tail(), 15, second.tail)
        time.sleep(2)  # and it tries again
        node = c.nodes()["n1"]
        assert node["state"] == "up" and node["addr"]["mgmt"] == f"{MGMT}.1", node
        assert c.session(sid)["state"] == "running" and inits(c, sid) == before
        assert c.sh(sid, "echo here") == "here\n"
        assert "dropped" not in c.manager.tail(200)
    finally:
        second.stop()
        del c.agents["second"]
    c.agents["n2"].start()
    c.wait_nodes()


# --- starts that fail ------------------------------------------------------------------------------


@pytest.fixture
def tiny(cluster, tmp_path):
    """An image of its own: the path of its one blob."""
    (tmp_path / "tiny/bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", tmp_path / "tiny/bin/busybox")
    (tmp_path / "tiny/unique").write_text(os.urandom(20).hex())
    blobs = cluster.dir / "manager/blobs/sha256"
    before = set(os.listdir(blobs))
    cluster.cli("image", "import", f"{tmp_path}/tiny", "--name", "tiny", check=0)
    blob, = set(os.listdir(blobs)) - before
    yield blobs / blob
    cluster.cli("image", "rm", "tiny", check=0)


@pytest.mark.parametrize("broken, says", [
    ("zeros", "image layer 1 of 1: "), ("missing", "image layer 1 of 1: the manager answered 404 for the blob")])
def test_an_image_with_a_broken_layer_is_said_and_nothing_is_left(cluster, tiny, broken, says):
    if broken == "zeros":
        tiny.write_bytes(bytes(tiny.stat().st_size))
    else:
        tiny.unlink()
    r = cluster.cli("create", "--wait", *FOUR, "--name", "broken", "tiny", user="alice", check=4)
    assert says in r.stderr and "3 starts failed" in r.stderr, r.stderr
    s = cluster.wait_state("broken", "ended")
    assert s["result"] == "failed" and says in s["reason"]["text"], s["reason"]
    assert re.search("(main1|sub[123]) on n[12] could not be started", s["reason"]["text"]), s["reason"]
    cluster.wait_free()
    assert [f for f in os.listdir(tiny.parent) if "." in f] == []  # no .part, no .lock
    assert cluster.cli("run", "base", "echo", "works", user="alice", check=0).stdout == "works\n"


def test_a_volume_whose_folder_is_gone_is_said_and_nothing_is_left(cluster):
    cluster.cli("volume", "create", "fleeting", user="alice", check=0)
    path = cluster.api("GET", "/v1/volumes", user="alice")["volumes"][0]["path"]
    os.rmdir(path)
    r = cluster.cli("create", "--wait", *FOUR, "--volume", "fleeting:/data", "base", user="alice", check=4)
    assert path in r.stderr and "No such file or directory" in r.stderr, r.stderr
    cluster.wait_free()


# --- logs ------------------------------------------------------------------------------------------


def test_how_much_and_how_long_a_log_is_kept_is_configured(new_cluster):
    c = new_cluster(nodes=1, agent={"logs-max": "1M", "logs-keep": "1s"})
    sid = c.create("--mem", "128M", "base", "sh", "-c", "seq 1 300000; sleep 1000", user="alice")
    short = c.create("--name", "short", "--mem", "64M", "base", "sh", "-c", "echo gone soon", user="alice",
                     wait=False)
    c.wait_state(short, "ended")
    log = c.dir / f"nodes/n1/log/{sid}"
    wait_for(lambda: log.exists() and log.read_bytes().endswith(b" 300000\n"), 20, "it does not write")
    size = log.stat().st_size
    assert size > 12_000_000
    assert c.cli("logs", "short", user="alice", check=0).stdout == "gone soon\n"
    time.sleep(1)
    c.restart(c.agents["n1"])  # it looks soon after its start
    wait_for(lambda: log.stat().st_blocks * 512 < 1_500_000, 10, "it is not shortened")
    assert log.stat().st_size == size  # whoever follows it goes on where it was
    lines = c.cli("logs", sid, user="alice", check=0).stdout.splitlines()
    assert 10_000 < len(lines) < 40_000
    assert lines[1:] == [str(i) for i in range(300_002 - len(lines), 300_001)], lines[:3]
    r = c.cli("logs", "short", user="alice", check=0)
    assert (r.stdout, r.stderr) == ("", "muster: the log of the container is not kept any more\n")
    assert not (c.dir / f"nodes/n1/log/{short}").exists()
