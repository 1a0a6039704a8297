"""The /opt/muster tree at work: in a container of an OCI runtime, with a user namespace, over a root
folder that has neither a libc nor a shell.

MUSTER_GUEST names the tree to test (default: scripts/build-guest.sh builds or fetches it).
"""

import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "scripts/build-guest.sh"
MAPS = [(0, 200000, 1000), (1000, 20001, 1), (1001, 201001, 64535)]
HOST_ROOT, HOST_USER = 200000, 20001
CAPABILITIES = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETUID", "SETGID", "SETFCAP", "SYS_CHROOT", "KILL"]
# crun 1.8 gives up when it sees a hybrid cgroup layout; and it gives /dev/null to the user, which must
# not be the machine's own
RUNTIME = ["unshare", "--mount", "sh", "-c", "umount /sys/fs/cgroup/unified 2>/dev/null;"
           'mount --bind /dev/null /dev/null && mount -o remount,bind,ro /dev/null && exec "$@"', "-", "crun",
           "--cgroup-manager=disabled", "--root"]  # fmt: skip

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("crun"), reason="needs root and crun"
)


@pytest.fixture(scope="session")
def guest():
    if "MUSTER_GUEST" in os.environ:
        yield Path(os.environ["MUSTER_GUEST"])
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([BUILD, f"{folder}/guest"], check=True)
        Path(folder).chmod(0o755)
        yield Path(folder) / "guest"


