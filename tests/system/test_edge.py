"""The private networks of sessions, on real namespaces: see edge_world.py for the place.

Sessions: a and b have two containers on each of two nodes, c one on h1, d one on h2.
"""
import contextlib
import os
import select
import socket
import struct
import subprocess
import time

import pytest

from harness.tiers import some
from edge_world import (MAGIC, PORT, TOOL, Echo, Node, Session, Sniffer, World, arp_frame,
                        device_bytes, inside, mac_of, probe, probe_all, run_in, send_frame, udp_frame, vxlan)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces: needs root")

OUT = "203.0.113.9"
GATEWAY_MAC = b"\x02\x4d\0\0\0\x01"
BROADCAST = b"\xff" * 6


class Place:
    pass


@pytest.fixture(scope="module")
def w():
    p = Place()
    p.world = World()
    peers = ("10.8.0.1", "10.8.0.2", "fd00:8::1", "fd00:8::2")
    p.h1, p.h2 = Node(p.world, 1, peers[0], peers), Node(p.world, 2, peers[1], peers)
    p.echo = Echo()
    try:
        p.world.build()
        for h in (p.h1, p.h2):
            h.tool("setup")
        p.a = Session(1, [p.h1, p.h1, p.h2, p.h2], 0x4d0001)
        p.b = Session(2, [p.h1, p.h1, p.h2, p.h2], 0x4d0002)
        p.c = Session(3, [p.h1], 0)
        p.d = Session(4, [p.h2], 0)
        p.sessions = (p.a, p.b, p.c, p.d)
        for i, s in enumerate(p.sessions):
            s.up(i)
            s.serve(p.echo)
        for n in ("out", "h1", "h2", "fx"):
            p.echo.serve(p.world.path(n), n)
        yield p
    finally:
        p.echo.stop()
        p.world.clear([p.h1, p.h2])


def senders(w):
    """One container of each kind of place."""
    return [(w.a, "main1"), (w.a, "sub2"), (w.c, "main1"), (w.d, "main1")]


def forbidden(w, session):
    """Everything that a container of this session must not reach."""
    ips = [ip for s in w.sessions if s is not session for ip in s.ips.values()]
    ips += ["10.9.0.1", "10.9.0.2", "10.8.0.1", "10.8.0.2", "10.8.0.66", "10.9.0.66"]
    ips += ["169.254.64.%d" % (4 * i + k) for i in range(4) for k in (1, 2)]
    targets = [(kind, ip, PORT) for ip in ips for kind in ("tcp", "udp", "icmp")]
    targets += [("tcp", "169.254.1.1", PORT), ("udp", "169.254.1.1", PORT)]
    # an edge may ping its own uplink's ends from inside; they are nobody else
    return targets


def check_isolation(w):
    questions = {"%s of %s" % (name, session.id): (session.path(name), forbidden(w, session))
                 for session, name in senders(w)}
    every = [(kind, ip, PORT) for s in w.sessions for ip in s.ips.values() for kind in
             ("tcp", "udp", "icmp")]
    every += [("tcp", "169.254.64.%d" % (4 * i + 2), PORT) for i in range(4)]
    questions |= {ns: (w.world.path(ns), every) for ns in ("fx", "h1", "h2", "out")}
    for who, answers in probe_all(questions).items():
        reached = {t: v for t, v in answers.items() if v}
        assert not reached, "%s reached %s" % (who, reached)


def test_containers_of_a_session_reach_each_other_on_one_node_and_across(w):
    for s in (w.a, w.b):
        for name in s.names:
            targets = [(k, ip, PORT) for ip in s.ips.values() for k in ("tcp", "udp", "icmp")]
            answers = probe(s.path(name), targets)
            for (kind, ip, _), answer in answers.items():
                assert answer, (name, kind, ip)
                if kind != "icmp":  # no NAT inside
                    assert answer[1] == s.ips[name]


def test_the_address_of_the_assignment_is_the_one_that_ip_addr_shows(w):
    for s in w.sessions:
        for name in s.names:
            out = run_in(s.path(name), "ip", "-o", "addr", "show", "dev", "eth0").stdout
            assert out.count("inet") == 1 and " %s/" % s.ips[name] in out


