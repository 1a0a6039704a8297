"""Containers on a real kernel: roots, limits, identity, devices, logs, and that nothing is left over.

Needs root, crun, conmon, erofs-utils, busybox-static and ssh-keygen.
"""

import errno
import os
import pty
import re
import select
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

import ct_node
from ct_node import SUB, TOOL, UID, Failed, Images, Node, busybox_tree
from harness.tiers import some

pytestmark = pytest.mark.skipif(ct_node.have_all() is not None, reason=str(ct_node.have_all()))

CGROUPS = Path("/sys/fs/cgroup")
V2 = (CGROUPS / "cgroup.controllers").exists()
SLEEP = ["/bin/sleep", "1000"]


@pytest.fixture(scope="module")
def images():
    folder = tempfile.mkdtemp(prefix="muster-ct-blobs-")
    os.chmod(folder, 0o755)
    yield Images(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def base_layer(images):
    return images.blob(busybox_tree)


@pytest.fixture
def node(images):
    """A node; everything on it is removed at the end, and looked for."""
    folder = Path(tempfile.mkdtemp(prefix="muster-ct-"))
    folder.chmod(0o755)
    tag = "test" + uuid.uuid4().hex[:8]
    made = Node(folder / "n", images, f"muster/{tag}")
    yield made
    try:
        made.close()
        assert_nothing_left(made)
        owner = os.stat("/dev/null").st_uid
        assert owner != UID and not SUB <= owner < SUB + 3 * 65536, "a runtime gave the node's to a user"
    finally:
        rescue(made)
        shutil.rmtree(folder)


def rescue(node):
    """After a failed test: nothing of it stays on the machine."""
    for file in node.run_dir.glob("ct/*/pid"):
        pid = int(file.read_text())
        if str(file.parent.name) in proc_text(pid, "cgroup"):
            os.kill(pid, signal.SIGKILL)
    time.sleep(0.05)
    for path in (node.run_dir / "ns/mnt", node.run_dir / "ns"):
        subprocess.run(["umount", "-l", path], capture_output=True)
    for group in groups(node.cgroup):
        subprocess.run(["find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"], capture_output=True)


def proc_text(pid, file):
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except OSError:
        return ""


def groups(path):
    return [d / path for d in [CGROUPS, *CGROUPS.iterdir()] if (d / path).is_dir()]


def mentions(word, file):
    """Processes whose /proc/PID/FILE has the word in it."""
    pids = [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]
    return [p for p in pids if word in proc_text(p, file)]


def assert_nothing_left(node):
    assert mentions(str(node.base), "mountinfo") == [], "a mount lives on in some namespace"
    assert mentions(str(node.base), "cmdline") == []
    for session in node.sessions:
        assert [g for g in groups(node.cgroup) if (g / session.id).exists()] == []
    for group in groups(node.cgroup):
        group.rmdir()
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout
    assert str(node.images.folder) not in loops
    left = [p for d in ("ct", "crun", "exec", "exit", "netns", "blob") for p in (node.run_dir / d).glob("*")]
    assert left == []
    assert list((node.state_dir / "ct").glob("*")) == []


# --- a container's life -------------------------------------------------------------------------

def test_a_container_waits_at_the_barrier_then_runs_and_ends(node, base_layer):
    s = node.session([base_layer], command=["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]).up()
    state = s.state()
    assert state["exists"] and state["running"] and state["conmon_pid"] > 0 and not state["exit_known"]
    assert s.record() == {"started": False, "start_failed": False, "exited": False, "signalled": False, "code": 0, "text": ""}
    assert s.log() == b""
    s.go()
    state = s.wait(lambda st: st["exit_known"])
    assert state["exit_code"] == 7 and not state["running"] and not state["oom"]
    assert s.record()["exited"] and s.record()["code"] == 7
    assert sorted(s.log().split(b"\n")) == [b"", b"err", b"out"]


def test_a_command_that_is_not_there_is_recorded(node, base_layer):
    s = node.session([base_layer], command=["/no/such/thing"]).up()
    s.go()
    s.wait(lambda st: not st["running"])
    assert s.record()["start_failed"] and "ENOENT" in s.record()["text"]


def test_make_and_start_are_idempotent(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    before = s.state()
    s.make()
    s.start()
    assert s.state() == before
    s.go()
    s.tool("remove", 0)
    s.tool("remove", 0)
    s.tool("unmake", 0)
    s.tool("unmake", 0)
    assert not s.state()["exists"]


def test_one_that_has_run_and_ended_is_not_started_again(node, base_layer):
    s = node.session([base_layer], command=["/bin/true"]).up()
    s.go()
    s.wait(lambda st: st["exit_known"])
    with pytest.raises(Failed, match="the container has run and ended"):
        s.start()


def test_a_signal_reaches_init_and_none_when_it_is_gone(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    s.go()
    s.wait(lambda st: s.record()["started"])
    s.tool("kill", 0, int(signal.SIGTERM))
    s.wait(lambda st: not st["running"])
    assert s.record()["signalled"] and s.record()["code"] == signal.SIGTERM
    with pytest.raises(Failed, match="the container does not run"):
        s.tool("kill", 0, int(signal.SIGTERM))


def test_the_agents_start_finds_what_is_there(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    assert s.ask("list") == {"roots": [s.id], "runtime": [s.id]}
    s.remove()
    assert s.ask("list") == {"roots": [], "runtime": []}


def test_two_containers_of_a_session_are_apart(node, base_layer):
    s = node.session([base_layer], count=2, command=SLEEP)
    s.up(0).up(1)
    assert s.sh("hostname", 0) == "main1" and s.sh("hostname", 1) == "sub1"
    s.sh("echo only > /home/work/file", 0)
    assert s.sh("cat /home/work/file 2>&1 || true", 1).endswith("No such file or directory")
    assert s.sh("ls /sys/class/net", 0) == "lo"


# --- limits -------------------------------------------------------------------------------------

def limit(s, controller, v1, v2):
    group = f"{s.node.cgroup}/{s.id}/{s.ids[0]}"
    path = CGROUPS / group / v2 if V2 else CGROUPS / controller / group / v1
    return path.read_text().strip()


def test_limits_are_what_was_asked(node, base_layer):
    s = node.session([base_layer], cpu=1500, mem=96 << 20, shm=16 << 20, pids_max=77, command=SLEEP).up()
    assert limit(s, "memory", "memory.limit_in_bytes", "memory.max") == str(96 << 20)
    if V2:
        assert limit(s, "", "", "memory.swap.max") == "0"
        assert limit(s, "", "", "cpu.max") == "150000 100000"
    else:
        assert limit(s, "memory", "memory.memsw.limit_in_bytes", "") == str(96 << 20)
        assert limit(s, "cpu", "cpu.cfs_quota_us", "") == "150000"
        assert limit(s, "cpu", "cpu.cfs_period_us", "") == "100000"
        assert limit(s, "cpu", "cpu.shares", "") == "1536"
    assert limit(s, "pids", "pids.max", "pids.max") == "77"
    assert s.sh("df -k /dev/shm | tail -1 | tr -s ' ' | cut -d' ' -f2") == str(16 << 10)


def test_a_kill_for_memory_is_told(node, base_layer):
    s = node.session([base_layer], mem=32 << 20, command=["/bin/sh", "-c", "tail /dev/zero"]).up()
    assert not s.state()["oom"]
    s.go()
    s.wait(lambda st: not st["running"])
    assert s.wait(lambda st: st["exit_known"])["oom"]


def test_a_fork_bomb_stops_at_its_limit(node, base_layer):
    s = node.session([base_layer], pids_max=30, command=SLEEP).up()
    out = s.run("/bin/sh", "-c", "for i in $(seq 60); do sleep 20 >/dev/null 2>&1 & done; echo end", check=False)
    assert "an't fork" in out.stderr
    assert int(limit(s, "pids", "pids.current", "pids.current")) <= 30


# --- identity and rights ------------------------------------------------------------------------

def test_files_on_a_volume_belong_to_the_user(node, base_layer):
    data = node.base / "data"
    data.mkdir()
    os.chown(data, UID, UID)
    s = node.session([base_layer], mounts=[(data, "/data", False)], command=SLEEP).up()
    s.sh("echo x > /data/mine")
    st = os.stat(data / "mine")
    assert (st.st_uid, st.st_gid) == (UID, UID)
    s.sh("mkdir /data/d; chmod 777 /data/d")
    s.sh("touch /data/d/roots /var/file", user="root")
    assert os.stat(data / "d/roots").st_uid == SUB
    assert os.stat(s.upper() / "var/file").st_uid == SUB


def test_nothing_in_the_upper_folder_is_the_nodes_root(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    s.sh("touch /tmp/a; chown 1000:1000 /tmp/a; touch /etc/b", user="root")
    owners = {os.lstat(p).st_uid for p in [s.upper(), *s.upper().rglob("*")]}
    assert owners == {SUB, UID}


def test_root_inside_can_use_its_ids_and_no_other(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    s.sh("touch /tmp/f; chown 999:65535 /tmp/f; chown 1001 /tmp/f", user="root")
    assert "Invalid argument" in s.run("/bin/chown", "70000", "/tmp/f", user="root", check=False).stderr


def test_capabilities_seccomp_and_namespaces(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    want = sum(1 << n for n in (0, 1, 3, 4, 5, 6, 7, 18, 31))
    for user, effective in (("work", 0), ("root", want)):
        status = dict(re.findall(r"^(\w+):\s+(\S+)", s.sh("cat /proc/self/status", user=user), re.M))
        assert int(status["CapEff"], 16) == effective and int(status["CapBnd"], 16) == want
        assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "0"
    pid = s.state()["pid"]
    for ns in ("pid", "ipc", "uts", "mnt", "user", "net", "cgroup"):
        assert os.readlink(f"/proc/{pid}/ns/{ns}") != os.readlink(f"/proc/self/ns/{ns}")
    assert proc_text(pid, "uid_map").split() == [str(n) for n in (0, SUB, 1000, 1000, UID, 1, 1001, SUB + 1001, 64535)]


@pytest.fixture(scope="module")
def with_calls(images):
    """A layer with the program that makes one system call."""
    def fill(tree):
        (tree / "bin").mkdir()
        shutil.copy(ct_node.CALL, tree / "bin/call")
    return images.blob(fill)


def test_forbidden_system_calls_are_refused(node, base_layer, with_calls):
    s = node.session([base_layer, with_calls], command=SLEEP).up()
    add_key, bpf, io_uring_setup, userfaultfd, mount, swapon, reboot, unshare = 248, 321, 425, 323, 165, 167, 169, 272
    assert int(s.sh(f"call {add_key} @user @x @y 1 -3")) == errno.ENOSYS
    assert int(s.sh(f"call {io_uring_setup} 1 0")) == errno.ENOSYS
    for user in ("work", "root"):
        assert int(s.sh(f"call {bpf} 0 0 0", user=user)) == errno.EPERM
        assert int(s.sh(f"call {userfaultfd} 0", user=user)) == errno.EPERM
        assert int(s.sh(f"call {swapon} @/dev/null 0", user=user)) == errno.EPERM
        assert int(s.sh(f"call {mount} @none @/tmp @tmpfs 0 0", user=user)) == errno.EPERM
        assert int(s.sh(f"call {reboot} 0xfee1dead 672274793 0", user=user)) != 0
        # unshare(CLONE_NEWNS): no CAP_SYS_ADMIN here
        assert int(s.sh(f"call {unshare} 0x20000", user=user)) == errno.EPERM


def test_what_is_read_only_stays_so(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    for path in ("/opt/muster/x", "/etc/muster/x", "/etc/muster/init/go", "/etc/muster/ssh/x", "/sys/x", "/proc/sys/kernel/x"):
        assert s.sh(f"echo x 2>/dev/null > {path} || echo no", user="root") == "no", path
    assert "Read-only" in s.run("/bin/chmod", "600", "/dev/null", user="root", check=False).stderr
    assert s.sh("echo 1 > /proc/sys/kernel/core_pattern || echo no", user="root") == "no"
    assert s.sh("ls /proc/acpi /sys/firmware 2>/dev/null | grep -v :", check=False) == ""
    s.sh("echo x > /dev/null; head -c 4 /dev/zero > /dev/null; : > /dev/full; head -c1 /dev/urandom >/dev/null")


# --- volumes ------------------------------------------------------------------------------------

def test_a_read_only_volume_is_read_only_to_its_depth(node, base_layer):
    data = node.base / "data"
    (data / "deep").mkdir(parents=True)
    os.chown(data, UID, UID)
    (data / "file").write_text("text")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "none", data / "deep"], check=True)
    try:
        s = node.session([base_layer], mounts=[(data, "/data", True)], command=SLEEP).up()
        assert s.sh("cat /data/file") == "text"
        for user in ("work", "root"):
            assert "Read-only" in s.run("/bin/touch", "/data/x", user=user, check=False).stderr
            assert "Read-only" in s.run("/bin/touch", "/data/deep/x", user=user, check=False).stderr
        assert re.search(r" /data/deep ro,nosuid,nodev", s.sh("cat /proc/self/mountinfo"))
        s.remove()
    finally:
        subprocess.run(["umount", data / "deep"], check=True)


def test_a_setuid_program_or_device_on_a_volume_does_nothing(node, base_layer):
    data = node.base / "data"
    data.mkdir()
    shutil.copy(ct_node.BUSYBOX, data / "id")
    os.chmod(data / "id", 0o4755)
    os.mknod(data / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    s = node.session([base_layer], mounts=[(data, "/data", False)], command=SLEEP).up()
    assert s.sh("/data/id -u") == "1000"
    assert "ermission denied" in s.run("/bin/cat", "/data/null", check=False).stderr


def test_a_volume_inside_a_volume(node, base_layer):
    outer, inner = node.base / "outer", node.base / "inner"
    outer.mkdir()
    inner.mkdir()
    os.chown(outer, UID, UID)
    (inner / "file").write_text("inner")
    s = node.session([base_layer], mounts=[(inner, "/home/work/a/b", True), (outer, "/home/work", False)], command=SLEEP).up()
    assert s.sh("cat a/b/file; touch here") == "inner"
    assert os.stat(outer / "a/b").st_uid == UID and (outer / "here").exists()


def test_a_link_in_a_volumes_path_is_refused(node, base_layer):
    (node.base / "real").mkdir()
    (node.base / "link").symlink_to("real")
    s = node.session([base_layer], mounts=[(node.base / "link", "/data", False)])
    with pytest.raises(Failed, match="has a symbolic link in its path"):
        s.make()
    s = node.session([base_layer], mounts=[(node.base / "missing", "/data", False)])
    with pytest.raises(Failed, match="No such file or directory"):
        s.make()


@pytest.mark.parametrize("target", ["/", "/etc", "/etc/muster", "/dev/shm", "/proc", "/opt", "/opt/muster/bin", "/sys/fs"])
def test_a_volume_on_what_is_ours_is_refused(node, base_layer, target):
    (node.base / "data").mkdir()
    s = node.session([base_layer], mounts=[(node.base / "data", target, False)])
    with pytest.raises(Failed, match="cannot be mounted on|clean absolute path|target"):
        s.make()


def test_a_race_on_a_volumes_path_never_shows_another_folder(node, base_layer):
    """Somebody swaps the folder for a link to / as fast as possible while containers are made."""
    (node.base / "v").mkdir()
    (node.base / "v" / "mark").touch()
    (node.base / "evil").symlink_to("/")
    racer = subprocess.Popen(["python3", "-c", f"""
import ctypes, os
libc = ctypes.CDLL(None)
os.chdir({str(node.base)!r})
while True:
    libc.syscall(316, -100, b"v", -100, b"evil", 2)
"""])
    try:
        made = 0
        for _ in range(12):
            s = node.session([base_layer], mounts=[(node.base / "v", "/data", False)])
            if s.tool("make", 0, check=False).returncode == 0:
                made += 1
                assert s.tool("inside", "ls", s.merged() / "data").stdout == "mark\n"
            s.remove()
    finally:
        racer.kill()
        racer.wait()
    assert 0 <= made <= 12


# --- hostile images -----------------------------------------------------------------------------

def trap(images, base_layer, fill):
    return [base_layer, images.blob(fill)]


PARENTS = ["dev", "proc", "sys", "etc", "opt", "home"]
BELOW = ["opt/muster", "home/work", "etc/muster", "etc/ssh", "etc/passwd", "etc/hosts", "etc/resolv.conf", "dev/null",
         "dev/console"]


@pytest.mark.parametrize("names", [PARENTS, BELOW, *(pytest.param([n], marks=pytest.mark.full) for n in PARENTS + BELOW)],
                         ids=["parents", "below", *PARENTS, *BELOW])
@pytest.mark.parametrize("to", ["{host}", "../../../../../../../..{host}", "/nowhere"])
def test_a_link_to_the_node_changes_nothing_there(node, images, base_layer, names, to):
    host = node.base / "host"
    host.mkdir()
    to = to.format(host=host)

    def fill(tree):
        for name in names:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).symlink_to(to)
    s = node.session(trap(images, base_layer, fill), command=["/bin/true"]).up()
    assert list(host.iterdir()) == []
    assert s.sh("id -un; cat /etc/hostname; ls /opt/muster/bin/muster-init; test -c /dev/null && test -d /proc/1 && echo good").split() == [
        "work", "main1", "/opt/muster/bin/muster-init", "good"]
    assert s.sh("cd; touch a; pwd") == "/home/work"
    s.go()
    assert s.wait(lambda st: st["exit_known"])["exit_code"] == 0
    assert list(host.iterdir()) == []


def test_a_passwd_that_is_a_fifo(node, images, base_layer):
    def fill(tree):
        (tree / "etc").mkdir()
        os.mkfifo(tree / "etc/passwd")
        os.mkfifo(tree / "etc/group")
        os.mkfifo(tree / "etc/hosts")
    s = node.session(trap(images, base_layer, fill), command=SLEEP).up()
    assert s.sh("cat /etc/passwd").split("\n")[-1] == "work:x:1000:1000::/home/work:/bin/sh"
    assert "main1" in s.sh("cat /etc/hosts")


@pytest.mark.parametrize("size", [256 << 20, pytest.param(10 << 30, marks=pytest.mark.full)])
def test_a_huge_passwd_is_not_copied(node, images, base_layer, size):
    def fill(tree):
        (tree / "etc").mkdir()
        with open(tree / "etc/passwd", "w") as f:
            f.truncate(size)
    try:
        layers = trap(images, base_layer, fill)
    except subprocess.CalledProcessError:
        pytest.skip("this mkfs.erofs does not pack it")
    begin = time.monotonic()
    s = node.session(layers, command=SLEEP).up()
    assert time.monotonic() - begin < 15 * ct_node.SLOW
    assert s.sh("id -un") == "work"
    assert sum(f.stat().st_blocks * 512 for f in s.upper().rglob("*")) < 1 << 20


def test_a_passwd_that_is_a_folder(node, images, base_layer):
    def fill(tree):
        (tree / "etc/passwd/deep").mkdir(parents=True)
        (tree / "etc/passwd/deep/file").touch()
    s = node.session(trap(images, base_layer, fill), command=SLEEP).up()
    assert s.sh("id -un") == "work"


def test_an_images_own_work_and_uid_1000_are_replaced(node, images, base_layer):
    def fill(tree):
        (tree / "etc").mkdir()
        (tree / "etc/passwd").write_text("work:x:0:0::/:/bin/false\nroot:x:0:0:root:/root:/bin/sh\nbob:x:01000:5::/:/bin/sh\nx:x:1001:1::/:/bin/sh\ngarbage\n")
        (tree / "etc/group").write_text("work:x:0:\nroot:x:0:\nbob:x:1000:\n")
        (tree / "etc/shadow").write_text("root:*:1::::::\nwork::1::::::\n")
    s = node.session(trap(images, base_layer, fill), command=SLEEP).up()
    assert s.sh("cat /etc/passwd").split("\n") == ["root:x:0:0:root:/root:/bin/sh", "x:x:1001:1::/:/bin/sh", "work:x:1000:1000::/home/work:/bin/sh"]
    assert s.sh("cat /etc/group").split("\n") == ["root:x:0:", "work:x:1000:"]
    assert s.sh("cat /etc/shadow", user="root").split("\n") == ["root:*:1::::::", "work:*:19000:0:99999:7:::"]
    assert s.sh("cat /etc/shadow 2>&1 || true").endswith("Permission denied")
    assert s.sh("id") == "uid=1000(work) gid=1000(work)"


def test_a_device_node_of_an_image_does_not_open(node, images, base_layer):
    def fill(tree):
        os.mknod(tree / "disk", stat.S_IFBLK | 0o666, os.makedev(254, 0))
        os.mknod(tree / "kmsg", stat.S_IFCHR | 0o666, os.makedev(1, 11))
    s = node.session(trap(images, base_layer, fill), command=SLEEP).up()
    for path in ("/disk", "/kmsg"):
        assert "ermission denied" in s.run("/bin/cat", path, user="root", check=False).stderr


def test_an_image_without_anything_in_it(node, images):
    s = node.session([images.blob(lambda tree: (tree / "only").touch())], command=None).up()
    assert s.run("/opt/muster/bin/busybox", "id", "-un").stdout == "work\n"
    assert s.state()["running"]


def test_hundred_layers(node, images, base_layer):
    layers = [base_layer] + [images.blob(lambda t, i=i: (t / f"layer{i}").write_text(str(i))) for i in range(100)]
    s = node.session(layers + [layers[5]], command=SLEEP).up()
    assert s.sh("ls / | grep -c layer; cat /layer4 /layer99") == "100\n499"


# --- blobs --------------------------------------------------------------------------------------

@pytest.mark.parametrize("forbid", [0, 4, 7], ids=["new kernel", "no layers by fd", "loop devices"])
def test_containers_share_one_mount_of_a_blob(node, images, base_layer, forbid):
    other = images.blob(lambda t: (t / "x").touch())
    a = node.session([base_layer], command=SLEEP, forbid=forbid).up()
    b = node.session([base_layer, other], command=SLEEP, forbid=forbid, uid=UID + 1, sub=SUB + 65536).up()
    assert a.sh("id -un") == b.sh("id -un") == "work"
    assert len([m for m in node.mounts() if "/blob/" in m]) == 2
    devices = node.inside("sh", "-c", f"grep -c ' {node.run_dir}/blob/{base_layer[7:]} ' /proc/self/mountinfo").stdout.strip()
    assert devices == "1"
    for s in (a, b):
        assert s.tool("inside", "stat", "-c%u", f"{s.merged()}/bin/busybox").stdout.strip() == str(s.config["assignment"]["user"]["sub_base"])
    a.tool("blob-gc")
    assert len([m for m in node.mounts() if "/blob/" in m]) == 2
    b.remove()
    a.tool("blob-gc")
    assert [m for m in node.mounts() if "/blob/" in m] == [f"{node.run_dir}/blob/{base_layer[7:]}"]


def test_a_blob_that_is_not_there_or_no_image_is_refused(node, images, base_layer):
    s = node.session(["sha256:" + "1" * 64])
    with pytest.raises(Failed, match="cannot open blob '111111111111': No such file"):
        s.make()
    assert node.mounts() == []
    (images.folder / "sha256" / ("2" * 64)).write_bytes(b"no file system" * 1000)
    s = node.session(["sha256:" + "2" * 64])
    with pytest.raises(Failed, match="blob '222222222222': cannot make a mount of 'erofs'"):
        s.make()


def test_many_at_once_mount_a_blob_once(node, images, base_layer):
    sessions = [node.session([base_layer]) for _ in range(6)]
    tools = [subprocess.Popen([TOOL, s.config_file, "make", "0"]) for s in sessions]
    assert [t.wait() for t in tools] == [0] * 6
    assert len([m for m in node.mounts() if "/blob/" in m]) == 1


# --- devices ------------------------------------------------------------------------------------

def test_only_the_own_gpu_opens(node, base_layer, with_calls):
    s = node.session([base_layer, with_calls], gpu_spec="fake:h100:4", gpus=[[2]], command=SLEEP).up()
    assert s.sh("ls /dev | grep nvidia") == "nvidia2"
    assert int(s.sh("call /dev/nvidia2")) == errno.ENXIO
    s.sh("call /dev/nvidia2")
    uuids = [g["uuid"] for g in s.ask("gpus")]
    assert len(set(uuids)) == 4 and all(re.fullmatch(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", u) for u in uuids)
    init = proc_text(s.state()["pid"], "environ")
    assert "NVIDIA" not in init
    plan = s.tool("inside", "cat", node.run_dir / "ct" / s.id / "etc/init/plan").stdout
    assert f"env=NVIDIA_VISIBLE_DEVICES={uuids[2]}\0" in plan and "env=CUDA_VISIBLE_DEVICES=0\0" in plan


def test_no_gpu_means_none(node, base_layer):
    s = node.session([base_layer], gpu_spec="fake:h100:4", command=SLEEP).up()
    assert s.sh("ls /dev | grep -c nvidia || true") == "0"
    plan = s.tool("inside", "cat", node.run_dir / "ct" / s.id / "etc/init/plan").stdout
    assert "env=NVIDIA_VISIBLE_DEVICES=void\0" in plan and "env=CUDA_VISIBLE_DEVICES=\0" in plan


def test_the_control_group_allows_no_other_device(node, base_layer):
    """A process of the node, put into the container's group, sees what the group allows."""
    s = node.session([base_layer], gpu_spec="fake:h100:4", gpus=[[2]], command=SLEEP).up()
    procs = next(g for g in s.groups() if V2 or "devices" in str(g)) / "cgroup.procs"
    nodes = node.base / "nodes"
    nodes.mkdir()
    numbers = {"own": (195, 2), "other": (195, 1), "ctl": (195, 255), "kmsg": (1, 11), "loop": (10, 237), "null": (1, 3)}
    for name, (major, minor) in numbers.items():
        os.mknod(nodes / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
    script = f"""
import os
open({str(procs)!r}, "w").write(str(os.getpid()))
for name in {list(numbers)}:
    try:
        os.open({str(nodes)!r} + "/" + name, os.O_RDWR)
        print(name, 0)
    except OSError as e:
        print(name, e.errno)
"""
    out = subprocess.run(["python3", "-c", script], capture_output=True, text=True, check=True).stdout
    assert dict(line.split() for line in out.splitlines()) == {
        "own": str(errno.ENXIO), "other": str(errno.EPERM), "ctl": str(errno.EPERM), "kmsg": str(errno.EPERM),
        "loop": str(errno.EPERM), "null": "0"}


# --- exec and ssh -------------------------------------------------------------------------------

def test_exec_has_the_environment_and_the_exit_code(node, base_layer):
    s = node.session([base_layer], env=["ODD=a b\"c'$d\\e"], command=SLEEP).up()
    assert s.sh('printf "%s" "$ODD|$NAME|$HOME|$USER"; pwd') == "a b\"c'$d\\e|main1|/home/work|work/home/work"
    assert s.sh('echo $HOME $USER; id -u', user="root") == "/root root\n0"
    assert s.run("/bin/sh", "-c", "exit 42", check=False).returncode == 42
    assert s.run("/no/such", check=False).returncode != 0
    assert list((node.run_dir / "exec").iterdir()) == []


def test_exec_with_a_terminal_is_a_login_shell_in_the_container(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    pid, fd = pty.fork()
    if pid == 0:
        os.execv(TOOL, [TOOL, str(s.config_file), "exec", "0", "work", "tty"])
    os.write(fd, b"tty; echo $TERM $0; stty size; exit 3\n")
    out = b""
    end = time.monotonic() + 15 * ct_node.SLOW
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.2)[0]:
            try:
                chunk = os.read(fd, 4096)
            except OSError:
                break
            if not chunk:
                break
            out += chunk
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    assert b"/dev/pts/0" in out and b"xterm" in out


def test_sshd_is_told_the_whole_environment(node, base_layer):
    odd = ["EMPTY=", "QUOTE=a\"b'c", "SLASH=\\\"\\\\ x", "HASH=#no comment", "TWO=line\nbreak", "UTF=스케줄"]
    s = node.session([base_layer], env=odd, command=SLEEP).up()
    folder = node.run_dir / "ct" / s.id / "etc/ssh"
    config = s.tool("inside", "cat", folder / "sshd_config").stdout
    lines = [line for line in config.splitlines() if line.startswith("SetEnv")]
    assert len(lines) == 1 and '"PS1=work@main1$ "' in lines[0] and "TWO" not in lines[0]
    sshd = shutil.which("sshd", path=f"{os.environ.get('MUSTER_GUEST', '')}/sbin:/usr/sbin:/usr/local/sbin")
    if not sshd:
        pytest.skip("no sshd to read it")
    local = node.base / "sshd_config"
    key = node.base / "host"
    key.write_text(node.keys[2])
    key.chmod(0o600)
    local.write_text(config.replace("/etc/muster/ssh/host_ed25519", str(key)))
    os.chown(key, UID, UID)
    # Not as root: then it looks for no user of its own.
    readable = node.base / "sshd"  # a clone may be where only root looks
    shutil.copy(sshd, readable)
    shown = subprocess.run([readable, "-T", "-f", local], capture_output=True, text=True, user=UID, group=UID, extra_groups=[])
    assert (shown.returncode, shown.stderr) == (0, "")
    told = [line[len("setenv "):] for line in shown.stdout.splitlines() if line.startswith("setenv ")]
    joined = "\n".join(told)
    for variable in odd:
        if "\n" not in variable:
            assert variable.split("=", 1)[1] in joined or variable == "EMPTY="


@pytest.mark.skipif("MUSTER_GUEST" not in os.environ, reason="needs the built guest tree: MUSTER_GUEST")
def test_ssh_works_with_no_question(node, base_layer):
    s = node.session([base_layer], env=["ODD=a \"b"], command=SLEEP).up()
    # The container's own namespace has only loopback: reach sshd there by the session's address.
    pid = s.state()["pid"]
    subprocess.run(["nsenter", "-t", str(pid), "-n", "sh", "-c",
                    "ip link set lo up; ip addr add 10.128.0.2/32 dev lo; sysctl -qw net.ipv4.ip_unprivileged_port_start=0"], check=True)
    end = time.monotonic() + 30 * ct_node.SLOW
    while time.monotonic() < end:
        out = s.run("/opt/muster/bin/ssh", "main1", "echo $ODD; id -un; echo $NAME", check=False)
        if out.returncode == 0:
            break
        time.sleep(0.2)
    assert (out.stdout, out.stderr) == ('a "b\nwork\nmain1\n', "")
    out = s.run("/opt/muster/bin/ssh", "-o", "LogLevel=QUIET", "10.128.0.2", "true")
    assert out.stderr == ""


# --- logs and conmon ----------------------------------------------------------------------------

def test_a_log_is_complete_to_the_byte(node, base_layer):
    """50 MB of bytes of all values, long and short lines, no newline at the end."""
    s = node.session([base_layer], mem=512 << 20, command=["/bin/sh", "-c", "cat /data/bytes"],
                     mounts=[(node.base / "data", "/data", True)])
    (node.base / "data").mkdir()
    block = os.urandom(1 << 20) + bytes(range(256)) * 64 + b"short\n\n\n" + b"x" * 70000 + b"\n"
    data = block * 46 + b"no newline"
    (node.base / "data/bytes").write_bytes(data)
    s.up()
    s.go()
    s.wait(lambda st: st["exit_known"] and not st["conmon_pid"], seconds=60)
    assert s.log() == data


def test_a_dead_conmon_leaves_the_container_running(node, base_layer):
    s = node.session([base_layer], command=SLEEP).up()
    s.go()
    before = s.state()
    os.kill(before["conmon_pid"], signal.SIGKILL)
    after = s.wait(lambda st: st["conmon_pid"] == 0)
    assert after["running"] and after["pid"] == before["pid"] and not after["exit_known"]
    s.start()
    assert s.state()["pid"] == before["pid"]
    assert s.sh("echo lives") == "lives"
    os.kill(before["pid"], signal.SIGKILL)
    assert not s.wait(lambda st: not st["running"])["exit_known"]


# --- agents that die ----------------------------------------------------------------------------

def crash_points_are_built():
    return b"MUSTER_CRASH" in Path(TOOL).read_bytes()


needs_crash = pytest.mark.skipif(not os.path.exists(TOOL) or not crash_points_are_built(), reason="needs -Dcrash_points=true")


@needs_crash
@pytest.mark.parametrize("point", ["container.after_mount", "container.after_files"])
@pytest.mark.parametrize("how", ["kill", "fail"])
def test_a_root_left_half_made_is_made_again(node, base_layer, point, how):
    s = node.session([base_layer], command=["/bin/sh", "-c", "echo ran"])
    died = s.make(crash=f"{point}={how}", check=False)
    assert died.returncode == (-signal.SIGKILL if how == "kill" else 1)
    if how == "fail":
        assert s.ask("list")["roots"] == []
    s.up()
    s.go()
    s.wait(lambda st: st["exit_known"] and not st["conmon_pid"])
    assert s.log() == b"ran\n"


@needs_crash
def test_a_start_left_half_done_is_finished(node, base_layer):
    s = node.session([base_layer], command=["/bin/sh", "-c", "echo ran"])
    s.make()
    assert s.start(crash="container.after_create=kill", check=False).returncode == -signal.SIGKILL
    pid = s.state()["pid"]
    assert pid > 0
    s.start()
    assert s.state()["pid"] == pid
    s.go()
    s.wait(lambda st: st["exit_known"] and not st["conmon_pid"])
    assert s.log() == b"ran\n"


@needs_crash
@pytest.mark.parametrize("point", ["container.after_mount", "container.after_files"])
def test_a_root_left_half_made_can_be_removed(node, base_layer, point):
    s = node.session([base_layer])
    s.make(crash=f"{point}=kill", check=False)
    s.remove()
    assert s.ask("list") == {"roots": [], "runtime": []}


@needs_crash
def test_a_start_left_half_done_can_be_removed(node, base_layer):
    s = node.session([base_layer], command=SLEEP)
    s.make()
    s.start(crash="container.after_create=kill", check=False)
    s.remove()
    assert s.ask("list") == {"roots": [], "runtime": []}


@pytest.mark.parametrize("delay", some([0.002, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3], [0.03, 0.08, 0.2]))
def test_an_agent_killed_at_any_moment_of_a_start(node, base_layer, delay):
    s = node.session([base_layer], command=["/bin/sh", "-c", "echo ran"])
    s.make()
    s.tool("netns", 0)
    agent = subprocess.Popen([TOOL, s.config_file, "start", "0"], stderr=subprocess.DEVNULL)
    time.sleep(delay)
    agent.kill()
    agent.wait()
    s.start()
    assert s.state()["running"] and s.state()["conmon_pid"]
    s.go()
    s.wait(lambda st: st["exit_known"] and not st["conmon_pid"])
    assert s.log() == b"ran\n"


def test_removing_empties_the_group_by_force(node, base_layer):
    """A process of the node in the container's group, and a frozen container."""
    s = node.session([base_layer], command=SLEEP).up()
    s.go()
    stray = subprocess.Popen(["sleep", "1000"])
    for group in s.groups():
        (group / "cgroup.procs").write_text(str(stray.pid))
    for group in s.groups():
        if (group / "freezer.state").exists():
            (group / "freezer.state").write_text("FROZEN")
        elif V2:
            (group / "cgroup.freeze").write_text("1")
    s.remove()
    assert stray.wait() == -signal.SIGKILL


def test_what_is_mounted_does_not_show_in_the_nodes_namespace(node, base_layer):
    node.session([base_layer], command=SLEEP).up()
    seen = [line.split()[4] for line in proc_text("self", "mountinfo").splitlines() if str(node.run_dir) in line.split()[4]]
    assert seen == [f"{node.run_dir}/ns", f"{node.run_dir}/ns/mnt"]
    assert list((node.run_dir / "ct").glob("*/merged/*")) == []