def put(path, text, owner=HOST_ROOT, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    os.chown(path, owner, owner)


class Cell:
    """An idle container with sshd."""

    def __init__(self, guest, shell="/opt/muster/lib/busybox/sh", tty_group=5, variables=None):
        self.guest = guest
        self.dir = Path(tempfile.mkdtemp(prefix="muster-guest-"))
        self.dir.chmod(0o755)
        self.name = f"guest-{uuid.uuid4().hex[:8]}"
        self.make_root(shell, tty_group)
        self.make_etc(variables or {"MUSTER_TEST": "a b"})
        (self.dir / "config.json").write_text(json.dumps(self.config()))
        self.log = open(self.dir / "log", "w+")
        self.process = subprocess.Popen(
            [*RUNTIME, self.dir / "state", "run", "--bundle", self.dir, self.name],
            stdin=subprocess.PIPE, stdout=self.log, stderr=self.log,
        )  # fmt: skip
        self.wait_for_ssh()

    def make_root(self, shell, tty_group):
        root = self.dir / "rootfs"
        for folder in ("proc", "sys", "dev", "tmp", "etc/muster", "opt/muster", "home/work"):
            (root / folder).mkdir(parents=True)
        put(root / "etc/passwd", f"root:x:0:0::/root:{shell}\nwork:x:1000:1000::/home/work:{shell}\n")
        put(root / "etc/group", f"root:x:0:\ntty:x:{tty_group}:\nwork:x:1000:\n")
        put(root / "etc/hosts", "127.0.0.1 localhost main1\n")
        for path in [root, *root.rglob("*")]:
            os.chown(path, HOST_ROOT, HOST_ROOT)
        os.chown(root / "home/work", HOST_USER, HOST_USER)
        (root / "tmp").chmod(0o1777)

    def make_etc(self, variables):
        etc = self.dir / "etc"
        ssh = etc / "ssh"
        ssh.mkdir(parents=True)
        (etc / "init").mkdir()
        for name in ("host", "id"):
            subprocess.run(
                [self.guest / "bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh / name], check=True
            )
            os.chown(ssh / name, HOST_USER, HOST_USER)
        put(ssh / "authorized_keys", (ssh / "id.pub").read_text())
        put(ssh / "ssh_known_hosts", f"main1 {(ssh / 'host.pub').read_text()}")
        put(ssh / "ssh_config", "Host *\n  IdentityFile /etc/muster/ssh/id\n  StrictHostKeyChecking yes\n")
        words = " ".join(f'"{name}={value}"' for name, value in variables.items())
        put(
            ssh / "sshd_config",
            "Port 22\nHostKey /etc/muster/ssh/host\nAuthorizedKeysFile /etc/muster/ssh/authorized_keys\n"
            "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            f"UseDNS no\nSubsystem sftp internal-sftp\nSetEnv {words}\n",
        )
        put(etc / "init/plan", "sshd=/opt/muster/sbin/sshd\0sshd-config=/etc/muster/ssh/sshd_config\0")
        put(etc / "init/go", "")

    def config(self):
        def bind(source, target, *options):
            options = ["rbind", "nosuid", "nodev", *options]
            return {"destination": target, "type": "bind", "source": str(source), "options": options}

        caps = [f"CAP_{name}" for name in CAPABILITIES]
        ids = [{"containerID": c, "hostID": h, "size": n} for c, h, n in MAPS]
        return {
            "ociVersion": "1.0.2",
            "root": {"path": "rootfs"},
            "hostname": "main1",
            "process": {
                "args": ["/opt/muster/bin/muster-init"],
                "cwd": "/",
                "env": [],
                "user": {"uid": 0, "gid": 0},
                "capabilities": {"bounding": caps, "effective": caps, "permitted": caps},
            },
            "mounts": [
                {"destination": "/proc", "type": "proc", "source": "proc"},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
                 "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
                bind(self.guest, "/opt/muster", "ro"),
                bind(self.dir / "etc", "/etc/muster", "ro"),
            ],
            "linux": {
                "namespaces": [{"type": t} for t in ("pid", "ipc", "uts", "mount", "user", "network")],
                "uidMappings": ids,
                "gidMappings": ids,
                "sysctl": {"net.ipv4.ip_unprivileged_port_start": "0"},
            },
        }  # fmt: skip

    def run(self, *args, check=True, **keys):
        """A program inside, as the user."""
        done = subprocess.run(
            [*RUNTIME, self.dir / "state", "exec", "--user", "1000:1000", "--env", "HOME=/home/work",
             "--env", "PATH=/opt/muster/bin", self.name, *args],
            capture_output=True, text=True, timeout=30, **keys,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, (done.stderr, self.said())
        return done

    def ssh(self, *args, **keys):
        return self.run("/opt/muster/bin/ssh", *args, **keys)

    def sh(self, script, **keys):
        return self.run("/opt/muster/lib/busybox/sh", "-c", script, **keys)

    def said(self):
        return (self.dir / "log").read_text()

    def wait_for_ssh(self):
        end = time.monotonic() + 10
        while True:
            done = self.ssh("main1", "true", check=False, stdin=subprocess.DEVNULL)
            if done.returncode == 0:
                return
            if time.monotonic() > end or self.process.poll() is not None:
                text = f"no SSH: {done.stderr} {self.said()}"
                self.close()
                pytest.fail(text)
            time.sleep(0.05)

    def close(self):
        subprocess.run([*RUNTIME, self.dir / "state", "delete", "--force", self.name], capture_output=True)
        self.process.wait(10)
        self.log.close()
        shutil.rmtree(self.dir)


@pytest.fixture(scope="module")
def cell(guest):
    cell = Cell(guest)
    yield cell
    cell.close()


# --- the tree -------------------------------------------------------------------------------------


def test_every_program_is_static(guest):
    programs = [p for folder in ("bin", "sbin", "libexec") for p in (guest / folder).iterdir()]
    names = {p.name for p in programs}
    assert {"muster-init", "ssh", "scp", "sftp", "ssh-keygen", "busybox", "sshd", "sftp-server"} <= names
    for program in programs:
        headers = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
        assert "INTERP" not in headers, program
        assert os.access(program, os.X_OK)


def test_the_tree_is_small(guest):
    assert sum(p.stat().st_size for p in guest.rglob("*") if not p.is_symlink()) < 8 << 20
    assert (guest / "bin/muster-init").stat().st_size < 100_000


def test_a_second_build_changes_nothing_and_takes_no_time(guest, tmp_path):
    def state():
        return {p: (p.lstat().st_ino, p.lstat().st_mtime_ns) for p in tmp_path.rglob("*")}

    subprocess.run([BUILD, tmp_path], check=True)
    def cpu():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before, began = state(), cpu()
    subprocess.run([BUILD, tmp_path], check=True)
    assert cpu() - began < 1
    assert state() == before


def test_a_build_says_what_it_cannot_do(tmp_path):
    done = subprocess.run(["/bin/sh", BUILD], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "build-guest: usage: build-guest.sh DEST [CACHE_DIR]\n"
    for name in ("dirname", "readelf", "grep", "sh", "cat"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = subprocess.run(
        ["/bin/sh", BUILD, tmp_path / "guest"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "musl-tools" in done.stderr and "./run deps" in done.stderr


# --- SSH ------------------------------------------------------------------------------------------


def test_a_login_is_the_user_without_privileges(cell):
    out = cell.ssh("main1", "id -u; id -g; pwd; grep -E '^Cap(Prm|Eff|Amb)' /proc/self/status").stdout
    uid, gid, home, *caps = out.splitlines()
    assert (uid, gid, home) == ("1000", "1000", "/home/work")
    assert [c.split()[1] for c in caps] == ["0" * 16] * 3


def test_the_exit_code_comes_back(cell):
    assert cell.ssh("main1", "exit 7", check=False).returncode == 7


def test_a_stranger_is_refused_without_a_question(cell):
    # the host key of no known host, then no key at all
    done = cell.ssh("localhost", "true", check=False)
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr
    done = cell.ssh("-F", "none", "-o", "BatchMode=yes", "main1", "true", check=False)
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr


def test_a_login_has_all_the_variables_of_the_configuration(guest):
    many = {f"MUSTER_TEST_{i}": f"{i} of $many" for i in range(1100)}  # more than the 1,000 that sshd takes elsewhere
    cell = Cell(guest, variables=many)
    try:
        seen = dict(line.split("=", 1) for line in cell.ssh("main1", "env").stdout.splitlines())
        assert {name: seen.get(name) for name in many} == many
        assert seen["PATH"] == "/opt/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    finally:
        cell.close()


def test_a_file_goes_by_scp_and_by_sftp(cell):
    cell.sh(
        """
        set -e; cd /tmp; head -c 3000000 /dev/urandom > a
        scp -q a main1:/tmp/b; cmp a b
        echo 'get /tmp/a /tmp/c' | sftp -q -b - main1; cmp a c
        scp -q -O a main1:/tmp/d; cmp a d
        echo 'get /tmp/a /tmp/e' | sftp -q -s /opt/muster/libexec/sftp-server -b - main1; cmp a e
        """
    )


def test_a_terminal_is_given(cell):
    out = cell.ssh("-tt", "main1", "tty; stat -c '%u %a' $(tty); echo x > /dev/tty", stdin=subprocess.DEVNULL).stdout
    assert out.splitlines()[0].startswith("/dev/pts/")
    assert out.splitlines()[1].split() == ["1000", "620"]
    assert out.splitlines()[2] == "x"


def test_a_port_is_forwarded(cell):
    out = cell.sh(
        """
        nc -l -p 7001 -e /bin/false & cd /tmp
        echo hello > page; nc -l -p 7000 < page & sleep 0.2
        ssh -f -L 7100:main1:7000 main1 sleep 2
        nc 127.0.0.1 7100 < /dev/null
        kill %1 2>/dev/null || true
        """
    ).stdout
    assert out == "hello\n"


def test_the_container_says_nothing_of_ssh(cell):
    cell.ssh("main1", "true")
    assert cell.said() == ""


def test_an_interactive_login_works_without_a_shell_in_the_image(cell):
    out = cell.ssh("-tt", "main1", input="echo $((6 * 7)); ls /etc; exit 3\n", check=False)
    assert out.returncode == 3
    assert "\n42\n" in out.stdout
    assert "passwd" in out.stdout


@pytest.mark.parametrize("tty_group", [77, 70000])
def test_a_terminal_is_given_whatever_number_the_images_tty_group_has(guest, tty_group):
    cell = Cell(guest, tty_group=tty_group)
    try:
        out = cell.ssh("-tt", "main1", "tty; echo x > /dev/tty", stdin=subprocess.DEVNULL).stdout
        assert out.startswith("/dev/pts/")
    finally:
        cell.close()
