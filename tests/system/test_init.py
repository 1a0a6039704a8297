"""muster-init as process 1 of a real pid namespace: barrier, identity, signals, reaping, record.

MUSTER_INIT names the program to test (default: the one of the build folder).
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INIT = os.environ.get("MUSTER_INIT", str(ROOT / "build/src/init/muster-init"))
AS_ROOT = os.geteuid() == 0
# Without root there is one uid to be had, and it is already ours.
UID = 1000 if AS_ROOT else 0
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] + ([] if AS_ROOT else ["-r"])
PATH = "/usr/local/bin:/usr/bin:/bin"


def wait_for(what, seconds=20.0):
    """The first true value of what(), or a failure."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.005)
    pytest.fail(f"waited {seconds} s in vain")


class Container:
    """A folder like /etc/muster, and init running over it."""

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="muster-init-"))
        self.dir.chmod(0o755)
        (self.dir / "init").mkdir()
        self.go = self.dir / "init/go"
        self.record = self.dir / "record"
        self.record.touch()
        self.shared = self.dir / "shared"  # the user may write here
        self.shared.mkdir()
        self.shared.chmod(0o777)
        self.process = None

    def plan(self, *args, **keys):
        keys = {"user": f"{UID}:{UID}", "env": [f"PATH={PATH}"]} | keys
        records = []
        for key, value in keys.items():
            for one in value if isinstance(value, list) else [value]:
                records.append(f"{key.replace('_', '-')}={one}")
        records += [f"arg={word}" for word in args]
        (self.dir / "init/plan").write_bytes(b"".join(r.encode() + b"\0" for r in records))
        return self

    def sh(self, script, **keys):
        return self.plan("/bin/sh", "-c", script, **keys)

    def start(self, go=True, wrapper=(), **popen):
        if go:
            self.go.touch()
        popen = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | popen
        self.process = subprocess.Popen(
            [*UNSHARE, *wrapper, INIT, "--etc", str(self.dir)], text=True, **popen
        )
        return self

    def pid(self):
        """init's pid outside; waits until it is init and ready for signals."""

        def find():
            if self.process.poll() is not None:
                pytest.fail(f"init ended: {self.process.communicate()}")
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
            if not children:
                return None
            status = Path(f"/proc/{children[0]}/status").read_text()
            # every signal is blocked once it is in its loop
            return re.search(r"^SigBlk:\tf", status, re.M) and int(children[0])

        return wait_for(find)

    def kill(self, sig):
        os.kill(self.pid(), sig)

    def children(self):
        pid = self.pid()
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def wait(self, seconds=30):
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err

    def run(self, **popen):
        return self.start(**popen).wait()

    def lines(self):
        return self.record.read_text().splitlines()

    def events(self):
        """The record without pid and time."""
        return [re.sub(r"^started .*", "started", line) for line in self.lines()]

    def wait_for_output(self, text):
        def look():
            ready, _, _ = select.select([self.process.stdout], [], [], 0)
            return ready and self.process.stdout.readline()

        line = wait_for(look)
        assert line.strip() == text

    def close(self):
        if self.process:
            if self.process.poll() is None:
                self.process.kill()
            self.process.communicate()
        shutil.rmtree(self.dir)


@pytest.fixture
def container():
    c = Container()
    yield c
    c.close()


# --- the barrier ----------------------------------------------------------------------------------


def test_nothing_runs_before_the_barrier_opens(container):
    container.sh("echo hello; exit 7").start(go=False)
    container.pid()
    time.sleep(0.3)
    assert container.children() == []
    assert container.lines() == []
    before = time.monotonic_ns() // 1000
    container.go.touch()
    code, out, err = container.wait()
    after = time.monotonic_ns() // 1000
    assert (code, out, err) == (7, "hello\n", "")
    started, ended = container.lines()
    word, pid, usec = started.split()
    assert word == "started" and int(pid) > 1
    assert before <= int(usec) <= after
    assert ended == "exited 7"


