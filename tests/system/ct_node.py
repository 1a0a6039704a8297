"""A node with nothing but the container part of the agent: folders, images, and calls of ct_tool.

CT_TOOL, CT_CALL and MUSTER_INIT name the programs (default: those of the build folder).
"""

import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = os.environ.get("CT_TOOL", str(ROOT / "build/tests/system/ct_tool"))
SHIM = str(Path(TOOL).parents[2] / "src/agent/muster-runtime")
INIT = os.environ.get("MUSTER_INIT", str(ROOT / "build/src/init/muster-init"))
CALL = os.environ.get("CT_CALL", str(ROOT / "build/tests/system/ct_call"))
SLOW = float(os.environ.get("MUSTER_SLOW", "1"))  # how much longer to wait, for emulated machines
BUSYBOX = shutil.which("busybox")
UID, SUB = 23457, 0x2a000000  # nobody else's on this machine


def have_all():
    """Why these tests cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("crun", "conmon", "mkfs.erofs", "busybox", "ssh-keygen"):
        if not shutil.which(program):
            return f"needs {program}"
    for path in (TOOL, INIT, CALL):
        if not os.path.exists(path):
            return f"needs {path}: build it"
    return None


class Images:
    """Blobs as an importer would leave them: BLOBS/sha256/HEX."""

    def __init__(self, folder):
        self.folder = Path(folder)
        (self.folder / "sha256").mkdir(parents=True)

    def blob(self, fill):
        """An EROFS blob of the tree that fill(path) makes; its digest."""
        with tempfile.TemporaryDirectory(prefix="muster-tree-") as tree:
            os.chmod(tree, 0o755)
            fill(Path(tree))
            file = self.folder / "new"
            subprocess.run(["mkfs.erofs", "-zlz4", file, tree], check=True, capture_output=True)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        file.rename(self.folder / "sha256" / digest)
        return f"sha256:{digest}"


def busybox_tree(tree):
    """A root with a shell and the usual programs, root's files, no work."""
    for name in ("bin", "etc", "home", "root", "tmp", "usr/bin", "var"):
        (tree / name).mkdir(parents=True)
    (tree / "tmp").chmod(0o1777)
    shutil.copy(BUSYBOX, tree / "bin/busybox")
    for name in subprocess.check_output([BUSYBOX, "--list"], text=True).split():
        if name != "busybox":
            (tree / "bin" / name).symlink_to("busybox")
    (tree / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nubuntu:x:1000:1000::/home/ubuntu:/bin/sh\n")
    (tree / "etc/group").write_text("root:x:0:\nubuntu:x:1000:\ndisk:x:6:ubuntu\n")


@functools.cache
def keypair(number):
    """One of a few: which keys they are is no matter here."""
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "muster", "-f", f"{d}/k"], check=True)
        return Path(f"{d}/k").read_text(), Path(f"{d}/k.pub").read_text()


class Failed(Exception):
    pass


class Node:
    """Run-time folders of one agent; every call is a process that could have died."""

    def __init__(self, base, images, cgroup):
        self.base = Path(base)
        self.images = images
        self.cgroup = cgroup
        self.run_dir = self.base / "run"
        self.state_dir = self.base / "state"
        self.guest = self.base / "guest"
        self.run_dir.mkdir(parents=True)
        self.state_dir.mkdir()
        (self.guest / "bin").mkdir(parents=True)
        (self.guest / "lib/busybox").mkdir(parents=True)
        shutil.copy(INIT, self.guest / "bin/muster-init")
        shutil.copy(BUSYBOX, self.guest / "bin/busybox")
        shutil.copy(BUSYBOX, self.guest / "lib/busybox/sh")
        self.guest_ssh()
        self.keys = keypair(0) + keypair(1)
        self.sessions = []

    def guest_ssh(self):
        """The static OpenSSH if a built guest tree is named, else sshd that only sleeps."""
        built = os.environ.get("MUSTER_GUEST")
        if built:
            shutil.rmtree(self.guest)
            shutil.copytree(built, self.guest, symlinks=True)
            shutil.copy(INIT, self.guest / "bin/muster-init")
            return
        (self.guest / "sbin").mkdir()
        script = self.guest / "sbin/sshd"
        script.write_text("#!/opt/muster/bin/busybox sh\nexec /opt/muster/bin/busybox sleep 100000\n")
        script.chmod(0o755)

    def session(self, layers, count=1, **keys):
        s = Session(self, layers, count, **keys)
        self.sessions.append(s)
        return s

    def inside(self, *argv, check=True):
        """Run in the agent's mount namespace."""
        return self.sessions[0].tool("inside", *argv, check=check)

    def mounts(self):
        """Mount points below the run folder in the agent's namespace."""
        if not (self.run_dir / "ns/mnt").exists():
            return []
        out = subprocess.run(["nsenter", f"--mount={self.run_dir}/ns/mnt", "cat", "/proc/self/mountinfo"],
                             capture_output=True, text=True, check=True).stdout
        return [line.split()[4] for line in out.splitlines() if str(self.base) in line.split()[4]]

    def close(self):
        for s in self.sessions:
            s.remove(*(["then", "blob-gc"] if s is self.sessions[-1] else []))
        subprocess.run([TOOL, self.run_dir, "ns-remove"], check=True)


