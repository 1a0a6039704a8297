"""Network namespaces: run something in one, look into one."""
import contextlib
import ctypes
import os
import socket
import subprocess

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def setns(fd, kind):
    if _libc.setns(fd, kind):
        raise OSError(ctypes.get_errno(), "setns")


@contextlib.contextmanager
def inside(path):
    """This thread is in another network namespace; sockets made here stay there."""
    with open("/proc/thread-self/ns/net") as home, open(path) as away:
        setns(away.fileno(), CLONE_NEWNET)
        try:
            yield
        finally:
            setns(home.fileno(), CLONE_NEWNET)


def links(path):
    """Names of the network devices in a namespace."""
    with inside(path):
        return sorted(name for _, name in socket.if_nameindex())


def ip(*words, netns=None):
    argv = ["ip", *(["-n", netns] if netns else []), *words]
    subprocess.run(argv, check=True, capture_output=True, text=True)


def ip_batch(netns, lines):
    """Commands of ip in a namespace, in one process."""
    r = subprocess.run(["ip", "-n", netns, "-batch", "-"], input="\n".join(lines) + "\n",
                       capture_output=True, text=True)
    assert r.returncode == 0, f"ip -n {netns}: {r.stderr}"


def path_of(name):
    return f"/run/netns/{name}"


def exists(name):
    return os.path.exists(path_of(name))
