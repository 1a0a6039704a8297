"""A small data centre of network namespaces for test_edge.py.

    out (203.0.113.9) --- sw (router, two switches) --- mgmt   10.9.0.0/24 --- h1 h2 fx
                                                    \\-- fabric 10.8.0.0/24 --- h1 h2 fx

h1 and h2 are nodes (10.9.0.1 and .2), fx is a stranger on both networks, out is the internet.
Everything is made below a name of its own and taken away again.
"""
import contextlib
import ctypes
import json
import os
import re
import selectors
import socket
import struct
import subprocess
import threading
import time

TOOL = os.path.join(
    os.environ.get("MUSTER_BUILD", os.path.join(os.path.dirname(__file__), "../../build")),
    "tests/system/edge_tool")
PORT = 5000
MAGIC = b"muster-edge-test"
libc = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def inside(path):
    """Work in another network namespace: sockets made here stay there."""
    with open("/proc/thread-self/ns/net") as home, open(path) as away:
        if libc.setns(away.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), path)
        try:
            yield
        finally:
            assert libc.setns(home.fileno(), 0x40000000) == 0


def run_in(path, *argv, check=True, **more):
    return subprocess.run(["nsenter", "--net=" + path, *argv], check=check, text=True,
                          capture_output=True, timeout=60, **more)


