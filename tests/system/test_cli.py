"""The command line itself: what it says when used wrongly, terminals, pipes and signals, coming back
after the manager was away, and a cluster of one's own by `muster up`."""
import fcntl
import ipaddress
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
from pathlib import Path

import pytest

from ct_node import busybox_tree
from harness import leftovers
from harness.cluster import BUILD, GUEST, MUSTER, ROOT, URL, wait_for

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="makes networks and containers: needs root")


@pytest.fixture(autouse=True)
def recorded(request):
    """Of tests on the shared cluster, what the command line got is as docs/openapi.yaml says."""
    if "cluster" not in request.fixturenames:
        yield
        return
    with request.getfixturevalue("cluster").recorded():
        yield


def muster(*words, env=None, **more):
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": home,
               "ASAN_OPTIONS": "detect_leaks=0"} | (env or {})
        return subprocess.run([str(MUSTER), *words], env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=30, **more)


# --- without a manager --------------------------------------------------------------------------


@pytest.mark.parametrize("words, says", [
    (["lss"], "unknown command 'lss'; did you mean 'ls'?"),
    (["node"], "'node' needs one of: ls, show, add, tokens, revoke, drain, resume, lost, purge, rm, group"),
    (["node", "sohw"], "unknown command 'node sohw'; did you mean 'node show'?"),
    (["frobnicate"], "unknown command 'frobnicate'; see 'muster help'"),
    (["create"], "create: expects IMAGE [COMMAND [ARGUMENT]...]; see 'muster help create'"),
    (["create", "--wiat", "base"],
     "create: unknown option '--wiat'; did you mean '--wait'?; see 'muster help create'"),
    (["create", "--size", "0", "base"],
     "create: --size: must be a number from 1 to 1000; see 'muster help create'"),
    (["create", "--volume", "data:rel", "base"],
     "create: --volume: 'data:rel' must be NAME[:PATH][:ro|rw] with an absolute PATH, as in data:/data:ro; "
     "see 'muster help create'"),
    (["create", "--env", "MUSTER_NOT_SET", "base"],
     "create: --env: MUSTER_NOT_SET is not set here; give a value: MUSTER_NOT_SET=VALUE; "
     "see 'muster help create'"),
    (["stop", "a", "--nwo"], "stop: unknown option '--nwo'; see 'muster help stop'"),
    (["show", "a", "b"], "show: unexpected word 'b'; see 'muster help show'"),
    (["logs", "a/sub0"], "logs: 'sub0' is no container: they are called main1, sub1, sub2, ...; "
                         "see 'muster help logs'"),
    (["create", "--mem", "8", "base"],
     "create: --mem: '8' is so many bytes; did you mean '8G'?; see 'muster help create'"),
    (["run", "base", "--cpus", "1", "echo", "hi"],
     "run: '--cpus' stands behind 'base', where the command begins: options go before 'base', and a command "
     "that begins with '-' behind '--': muster run base -- --cpus; see 'muster help run'"),
    (["create", "base", "--wait"],
     "create: '--wait' stands behind 'base', where the command begins: options go before 'base', and a "
     "command that begins with '-' behind '--': muster create base -- --wait; see 'muster help create'"),
    (["exec", "12", "-u", "root", "id"],
     "exec: '-u' stands behind '12', where the command begins: options go before '12', and a command that "
     "begins with '-' behind '--': muster exec 12 -- -u; see 'muster help exec'"),
    (["tunnel", "a", "0"], "tunnel: '0' is no port: a number from 1 to 65535; see 'muster help tunnel'"),
])
def test_wrong_usage_is_2_and_says_what_to_do(words, says):
    r = muster(*words)
    assert (r.returncode, r.stdout) == (2, "")
    assert r.stderr == f"muster: {says}\n"


def test_run_without_a_command_says_how_to_work_in_a_session():
    r = muster("run", "base")
    assert r.returncode == 2
    assert "muster create --wait base" in r.stderr and "muster ssh" in r.stderr