class Session:
    def __init__(self, node, layers, count, command=None, env=(), gpus=(), mounts=(), uid=UID, sub=SUB, mem=256 << 20,
                 cpu=1000, shm=32 << 20, gpu_spec="none", pids_max=200, forbid=0, workdir="", **more):
        self.node = node
        self.id = str(uuid.uuid4())
        self.ids = [self.id] + [str(uuid.uuid4()) for _ in range(count - 1)]
        names = ["main1"] + [f"sub{i}" for i in range(1, count)]
        peers = [{"name": n, "ip": f"10.128.0.{i + 2}", "node": "testnode", "fabric": "127.0.0.1"} for i, n in enumerate(names)]
        containers = [{"id": self.ids[i], "name": n, "rank": i, "gpus": list(gpus[i]) if gpus else [],
                       "env": [f"NAME={n}", "PATH=/usr/bin:/bin:/opt/muster/bin", "HOME=/home/work", "USER=work", *env],
                       "command": command} for i, n in enumerate(names)]
        private, public, host_private, host_public = node.keys
        assignment = {
            "cluster": str(uuid.uuid4()), "epoch": 1, "incarnation": str(uuid.uuid4()), "revision": 1, "boot_id": str(uuid.uuid4()), "session": self.id, "num": 1,
            "attempt": 1, "phase": "prepare", "stop_reason": "", "kill_now": False,
            "user": {"name": "alice", "role": "user", "uid": uid, "sub_base": sub, "disabled": False},
            "kind": "train", "each": {"cpu_milli": cpu, "gpus": len(gpus[0]) if gpus else 0, "mem": mem}, "shm": shm,
            "grace_usec": 1000000, "stop_signal": 15, "workdir": workdir,
            "mounts": [{"source": str(s), "target": t, "read_only": ro} for s, t, ro in mounts],
            "image_id": "sha256:" + "0" * 64, "layers": [{"digest": d, "size": 1} for d in layers],
            "subnet": "10.128.0.0", "vni": 0, "peers": peers,
            "ssh_private": private, "ssh_public": public, "ssh_host_private": host_private, "ssh_host_public": host_public,
            "hosts": "127.0.0.1 localhost\n" + "".join(f"{p['ip']} {p['name']}\n" for p in peers),
            "hostfile": "".join(f"{n} slots=1\n" for n in names), "containers": containers,
        }
        assignment.update(more)
        self.config = {"run": str(node.run_dir), "state": str(node.state_dir), "blobs": str(node.images.folder),
                       "guest": str(node.guest), "shim": SHIM, "cgroup": node.cgroup, "gpus": gpu_spec, "pids_max": pids_max,
                       "forbid": forbid, "assignment": assignment}
        self.config_file = node.base / f"{self.id}.json"
        self.checked = set()
        self.write()

    def write(self):
        self.config_file.write_text(json.dumps(self.config))

    def env(self, words, repeats):
        """Looking for leaks takes three quarters of a call's time, so it is done once for calls that
        say the same again, like those of a loop that waits."""
        call = tuple(map(str, words))
        env = dict(os.environ)
        if repeats and call in self.checked:
            env["ASAN_OPTIONS"] = f"{env.get('ASAN_OPTIONS', '')}:detect_leaks=0"
        self.checked.add(call)
        return env

    def tool(self, verb, *args, check=True, crash=None, text=True, repeats=False, **keys):
        env = self.env((verb, *args[:2]), repeats) | ({"MUSTER_CRASH": crash} if crash else {})
        done = subprocess.run([TOOL, self.config_file, verb, *map(str, args)], capture_output=True, text=text,
                              stdin=subprocess.DEVNULL, env=env, timeout=60 * SLOW, **keys)
        if check and done.returncode != 0:
            raise Failed(f"{verb}: {done.stderr}")
        return done

    def ask(self, verb, *args, **keys):
        return json.loads(self.tool(verb, *args, **keys).stdout)

    def make(self, i=0, **keys):
        return self.tool("make", i, **keys)

    def start(self, i=0, **keys):
        return self.tool("netns", i, "then", "start", i, **keys)

    def up(self, i=0):
        self.tool("make", i, "then", "netns", i, "then", "start", i)
        return self

    def go(self, i=0):
        self.tool("barrier", i)

    def state(self, i=0):
        return self.ask("state", i, repeats=True)

    def record(self, i=0):
        return self.ask("record", i, repeats=True)

    def run(self, *command, i=0, user="work", check=True, text=True):
        return self.tool("exec", i, user, "pipe", *command, check=check, text=text, repeats=True)

    def sh(self, script, i=0, user="work", check=True):
        return self.run("/bin/sh", "-c", script, i=i, user=user, check=check).stdout.strip()

    def wait(self, what, i=0, seconds=15):
        end = time.monotonic() + seconds * SLOW
        while True:
            state = self.state(i)
            if what(state):
                return state
            if time.monotonic() > end:
                raise Failed(f"waited in vain: {state}")
            time.sleep(0.02)

    def merged(self, i=0):
        return self.node.run_dir / "ct" / self.ids[i] / "merged"

    def upper(self, i=0):
        return self.node.state_dir / "ct" / self.ids[i] / "upper"

    def log_file(self, i=0):
        return self.node.state_dir / "log" / self.ids[i]

    def log(self, i=0):
        return parse_log(self.log_file(i).read_bytes())

    def groups(self, i=0):
        """The container's folder in every hierarchy."""
        path = f"{self.node.cgroup}/{self.id}/{self.ids[i]}"
        return [d / path for d in [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()] if (d / path).is_dir()]

    def remove(self, *then):
        words = []
        for i in range(len(self.ids)):
            words += ["remove", i, "then", "unmake", i, "then", "netns-remove", i, "then"]
        self.tool(*words, "session-remove", *then)


def parse_log(data):
    """The bytes of stdout from conmon's k8s-file format: "TIME STREAM P|F DATA\\n"; F ends a line."""
    out = bytearray()
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        _, stream, tag, text = data[at:end].split(b" ", 3)
        assert stream in (b"stdout", b"stderr") and tag in (b"P", b"F"), data[at:at + 80]
        out += text + (b"\n" if tag == b"F" else b"")
        at = end + 1
    return bytes(out)
