"""What a test may leave behind: nothing.

A snapshot is a set of lines, each of one thing on this machine that Muster makes: processes, mounts
in every mount namespace that somebody is in or has pinned, network devices in every network
namespace, named namespaces, tables of the host's packet filter, cgroups, loop devices, run folders.
A line is the same in two snapshots exactly if the thing is.

Where other work goes on beside the tests, MUSTER_SHARED_MACHINE=1 narrows a comparison to lines
that name the test's own cluster (a regular expression that its makers register with `own`).
"""
import ctypes
import os
import re
import subprocess
import threading
import time
from pathlib import Path

from . import netns

PROGRAMS = {"musterd", "muster-agent", "muster-import", "muster-init", "muster", "muster-runtime",
            "conmon", "crun", "memfd:runtime"}
SHARED_MACHINE = os.environ.get("MUSTER_SHARED_MACHINE") == "1"
CLONE_NEWNS, CLONE_FS = 0x20000, 0x200

_own = []


def own(pattern):
    """Lines that match are ours: for shared machines."""
    _own.append(re.compile(pattern))


def is_own(line):
    return not SHARED_MACHINE or any(p.search(line) for p in _own)


def _read(path, default=""):
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return default


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def processes():
    """Ours by their program, or by the cgroup that they are in."""
    for pid in _pids():
        exe = _link(f"/proc/{pid}/exe")
        if not exe:  # the kernel's own, or at its end
            continue
        stat = _read(f"/proc/{pid}/stat")
        program = os.path.basename(exe.replace(" (deleted)", ""))
        cgroup = re.search(r"/muster/\S+", _read(f"/proc/{pid}/cgroup"))
        words = _read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
        if not stat or not (program in PROGRAMS or cgroup or "/opt/muster/" in words.split(" ")[0]):
            continue
        after = stat.rsplit(")", 1)[1].split()
        if after[0] in "ZX" or not words:
            continue
        yield f"process {pid} (started {after[19]}) {program}: {words[:200]}" + (
            f" [{cgroup.group(0)}]" if cgroup else "")


def _mount_lines(text):
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) > 4 and len(kind) > 1:
            yield fields[4], kind[0], kind[1], fields[3]


def _pinned_mountinfo(path):
    """mountinfo of a namespace that is held by a file only. In a thread with its own fs: a file in
    a namespace that was unmounted meanwhile is not worth an error."""
    result = []

    def look():
        libc = ctypes.CDLL(None, use_errno=True)
        try:
            with open(path) as file, open("/proc/thread-self/mountinfo"):
                if libc.unshare(CLONE_FS) == 0 and libc.setns(file.fileno(), CLONE_NEWNS) == 0:
                    result.append(_read(f"/proc/self/task/{threading.get_native_id()}/mountinfo"))
        except OSError:
            pass
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return result[0] if result else ""


def mounts():
    """Mounts by what and where they are, in whichever namespace. Of /proc/1's namespace and of
    copies of it there are equal lines, so a new copy alone adds nothing."""
    seen, todo = set(), []
    for pid in _pids():
        ns = _link(f"/proc/{pid}/ns/mnt")
        if ns and ns not in seen:
            seen.add(ns)
            todo.append((ns, _read(f"/proc/{pid}/mountinfo")))
    while todo:
        ns, text = todo.pop()
        for point, kind, source, root in _mount_lines(text):
            pinned = kind == "nsfs" and root.startswith("mnt:")
            if pinned and root not in seen:
                seen.add(root)
                todo.append((root, _pinned_mountinfo(point)))
            # proc, sysfs and tmpfs of a container go with its processes, which have their own line
            yield f"mount {point} ({kind} {source} {root if kind == 'nsfs' else ''})"


def network():
    """Devices by namespace: the host's, named ones, pinned ones, and those of processes."""
    host = _link("/proc/1/ns/net")
    found = {host: ("/proc/1/ns/net", "host")}
    for name in sorted(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else []:
        path = f"/run/netns/{name}"
        yield f"netns {path}"
        try:
            found.setdefault(f"net:[{os.stat(path).st_ino}]", (path, path))
        except OSError:
            pass
    for pid in _pids():
        ns = _link(f"/proc/{pid}/ns/net")
        if ns:
            found.setdefault(ns, (f"/proc/{pid}/ns/net", f"{ns} of process {pid} {_read(f'/proc/{pid}/comm').strip()}"))
    for path, label in found.values():
        try:
            devices = netns.links(path)
        except OSError:
            continue
        for device in devices:
            if device != "lo":
                yield f"link {device} in {label}"


def filters():
    r = subprocess.run(["nft", "-s", "list", "ruleset"], capture_output=True, text=True)
    for table in re.split(r"^(?=table )", r.stdout, flags=re.M):
        if table.strip():
            yield "filter " + re.sub(r"\s+", " ", table).strip()[:300]


def cgroups():
    for folder, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            path = os.path.join(folder, name)
            if "muster" in path:
                yield f"cgroup {path}"


def loops():
    for loop in Path("/sys/block").glob("loop*/loop/backing_file"):
        yield f"loop {loop.parts[3]} {_read(loop).strip()}"


def folders():
    for base in ("/run", "/tmp", "/dev/shm", "/var/lib"):
        for path in Path(base).glob("muster*"):
            yield f"folder {path}"


KINDS = (processes, mounts, network, filters, cgroups, loops, folders)


def snapshot():
    return {line for kind in KINDS for line in kind()}


def diff(before, now, ignore=()):
    """What is there now and was not before, sorted."""
    return sorted(line for line in now - before
                  if is_own(line) and not any(re.search(p, line) for p in ignore))


def settle_to(before, seconds=10, ignore=()):
    """(what is still left after some time, the last snapshot): an end may take a moment, though not
    longer."""
    end = time.monotonic() + seconds
    while True:
        now = snapshot()
        left = diff(before, now, ignore)
        if not left or time.monotonic() > end:
            return left, now
        time.sleep(0.05)


def settle(before, seconds=10, ignore=()):
    return settle_to(before, seconds, ignore)[0]