@pytest.mark.parametrize("to", ["sub1", "sub2"])
def test_every_tcp_port_is_open_between_containers(w, to):
    poll = select.epoll()
    missing = set(range(1, 65536))
    for first in range(1, 65536, 4096):
        socks = {}
        with inside(w.a.path("main1")):
            for port in range(first, min(first + 4096, 65536)):
                s = socket.socket()
                s.setblocking(False)
                # several source addresses are not needed: one connection a port
                s.connect_ex((w.a.ips[to], port))
                socks[s.fileno()] = (s, port)
                poll.register(s, select.EPOLLOUT | select.EPOLLERR | select.EPOLLHUP)
        end = time.monotonic() + 10
        while socks and time.monotonic() < end:
            for fd, _ in poll.poll(0.5):
                s, port = socks.pop(fd)
                # answered by the container itself: open, or refused
                if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) in (0, 111):
                    missing.discard(port)
                poll.unregister(fd)
                s.close()
        for s, _ in socks.values():
            s.close()
    assert not missing


@pytest.mark.parametrize("to", ["sub1", "sub3"])
def test_every_udp_port_is_open_between_containers(w, to):
    sniffer = Sniffer(w.a.path(to))
    with inside(w.a.path("main1")):
        s = socket.socket(type=socket.SOCK_DGRAM)
    missing = set(range(1, 65536))
    for _ in range(3):
        for port in sorted(missing):
            with contextlib.suppress(OSError):
                s.sendto(MAGIC, (w.a.ips[to], port))
            if port % 1024 == 0:
                missing -= {struct.unpack("!H", f[36:38])[0] for f in sniffer.frames(0)
                            if MAGIC in f}
        missing -= {struct.unpack("!H", f[36:38])[0] for f in sniffer.frames() if MAGIC in f}
    assert not missing


def test_traffic_between_nodes_takes_the_fabric_only(w):
    mgmt, fabric = device_bytes(w.h1.path, "mg"), device_bytes(w.h1.path, "fb")
    with inside(w.a.path("sub3")):
        server = socket.create_server(("0.0.0.0", 6000))
    with inside(w.a.path("main1")):
        client = socket.create_connection((w.a.ips["sub3"], 6000), timeout=5)
    conn, _ = server.accept()
    sent = 0
    while sent < 4 << 20:
        client.sendall(bytes(1 << 16))
        sent += 1 << 16
        got = 0
        while got < 1 << 16:
            got += len(conn.recv(1 << 16))
    for s in (conn, client, server):
        s.close()
    assert device_bytes(w.h1.path, "fb") - fabric > 4 << 20
    assert device_bytes(w.h1.path, "mg") - mgmt < 16384


@pytest.mark.parametrize("to", ["sub1", "sub2"])
def test_a_packet_of_1450_bytes_passes_whole_and_a_larger_one_is_refused(w, to):
    with inside(w.a.path("main1")):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
    s.settimeout(2)
    s.sendto(bytes(1450 - 28), (w.a.ips[to], PORT))
    assert s.recv(4096)
    with pytest.raises(OSError) as e:
        s.sendto(bytes(1451 - 28), (w.a.ips[to], PORT))
    assert e.value.errno == 90  # EMSGSIZE
    s.close()


def test_the_mtu_is_the_fabrics_less_the_vxlan_header(w):
    assert w.h1.tool("mtu", *w.a.words()).stdout == "1450\n"
    assert w.h1.tool("mtu", *w.c.words()).stdout == "1500\n"


def test_nothing_outside_the_session_is_reached_and_nobody_gets_in(w):
    check_isolation(w)


def test_the_gateway_answers_pings_and_nothing_else(w):
    answers = probe(w.a.path("main1"),
                    [("icmp", "169.254.1.1", 0), ("tcp", "169.254.1.1", 22), ("tcp", "169.254.1.1", PORT)])
    assert [bool(v) for v in answers.values()] == [True, False, False]


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_the_way_out_is_by_the_nodes_address_from_a_high_port(w, kind):
    for s, name in senders(w):
        node = s.nodes[name]
        for port in (None, 700):
            answer = probe(s.path(name), [(kind, OUT, PORT)], source_port=port)[(kind, OUT, PORT)]
            assert answer, (name, port)
            assert answer[:2] == ["out", "10.9.0.%d" % node.number]
            assert 32768 <= answer[2] <= 60999


def test_two_containers_with_the_same_source_port_both_get_out(w):
    for name in ("main1", "sub1"):
        assert probe(w.a.path(name), [("udp", OUT, PORT)], source_port=800)[("udp", OUT, PORT)]


