"""A client that was killed while nobody read its terminal waited for the output to be drained, and
did not end."""
import os
import pty
import signal
import termios
import time

from harness.cluster import wait_for


def test_a_killed_client_ends_though_nobody_reads_its_terminal(cluster):
    ref = cluster.create("base", user="alice")
    pid, fd = pty.fork()
    if pid == 0:
        argv = cluster.cli_argv("exec", ref, "sh", "-c", "while :; do echo much; done")
        os.execvpe(argv[0], argv, cluster.cli_env("alice"))
    wait_for(lambda: not termios.tcgetattr(fd)[3] & termios.ICANON, 20, "not raw")
    time.sleep(1)  # the terminal is full by now
    os.kill(pid, signal.SIGHUP)
    try:
        wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0], 10, "it does not end")
    finally:
        os.close(fd)