def test_a_manager_that_is_not_there_is_3():
    r = muster("ls", env={"MUSTER_URL": "http://127.0.0.1:1"})
    assert r.returncode == 3
    first, second = r.stderr.splitlines()
    assert first.startswith("muster: cannot reach the manager: http://127.0.0.1:1: ")
    assert second == ("muster: the address is from MUSTER_URL; 'muster status' shows whether the daemons of "
                      "'muster up' run, 'sudo muster up' starts them")


def test_a_manager_that_is_not_there_is_said_with_who_named_it(tmp_path):
    r = muster("show", "1", "--url", "http://127.0.0.2:1")
    assert r.returncode == 3
    assert r.stderr.endswith("\nmuster: the address is from --url; 'muster login URL' keeps another one\n")
    file = tmp_path / ".config/muster/config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("url: http://localhost:1\n")
    file.chmod(0o600)
    r = muster("ls", env={"HOME": str(tmp_path)})
    assert f"\nmuster: the address is from '{file}'; 'muster status' shows" in r.stderr


@pytest.mark.parametrize("words", [["login", "--token", "mst_x"], ["ls", "--token=mst_x"],
                                   ["--token", "mst_x", "ls"]])
def test_a_token_on_the_command_line_is_refused_with_the_ways_to_give_one(words):
    r = muster(*words)
    assert (r.returncode, r.stdout) == (2, "")
    assert "'muster login URL' asks for it" in r.stderr and "MUSTER_TOKEN" in r.stderr
    assert len(r.stderr.splitlines()) == 1


def test_login_without_a_token_says_how_to_give_one():
    r = muster("login", "http://127.0.0.1:1")
    assert r.returncode == 2
    assert "no token was given: type it when asked, or give it on stdin" in r.stderr


@pytest.mark.parametrize("command", ["ssh", "exec", "forward", "login", "tunnel", "logs", "up", "down"])
def test_what_prints_no_answer_of_the_managers_has_no_json(command):
    assert "--output" not in muster("help", command).stdout


@pytest.mark.parametrize("words", [["run", "base", "true"], ["exec", "x", "true"]])
def test_what_exits_with_a_commands_code_has_125_of_its_own(words):
    assert muster(*words, env={"MUSTER_URL": "http://127.0.0.1:1"}).returncode == 125


def test_help_teaches_every_command():
    listed = re.findall(r"^  ([a-z]+(?: [a-z]+)?) {2,}", muster("help").stdout, re.M)
    assert len(listed) > 30
    for command in listed:
        r = muster("help", *command.split())
        assert r.returncode == 0 and r.stdout.startswith(f"Usage: muster {command} "), command
        assert muster(*command.split(), "--help").stdout == r.stdout, command


def test_the_man_page_is_troff_without_complaints():
    page = muster("help", "--man").stdout
    r = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-"], input=page, text=True,
                       capture_output=True, env={"PATH": os.environ["PATH"], "MANWIDTH": "100"})
    text = re.sub(".\b", "", r.stdout)  # bold is written twice
    assert r.stderr == ""
    assert "muster create [OPTION]... IMAGE" in text and "EXIT STATUS" in text
    codes = " ".join(text.split("EXIT STATUS")[1].split("ENVIRONMENT")[0].split())
    for words in ("125 when there is none: the time limit passed", "127 when there is no such program",
                  "255 when ssh itself failed", "1 when --timeout passed"):
        assert words in codes, codes


def test_completion_knows_commands_verbs_and_options():
    script = muster("help", "--completion", "bash").stdout + """
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _muster; echo "${COMPREPLY[*]}"; }
try muster cr; try muster node dr; try muster create --gpu
"""
    r = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert r.stdout.splitlines() == ["create", "drain", "--gpus --gpu-model"]