def test_icmp_goes_out_and_errors_come_back(w):
    for s, name in senders(w):
        answers = probe(s.path(name), [("icmp", OUT, 0), ("udp", OUT, 9)])
        assert answers == {("icmp", OUT, 0): "echo", ("udp", OUT, 9): "refused"}, name


def test_a_smaller_mtu_on_the_way_out_is_found(w):
    w.world.ip("sw", "link", "set", "o", "mtu", "1300")
    try:
        for s, name in senders(w):
            with inside(s.path(name)):
                u = socket.socket(type=socket.SOCK_DGRAM)
            u.setsockopt(socket.IPPROTO_IP, 10, 2)
            u.connect((OUT, PORT))
            u.send(bytes(1400))
            time.sleep(0.2)
            with contextlib.suppress(OSError):
                u.send(b"x")  # takes the error
            assert u.getsockopt(socket.IPPROTO_IP, 14) == 1300, name  # IP_MTU
            u.close()
    finally:
        w.world.ip("sw", "link", "set", "o", "mtu", "1500")
        for s, name in senders(w):
            run_in(s.path(name), "ip", "route", "flush", "cache")


def test_other_protocols_do_not_leave(w):
    sniffer = Sniffer(w.world.path("out"), "o")
    for s, name in senders(w):
        with inside(s.path(name)):
            for proto in (47, 132):  # GRE, SCTP
                raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, proto)
                with contextlib.suppress(OSError):
                    raw.sendto(bytes(12) + MAGIC, (OUT, 0))
                raw.close()
    assert not sniffer.saw()


def test_a_false_source_gets_nowhere(w):
    a = w.a
    me, mate, far = a.ips["main1"], a.ips["sub1"], a.ips["sub2"]
    for to in ("sub1", "sub2"):
        there = Sniffer(a.path(to))
        true = udp_frame(mac_of(me), mac_of(a.ips[to]), me, a.ips[to])
        send_frame(a.path("main1"), true)
        assert there.saw(), "the true one must pass"
        false = [
            udp_frame(mac_of(me), mac_of(a.ips[to]), "10.128.4.77", a.ips[to]),
            udp_frame(mac_of(me), mac_of(a.ips[to]), far if to == "sub1" else mate, a.ips[to]),
            udp_frame(mac_of(mate), mac_of(a.ips[to]), me, a.ips[to]),
            udp_frame(GATEWAY_MAC, mac_of(a.ips[to]), me, a.ips[to]),
            arp_frame(mac_of(me), BROADCAST, mac_of(me), mate, a.ips[to]),
            arp_frame(mac_of(me), BROADCAST, mac_of(mate), me, a.ips[to]),
            arp_frame(mac_of(me), BROADCAST, GATEWAY_MAC, "169.254.1.1", a.ips[to]),
            BROADCAST + mac_of(me) + b"\x86\xdd" + MAGIC,
            BROADCAST + mac_of(me) + b"\x81\x00\x00\x05\x08\x00" + MAGIC]
        for frame in false:
            send_frame(a.path("main1"), frame)
        assert [f for f in there.frames() if MAGIC in f] == []
    out = Sniffer(w.world.path("out"), "o")
    for s in (a, w.c):
        ip = s.ips["main1"]
        for source in ("10.9.0.1", "10.128.8.1", "10.128.4.2", "203.0.113.9", "169.254.64.6"):
            send_frame(s.path("main1"), udp_frame(mac_of(ip), GATEWAY_MAC, source, OUT))
    assert not out.saw()


def test_frames_for_another_sessions_container_do_not_arrive(w):
    there = [Sniffer(w.b.path(n)) for n in w.b.names] + [Sniffer(w.c.path("main1"))]
    me = w.a.ips["main1"]
    for ip in [*w.b.ips.values(), w.c.ips["main1"]]:
        for mac in (mac_of(ip), GATEWAY_MAC, BROADCAST):
            send_frame(w.a.path("main1"), udp_frame(mac_of(me), mac, me, ip))
    assert not any(s.saw() for s in there)


def test_there_is_no_ipv6_and_no_link_local_address_at_the_node(w):
    for s in w.sessions:
        for name in s.names:
            assert run_in(s.path(name), "ip", "-6", "addr").stdout == ""
    for h in (w.h1, w.h2):
        out = run_in(h.path, "ip", "-o", "-6", "addr").stdout
        assert "m-" + h.tag not in out
        assert "fe80" in out  # the node's own networks have it