def test_an_open_barrier_needs_no_waiting(container):
    code, out, _ = container.sh("echo hello").run()
    assert (code, out) == (0, "hello\n")
    assert container.events() == ["started", "exited 0"]


def test_the_barrier_also_opens_by_a_rename(container):
    container.sh("exit 3").start(go=False)
    container.pid()
    (container.dir / "init/other").touch()
    time.sleep(0.1)
    assert container.lines() == []
    (container.dir / "init/other").rename(container.go)
    assert container.wait()[0] == 3


def test_the_barrier_opens_at_once(container):
    container.sh("true").start(go=False)
    container.pid()
    time.sleep(0.05)
    before = time.monotonic_ns() // 1000
    container.go.touch()
    container.wait()
    assert int(container.lines()[0].split()[2]) - before < 500_000  # a few ms on a quiet machine


def test_the_barrier_opens_also_when_there_is_no_inotify_left(container):
    if AS_ROOT:
        container.plan("sh", "-c", "exit 3", user="0:0")  # the only one in the namespace below
    else:
        container.sh("exit 3")
    # the limit of a user namespace is its own root's to set
    none_left = ["unshare", "--user", "--map-root-user"] if AS_ROOT else []
    script = 'echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"'
    container.start(go=False, wrapper=[*none_left, "sh", "-c", script, "-"])
    pid = container.pid()
    time.sleep(0.2)
    assert not any("inotify" in os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir())
    container.go.touch()
    assert container.wait()[0] == 3