def test_a_config_file_that_others_can_read_is_refused(tmp_path):
    file = tmp_path / ".config/muster/config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("url: http://127.0.0.1:1\ntoken: secret\n")
    file.chmod(0o644)
    r = muster("ls", env={"HOME": str(tmp_path)})
    assert r.returncode == 2 and "chmod 600" in r.stderr and "secret" not in r.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
@pytest.mark.parametrize("name, program", [("musterd", "manager/musterd"), ("muster-agent", "agent/muster-agent")])
def test_the_units_of_the_admin_guide_are_well_formed(tmp_path, name, program):
    text = (ROOT / "docs/systemd" / f"{name}.service").read_text()
    unit = tmp_path / f"{name}.service"
    unit.write_text(text.replace(f"/usr/local/bin/{name}", str(BUILD / "src" / program)))
    r = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True)
    complaints = [line for line in r.stderr.splitlines() if line.startswith(str(unit))]
    assert (r.returncode, complaints) == (0, []), r.stderr


# --- in a terminal ------------------------------------------------------------------------------


class Terminal:
    """`muster WORDS` in a terminal of its own."""

    def __init__(self, cluster, *words, rows=30, cols=100, user="alice"):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvpe(cluster.cli_argv(*words)[0], cluster.cli_argv(*words),
                       cluster.cli_env(user) | {"TERM": "xterm"})
        self.size(rows, cols)
        self.before = termios.tcgetattr(self.fd)
        self.text = ""

    def size(self, rows, cols):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern, seconds=30):
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.text[-2000:]!r}"
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors="replace")
                except OSError:
                    assert re.search(pattern, self.text), f"ended without {pattern!r}: {self.text!r}"
        self.text = self.text[found.end():]
        return found

    def is_raw(self):
        return not termios.tcgetattr(self.fd)[3] & termios.ICANON

    def end(self, seconds=20):
        status = []

        def ended():
            pid, st = os.waitpid(self.pid, os.WNOHANG)
            status[:] = [st] if pid else []
            return pid
        wait_for(ended, seconds, f"{self.pid} has not ended")
        return os.waitstatus_to_exitcode(status[0])

    def close(self):
        os.close(self.fd)


@pytest.fixture
def terminal(cluster):
    made = []

    def make(*words, **more):
        made.append(Terminal(cluster, *words, **more))
        return made[-1]
    yield make
    for t in made:
        t.close()


def test_exec_in_a_terminal_is_raw_has_its_size_and_is_given_back(cluster, terminal):
    ref = cluster.create("base", user="alice")
    t = terminal("exec", ref, "bash", rows=31, cols=97)
    t.until(r"[$#] ")
    assert t.is_raw()
    t.type("stty size\r")
    t.until(r"31 97")
    t.size(12, 40)
    os.kill(t.pid, signal.SIGWINCH)
    t.type("sleep 0.3; stty size\r")
    t.until(r"12 40")
    t.type("sleep 100\r")
    time.sleep(0.5)
    t.type("\x03")  # a key for the container, not for us
    t.type("echo sl\"\"ept\r")
    t.until(r"slept")
    t.type("exit 3\r")
    assert t.end() == 3
    assert termios.tcgetattr(t.fd)[3] == t.before[3]


def test_a_terminal_is_given_back_when_the_client_is_killed(cluster, terminal):
    ref = cluster.create("base", user="alice")
    t = terminal("exec", ref, "bash")
    t.until(r"[$#] ")
    assert t.is_raw()
    os.kill(t.pid, signal.SIGHUP)
    assert t.end() == -signal.SIGHUP
    assert not t.is_raw()


def test_progress_is_erased_before_the_output(cluster, terminal):
    t = terminal("run", "base", "echo", "done-with-it")
    t.until(r"no volume is mounted")
    t.until(r"\x1b\[Kdone-with-it\r\n")
    assert t.end() == 0