def forged(w):
    """A VXLAN packet into session a: from sub2 (h2) to main1 (h1)."""
    inner = udp_frame(mac_of(w.a.ips["sub2"]), mac_of(w.a.ips["main1"]), w.a.ips["sub2"],
                      w.a.ips["main1"])
    return vxlan(w.a.vni, inner)


def send_vxlan(path, data, to, uid=0):
    code = ("import os,socket;os.setuid(%d);s=socket.socket(%d,socket.SOCK_DGRAM);"
            "s.sendto(bytes.fromhex('%s'),('%s',4789))" %
            (uid, socket.AF_INET6 if ":" in to else socket.AF_INET, data.hex(), to))
    return run_in(path, "/usr/bin/python3", "-c", code, check=False)


def test_vxlan_is_taken_from_peers_only(w):
    there = Sniffer(w.a.path("main1"))
    send_vxlan(w.h2.path, forged(w), "10.8.0.1")
    assert there.saw(), "a peer's packet must pass, or this test shows nothing"
    for to in ("10.8.0.1", "10.9.0.1"):
        assert send_vxlan(w.world.path("fx"), forged(w), to).returncode == 0
        assert not there.saw()


def test_only_root_of_a_node_may_send_vxlan(w):
    there = Sniffer(w.a.path("main1"))
    for node, to in ((w.h2, "10.8.0.1"), (w.h1, "10.8.0.1"), (w.h1, "127.0.0.1"), (w.h2, "10.9.0.1")):
        done = send_vxlan(node.path, forged(w), to, uid=1000)
        assert done.returncode != 0 and "PermissionError" in done.stderr
    assert not there.saw()


def test_a_container_cannot_send_vxlan(w):
    there = Sniffer(w.a.path("main1"))
    out = Sniffer(w.world.path("out"), "o")
    for s, name in ((w.b, "main1"), (w.b, "sub2"), (w.c, "main1"), (w.d, "main1")):
        for to in ("10.8.0.1", "10.8.0.2", "10.9.0.1", "169.254.64.1", "169.254.1.1", OUT):
            send_vxlan(s.path(name), forged(w), to)
    assert not there.saw() and not out.saw(b"muster-edge", 0)


def test_vxlan_with_a_wrong_sender_inside_is_dropped(w):
    there = Sniffer(w.a.path("main1"))
    me = w.a.ips["main1"]
    for src_mac, src in ((mac_of(w.a.ips["sub2"]), w.a.ips["sub1"]), (GATEWAY_MAC, "169.254.1.1"),
                         (mac_of(w.b.ips["sub2"]), w.b.ips["sub2"])):
        send_vxlan(w.h2.path, vxlan(w.a.vni, udp_frame(src_mac, mac_of(me), src, me)), "10.8.0.1")
    assert not there.saw()


def test_a_flushed_ruleset_opens_nothing_and_is_repaired(w):
    for h in (w.h1, w.h2):
        run_in(h.path, "nft", "flush", "ruleset")
    try:
        check_isolation(w)
        assert probe(w.a.path("main1"), [("tcp", w.a.ips["sub2"], PORT)])[("tcp", w.a.ips["sub2"], PORT)]
    finally:
        repaired = [h.tool("repair").stdout.split()[0] for h in (w.h1, w.h2)]
    assert repaired == ["1", "1"]
    assert w.h1.tool("repair").stdout.split()[0] == "0"
    for s, name in senders(w):
        assert probe(s.path(name), [("tcp", OUT, PORT)])[("tcp", OUT, PORT)]
    check_isolation(w)


@pytest.mark.parametrize("change", [
    "insert rule inet muster_t1 leaving accept",
    "flush chain inet muster_t1 vxlan_in",
    "add element inet muster_t1 peers4 { 10.8.0.66 }",
    "delete table inet muster_t1",
])
def test_a_changed_table_is_noticed_and_repaired(w, change):
    before = w.h1.state()
    run_in(w.h1.path, "nft", change)
    assert w.h1.state() != before
    assert w.h1.tool("repair", 3).stdout.split()[0::2] == ["1", "0", "0"]
    assert w.h1.state() == before


def test_other_tables_are_left_alone(w):
    run_in(w.h1.path, "nft", "add table inet theirs; add chain inet theirs c")
    w.h1.tool("setup")
    assert "table inet theirs" in run_in(w.h1.path, "nft", "list", "ruleset").stdout
    run_in(w.h1.path, "nft", "delete table inet theirs")


