"""A session did not end while somebody had a client open that no longer read what it was sent; and a
client whose own reader had gone dropped what came, for ever."""
import os
import pty
import signal
import subprocess
import termios
import time

import pytest

from harness.cluster import wait_for

MUCH = ("cat", "/dev/zero")


def with_terminal(cluster, ref):
    pid, fd = pty.fork()
    if pid == 0:
        argv = cluster.cli_argv("exec", ref, *MUCH)
        os.execvpe(argv[0], argv, cluster.cli_env("alice"))
    wait_for(lambda: not termios.tcgetattr(fd)[3] & termios.ICANON, 20, "not raw")

    def end():
        os.close(fd)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return end


def with_pipe(*words):
    def start(cluster, ref):
        p = cluster.popen(*[ref if w == "REF" else w for w in words], user="alice", stdin=subprocess.PIPE)

        def end():
            p.kill()
            p.wait()
        return end
    return start


@pytest.mark.parametrize("client", [with_terminal, with_pipe("exec", "REF", *MUCH), with_pipe("logs", "-f", "REF")],
                         ids=["terminal", "pipe", "logs"])
def test_a_session_ends_though_nobody_reads_what_it_says(cluster, client):
    ref = cluster.create("base", "sh", "-c", "while :; do echo much; done", user="alice")
    end = client(cluster, ref)
    try:
        time.sleep(4)  # everything on the way is full by now
        cluster.cli("stop", "--now", ref, user="alice", check=0)
        cluster.wait_state(ref, "ended", seconds=20)
    finally:
        end()


def test_exec_ends_with_its_reader(cluster):
    ref = cluster.create("base", user="alice")
    p = cluster.popen("exec", "-n", ref, "yes", "one-of-many", user="alice")
    assert p.stdout.readline() == b"one-of-many\n"
    p.stdout.close()
    assert p.wait(20) == 125
    look = ("exec", ref, "sh", "-c", "grep -l one-of-[m]any /proc/[0-9]*/cmdline")
    wait_for(lambda: not cluster.cli(*look, user="alice").stdout, 20, "it goes on in the container")


def test_exec_ends_with_its_terminal(cluster):
    """As under nohup(1): nobody is told of the terminal's end, but it cannot be written to."""
    ref = cluster.create("base", user="alice")
    pid, fd = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        argv = cluster.cli_argv("exec", ref, *MUCH)
        os.execvpe(argv[0], argv, cluster.cli_env("alice"))
    os.read(fd, 1)
    time.sleep(1)
    os.close(fd)
    wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0], 20, "it does not end")