def test_progress_that_is_wider_than_the_terminal_is_cut_with_a_mark(cluster, terminal):
    t = terminal("create", "--wait", "--cpus", "4", "--size", "2", "--mem", "64M", "base", cols=40, user="bob")
    cluster.wait_state(t.until(r"([0-9a-f-]{36})\r\n").group(1), "running")
    blocked = terminal("create", "--wait", "--cpus", "4", "base", cols=40, user="bob")
    ref = blocked.until(r"([0-9a-f-]{36})\r\n").group(1)
    line = blocked.until(r"\r\x1b\[K(pending [^\r]*)").group(1)
    assert line.endswith("...") and len(line) == 39, line
    cluster.cli("stop", "--now", ref, user="bob", check=0)
    assert t.end() == 0 and blocked.end() == 4


def test_ls_fits_the_terminal(cluster, terminal):
    cluster.create("--name", "narrow", "base", user="alice")
    t = terminal("ls", cols=50)
    head = t.until(r"NUM .*\r\n").group()
    row = t.until(r".*narrow.*\r\n").group()
    assert len(head.strip()) <= 50 and len(row.strip()) <= 50
    assert "STATE" in head and "IMAGE" not in head
    assert t.end() == 0


# --- pipes --------------------------------------------------------------------------------------


def test_exec_passes_large_input_and_output_byte_for_byte(cluster):
    ref = cluster.create("base", user="alice")
    data = os.urandom(20_000_000)
    r = cluster.cli("exec", ref, "cat", input=data, text=False, user="alice", check=0)
    assert r.stdout == data


@pytest.mark.full
def test_exec_waits_for_a_slow_reader(cluster):
    ref = cluster.create("base", user="alice")
    p = cluster.popen("exec", "-n", ref, "head", "-c", "30000000", "/dev/zero", user="alice")
    time.sleep(40)  # longer than a peer that answers no pings is waited for
    out, err = p.communicate(timeout=60)
    assert (p.returncode, len(out), err) == (0, 30_000_000, b"")


def test_exec_passes_signals_and_codes_on(cluster):
    ref = cluster.create("base", user="alice")
    p = cluster.popen("exec", ref, "sh", "-c", "trap 'exit 9' INT; echo up; while :; do sleep 0.1; done",
                      user="alice")
    assert p.stdout.readline() == b"up\n"
    p.send_signal(signal.SIGINT)
    assert p.wait(20) == 9


def test_exec_of_what_is_not_there_says_what_there_is(cluster):
    ref = cluster.create("--size", "2", "base", user="alice")
    r = cluster.cli("exec", f"{ref}/sub7", "true", user="alice", check=125)
    assert r.stderr == "muster: the session has 2 containers; there is no 'sub7'\n"
    r = cluster.cli("exec", "no-such-session", "true", user="alice", check=125)
    assert "there is no session 'no-such-session'" in r.stderr


def test_exec_starts_in_a_folder_with_a_variable_as_root(cluster):
    ref = cluster.create("base", user="alice")
    r = cluster.cli("exec", "-u", "root", "-w", "/etc", "-e", "A=b c", ref, "sh", "-c",
                    "pwd; id -u; echo \"$A\"", user="alice", check=0)
    assert r.stdout == "/etc\n0\nb c\n"
    r = cluster.cli("exec", "-w", "/usr/", ref, "pwd", user="alice", check=0)
    assert r.stdout == "/usr\n"


def test_show_has_the_deadline_of_the_time_limit_only(cluster):
    ref = cluster.create("--time", "1h", "--grace", "30s", "base", "sh", "-c", "trap '' TERM; while :; do sleep 1; done",
                         user="alice")
    assert "Deadline  " in cluster.cli("show", ref, user="alice", check=0).stdout
    cluster.cli("stop", ref, user="alice", check=0)
    shown = cluster.cli("show", ref, user="alice", check=0).stdout
    assert "State      stopping" in shown and "Deadline" not in shown, shown
    cluster.cli("stop", "--now", ref, user="alice", check=0)


