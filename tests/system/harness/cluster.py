"""A whole cluster on this machine: a manager and virtual nodes, as processes of the test.

    out ---- hub ---+--- management 10.200.0.0/24 ---+--- n1, n2, ...
  203.0.113.9       +--- fabric     10.201.0.0/24 ---+

Everything is in network namespaces of its own (TAG-hub, TAG-out, TAG-n1, ...), so any number of
clusters run side by side and the host's own network is not touched. The manager runs in the hub; out
stands for the world outside. `muster up` makes the like for people; tests start the daemons
themselves, since they need options and an environment for each, and to kill and restart them.
"""
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

from . import contract, leftovers, netns

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("MUSTER_BUILD", ROOT / "build-asan"))
GUEST = Path(os.environ.get("MUSTER_GUEST", ROOT / "build/guest"))
MUSTER = BUILD / "src/cli/muster"
URL = "http://127.0.0.1:7480"
MGMT, FABRIC = "10.200.0", "10.201.0"
OUT = "203.0.113.9"
_numbers = itertools.count(1)
LIVE = []  # clusters that are up: their daemons' processes are nobody's leftovers

# Short times, so that tests of silence do not wait for minutes.
MANAGER_OPTIONS = {"agent-heartbeat": "1s", "agent-fence": "5s", "agent-lost": "12s"}


def base36(n):
    """The last two digits: names of devices are short."""
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return digits[n // 36 % 36] + digits[n % 36]


class ApiError(Exception):
    def __init__(self, status, code, message):
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code, self.message = status, code, message


def wait_for(what, seconds, why):
    """The first true value of what(); AssertionError with why (text or callable) at the deadline."""
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"after {seconds} s: {why() if callable(why) else why}")
        time.sleep(0.05)