def test_the_watch_wakes_up_when_somebody_flushes(w):
    argv = ["nsenter", "--net=" + w.h1.path, TOOL, "netns-dir=" + w.h1.pins, "tag=t1",
            "fabric=10.8.0.1", "watch"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as p:
        assert p.stdout.readline() == "watching\n"
        run_in(w.h1.path, "nft", "flush", "ruleset")
        assert p.stdout.readline() == "woken, then quiet\n"
    assert w.h1.tool("repair").stdout.split()[0] == "1"


def test_making_again_changes_nothing_and_breaks_no_connection(w):
    with inside(w.a.path("sub2")):
        server = socket.create_server(("0.0.0.0", 6001))
    with inside(w.a.path("main1")):
        inner = socket.create_connection((w.a.ips["sub2"], 6001), timeout=5)
    conn, _ = server.accept()
    with inside(w.world.path("out")):
        out_server = socket.create_server(("0.0.0.0", 6002))
    outer, out_conn = [], []
    for s in (w.a, w.c):
        with inside(s.path("main1")):
            outer.append(socket.create_connection((OUT, 6002), timeout=5))
        out_conn.append(out_server.accept()[0])
    paths = [w.h1.path] + [w.h1.pin(w.a)] + [w.a.path(n) for n in ("main1", "sub1")] + [w.c.path("main1")]
    before = [w.h1.state(p) for p in paths]
    w.h1.tool("setup")
    for _ in range(2):
        w.h1.tool("up", 0, *w.a.words())
        w.h1.tool("up", 2, *w.c.words())
    for path, old in zip(paths, before):
        assert set(w.h1.state(path)) ^ set(old) == set(), path
    for x, y in [(inner, conn), *zip(outer, out_conn)]:
        for s, t in ((x, y), (y, x)):
            t.settimeout(5)
            s.sendall(b"still here")
            assert t.recv(64) == b"still here"
            s.settimeout(5)
    for s in (inner, conn, server, out_server, *outer, *out_conn):
        s.close()


def sessions_to_break(w):
    return {"shared": Session(20, [w.h1, w.h1, w.h2], 0x4d0020), "solo": Session(21, [w.h1], 0)}


@pytest.mark.parametrize("kind", ["shared", "solo"])
def test_removing_leaves_nothing_and_may_be_repeated(w, kind):
    s = sessions_to_break(w)[kind]
    before, pins = w.h1.state(), w.h1.pins_left()
    w.h1.tool("up", 30, *s.words())
    assert w.h1.state() != before
    assert s.id in w.h1.tool("list").stdout.split()
    for _ in range(2):
        w.h1.tool("remove", s.id)
        assert (w.h1.state(), w.h1.pins_left()) == (before, pins)
    assert s.id not in w.h1.tool("list").stdout.split()
    with open("/proc/self/mountinfo") as f:
        assert s.id not in f.read()


HALF_MADE = [(kind, point, how) for kind, point in (
    ("shared", "net.after_filter"), ("shared", "net.after_link"), ("shared", "net.after_port"),
    ("solo", "net.after_filter"), ("solo", "net.after_link")) for how in ("fail", "kill")]


@pytest.mark.parametrize("case", some(HALF_MADE, [HALF_MADE[2 * i + i % 2] for i in range(5)]), ids="-".join)
def test_what_was_half_made_is_finished_or_removed(w, case):
    kind, point, how = case
    s = sessions_to_break(w)[kind]
    before, pins = w.h1.state(), w.h1.pins_left()
    crash = "%s=%s" % (point, how)
    for finish in (True, False):
        done = w.h1.tool("up", 30, *s.words(), crash=crash, check=False)
        if done.returncode == 0 and not finish:
            pytest.skip("built without crash points")
        if how == "fail":
            assert "crash point '%s'" % point in done.stderr
        else:
            assert done.returncode == -9 or done.returncode == 137
        if finish:
            w.h1.tool("up", 30, *s.words())
            path = w.h1.pin(s, "main1")
            assert probe(path, [("tcp", OUT, PORT)])[("tcp", OUT, PORT)]
        w.h1.tool("remove", s.id)
        assert (w.h1.state(), w.h1.pins_left()) == (before, pins)


def test_an_edge_number_in_use_is_refused(w):
    s = sessions_to_break(w)["solo"]
    done = w.h1.tool("up", 2, *s.words(), check=False)
    assert done.returncode == 1
    assert "edge number 2 is session %s's" % w.c.id in done.stderr
    w.h1.tool("remove", s.id)
    assert probe(w.c.path("main1"), [("tcp", OUT, PORT)])[("tcp", OUT, PORT)]


def test_a_vni_in_use_is_refused(w):
    s = Session(22, [w.h1, w.h2], w.a.vni)
    done = w.h1.tool("up", 30, *s.words(), check=False)
    assert "VNI %d: cannot make VXLAN device" % w.a.vni in done.stderr
    w.h1.tool("remove", s.id)


def test_ten_sessions_are_made_and_removed_at_once(w):
    before, pins = w.h1.state(), w.h1.pins_left()
    done = w.h1.tool("storm", 10)
    assert done.stdout.count("session made") == 10
    assert (w.h1.state(), w.h1.pins_left()) == (before, pins)


def test_edges_that_stand_get_the_new_list_of_blocked_networks(w):
    w.h1.tool("setup", blocked=["203.0.113.0/24"])
    run_in(w.h1.path, "nft", "flush", "ruleset")  # so that only the edges judge
    assert "203.0.113.0/24" in run_in(w.h1.pin(w.a), "nft", "list", "ruleset").stdout
    assert "203.0.113.0/24" in run_in(w.c.path("main1"), "nft", "list", "ruleset").stdout
    w.h1.tool("setup")
    assert "203.0.113.0/24" not in run_in(w.h1.pin(w.a), "nft", "list", "ruleset").stdout
    assert probe(w.a.path("main1"), [("tcp", OUT, PORT)])[("tcp", OUT, PORT)]


def test_bridge_netfilter_in_an_edge_does_no_harm(w):
    key = "net.bridge.bridge-nf-call-iptables"
    if run_in(w.h1.pin(w.a), "sysctl", "-n", key, check=False).returncode != 0:
        pytest.skip("no bridge netfilter in this kernel")
    assert run_in(w.h1.pin(w.a), "sysctl", "-n", key).stdout == "0\n"
    run_in(w.h1.pin(w.a), "sysctl", "-qw", key + "=1")
    try:
        targets = [("tcp", w.a.ips["sub1"], PORT), ("tcp", w.a.ips["sub2"], PORT), ("tcp", OUT, PORT)]
        assert all(probe(w.a.path("main1"), targets).values())
    finally:
        run_in(w.h1.pin(w.a), "sysctl", "-qw", key + "=0")


def test_the_agent_reaches_a_container_through_a_socket_in_its_namespace(w):
    for s in (w.a, w.c):
        for ip in ("127.0.0.1", s.ips["main1"]):
            out = w.h1.tool("connect", s.path("main1"), ip, PORT).stdout
            assert s.id[:8] + ".main1" in out
    done = w.h1.tool("connect", w.h1.pins + "/nobody", "127.0.0.1", PORT, check=False)
    assert "No such file or directory" in done.stderr


def test_a_low_port_needs_no_privilege_in_a_container(w):
    code = ("import os,socket;os.setgid(1000);os.setuid(1000);"
            "s=socket.create_server(('',22));"
            "socket.socket(socket.AF_INET,socket.SOCK_DGRAM,socket.IPPROTO_ICMP)")
    for s, name in senders(w):
        run_in(s.path(name), "/usr/bin/python3", "-c", code)


@pytest.mark.parametrize("words,text", [
    (["x", "10.128.4.0", "0", "main1=10.128.4.1@10.8.0.1"], "the session's id is no UUID"),
    (["ID", "10.128.5.0", "0", "main1=10.128.5.1@10.8.0.1"], "the session's network is no /22"),
    (["ID", "10.128.4.0", "0", "main1=10.128.9.1@10.8.0.1"], "is not in the session's network"),
    (["ID", "10.128.4.0", "0", "main1=10.128.4.1@nowhere"], "has no fabric address"),
    (["ID", "10.128.4.0", "0", "../x=10.128.4.1@10.8.0.1"], "must be of a-z and 0-9"),
    (["ID", "10.128.4.0", "0", "main1=10.128.4.1@10.8.0.1", "sub1=10.128.4.2@10.8.0.2"],
     "containers on several nodes, but no VNI"),
])
def test_an_assignment_that_cannot_be_is_refused(w, words, text):
    words = ["99999999-1111-4111-8111-111111111111" if x == "ID" else x for x in words]
    done = w.h1.tool("make", 40, *words, check=False)
    assert done.returncode == 1 and text in done.stderr
    assert not any("9999" in p for p in w.h1.pins_left())


@pytest.fixture
def six(w):
    """A second pair of agents beside the first, with the fabric's IPv6 addresses."""
    p = Place()
    p.h1, p.h2 = (Node(w.world, i, "fd00:8::%d" % i, w.h1.peers, "six", "169.254.128.0")
                  for i in (1, 2))
    p.before = [h.state() for h in (p.h1, p.h2)]
    for h in (p.h1, p.h2):
        h.tool("setup")
    p.s = Session(7, [p.h1, p.h1, p.h2], 0x4d0007)
    p.s.up(0)
    p.s.serve(w.echo)
    yield p
    for h, before in zip((p.h1, p.h2), p.before):
        h.tool("clear")
        assert h.state() == before


def test_the_fabric_may_be_ipv6_and_two_agents_may_share_a_node(w, six):
    assert six.h1.tool("mtu", *six.s.words()).stdout == "1430\n"
    for name in six.s.names:
        targets = [(k, ip, PORT) for ip in six.s.ips.values() for k in ("tcp", "udp", "icmp")]
        assert all(probe(six.s.path(name), targets + [("tcp", OUT, PORT)]).values())
        targets = [(k, ip, PORT) for s in w.sessions for ip in s.ips.values() for k in
                   ("tcp", "icmp")] + [("tcp", "169.254.64.2", PORT), ("icmp", "10.8.0.1", 0)]
        assert not any(probe(six.s.path(name), targets).values())
    assert not any(probe(w.a.path("main1"), [("tcp", "169.254.128.2", PORT)]).values())
    there = Sniffer(six.s.path("main1"))
    me, far = six.s.ips["main1"], six.s.ips["sub2"]
    data = vxlan(six.s.vni, udp_frame(mac_of(far), mac_of(me), far, me))
    done = send_vxlan(w.h2.path, data, "fd00:8::1")
    assert done.returncode == 0, done.stderr
    assert there.saw()
    assert send_vxlan(w.world.path("fx"), data, "fd00:8::1").returncode == 0
    assert send_vxlan(w.h2.path, data, "fd00:8::1", uid=1000).returncode != 0
    assert not there.saw()


@pytest.fixture
def lone():
    """A single machine as `muster up` finds it: the fabric is lo."""
    p = Place()
    p.world = World()
    p.world.name += "l"
    p.world.dir += "l"
    os.makedirs(p.world.dir)
    p.world.ns("h1")
    p.h1 = Node(p.world, 1, "127.0.0.1", ["127.0.0.1"])
    p.empty = p.h1.state()
    try:
        yield p
    finally:
        p.world.clear([p.h1])


def test_a_single_machine_with_lo_as_its_fabric(lone):
    assert lone.h1.tool("fabric").stdout == "lo 1500\n"
    lone.h1.tool("setup")
    s, c = Session(5, [lone.h1] * 2, 0), Session(6, [lone.h1], 0)
    s.up(0)
    c.up(1)
    assert lone.h1.tool("mtu", *s.words()).stdout == "1500\n"
    assert probe(s.path("main1"), [("icmp", s.ips["sub1"], 0)])[("icmp", s.ips["sub1"], 0)]
    assert not any(probe(s.path("main1"), [("icmp", c.ips["main1"], 0)]).values())
    lone.h1.tool("clear")
    assert lone.h1.pins_left() == []
    assert lone.h1.state() == lone.empty


def test_clearing_works_when_the_pins_are_lost(lone):
    lone.h1.tool("setup")
    s, c = Session(5, [lone.h1] * 2, 0), Session(6, [lone.h1], 0)
    s.up(0)
    c.up(1)
    keep = [open(s.path("main1")), open(lone.h1.pin(s)), open(c.path("main1"))]
    for name in lone.h1.pins_left():
        path = os.path.join(lone.h1.pins, name)
        subprocess.run(["umount", "-l", path], check=True)
        os.unlink(path)
    assert "m-t1-000" in run_in(lone.h1.path, "ip", "link").stdout
    lone.h1.tool("clear")
    lone.h1.tool("clear")
    assert lone.h1.state() == lone.empty
    for f in keep:
        f.close()