def test_exec_of_what_cannot_run_ends_as_in_a_shell(cluster):
    ref = cluster.create("base", user="alice")
    for words, code, text in [
            (("no-such-program",), 127, "there is no 'no-such-program' in the container's PATH"),
            (("/no/such",), 127, "cannot run '/no/such': No such file or directory"),
            (("/etc/passwd",), 126, "cannot run '/etc/passwd': Permission denied"),
            (("-w", "/no/folder", "true"), 126, "cannot go to the folder '/no/folder': No such file")]:
        options, command = (words[:2], words[2:]) if words[0] == "-w" else ((), words)
        r = cluster.cli("exec", *options, ref, *command, user="alice", check=code)
        assert text in r.stderr and r.stdout == "", r.stderr
    r = cluster.cli("exec", "-w", "relative", ref, "true", user="alice", check=125)
    assert "'workdir' must be an absolute path" in r.stderr


def test_a_folder_is_imported(cluster, tmp_path):
    tree = tmp_path / "tiny"
    (tree / "bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", tree / "bin/busybox")
    r = cluster.cli("image", "import", f"{tree}/", check=0)
    assert r.stdout == "tiny:latest\n"
    r = cluster.cli("run", "tiny", "/bin/busybox", "echo", "there", user="alice", check=0)
    assert r.stdout == "there\n"
    cluster.cli("image", "rm", "tiny", check=0)
    r = cluster.cli("image", "import", f"{tree}/none", check=1)
    assert r.stderr == f"muster: there is no file '{tree}/none'\n"


@pytest.mark.parametrize("word", ["nosuch.tar", "./nosuch", "../nosuch", "no/such.tar.gz", "nosuch.tgz",
                                  "nosuch.tar.zst", "nosuch.sqsh", "nosuch/"])
def test_a_file_that_is_not_there_is_no_registry_reference(word):
    r = muster("image", "import", word)
    assert (r.returncode, r.stderr) == (1, f"muster: there is no file '{word}' here\n")


def test_what_is_wrong_with_a_file_is_said_of_the_file_as_it_is_called_here(cluster, tmp_path):
    file = tmp_path / "not a.tar"
    file.write_text("this is no archive\n" * 100)
    r = cluster.cli("image", "import", "--name", "bad", file, check=1)
    assert f"'{file}'" in r.stderr and "upload-" not in r.stderr, r.stderr


def test_the_warning_about_volumes_comes_once_and_not_with_one(cluster):
    cluster.cli("volume", "create", "kept", user="alice")
    r = cluster.cli("run", "base", "true", user="alice", check=0)
    assert r.stderr.count("no volume is mounted") == 1
    r = cluster.cli("run", "--volume", "kept", "base", "test", "-d", "/data/kept", user="alice", check=0)
    assert r.stderr == ""


def test_tunnel_and_forward_reach_a_port_of_the_container(cluster):
    ref = cluster.create("base", user="alice")
    server = cluster.popen("exec", "-n", ref, "sh", "-c",
                           "mkdir /tmp/w && head -c 5000000 /dev/urandom > /tmp/w/big && "
                           "md5sum < /tmp/w/big && exec /opt/muster/bin/busybox httpd -f -p 8000 -h /tmp/w",
                           user="alice")
    want = server.stdout.readline().split()[0].decode()
    time.sleep(0.5)
    request = b"GET /big HTTP/1.0\r\n\r\n"
    r = cluster.popen("tunnel", ref, "8000", user="alice", stdin=subprocess.PIPE)
    r.stdin.write(request)
    r.stdin.flush()
    out = r.stdout.read()
    assert r.wait(20) == 0 and out.startswith(b"HTTP/1") and len(out) > 5_000_000
    f = cluster.popen("forward", ref, "0:8000", user="alice")
    address = f.stdout.readline().decode().strip()
    got = cluster.run_in("hub", "/usr/bin/python3", "-c", "import hashlib, urllib.request; print(hashlib.md5("
                         f"urllib.request.urlopen('http://{address}/big').read()).hexdigest())").stdout
    assert got.strip() == want
    f.send_signal(signal.SIGINT)
    f.wait(10)
    server.terminate()
    server.wait(20)