class Daemon:
    """One daemon: its command line, its log, and the process while there is one."""

    def __init__(self, cluster, name, program, options, ns):
        self.cluster, self.name, self.program, self.ns = cluster, name, program, ns
        self.options = dict(options)
        self.log = cluster.dir / "log" / f"{name}.log"
        self.process = None
        self.prefix = []  # a program that runs it

    def argv(self):
        words = [*self.prefix, "nsenter", f"--net={netns.path_of(self.ns)}", str(self.program)]
        for key, value in self.options.items():
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{key}", str(one)]
        return words

    def env(self, crash=None):
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
               "LC_ALL": "C.UTF-8",
               "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:log_path={self.cluster.reports}/{self.name}",
               "ASAN_OPTIONS": f"detect_leaks=0:detect_stack_use_after_return=1:log_path={self.cluster.reports}/{self.name}"}
        if crash:
            env["MUSTER_CRASH"] = crash
        return env | self.cluster.env

    def start(self, crash=None):
        assert not self.running(), f"{self.name} runs"
        env = self.env(crash)
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=env, cwd="/", start_new_session=True)
        return self

    @property
    def pid(self):
        return self.process.pid

    def running(self):
        return self.process is not None and self.process.poll() is None

    def kill9(self):
        if self.running():
            os.kill(self.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=20):
        if not self.running():
            return
        os.kill(self.pid, signal.SIGTERM)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"{self.name} did not end {seconds} s after SIGTERM") from None

    def wait_dead(self, seconds=30):
        """For daemons that a crash point kills."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} still runs after {seconds} s") from None

    def freeze(self):
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.pid, signal.SIGCONT)

    def tail(self, lines=60):
        with contextlib.suppress(OSError):
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""


class User:
    def __init__(self, name, uid, token):
        self.name, self.uid, self.token = name, uid, token


class Cluster:
    def __init__(self, nodes=2, cpus="4", mem="4G", gpu="none", manager=None, agent=None, env=None,
                 node_options=None, template=None):
        self.number = next(_numbers)
        self.tag = "t" + base36(os.getpid()) + base36(self.number)
        self.dir = Path(tempfile.mkdtemp(prefix=f"muster-{self.tag}-"))
        self.dir.chmod(0o711)
        self.reports = self.dir / "reports"
        self.node_names = [f"n{i}" for i in range(1, nodes + 1)]
        self.env = dict(env or {})
        self.users = {}
        self.admin_token = ""
        self.contract = None  # another document than docs/openapi.yaml
        self.recorder = None
        self.abandoned = False  # the test leaves sessions that nobody can end any more
        for name in ("log", "run", "reports", "volumes", "nodes"):
            (self.dir / name).mkdir()
        (self.dir / "none.yaml").write_text("{}\n")  # whatever is in /etc/muster is not for tests
        (self.dir / "volumes").chmod(0o711)
        (self.dir / "nodes").chmod(0o711)
        (self.dir / "run").chmod(0o711)
        if template:
            subprocess.run(["cp", "-a", template, str(self.dir / "manager")], check=True)
        LIVE.append(self)
        leftovers.own(re.escape(str(self.dir)))
        leftovers.own(rf"\b{self.tag}-|\b{self.tag}n\d|/muster/{self.tag}")
        self.manager = Daemon(
            self, "manager", BUILD / "src/manager/musterd",
            {"config": self.dir / "none.yaml", "listen": ["127.0.0.1:7480", f"{MGMT}.254:7480"],
             "state-dir": self.dir / "manager", "volumes-dir": self.dir / "volumes",
             "import-program": BUILD / "src/image/muster-import",
             "log-level": "debug", **MANAGER_OPTIONS, **(manager or {})}, f"{self.tag}-hub")
        self.agents = {}
        for i, name in enumerate(self.node_names, 1):
            options = {
                "config": self.dir / "none.yaml", "name": name, "manager": f"https://{MGMT}.254:7480",
                "state-dir": self.dir / "nodes" / name, "run-dir": self.dir / "run" / name,
                "blobs-dir": self.dir / "manager/blobs", "guest-dir": GUEST,
                "addr-mgmt": f"{MGMT}.{i}", "addr-fabric": f"{FABRIC}.{i}", "cpus": cpus, "mem": mem,
                "gpu": gpu, "tag": f"{self.tag}n{i}", "log-level": "debug", **(agent or {}),
                **(node_options or {}).get(name, {})}
            self.agents[name] = Daemon(self, name, BUILD / "src/agent/muster-agent", options,
                                       f"{self.tag}-{name}")

    # --- its life ---------------------------------------------------------------------------

    @property
    def daemons(self):
        return [self.manager, *self.agents.values()]

    def namespace(self, name):
        """Path of the network namespace of a node, or of "hub" or "out"."""
        return netns.path_of(f"{self.tag}-{name}")

    def _make_network(self):
        hub, out = f"{self.tag}-hub", f"{self.tag}-out"
        for name in (hub, out, *(d.ns for d in self.agents.values())):
            netns.ip("netns", "add", name)
        netns.ip_batch(hub, [
            "link set lo up",
            "link add mgmt type bridge", "link set mgmt up", f"addr add {MGMT}.254/24 dev mgmt",
            "link add fabric type bridge", "link set fabric up",
            f"link add world type veth peer eth0 netns {out}",
            "addr add 203.0.113.1/24 dev world", "link set world up"])
        netns.ip_batch(out, [
            "link set lo up", f"addr add {OUT}/24 dev eth0", "link set eth0 up",
            f"route add {MGMT}.0/24 via 203.0.113.1"])
        self.run_in("hub", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for i, agent in enumerate(self.agents.values(), 1):
            self._plug_in(i, agent.ns)

    def _plug_in(self, i, ns):
        """Node number i has an address in both networks."""
        netns.ip_batch(f"{self.tag}-hub", [line for bridge in ("mgmt", "fabric") for line in (
            f"link add {bridge}{i} type veth peer {bridge}0 netns {ns}",
            f"link set {bridge}{i} master {bridge} up")])
        netns.ip_batch(ns, [
            "link set lo up",
            f"addr add {MGMT}.{i}/24 dev mgmt0", "link set mgmt0 up",
            f"addr add {FABRIC}.{i}/24 dev fabric0", "link set fabric0 up",
            f"route add default via {MGMT}.254"])

    def start(self):
        for name, program in (("musterd", self.manager.program), ("muster", MUSTER)):
            assert os.access(program, os.X_OK), f"{name} is not built: {program}"
        self._make_network()
        self.manager.start()
        self.wait_manager()
        for agent in self.agents.values():
            if (agent.options["manager"].startswith("https://") and
                    not (agent.options["state-dir"] / "tls/node.pem").exists()):
                self.join(agent)
            agent.start()
        self.wait_nodes()
        return self

    def join(self, agent, *more, check=0, **wanted):
        """Make the agent's machine a node, as an administrator does it."""
        made = self.api("POST", "/v1/join-tokens", {"node": agent.name, **wanted})
        return self.join_by(agent, made["urls"][0], made["token"], made["ca"], *more, check=check)

    def join_by(self, agent, url, token, ca, *more, check=0):
        r = subprocess.run(
            ["nsenter", f"--net={netns.path_of(agent.ns)}", str(agent.program), "join", url,
             "--token", token, "--ca", ca, "--config", str(self.dir / "none.yaml"),
             "--state-dir", str(agent.options["state-dir"]), *map(str, more)],
            env=agent.env(), capture_output=True, text=True, timeout=30)
        assert check is None or r.returncode == check, f"join: {r.returncode}: {r.stdout}{r.stderr}"
        return r

    def wait_manager(self, seconds=30):
        def answers():
            assert self.manager.running(), f"the manager ended:\n{self.manager.tail()}"
            try:
                self.api("GET", "/v1/version", user=None)
            except (OSError, ApiError):
                return False
            return True
        wait_for(answers, seconds, lambda: f"the manager does not answer:\n{self.manager.tail()}")
        self.admin_token = (self.dir / "manager/admin.token").read_text().strip()

    def wait_nodes(self, seconds=30, names=None):
        names = set(names or self.node_names)

        def up():
            for name in names:
                assert self.agents[name].running(), f"{name} ended:\n{self.agents[name].tail()}"
            nodes = self.api("GET", "/v1/nodes")["nodes"]
            return names <= {n["name"] for n in nodes if n["state"] == "up"}
        wait_for(up, seconds, lambda: "not all nodes are up: %s\n%s" % (
            self.api("GET", "/v1/nodes"), "\n".join(d.tail(20) for d in self.daemons)))

    def stop_sessions(self, seconds=60):
        """End all that lives, and wait until every node has confirmed that it is gone."""
        for s in self.sessions():
            with contextlib.suppress(ApiError):
                self.api("POST", f"/v1/sessions/{s['id']}/stop", {"now": True})
        wait_for(lambda: not self.sessions(), seconds,
                 lambda: f"sessions do not end: {[(s['id'], s['state'], s.get('reason')) for s in self.sessions()]}")

    def wait_free(self, seconds=20, names=None):
        def free():
            return not [n for n in self.nodes().values()
                        if (not names or n["name"] in names) and
                        (n["used"]["cpus"] or n["used"]["mem"] or n["sessions"] or n["cleaning"])]
        wait_for(free, seconds, lambda: f"still in use: {self.nodes()}")

    def close(self):
        """Take it all away; what the daemons should have taken away themselves is not touched
        before it was looked at: see the leftovers fixtures."""
        problems = []
        LIVE.remove(self)
        with contextlib.suppress(Exception):
            for daemon in self.daemons:
                if daemon.process and not daemon.running():
                    daemon.start()
            self.wait_manager(10)
            self.wait_nodes(10)
            self.stop_sessions(30)
        for daemon in reversed(self.daemons):
            if daemon.process:
                with contextlib.suppress(OSError):
                    daemon.thaw()
                try:
                    daemon.stop()
                except AssertionError as e:
                    problems.append(str(e))
        self._kill_rest()
        self._remove_mounts()
        for name in ("hub", "out", *self.node_names):
            if netns.exists(f"{self.tag}-{name}"):
                with contextlib.suppress(subprocess.CalledProcessError):
                    netns.ip("netns", "del", f"{self.tag}-{name}")
        self._remove_cgroups()
        problems += self.take_reports()
        shutil.rmtree(self.dir, ignore_errors=True)
        if self.dir.exists():
            problems.append(f"cannot remove {self.dir}")
        assert not problems, "\n".join(problems)

    def _kill_rest(self):
        """After a failed test: whatever still names this cluster's folder."""
        for line in leftovers.processes():
            if str(self.dir) in line or f"/muster/{self.tag}" in line:
                with contextlib.suppress(OSError):
                    os.kill(int(line.split()[1]), signal.SIGKILL)
        time.sleep(0.1)

    def _remove_mounts(self):
        for _ in range(8):
            lines = sorted({m.group(1) for line in open("/proc/self/mountinfo")
                            if (m := re.match(rf"(?:\S+ ){{4}}({re.escape(str(self.dir))}/\S*)", line))},
                           reverse=True)
            if not lines:
                return
            for point in lines:
                subprocess.run(["umount", "-l", point], capture_output=True)

    def _remove_cgroups(self):
        for _ in range(20):
            left = [p for p in (line.split(" ", 1)[1] for line in leftovers.cgroups())
                    if f"/muster/{self.tag}" in p]
            if not left:
                break
            for path in sorted(left, reverse=True):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            time.sleep(0.1)
        for parent in Path("/sys/fs/cgroup").glob("*/muster"):
            with contextlib.suppress(OSError):
                parent.rmdir()
        with contextlib.suppress(OSError):
            os.rmdir("/sys/fs/cgroup/muster")

    def take_reports(self):
        """What the sanitizers had to say since the last time."""
        found = []
        for path in sorted(self.reports.iterdir()):
            found.append(f"{path.name}:\n{path.read_text(errors='replace')[:6000]}")
            path.unlink()
        return found

    def logs(self, lines=15):
        return [(f"log of {d.name}", d.tail(lines)) for d in self.daemons]

    # --- daemons ----------------------------------------------------------------------------

    def restart(self, *daemons, crash=None):
        """kill -9 and start again (of all: together); waits until it is back."""
        for d in daemons:
            d.kill9()
        for d in daemons:
            d.start(crash)
        if not crash:
            self.wait_manager()
            self.wait_nodes()

    def reboot(self, name, forget=False):
        """The machine of a node goes down with all that runs there, and boots again; forget: what
        the agent wrote last was not on its disk yet."""
        agent = self.agents[name]
        agent.kill9()
        self.run_in(name, str(BUILD / "src/agent/clean/muster-agent-clean"),
                    f"--run-dir={agent.options['run-dir']}", f"--tag={agent.options['tag']}")
        if forget:
            for spec in (Path(agent.options["state-dir"]) / "sessions").iterdir():
                spec.unlink()
        boot_id = self.dir / f"boot-{uuid.uuid4()}"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        script = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        agent.prefix = ["unshare", "-m", "sh", "-c", script, str(boot_id)]
        agent.start()
        self.wait_nodes()
        # it was read; while something lies on /proc, the kernel lets no container have its own
        subprocess.run(["nsenter", f"--mount=/proc/{agent.pid}/ns/mnt", "umount",
                        "/proc/sys/kernel/random/boot_id"], check=True)

    # --- the API and the command line -------------------------------------------------------

    def token(self, user):
        if user is None:
            return None
        return self.admin_token if user == "admin" else self.users[user].token

    def request(self, method, path, body=None, user="admin", headers=None, timeout=60):
        """(status, headers, bytes), errors too; all as docs/openapi.yaml says."""
        status, reply_headers, reply = self._request(method, path, body, user, headers, timeout)
        contract.check(method, path, status, reply_headers.get("Content-Type"), reply, self.contract)
        return status, reply_headers, reply

    def _request(self, method, path, body, user, headers, timeout):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        rq = urllib.request.Request(URL + path, data=data, method=method, headers=headers or {})
        if data is not None:
            rq.add_header("Content-Type", "application/json")
        if self.token(user):
            rq.add_header("Authorization", f"Bearer {self.token(user)}")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with netns.inside(self.namespace("hub")):
            try:
                with opener.open(rq, timeout=timeout) as reply:
                    return reply.status, reply.headers, reply.read()
            except urllib.error.HTTPError as e:
                return e.code, e.headers, e.read()
            except urllib.error.URLError as e:
                raise OSError(str(e.reason)) from e

    def api(self, method, path, body=None, user="admin", **more):
        """The reply's JSON; ApiError for an error."""
        status, _, data = self.request(method, path, body, user, **more)
        reply = json.loads(data) if data else None
        if status >= 400:
            error = (reply or {}).get("error", {})
            raise ApiError(status, error.get("code"), error.get("message"))
        return reply

    @contextlib.contextmanager
    def recorded(self):
        """What the command line gets is looked at, too: ContractBroken at the end."""
        self.recorder = contract.Recorder(self.namespace("hub"), "127.0.0.1", 7480)
        problems = []
        try:
            yield
        finally:
            recorder, self.recorder = self.recorder, None
            problems += recorder.close(self.contract)
        if problems:
            raise contract.ContractBroken("\n".join(problems))

    def add_user(self, name, uid, role="user"):
        reply = self.api("POST", "/v1/users", {"name": name, "role": role, "uid": uid})
        self.users[name] = User(name, uid, reply["token"])
        return self.users[name]

    def cli_env(self, user):
        env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.dir),
               "MUSTER_URL": self.recorder.url if self.recorder else URL, "TERM": "xterm",
               "ASAN_OPTIONS": f"detect_leaks=0:log_path={self.reports}/cli",
               "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:log_path={self.reports}/cli"}
        if user:
            env["MUSTER_TOKEN"] = self.token(user)
        return env

    def cli_argv(self, *words):
        return ["nsenter", f"--net={self.namespace('hub')}", str(MUSTER), *map(str, words)]

    def cli(self, *words, user="admin", check=None, input=None, timeout=90, text=True, env=None):
        """Run `muster WORDS`; check=N asserts the exit code, with all that was said."""
        r = subprocess.run(self.cli_argv(*words), env=self.cli_env(user) | (env or {}),
                           input=input, capture_output=True, text=text, timeout=timeout,
                           stdin=None if input is not None else subprocess.DEVNULL)
        if check is not None:
            assert r.returncode == check, (
                f"muster {' '.join(map(str, words))}: exit {r.returncode}, not {check}\n"
                f"stdout: {r.stdout[-2000:]}\nstderr: {r.stderr[-2000:]}")
        return r

    def popen(self, *words, user="admin", **more):
        """`muster WORDS` in the background, with pipes."""
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE} | more
        return subprocess.Popen(self.cli_argv(*words), env=self.cli_env(user), **more)

    def run_in(self, name, *argv, check=True, timeout=60, **more):
        """Run a program in the network namespace of a node, of "hub" or of "out"."""
        return subprocess.run(["nsenter", f"--net={self.namespace(name)}", *argv], check=check,
                              capture_output=True, text=True, timeout=timeout, **more)

    # --- sessions and nodes -----------------------------------------------------------------

    def sessions(self, ended=False):
        query = "/v1/sessions?all=1&limit=1000" + ("&ended=1" if ended else "")
        page = self.api("GET", query)
        found = page["sessions"]
        while page["next"]:
            page = self.api("GET", f"{query}&after={urllib.parse.quote(page['next'])}")
            found += page["sessions"]
        return found

    def session(self, ref):
        return self.api("GET", f"/v1/sessions/{ref}")

    def nodes(self):
        return {n["name"]: n for n in self.api("GET", "/v1/nodes")["nodes"]}

    def create(self, *words, user="admin", wait=True, timeout=60):
        """`muster create WORDS`; the session's id."""
        r = self.cli("create", *(["--wait"] if wait else []), *words, user=user, check=0,
                     timeout=timeout)
        return r.stdout.strip()

    def wait_state(self, ref, *states, seconds=30):
        """The session once it is in one of these states."""
        last = {}

        def there():
            last.update(self.session(ref))
            return last["state"] in states and last
        return wait_for(there, seconds, lambda: f"session {ref} is {last.get('state')}, not "
                        f"{' or '.join(states)}: {last.get('reason')}")

    def exec(self, ref, *command, user="admin", check=0, root=False, timeout=60, **more):
        """`muster exec REF COMMAND`; its stdout."""
        r = self.cli("exec", *(["--user", "root"] if root else []), ref, *command, user=user,
                     check=check, timeout=timeout, **more)
        return r.stdout

    def sh(self, ref, script, **more):
        return self.exec(ref, "sh", "-c", script, **more)