def test_waiting_costs_nothing(container):
    container.sh("true").start(go=False)
    pid = container.pid()
    time.sleep(0.1)

    def switches():
        return re.search(r"^voluntary_ctxt_switches:\s*(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1]

    before = switches()
    time.sleep(0.5)
    assert switches() == before


# --- how it ends ----------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 255])
def test_init_ends_with_the_exit_code_of_the_command(container, code):
    assert container.sh(f"exit {code}").run()[0] == code
    assert container.events() == ["started", f"exited {code}"]


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_command_that_a_signal_ended_gives_128_and_the_signal(container, sig):
    assert container.sh(f"ulimit -c 0; kill -{int(sig)} $$").run()[0] == 128 + sig
    assert container.events() == ["started", f"signalled {int(sig)}"]


def test_the_end_of_the_command_is_the_end_of_everybody(container):
    before = time.monotonic()
    assert container.sh("setsid sleep 1000 & sleep 0.2; exit 5").run()[0] == 5
    # the sleep held stdout open, which run() reads to its end
    assert time.monotonic() - before < 5


def test_a_missing_record_is_no_error(container):
    container.record.unlink()
    assert container.sh("exit 4").run()[0] == 4
    assert not container.record.exists()


def test_the_record_is_appended_to(container):
    container.record.write_text("earlier\n")
    container.sh("exit 0").run()
    assert container.events() == ["earlier", "started", "exited 0"]


# --- what the command gets ------------------------------------------------------------------------


def test_the_environment_is_the_plans_and_nothing_else(container):
    env = ["PATH=/bin:/usr/bin", "A=1", "EMPTY=", "TWO=first", "TWO=second", "LINES=a\nb"]
    _, out, _ = container.plan("env", "-0", env=env).run()
    assert sorted(out.rstrip("\0").split("\0")) == sorted(
        ["PATH=/bin:/usr/bin", "A=1", "EMPTY=", "TWO=second", "LINES=a\nb"]
    )


def test_the_command_is_searched_in_the_plans_path(container):
    tool = container.shared / "my-tool"
    tool.write_text("#!/bin/sh\necho found $#\n")
    tool.chmod(0o755)
    _, out, _ = container.plan("my-tool", "a b", "", env=[f"PATH=/nowhere:{container.shared}"]).run()
    assert out == "found 2\n"


def test_without_a_path_the_usual_folders_are_searched(container):
    assert container.plan("sh", "-c", "exit 6", env=[]).run()[0] == 6


def test_the_command_starts_in_its_folder(container):
    assert container.plan("pwd", cwd=str(container.shared)).run()[1] == f"{container.shared}\n"


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become somebody else")
def test_the_command_is_the_user_and_has_no_capability(container):
    script = "id -u; id -g; id -G; grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status"
    container.sh(script, user="1234:2345", groups="5,44")
    _, out, _ = container.start(
        wrapper=["setpriv", "--inh-caps", "+chown", "--ambient-caps", "+chown"]
    ).wait()
    uid, gid, groups, *caps = out.splitlines()
    assert (uid, gid) == ("1234", "2345")
    assert set(groups.split()) == {"2345", "5", "44"}
    assert caps == [f"Cap{name}:\t0000000000000000" for name in ("Inh", "Prm", "Eff", "Amb")]


@pytest.mark.skipif(not AS_ROOT, reason="needs root")
def test_a_setuid_program_still_works_for_the_user(container):
    # sudo inside needs the bounding set as it was
    _, out, _ = container.sh("grep CapBnd /proc/self/status").run()
    assert int(out.split()[1], 16) != 0


def test_the_command_leads_a_session_and_a_group_of_its_own(container):
    container.plan("/usr/bin/python3", "-c", "import os; print(os.getpid() == os.getsid(0) == os.getpgrp())")
    assert container.run()[1] == "True\n"


def test_stdin_is_empty_and_no_descriptor_leaks(container):
    spare, other = os.pipe()
    script = "readlink /proc/self/fd/0; cat; for fd in /proc/self/fd/*; do echo ${fd##*/}; done"
    _, out, _ = container.sh(script).start(pass_fds=[spare, other], stdin=spare).wait()
    os.close(spare)
    os.close(other)
    first, *fds = out.splitlines()
    assert first == "/dev/null"
    assert set(fds) <= {"0", "1", "2", "3"}  # 3: the shell's own look into the folder


def test_signals_are_as_a_program_expects_them(container):
    # also when whoever starts init ignores them; with SIGCHLD ignored nobody could be waited for
    container.plan("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    container.start(wrapper=["env", "--ignore-signal=CHLD,PIPE,USR1,HUP"])
    assert container.wait()[1].split() == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16]


def test_the_user_can_open_standard_error_by_name(container):
    _, out, err = container.sh("echo one > /dev/stdout; echo two > /dev/stderr").run()
    assert (out, err) == ("one\n", "two\n")


# --- the terminal ---------------------------------------------------------------------------------


def read_terminal(fd, until, seconds=20):
    text, end = "", time.monotonic() + seconds
    while until not in text:
        ready, _, _ = select.select([fd], [], [], max(0, end - time.monotonic()))
        assert ready, f"no '{until}' in {text!r}"
        try:
            text += os.read(fd, 4096).decode()
        except OSError:
            break
    return text


def test_a_terminal_becomes_the_commands_own(container):
    ours, theirs = pty.openpty()
    script = "trap 'echo interrupted; exit 9' INT; echo have > /dev/tty; read line; echo got $line; sleep 100 & wait"
    container.sh(script)
    # a runtime makes process 1 the leader of the terminal's session
    container.start(wrapper=["setsid", "--ctty"], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    read_terminal(ours, "have")
    os.write(ours, b"words\n")
    read_terminal(ours, "got words")
    os.write(ours, b"\x03")
    read_terminal(ours, "interrupted")
    assert container.process.wait(5) == 9
    assert container.events() == ["started", "exited 9"]
    os.close(ours)


# --- signals --------------------------------------------------------------------------------------


def test_a_stop_is_sent_to_the_commands_group_only(container):
    container.sh(
        f"""
        setsid sh -c 'trap "echo outsider >> {container.shared}/log" TERM; sleep 100 & wait; wait' &
        sh -c 'trap "echo member >> {container.shared}/log; exit" TERM; echo up; sleep 100 & wait' &
        trap 'wait %2; sleep 0.1; exit 8' TERM
        wait; wait
        """
    ).start()
    container.wait_for_output("up")
    time.sleep(0.2)
    container.kill(signal.SIGTERM)
    assert container.wait()[0] == 8
    assert (container.shared / "log").read_text() == "member\n"


def test_the_stop_signal_is_the_plans(container):
    container.sh("trap 'exit 11' USR2; trap 'exit 12' TERM; echo up; sleep 100 & wait", stop_signal=12)
    container.start().wait_for_output("up")
    container.kill(signal.SIGTERM)
    assert container.wait()[0] == 11


def test_a_command_that_takes_its_time_to_stop_is_waited_for(container):
    container.sh("trap 'sleep 1.5; echo saved; exit 0' TERM; echo up; sleep 100 & wait")
    container.start().wait_for_output("up")
    container.kill(signal.SIGTERM)
    assert container.wait() == (0, "saved\n", "")


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "USR1", "USR2", "WINCH"])
def test_a_signal_is_passed_on(container, name):
    container.plan(
        "/usr/bin/python3",
        "-uc",
        "import signal, sys, time\n"
        f"signal.signal(signal.SIG{name}, lambda *a: sys.exit(20))\n"
        # not one long sleep: a signal just before it would only be seen after it
        "print('up')\nwhile True: time.sleep(0.05)",
    )
    container.start().wait_for_output("up")
    container.kill(getattr(signal, f"SIG{name}"))
    assert container.wait()[0] == 20


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "USR1", "USR2", "WINCH", "PIPE", "ALRM"])
def test_a_signal_without_a_command_changes_nothing(container, name):
    container.plan().start(go=False)
    container.kill(getattr(signal, f"SIG{name}"))
    time.sleep(0.1)
    assert container.process.poll() is None