def test_events_are_lines_and_json(cluster):
    ref = cluster.create("--name", "told", "base", user="alice")
    num = cluster.session(ref)["num"]
    lines = cluster.cli("events", user="alice", check=0).stdout.splitlines()
    said = [line[21:] for line in lines if f"session {num} (told) of alice: " in line]
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  [a-z]+ ", line) for line in lines), lines
    assert said[-1].startswith(f"session {num} (told) of alice: running")
    assert len(said) == len(set(said))  # nothing twice
    assert not any("{" in line for line in lines)
    events = [json.loads(line) for line in
              cluster.cli("events", "-o", "json", user="alice", check=0).stdout.splitlines()]
    assert [e["type"] for e in events if e["subject"] == ref][-1] == "session.running"


def test_login_takes_the_token_from_stdin_or_the_environment(cluster, tmp_path):
    home = {"HOME": str(tmp_path), "MUSTER_URL": ""}
    token = cluster.token("alice")
    r = cluster.cli("login", "--url", URL, input=f"{token}\n", user=None, env=home, check=0)
    assert r.stderr == f"muster: signed in as alice; kept in {tmp_path}/.config/muster/config.yaml\n"
    assert cluster.cli("whoami", user=None, env=home, check=0).stdout.startswith("alice ")
    r = cluster.cli("login", URL, user="bob", env=home, check=0)
    assert "signed in as bob by MUSTER_TOKEN" in r.stderr
    assert cluster.cli("whoami", user=None, env=home, check=0).stdout.startswith("bob ")


# --- coming back --------------------------------------------------------------------------------


def test_run_logs_and_events_go_on_when_the_manager_was_away(new_cluster):
    cluster = new_cluster(nodes=1, manager={"agent-fence": "60s", "agent-lost": "120s"})
    p = cluster.popen("run", "--name", "counts", "base", "sh", "-c",
                      "i=0; while [ $i -lt 80 ]; do echo $i; i=$((i+1)); sleep 0.1; done")
    wait_for(lambda: any(s["state"] == "running" for s in cluster.sessions()), 30, "it does not run")
    e = cluster.popen("events", "-f", "-o", "json")
    time.sleep(1)
    cluster.manager.kill9()
    time.sleep(3)
    cluster.manager.start()
    out, err = p.communicate(timeout=90)
    assert (p.returncode, out) == (0, "".join(f"{i}\n" for i in range(80)).encode())
    assert b"trying again" in err and b"connected again" in err
    wait_for(lambda: not cluster.sessions(), 30, "it is not over")
    time.sleep(1)
    e.terminate()
    types = [json.loads(line)["type"] for line in e.stdout.read().splitlines()]
    assert "session.ended" in types


# --- a cluster of one's own ---------------------------------------------------------------------


class Up:
    """`muster up` in a folder of its own."""

    def __init__(self, folder):
        self.dir = str(folder / "up")
        self.env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder),
                    "MUSTER_GUEST": str(GUEST), "ASAN_OPTIONS": "detect_leaks=0"}

    def __call__(self, *words, check=0, timeout=240):
        r = subprocess.run([str(MUSTER), *words], env=self.env, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=timeout)
        assert r.returncode == check, f"{words}: {r.returncode}\n{r.stdout}\n{r.stderr}"
        return r

    def own(self, verb, *words, **more):
        return self(verb, "--dir", self.dir, *words, **more)

    def pids(self):
        r = subprocess.run([str(MUSTER), "status", "--dir", self.dir, "-o", "json"], env=self.env,
                           capture_output=True, text=True)
        return [d["pid"] for d in json.loads(r.stdout)["daemons"]]


@pytest.fixture
def up():
    before = leftovers.snapshot()
    with tempfile.TemporaryDirectory(prefix="muster-up-") as folder:
        os.chmod(folder, 0o755)  # pytest's own are closed to others, the users of containers too
        made = Up(Path(folder))
        yield made
        subprocess.run([str(MUSTER), "down", "--purge", "--dir", made.dir], env=made.env, timeout=200)
    left = leftovers.settle(before)
    assert not left, "left over by muster down:\n" + "\n".join(left)