class Echo:
    """TCP and UDP on one port of many namespaces: says who it is and whom it sees."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.stopped = False
        self.thread = threading.Thread(target=self.loop, daemon=True)
        self.thread.start()

    def serve(self, path, name, port=PORT):
        with inside(path):
            tcp = socket.socket()
            udp = socket.socket(type=socket.SOCK_DGRAM)
        for s in (tcp, udp):
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("0.0.0.0", port))
            s.setblocking(False)
        tcp.listen(200)
        self.selector.register(tcp, selectors.EVENT_READ, ("tcp", name))
        self.selector.register(udp, selectors.EVENT_READ, ("udp", name))

    def loop(self):
        while not self.stopped:
            for key, _ in self.selector.select(0.1):
                kind, name = key.data
                with contextlib.suppress(OSError):
                    if kind == "tcp":
                        conn, peer = key.fileobj.accept()
                        conn.sendall(json.dumps([name, *peer]).encode())
                        conn.close()
                    else:
                        _, peer = key.fileobj.recvfrom(65536)
                        key.fileobj.sendto(json.dumps([name, *peer]).encode(), peer)

    def stop(self):
        self.stopped = True
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()


def checksum(data):
    data += b"\0" * (len(data) % 2)
    s = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return ~s & 0xffff


def mac_of(ip):
    return b"\x02\x4d" + socket.inet_aton(ip)


def udp_frame(src_mac, dst_mac, src, dst, payload=MAGIC, port=PORT):
    udp = struct.pack("!HHHH", 4000, port, 8 + len(payload), 0) + payload
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 7, 0, 64, 17, 0,
                       socket.inet_aton(src), socket.inet_aton(dst))
    head = head[:10] + struct.pack("!H", checksum(head)) + head[12:]
    return dst_mac + src_mac + b"\x08\x00" + head + udp


def arp_frame(eth_src, dst_mac, sender_mac, sender_ip, target_ip):
    return (dst_mac + eth_src + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x800, 6, 4, 2) + sender_mac +
            socket.inet_aton(sender_ip) + b"\xff" * 6 + socket.inet_aton(target_ip) + MAGIC)


def vxlan(vni, frame):
    return struct.pack("!II", 0x08000000, vni << 8) + frame


def probe_socket(path, target, source_port):
    """A question on its way, or None: the filter said at once that it may not (EPERM, ENETUNREACH)."""
    kind, ip, port = target
    with inside(path):
        if kind == "icmp":
            s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        else:
            s = socket.socket(type=socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    s.setblocking(False)
    if source_port:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", source_port))
    try:
        if kind == "icmp":
            m = struct.pack("!BBHHH", 8, 0, 0, 77, 1) + MAGIC
            m = m[:2] + struct.pack("!H", checksum(m)) + m[4:]
            s.sendto(m, (ip, 0))
        else:
            s.connect((ip, port))
            if kind == "udp":
                s.send(b"hello")
    except BlockingIOError:
        pass
    except OSError:
        s.close()
        return None
    return s


def probe_all(questions, wait=0.7, source_port=None):
    """{who: (path, [(kind, ip, port)])}, all at once -> {who: {target: answer}}. An answer is what the
    echo said, "refused" (somebody is there) or None (silence)."""
    answers = {who: {t: None for t in targets} for who, (_, targets) in questions.items()}
    socks = {}
    for who, (path, targets) in questions.items():
        for t in targets:
            s = probe_socket(path, t, source_port)
            if s:
                socks[s] = who, t
    end = time.monotonic() + wait
    with selectors.DefaultSelector() as sel:
        for s in socks:
            sel.register(s, selectors.EVENT_READ)
        while sel.get_map() and time.monotonic() < end:
            for key, _ in sel.select(max(0, end - time.monotonic())):
                s, (who, t) = key.fileobj, socks[key.fileobj]
                try:
                    data, peer = s.recvfrom(4096)
                    if t[0] == "icmp":
                        if peer[0] != t[1] or data[20] != 0:
                            continue
                        answers[who][t] = "echo"
                    else:
                        answers[who][t] = json.loads(data)
                except ConnectionRefusedError:
                    answers[who][t] = "refused"
                except OSError:
                    pass
                sel.unregister(s)
    for s in socks:
        s.close()
    return answers


def probe(path, targets, **more):
    """probe_all of one: {target: answer}."""
    return probe_all({path: (path, targets)}, **more)[path]


class Sniffer:
    """Frames that arrive at a device, waited for by what they contain."""

    def __init__(self, path, dev="eth0"):
        with inside(path):
            self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.sock.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
            self.sock.bind((dev, 3))
        self.sock.setblocking(False)

    def frames(self, wait=0.3):
        end = time.monotonic() + wait
        while True:
            try:
                data, where = self.sock.recvfrom(65536)
                if where[2] != socket.PACKET_OUTGOING:
                    yield data
            except BlockingIOError:
                if time.monotonic() > end:
                    return
                time.sleep(0.01)

    def saw(self, what=MAGIC, wait=0.3):
        return any(what in f for f in self.frames(wait))


def send_frame(path, frame, dev="eth0"):
    with inside(path):
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind((dev, 0))
            s.send(frame)


class Node:
    def __init__(self, world, number, fabric, peers=(), tag="t", uplinks="169.254.64.0"):
        self.world, self.number, self.fabric, self.peers = world, number, fabric, peers
        self.path = world.path("h%d" % number)
        self.tag, self.uplinks = "%s%d" % (tag, number), uplinks
        self.pins = os.path.join(world.dir, self.tag)
        self.blocked = ["10.8.0.0/24", "10.9.0.0/24"]
        self.checked = set()

    def tool(self, *words, crash=None, check=True, blocked=()):
        argv = [TOOL, "netns-dir=" + self.pins, "tag=" + self.tag, "fabric=" + self.fabric,
                "uplinks=" + self.uplinks]
        argv += ["blocked=" + b for b in [*self.blocked, *blocked]]
        argv += ["peer=" + p for p in self.peers]
        argv += [str(w) for w in words]
        env = dict(os.environ, **({"MUSTER_CRASH": crash} if crash else {}))
        if crash is None and tuple(argv) in self.checked:  # see ct_node.py
            env["ASAN_OPTIONS"] = f"{env.get('ASAN_OPTIONS', '')}:detect_leaks=0"
        self.checked.add(tuple(argv))
        done = run_in(self.path, *argv, check=False, env=env)
        if check:
            assert done.returncode == 0, done.stderr
        return done

    def pin(self, session, name=None):
        return os.path.join(self.pins, session.id + ("." + name if name else ""))

    def state(self, path=None):
        """All of a namespace's network as text, to compare."""
        path = path or self.path
        out = run_in(path, "sh", "-ec", "ip -d link; ip addr; ip route show table all; "
                     "ip neigh show nud permanent; bridge fdb; nft -s list ruleset").stdout
        return [re.sub(r"\w+_timer +[\d.]+", "", line).rstrip() for line in out.splitlines()
                if " fe80::" not in line]

    def pins_left(self):
        return sorted(os.listdir(self.pins)) if os.path.isdir(self.pins) else []