# --- without a command ----------------------------------------------------------------------------


def test_an_idle_container_stays_until_it_is_stopped(container):
    container.plan().start()
    container.pid()
    time.sleep(0.3)
    assert container.process.poll() is None
    before = time.monotonic()
    container.kill(signal.SIGTERM)
    assert container.wait()[0] == 0
    assert time.monotonic() - before < 0.9  # not the whole second that the deaf get
    assert container.lines() == []


def test_a_stop_before_the_barrier_opens_runs_nothing(container):
    container.sh("echo ran").start(go=False)
    container.kill(signal.SIGTERM)
    assert container.wait() == (0, "", "")
    assert container.lines() == []


@pytest.mark.skipif(not AS_ROOT, reason="needs root to enter")
def test_a_stop_reaches_those_who_came_from_outside(container):
    container.plan().start()
    log = container.shared / "log"
    guest = subprocess.Popen(
        ["nsenter", "-t", str(container.pid()), "-p", "-m", "sh", "-c",
         f"trap 'echo asked > {log}; exit' TERM; touch {log}; sleep 100 & wait"]
    )  # fmt: skip
    wait_for(log.exists)
    time.sleep(0.1)
    container.kill(signal.SIGTERM)
    assert container.wait()[0] == 0
    guest.wait(5)
    assert log.read_text() == "asked\n"


@pytest.mark.skipif(not AS_ROOT, reason="needs root to enter")
def test_a_stop_waits_one_second_for_the_deaf(container):
    container.plan().start()
    up = container.shared / "up"
    guest = subprocess.Popen(
        ["nsenter", "-t", str(container.pid()), "-p", "-m", "sh", "-c",
         f"trap '' TERM; touch {up}; sleep 100; sleep 100"]
    )  # fmt: skip
    wait_for(up.exists)
    before = time.monotonic()
    container.kill(signal.SIGTERM)
    assert container.wait()[0] == 0
    assert 0.9 < time.monotonic() - before < 4
    assert guest.wait(5) == -signal.SIGKILL


# --- reaping --------------------------------------------------------------------------------------


def test_orphans_are_reaped(container):
    container.sh(
        """
        i=0; while [ $i -lt 50 ]; do (true & exec true) & i=$((i+1)); done; wait
        sleep 0.3
        echo zombies $(grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l)
        """
    )
    assert container.run()[1] == "zombies 0\n"