def import_base(up):
    """A small one: it is imported anew for each of these clusters."""
    tree = Path(up.dir).with_name("base")
    busybox_tree(tree)
    up("image", "import", f"{tree}/", timeout=300)


@AS_ROOT
@pytest.mark.timeout(600)
def test_up_with_virtual_nodes_runs_sessions_over_them(up):
    r = up.own("up", "--nodes", "2", "--node-cpus", "2", "--node-mem", "2G", "--gpu", "fake:h100:2")
    assert "2 nodes are up" in r.stdout
    import_base(up)
    r = up("run", "--size", "4", "--cpus", "1", "--mem", "256M", "--gpus", "1", "--on", "all", "base",
           "sh", "-c", "test -c /dev/nvidia0 -o -c /dev/nvidia1")
    nodes = {c["node"] for c in json.loads(up("show", "1", "-o", "json").stdout)["containers"]}
    assert nodes == {"n1", "n2"}
    r = up.own("up", "--nodes", "2", "--node-mem", "2048M")
    assert "is up already" in r.stderr
    for words, now in [(["--nodes", "3"], "--nodes 2"), (["--node-cpus", "8"], "--node-cpus 2"),
                       (["--node-mem", "4G"], "--node-mem 2G"), (["--gpu", "none"], "--gpu fake:h100:2")]:
        r = up.own("up", *words, check=1)
        assert f"the cluster in '{up.dir}' is up already, with {now}\n" in r.stderr
        assert (f"to change that: muster down --dir {up.dir} && muster up --dir {up.dir} {' '.join(words)}\n"
                in r.stderr)


@AS_ROOT
@pytest.mark.timeout(600)
def test_up_takes_networks_for_sessions_that_the_machine_does_not_use(up):
    route = ["ip", "route", "add", "unreachable", "10.222.0.0/24"]
    subprocess.run(route, check=True)
    try:
        up.own("up", "--nodes", "1", "--node-cpus", "2")
        import_base(up)
        up("create", "--wait", "--size", "2", "--cpus", "0.5", "base")
        addresses = [c["ip"] for c in json.loads(up("show", "1", "-o", "json").stdout)["containers"]]
    finally:
        subprocess.run([*route[:2], "del", *route[3:]], check=True)
    assert len(addresses) == 2 and not any(a.startswith("10.222.0.") for a in addresses), addresses
    overlay = json.loads(Path(up.dir, "cluster.json").read_text())["overlay"]
    assert overlay != "10.128.0.0/9"
    assert all(ipaddress.ip_address(a) in ipaddress.ip_network(overlay) for a in addresses), (addresses, overlay)


@AS_ROOT
@pytest.mark.timeout(600)
def test_up_after_down_brings_back_what_was_there(up):
    r = up.own("up", "--nodes", "2", "--node-cpus", "2", "--gpu", "fake:h100:2")
    assert f"  muster down --dir {up.dir}\n" in r.stdout
    up.own("down")
    r = up.own("up")
    assert r.stderr == "muster: the cluster as it was before: --nodes 2 --node-cpus 2 --gpu fake:h100:2\n"
    assert "2 nodes are up" in r.stdout

    def nodes():
        return {n["name"]: (n["state"], n["capacity"]["cpus"], n["capacity"]["gpus"])
                for n in json.loads(up("node", "ls", "-o", "json").stdout)["nodes"]}
    assert nodes() == {"n1": ("up", 2, 2), "n2": ("up", 2, 2)}
    up.own("down")
    r = up.own("up", "--nodes", "1")
    assert "the rest as it was before: --nodes 1 --node-cpus 2 --gpu fake:h100:2\n" in r.stderr
    assert "these are no more and stay listed as lost: n2\n" in r.stderr
    assert {name: state for name, (state, *_) in nodes().items()} == {"n1": "up", "n2": "lost"}