class Session:
    def __init__(self, number, places, vni):
        self.id = "%08x-1111-4111-8111-111111111111" % number
        self.net = "10.128.%d.0" % (4 * number)
        self.names = ["main1" if i == 0 else "sub%d" % i for i in range(len(places))]
        self.ips = {n: "10.128.%d.%d" % (4 * number, i + 1) for i, n in enumerate(self.names)}
        self.nodes = dict(zip(self.names, places))
        self.vni = vni

    def words(self):
        return [self.id, self.net, self.vni] + [
            "%s=%s@%s" % (n, self.ips[n], self.nodes[n].fabric) for n in self.names]

    def up(self, index):
        for node in set(self.nodes.values()):
            node.tool("up", index, *self.words())

    def path(self, name):
        return self.nodes[name].pin(self, name)

    def serve(self, echo):
        for n in self.names:
            echo.serve(self.path(n), self.id[:8] + "." + n)


class World:
    def __init__(self):
        self.name = "mt%d" % os.getpid()
        self.dir = "/run/%s" % self.name
        self.made = []

    def path(self, ns):
        return "/run/netns/%s-%s" % (self.name, ns)

    def ns(self, name):
        subprocess.run(["ip", "netns", "add", self.name + "-" + name], check=True)
        self.made.append(name)
        self.ip(name, "link", "set", "lo", "up")

    def ip(self, ns, *words):
        subprocess.run(["ip", "-n", self.name + "-" + ns, *words], check=True)

    def plug(self, ns, switch, dev, addr):
        self.ip("sw", "link", "add", dev + ns, "type", "veth", "peer", "name", dev, "netns",
                self.name + "-" + ns)
        self.ip("sw", "link", "set", dev + ns, "master", switch, "up")
        self.ip(ns, "addr", "add", addr, "dev", dev)
        self.ip(ns, "link", "set", dev, "up")

    def build(self):
        os.makedirs(self.dir)
        for n in ("sw", "out", "h1", "h2", "fx"):
            self.ns(n)
        run_in(self.path("sw"), "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for b in ("mgmt", "fabric"):
            self.ip("sw", "link", "add", b, "type", "bridge")
            self.ip("sw", "link", "set", b, "up")
        self.ip("sw", "addr", "add", "10.9.0.254/24", "dev", "mgmt")
        for ns, number in (("h1", 1), ("h2", 2), ("fx", 66)):
            self.plug(ns, "mgmt", "mg", "10.9.0.%d/24" % number)
            self.plug(ns, "fabric", "fb", "10.8.0.%d/24" % number)
            self.ip(ns, "addr", "add", "fd00:8::%d/64" % number, "dev", "fb", "nodad")
            self.ip(ns, "route", "add", "default", "via", "10.9.0.254")
        self.ip("sw", "link", "add", "o", "type", "veth", "peer", "name", "o", "netns",
                self.name + "-out")
        for ns, addr in (("sw", "203.0.113.1/24"), ("out", "203.0.113.9/24")):
            self.ip(ns, "addr", "add", addr, "dev", "o")
            self.ip(ns, "link", "set", "o", "up")
        # no way back but to the nodes: what leaves without NAT gets no answer
        self.ip("out", "route", "add", "10.9.0.0/24", "via", "203.0.113.1")
        # the stranger knows the ways
        for net, via in (("10.128.0.0/9", "10.8.0.1"), ("169.254.64.0/18", "10.9.0.1")):
            self.ip("fx", "route", "add", net, "via", via)

    def clear(self, nodes):
        for n in nodes:
            n.tool("clear", check=False)
        for name in self.made:
            subprocess.run(["ip", "netns", "del", self.name + "-" + name], check=False)
        for top, _, files in os.walk(self.dir, topdown=False):
            for f in files:
                os.unlink(os.path.join(top, f))
            os.rmdir(top)


def device_bytes(path, dev):
    link = json.loads(run_in(path, "ip", "-s", "-j", "link", "show", dev).stdout)[0]
    return link["stats64"]["tx"]["bytes"] + link["stats64"]["rx"]["bytes"]