def test_a_container_without_a_command_reaps_too(container):
    container.plan().start()
    pid = container.pid()
    if not AS_ROOT:
        pytest.skip("needs root to enter")
    subprocess.run(["nsenter", "-t", str(pid), "-p", "-m", "sh", "-c", "sleep 2 & exit 0"], check=True)
    assert container.children() != []
    wait_for(lambda: container.children() == [])


# --- a start that fails ---------------------------------------------------------------------------


def only_event(container):
    (line,) = container.lines()
    return line


def test_a_command_that_is_not_there(container):
    code, out, err = container.plan("no-such-command").run()
    assert (code, out, err) == (127, "", "")
    assert only_event(container) == (
        "start-failed ENOENT command not found: 'no-such-command' (No such file or directory)"
    )


def test_a_file_that_is_not_executable(container):
    (container.shared / "data").touch()
    assert container.plan(str(container.shared / "data")).run()[0] == 126
    assert only_event(container).startswith("start-failed EACCES not executable: ")


def test_a_folder_that_is_not_there(container):
    assert container.plan("true", cwd="/no/such/folder").run()[0] == 126
    assert only_event(container) == (
        "start-failed ENOENT cannot start in folder '/no/such/folder' (No such file or directory)"
    )


@pytest.mark.skipif(not AS_ROOT, reason="needs root to become somebody else")
def test_the_folder_is_entered_as_the_user(container):
    closed = container.dir / "closed"
    closed.mkdir(mode=0o700)
    assert container.plan("true", cwd=str(closed)).run()[0] == 126
    assert only_event(container).startswith("start-failed EACCES cannot start in folder")


def test_a_file_that_is_no_program(container):
    tool = container.shared / "tool"
    tool.write_text("echo hello\n")
    tool.chmod(0o755)
    assert container.plan(str(tool)).run()[0] == 126
    assert only_event(container).startswith("start-failed ENOEXEC neither a program")


def test_a_script_without_its_interpreter(container):
    tool = container.shared / "tool"
    tool.write_text("#!/no/such/python\n")
    tool.chmod(0o755)
    assert container.plan("tool", env=[f"PATH={container.shared}"]).run()[0] == 127
    assert only_event(container).startswith("start-failed ENOENT interpreter or loader is missing for 'tool'")


def test_an_argument_that_is_too_long(container):
    assert container.plan("true", "x" * (1 << 17)).run()[0] == 126
    assert only_event(container).startswith("start-failed E2BIG ")


def test_a_name_cannot_forge_a_record(container):
    container.plan("x\nexited 0").run()
    assert only_event(container).startswith("start-failed ENOENT command not found: 'x?exited 0'")


def test_a_failed_start_without_a_record_is_told_on_stderr(container):
    container.record.unlink()
    code, _, err = container.plan("no-such-command").run()
    assert code == 127
    assert err.startswith("muster-init: start-failed ENOENT")


# --- a plan that is none --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, complaint",
    [
        (b"garbage", "the last record is not finished"),
        (b"garbage\0", "record 1: no '='"),
        (os.urandom(64).replace(b"\0", b"x").replace(b"=", b"x") + b"\0", "record 1: no '='"),
        (b"user=0\0arg=SECRET\0", "record 1: user must be UID:GID"),
        (b"env=SECRET\0", "record 1: env must be NAME=VALUE"),
        (b"arg=x\0" * 200_000, "longer than 1048576 bytes"),
    ],
    ids=["text", "record", "noise", "user", "env", "long"],
)
def test_a_garbage_plan_is_refused_with_a_reason(container, data, complaint):
    (container.dir / "init/plan").write_bytes(data)
    code, out, err = container.run()
    assert (code, out) == (125, "")
    assert err == f"muster-init: '{container.dir}/init/plan': {complaint}\n"
    assert container.lines() == []


def test_a_missing_plan_is_refused(container):
    code, _, err = container.run()
    assert code == 125
    assert "No such file or directory" in err