@AS_ROOT
@pytest.mark.timeout(600)
def test_up_again_repairs_what_died_and_sessions_notice_nothing(up):
    up.own("up", "--nodes", "1")
    import_base(up)
    ref = up("create", "--wait", "base").stdout.strip()
    pid = up("exec", ref, "sh", "-c", "sleep 1000 & echo $!").stdout.strip()
    for pid_of_daemon in up.pids():
        os.kill(pid_of_daemon, signal.SIGKILL)
    r = up.own("status", check=1)
    assert f"; logs: {up.dir}/log/*.log\n" in r.stdout and Path(up.dir, "log/musterd.log").exists()
    assert r.stderr == f"muster: not all daemons run; 'muster up --dir {up.dir}' starts them again\n"
    r = up.own("up")
    assert "2 daemons had died and were started again" in r.stderr
    up("exec", ref, "kill", "-0", pid)


@AS_ROOT
@pytest.mark.timeout(600)
def test_down_removes_what_a_crash_left(up):
    up.own("up", "--nodes", "2")
    import_base(up)
    up("create", "--wait", "--size", "2", "base")
    for pid in up.pids():
        os.kill(pid, signal.SIGKILL)
    up.own("down")
    assert Path(up.dir, "muster.db").exists()  # what is stored stays
    up.own("up", "--nodes", "2")
    assert "base" in up("image", "ls").stdout


@AS_ROOT
@pytest.mark.timeout(600)
def test_up_without_virtual_nodes_is_this_machine(up):
    up.own("up")
    import_base(up)
    assert up("run", "base", "echo", "hello").stdout == "hello\n"
    ref = up("create", "--wait", "--size", "2", "base").stdout.strip()
    assert up("ssh", f"{ref}/sub1", "hostname").stdout == "sub1\n"


@AS_ROOT
@pytest.mark.timeout(600)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_purge_signs_out_of_what_it_purges_and_of_nothing_else(up, at_once):
    file = Path(up.env["HOME"], ".config/muster/config.yaml")
    up.own("up")
    assert file.exists()
    if not at_once:
        up.own("down")
        assert file.exists()
    r = up.own("down", "--purge")
    assert r.stderr == f"muster: signed out: '{file}' is removed\n" and not file.exists()
    assert not Path(up.dir).exists()
    up.own("up")
    file.write_text("url: http://127.0.0.1:1\ntoken: x\n")
    assert up.own("down", "--purge").stderr == ""
    assert file.exists()


@pytest.mark.parametrize("words, says", [
    (["--gpu", "fake"], "up: --gpu: must be auto, none, or fake:MODEL:COUNT with a count of 1 to 64, as in "
                        "fake:h100:2"),
    (["--gpu", "fake:h100:0"], "up: --gpu: must be"),
    (["--nodes", "201"], "up: --nodes: must be a number from 1 to 200, or 0 for this machine as the node"),
    (["--node-cpus", "x"], "up: --node-cpus: "),
])
def test_options_of_up_are_checked_before_anything_is_done(tmp_path, words, says):
    r = muster("up", "--dir", str(tmp_path / "up"), *words)
    assert r.returncode == 2 and r.stderr.startswith(f"muster: {says}"), r.stderr
    assert not (tmp_path / "up").exists()


@AS_ROOT
def test_up_in_a_folder_that_is_closed_to_others_is_refused(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o700)
    r = muster("up", "--dir", str(folder))
    assert r.returncode == 1 and "is closed to others (mode 700)" in r.stderr
    assert not (folder / "cluster.json").exists()


@AS_ROOT
def test_up_as_somebody_else_says_that_it_needs_root(tmp_path):
    tmp_path.chmod(0o777)
    r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", str(MUSTER), "up",
                        "--dir", str(tmp_path)], capture_output=True, text=True)
    assert r.returncode == 1 and f"sudo muster up --dir {tmp_path}\n" in r.stderr