def test_it_refuses_to_be_anything_but_process_1(container):
    done = subprocess.run([INIT, "--etc", str(container.dir)], capture_output=True, text=True)
    assert done.returncode == 125
    assert "process 1" in done.stderr


def test_it_tells_its_version():
    done = subprocess.run([INIT, "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert re.fullmatch(r"muster-init \d+\.\d+\.\d+\S*\n", done.stdout)


# --- the SSH server (a stand-in that writes down how it was started) --------------------------------


def fake_sshd(container, then):
    sshd = container.shared / "sshd"
    sshd.write_text(
        f"""#!/usr/bin/python3
import os, sys, time
with open("{container.shared}/starts", "a") as f:
    print(time.monotonic(), os.getuid(), sys.argv[1:], dict(os.environ).get("PATH"),
          [os.readlink(f"/proc/self/fd/{{i}}") for i in range(3)], os.getcwd(), sep=";", file=f)
print("must not be seen")
print("must not be seen", file=sys.stderr)
{then}
"""
    )
    sshd.chmod(0o755)
    return {"sshd": str(sshd), "sshd_config": "/etc/muster/ssh/config"}


def starts(container):
    log = container.shared / "starts"
    return log.read_text().splitlines() if log.exists() else []


def test_sshd_runs_before_the_barrier_as_the_user_and_says_nothing(container):
    container.sh("echo only this", **fake_sshd(container, "time.sleep(100)")).start(go=False)
    (line,) = wait_for(lambda: starts(container))
    _, uid, argv, path, fds, cwd = line.split(";")
    assert int(uid) == UID
    assert argv == "['-D', '-r', '-e', '-f', '/etc/muster/ssh/config']"
    assert path == "/opt/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert fds == "['/dev/null', '/dev/null', '/dev/null']"
    assert cwd == "/"
    container.go.touch()
    assert container.wait() == (0, "only this\n", "")
    assert container.events() == ["started", "exited 0"]


def test_a_dying_sshd_is_started_again_ever_more_slowly(container):
    container.plan(**fake_sshd(container, "sys.exit(255)")).start()
    wait_for(lambda: len(starts(container)) >= 5)
    times = [float(line.split(";")[0]) for line in starts(container)[:5]]
    for wanted, first, second in zip([0.1, 0.2, 0.4, 0.8], times, times[1:]):
        assert wanted <= second - first < wanted + 2  # the machine may be busy


def test_an_sshd_that_cannot_be_executed_does_not_spin(container):
    container.sh("sleep 0.8; sh -c 'echo $$'", sshd="/no/such/sshd", sshd_config="/x")
    # a pid for each try: at 0, 100, 300, 700 ms, ...; and for the command, its sleep, its shell
    assert int(container.run()[1]) <= 1 + 6 + 3


def test_a_stop_ends_sshd_and_does_not_start_it_again(container):
    container.plan(**fake_sshd(container, "time.sleep(100)")).start()
    wait_for(lambda: starts(container))
    before = time.monotonic()
    container.kill(signal.SIGTERM)
    assert container.wait()[0] == 0
    assert time.monotonic() - before < 0.9
    assert len(starts(container)) == 1


@pytest.mark.skipif(not AS_ROOT, reason="needs root to enter")
def test_an_sshd_that_is_due_is_not_started_during_a_stop(container):
    container.plan(**fake_sshd(container, "sys.exit(255)")).start()
    up = container.shared / "up"
    script = f"trap '' TERM; touch {up}; sleep 100; sleep 100"
    guest = subprocess.Popen(["nsenter", "-t", str(container.pid()), "-p", "-m", "sh", "-c", script])
    wait_for(up.exists)
    wait_for(lambda: len(starts(container)) == 3)
    time.sleep(0.1)  # dead by now, and due again 400 ms after its death
    container.kill(signal.SIGTERM)
    assert container.wait()[0] == 0
    assert guest.wait(5) == -signal.SIGKILL
    assert len(starts(container)) == 3
