"""Administration by hand, from the command line: users, nodes, groups, volumes, images; who may do
what; and the options of create that decide what a container is."""
import json
import os
import re
import shutil
import subprocess

import pytest

from harness.cluster import BUILD, wait_for
from image_tools import Entry, Layout, make_tar

MULTI = ("--size", "4", "--mode", "multi-node", "--cpus", "2", "--mem", "128M")


@pytest.fixture(autouse=True)
def recorded(request):
    """Of tests on the shared cluster, what the command line got is as docs/openapi.yaml says."""
    if "cluster" not in request.fixturenames:
        yield
        return
    with request.getfixturevalue("cluster").recorded():
        yield


def as_json(cluster, *words, user="admin"):
    return json.loads(cluster.cli(*words, "-o", "json", user=user, check=0).stdout)


def table(cluster, *words, user="admin"):
    """Rows of what a command prints, by their first word; and the heads of the columns."""
    head, *rows = cluster.cli(*words, user=user, check=0).stdout.splitlines()
    return {row.split()[0]: row for row in rows}, head


ROLES = {"alice": "user", "olga": "operator"}


def forbidden(cluster, *words, user="alice", needs="admin"):
    r = cluster.cli(*words, user=user, check=1)
    assert r.stderr == (f"muster: this needs the role '{needs}'; you are '{user}' with the role "
                        f"'{ROLES[user]}'\n") and r.stdout == ""


# --- users ------------------------------------------------------------------------------------


def test_a_user_is_made_and_signs_in_with_the_token_that_is_printed(cluster):
    token = cluster.cli("user", "add", "carol", "--uid", "20031", check=0).stdout
    assert re.fullmatch(r"\S{20,}\n", token)
    me = cluster.cli("whoami", "-o", "json", env={"MUSTER_TOKEN": token.strip()}, check=0).stdout
    assert json.loads(me)["name"] == "carol"
    rows, head = table(cluster, "user", "ls")
    assert head.split() == ["USER", "ROLE", "UID"] and rows["carol"].split() == ["carol", "user", "20031"]
    users = {u["name"]: u for u in as_json(cluster, "user", "ls")["users"]}
    assert users["carol"]["uid"] == 20031 and users["admin"]["role"] == "admin"
    assert "token" not in users["carol"]


@pytest.mark.parametrize("words, says", [
    (["alice"], "user 'alice' is there already"),
    (["dave", "--uid", "20011"], "uid 20011 belongs to user 'alice'"),
    (["dave", "--uid", "999"], "1000"),
    (["Not A Name"], "a user's name"),
])
def test_a_user_that_cannot_be_is_refused(cluster, words, says):
    r = cluster.cli("user", "add", *words, check=1)
    assert says in r.stderr and "dave" not in table(cluster, "user", "ls")[0]


def test_a_plain_user_administers_nothing(cluster):
    for words in (["user", "ls"], ["user", "add", "eve"], ["node", "drain", "n1"], ["node", "resume", "n1"],
                  ["node", "lost", "n1"], ["node", "purge", "n1"], ["node", "group", "n1", "default"],
                  ["group", "create", "mine"], ["group", "set", "default", "--size-max", "1"],
                  ["image", "rm", "base"]):
        operator = words[1] in ("drain", "resume", "rm") or words[:2] == ["node", "group"]
        forbidden(cluster, *words, needs="operator" if operator else "admin")
    assert not cluster.nodes()["n1"]["drained"]
    for words in (["node", "ls"], ["node", "show", "n1"], ["group", "ls"], ["image", "ls"], ["volume", "ls"]):
        cluster.cli(*words, user="alice", check=0)


def test_an_operator_drains_and_gives_up_nothing(cluster):
    if "olga" not in cluster.users:
        cluster.add_user("olga", 20032, "operator")
    cluster.cli("node", "drain", "n2", user="olga", check=0)
    cluster.cli("node", "resume", "n2", user="olga", check=0)
    forbidden(cluster, "node", "lost", "n2", user="olga")
    forbidden(cluster, "user", "ls", user="olga")


def test_no_token_and_a_wrong_one_are_said(cluster):
    for token, says in (("", "you are not signed in"), ("nonsense", "does not know you by this token")):
        r = cluster.cli("ls", user=None, env={"MUSTER_TOKEN": token}, check=1)
        assert f"{says}; see 'muster login'" in r.stderr, r.stderr


# --- nodes ------------------------------------------------------------------------------------


def test_nodes_are_listed_and_shown(cluster):
    sid = cluster.create("--name", "there", *MULTI, "base", user="alice")
    rows, _ = table(cluster, "node", "ls")
    assert re.search(r"\bup\b.* 4/4 .*h100", rows["n1"]), rows["n1"]
    node = as_json(cluster, "node", "show", "n2")
    assert node["capacity"]["cpus"] == 4 and node["used"]["cpus"] == 4 and node["free"]["cpus"] == 0
    assert [s["id"] for s in node["sessions"]] == [sid]
    text = cluster.cli("node", "show", "n2", check=0).stdout
    assert "10.200.0.2" in text and "10.201.0.2" in text and "there of alice: 2 containers" in text
    # how full a node is, is everybody's to know; whose sessions are there is not
    assert "there" not in cluster.cli("node", "show", "n2", user="bob", check=0).stdout
    r = cluster.cli("node", "show", "n9", check=1)
    assert r.stderr == "muster: there is no node 'n9'; see 'muster node ls'\n"


def test_a_drained_node_gets_nothing_new_and_keeps_what_runs(cluster):
    cluster.cli("node", "drain", "n1", check=0)
    old = cluster.create("base", user="alice")
    cluster.cli("node", "resume", "n1", check=0)
    assert cluster.session(old)["containers"][0]["node"] == "n2"
    cluster.cli("node", "drain", "n2", "--reason", "a new fan", check=0)
    text = cluster.cli("node", "show", "n2", check=0).stdout
    assert re.search(r"State +up, drained\nDrained +a new fan\n", text), text
    assert "drained" in table(cluster, "node", "ls")[0]["n2"]
    assert cluster.sh(old, "echo goes on", user="alice") == "goes on\n"
    for _ in range(3):
        new = cluster.create("--cpus", "1", "--mem", "64M", "base", user="bob")
        assert cluster.session(new)["containers"][0]["node"] == "n1"
    waits = cluster.create("--cpus", "2", "--mem", "64M", "base", user="bob", wait=False)
    why = cluster.cli("why", waits, user="bob", check=0).stdout
    assert cluster.session(waits)["state"] == "pending" and "n2 (up, drained)" in why, why
    cluster.cli("node", "resume", "n2", check=0)
    assert cluster.wait_state(waits, "running")["containers"][0]["node"] == "n2"
    assert "Drained" not in cluster.cli("node", "show", "n2", check=0).stdout


def test_only_an_administrator_gives_up_a_node_with_a_debug_session(cluster):
    sid = cluster.create(*MULTI, "base", user="alice")
    r = cluster.cli("node", "lost", "n2", check=1)
    assert "node 'n2' is connected" in r.stderr
    cluster.agents["n2"].kill9()
    wait_for(lambda: cluster.nodes()["n2"]["state"] == "unreachable", 20, "n2 is not unreachable")
    forbidden(cluster, "node", "lost", "n2")
    assert "node 'n2' is not connected" in cluster.cli("node", "purge", "n2", check=1).stderr
    assert cluster.session(sid)["state"] == "running"
    cluster.cli("node", "lost", "n2", check=0)
    s = cluster.wait_state(sid, "ended")
    assert s["result"] == "lost" and "an administrator declared the node lost" in s["reason"]["text"], s
    assert {n: v["used"]["cpus"] for n, v in cluster.nodes().items()} == {"n1": 0, "n2": 0}
    assert cluster.nodes()["n2"]["state"] == "lost"
    assert cluster.cli("node", "lost", "n2", check=0).stderr == "muster: node 'n2' was lost already\n"
    cluster.agents["n2"].start()
    cluster.wait_nodes()  # and the fixture looks for what was left


# --- the daemons' own words ---------------------------------------------------------------------


@pytest.mark.parametrize("program", ["manager/musterd", "agent/muster-agent"])
def test_a_daemon_reads_its_file_and_refuses_what_it_does_not_know(program, tmp_path):
    file = tmp_path / "daemon.yaml"

    def run(text, *words):
        file.write_text(text)
        return subprocess.run([BUILD / "src" / program, "--config", file, *words], capture_output=True, text=True,
                              timeout=30, env={"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0"})
    listed = run("{}", "--help").stdout
    assert "--log-level LEVEL" in listed and "--config PATH" in listed
    for text, says in [("colour: red\n", "colour"), ("log:\n  level: loud\n", "must be err, warning, info or debug"),
                       ("log: [\n", "daemon.yaml:2: ")]:
        r = run(text)
        assert r.returncode == 2 and says in r.stderr and str(file) in r.stderr, r.stderr
    r = run("{}", "--no-such-option")
    assert r.returncode == 2 and "no-such-option" in r.stderr


# --- groups -----------------------------------------------------------------------------------


def test_a_group_limits_what_it_takes(cluster):
    cluster.cli("group", "create", "night", "--kind", "train", "--size-max", "2", "--time-max", "1h",
                "--time-default", "10m", check=0)
    rows, head = table(cluster, "group", "ls")
    assert head.split("  ")[0] == "GROUP" and re.search(r"night +train +10m +1h +2\b", rows["night"]), rows
    r = cluster.cli("group", "create", "night", check=1)
    assert "group 'night' is there already" in r.stderr
    cluster.cli("node", "group", "n2", "night", check=0)
    try:
        for words, says in [
                (["base"], "group 'night' takes no debug sessions"),
                (["--size", "3", "--cpus", "1", "base", "true"], "at most 2 containers"),
                (["--time", "2h", "base", "true"], "the time limit of group 'night' is at most 1h")]:
            r = cluster.cli("create", "--group", "night", *words, user="alice", check=1)
            assert says in r.stderr, r.stderr
        sid = cluster.create("--group", "night", "base", "sleep", "60", user="alice")
        s = cluster.session(sid)
        assert s["time_limit_usec"] == 600_000_000 and s["containers"][0]["node"] == "n2", s
        cluster.cli("group", "set", "night", "--size-max", "none", "--kind", "debug", check=0)
        night = next(g for g in as_json(cluster, "group", "ls")["groups"] if g["name"] == "night")
        assert night["size_max"] is None and night["nodes"] == ["n2"]
        assert (night["allow_debug"], night["allow_train"]) == (True, False)
        assert cluster.session(sid)["state"] == "running"
    finally:
        cluster.cli("node", "group", "n2", "default", check=0)
    for words, says in [(["node", "group", "n2", "no-such"], "there is no group 'no-such'"),
                        (["group", "set", "no-such", "--kind", "debug"], "there is no group 'no-such'")]:
        assert says in cluster.cli(*words, check=1).stderr


# --- volumes ----------------------------------------------------------------------------------


def test_volumes_are_made_listed_and_removed_by_their_owner(cluster):
    assert cluster.cli("volume", "create", "box", user="alice", check=0).stdout == "box\n"
    r = cluster.cli("volume", "create", "box", user="alice", check=1)
    assert "you have a volume 'box' already" in r.stderr
    volume = as_json(cluster, "volume", "ls", user="alice")["volumes"][0]
    assert (volume["name"], volume["owner"]) == ("box", "alice")
    st = os.stat(volume["path"])
    assert st.st_uid == cluster.users["alice"].uid and st.st_mode & 0o777 == 0o700
    assert "box" in table(cluster, "volume", "ls", user="alice")[0]
    assert as_json(cluster, "volume", "ls", user="bob")["volumes"] == []
    assert "box" in table(cluster, "volume", "ls", "--all")[0]
    assert as_json(cluster, "volume", "ls", "--all", user="bob")["volumes"] == []
    r = cluster.cli("volume", "rm", "box", user="bob", check=1)
    assert "you have no volume 'box'" in r.stderr
    sid = cluster.create("--volume", "box:/box", "base", user="alice")
    cluster.sh(sid, "echo kept >/box/file", user="alice")
    r = cluster.cli("volume", "rm", "--data", "box", user="alice", check=1)
    assert "uses the volume 'box'; stop it first" in r.stderr
    cluster.stop_sessions()
    r = cluster.cli("volume", "rm", "box", user="alice", check=1)
    assert "'muster volume rm --data box' removes its data too" in r.stderr
    assert os.listdir(volume["path"]) == ["file"]
    cluster.cli("volume", "rm", "--data", "box", user="alice", check=0)
    assert not os.path.exists(volume["path"])
    assert as_json(cluster, "volume", "ls", user="alice")["volumes"] == []


# --- images -----------------------------------------------------------------------------------


@pytest.fixture
def tiny(tmp_path):
    """A folder with busybox, to be imported."""
    (tmp_path / "tiny/bin").mkdir(parents=True)
    shutil.copy("/bin/busybox", tmp_path / "tiny/bin/busybox")
    return tmp_path / "tiny"


def test_images_are_listed_shown_and_removed_when_nobody_uses_them(cluster, tiny):
    cluster.cli("image", "import", f"{tiny}/", "--name", "mine", user="alice", check=0)
    rows, head = table(cluster, "image", "ls", user="bob")
    assert head.split()[:2] == ["IMAGE", "SIZE"] and "mine:latest" in rows and "base:latest" in rows
    image = as_json(cluster, "image", "show", "mine")
    assert image["name"] == "mine:latest" and re.fullmatch("sha256:[0-9a-f]{64}", image["id"])
    sid = cluster.create("mine", "/bin/busybox", "sleep", "60", user="bob")
    assert as_json(cluster, "image", "show", "mine")["sessions"] == 1
    r = cluster.cli("image", "rm", "mine", check=1)
    assert "uses the image 'mine:latest'; stop it first" in r.stderr
    cluster.cli("stop", "--now", sid, user="bob", check=0)
    cluster.wait_state(sid, "ended")
    cluster.cli("image", "rm", "mine", check=0)
    r = cluster.cli("image", "show", "mine", check=1)
    assert r.stderr == "muster: there is no image 'mine'; see 'muster image ls'\n"
    r = cluster.cli("create", "mine", user="bob", check=1)
    assert "there is no image 'mine'" in r.stderr


# --- why and events ---------------------------------------------------------------------------


def test_why_says_how_much_is_missing_and_what_happened(cluster):
    full = cluster.create(*MULTI, "base", user="bob")
    sid = cluster.create("--cpus", "3", "base", user="alice", wait=False)
    why = as_json(cluster, "why", sid, user="alice")
    assert why["state"] == "pending" and any("free 0 CPUs" in d for d in why["details"]), why
    cluster.cli("stop", "--now", full, user="bob", check=0)
    cluster.wait_state(sid, "running")
    assert "placed on one node" in cluster.cli("why", sid, user="alice", check=0).stdout
    cluster.cli("stop", "--now", sid, user="alice", check=0)
    cluster.wait_state(sid, "ended")
    assert "stopped by alice" in cluster.cli("why", sid, user="alice", check=0).stdout


def test_events_are_of_ones_own_and_an_administrator_sees_all(cluster):
    sid = cluster.create("base", user="alice")

    def subjects(user):
        lines = cluster.cli("events", "-o", "json", user=user, check=0).stdout.splitlines()
        return {json.loads(line)["subject"] for line in lines}
    assert sid in subjects("alice") and sid in subjects("admin") and sid not in subjects("bob")


# --- options of create and run ------------------------------------------------------------------


def test_shm_and_limits_are_each_containers_own(cluster):
    sid = cluster.create(*MULTI, "--shm", "24M", "base", user="alice")
    for name in ("main1", "sub1", "sub2", "sub3"):
        assert int(cluster.sh(f"{sid}/{name}", "df -B1 --output=size /dev/shm | tail -1")) == 24 << 20
        r = cluster.cli("exec", f"{sid}/{name}", "sh", "-c", "head -c 30M /dev/zero >/dev/shm/x", user="alice")
        assert r.returncode != 0 and "No space left" in r.stderr
    r = cluster.cli("create", "--mem", "64M", "--shm", "65M", "base", user="alice", check=1)
    assert "'shm' must be from 64 KiB to what 'mem' is" in r.stderr


@pytest.mark.parametrize("on, where", [("main", ["main1"]), ("all", ["main1", "sub1", "sub2", "sub3"])])
def test_on_says_where_the_command_runs(cluster, on, where):
    name = f"on-{on}"
    cluster.cli("run", "--name", name, *MULTI, "--on", on, "--workdir", "/usr/bin", "base", "sh", "-c",
                "echo $PWD", user="alice", check=0)
    logs = {c: cluster.cli("logs", f"{name}/{c}", user="alice", check=0).stdout
            for c in ("main1", "sub1", "sub2", "sub3")}
    assert [c for c in logs if logs[c] == "/usr/bin\n"] == where, logs
    assert all(logs[c] == "" for c in logs if c not in where), logs


def test_a_workdir_that_is_not_there_is_made_for_the_user(cluster):
    r = cluster.cli("run", "--workdir", "/my/folder", "base", "sh", "-c", "pwd; echo there >x; cat x",
                    user="alice", check=0)
    assert r.stdout == "/my/folder\nthere\n"
    r = cluster.cli("run", "--workdir", "folder", "base", "true", user="alice", check=125)
    assert "'workdir'" in r.stderr


def test_a_gpu_model_that_nobody_has_is_refused_with_those_there_are(cluster):
    r = cluster.cli("create", "--gpus", "1", "--gpu-model", "b200", "base", user="alice", check=1)
    assert r.stderr == ("muster: asks for b200 GPUs; the nodes of group 'default' have these models: "
                        "h100\n")
    sid = cluster.create("--gpus", "1", "--gpu-model", "H100", "base", user="alice")
    assert cluster.session(sid)["resources"]["gpu_model"] == "h100"
    r = cluster.cli("create", "--gpu-model", "h100", "base", user="alice", check=1)
    assert "'gpus' is 0: say how many" in r.stderr


def test_a_dry_run_says_now_later_or_never_and_makes_nothing(cluster):
    four = ("--size", "4", "--mode", "multi-node", "--mem", "64M", "base")
    r = cluster.cli("create", "--dry-run", "--cpus", "2", *four, user="alice", check=0)
    assert re.fullmatch(r"now: it would start now\n(  (main1|sub[123]) on n[12]\n){4}", r.stdout), r.stdout
    r = cluster.cli("run", "--dry-run", "--cpus", "3", *four, "true", user="alice", check=1)
    assert r.stdout == ("never: asks for 4 x 3 CPUs = 12; the nodes of group 'default' have 8 together\n"
                        "  the largest size that could run is 2\n")
    r = cluster.cli("create", "-o", "json", "--dry-run", "--cpus", "3", *four, user="alice", check=1)
    found = json.loads(r.stdout)
    assert (found["possible"], found["fits"], found["largest"]) == (False, False, 2)
    cluster.create("--cpus", "3", "--mem", "64M", "base", "sleep", "1000", user="bob")
    r = cluster.cli("create", "--dry-run", "--cpus", "2", *four, user="alice", check=0)
    assert re.fullmatch(r"later: .*\d.*\n  the largest size that fits now is 2\n", r.stdout), r.stdout
    assert len(cluster.sessions()) == 1


def test_a_debug_session_needs_no_command_and_a_train_one_has_the_images(cluster, tiny):
    sid = cluster.create("--kind", "debug", "base", user="alice")
    assert cluster.session(sid)["kind"] == "debug"
    cluster.cli("image", "import", f"{tiny}/", "--name", "bare", check=0)
    r = cluster.cli("create", "--kind", "train", "bare", user="alice", check=1)
    assert "a 'train' session needs a 'command', since image 'bare' has none of its own" in r.stderr
    cluster.cli("image", "rm", "bare", check=0)
    sid = cluster.create("--kind", "train", "nolibc", user="alice")
    wait_for(lambda: "hello from nolibc" in cluster.cli("logs", sid, user="alice").stdout, 10, "it says nothing")
    sid = cluster.create("--kind", "debug", "base", "sleep", "100", user="alice")
    assert cluster.session(sid)["kind"] == "debug"


def test_a_name_means_ones_own_before_others_and_who_lives_before_the_ended(cluster):
    def shown(ref, user):
        return as_json(cluster, "show", ref, user=user)["id"]
    first = cluster.create("--name", "twin", "--cpus", "0.5", "base", user="alice")
    of_bob = cluster.create("--name", "twin", "--cpus", "0.5", "base", user="bob")
    assert (shown("twin", "alice"), shown("twin", "bob")) == (first, of_bob)
    # Neither is the administrator's own: see tests/issues/test_newcomer.py.
    assert "several sessions are called 'twin'" in cluster.cli("show", "twin", check=1).stderr
    cluster.cli("stop", "--now", of_bob, user="bob", check=0)
    cluster.wait_state(of_bob, "ended")
    assert (shown("twin", "bob"), shown("twin", "admin")) == (of_bob, first)
    cluster.cli("stop", "--now", "twin", user="alice", check=0)
    cluster.wait_state(first, "ended")
    second = cluster.create("--name", "twin", "--cpus", "0.5", "base", user="alice")
    assert shown("twin", "alice") == second
    num = str(cluster.session(first)["num"])
    assert shown(num, "alice") == first
    for ref in (num, first, first[:8]):  # a session of somebody else is none
        assert f"there is no session '{ref}'" in cluster.cli("show", ref, user="bob", check=1).stderr
    r = cluster.cli("create", "--name", "42", "base", user="alice", check=1)
    assert "would read as a job number" in r.stderr


def test_a_prefix_that_fits_several_is_not_guessed(cluster):
    # ids begin at random: soon two begin alike. One that lives is meant before one that has ended, and a
    # number before the beginning of an id.
    ids = {}
    def alike():
        return [(k, v) for k, v in ids.items() if len(v) > 1 and not k.isdigit()]
    while not alike():
        body = {"image": "base", "cpus": 4, "mem": "64M", "gpus": 2, "size": 2, "mode": "multi-node"}
        for s in [cluster.api("POST", "/v1/sessions", body, user="alice") for _ in range(50)]:
            ids.setdefault(s["id"][:4], []).append(s["id"])
        assert sum(map(len, ids.values())) < 3000
    prefix, some = alike()[0]
    r = cluster.cli("show", prefix, check=1)
    assert f"'{prefix}' fits several sessions; give more of the id" in r.stderr
    assert as_json(cluster, "show", some[0][:20])["id"] == some[0]


# --- registries -------------------------------------------------------------------------------


@pytest.fixture
def registry(new_cluster, tmp_path):
    """One on the manager's own loopback, which speaks plain HTTP: (cluster, "HOST:PORT")."""
    if not shutil.which("docker-registry"):
        pytest.skip("no docker-registry")
    cluster = new_cluster(nodes=1, manager={"image-insecure": ["127.0.0.1:5000", "127.0.0.1:1"]})
    (tmp_path / "config.yml").write_text(
        "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n"
        f"    rootdirectory: {tmp_path}/data\nhttp:\n  addr: 127.0.0.1:5000\n")
    p = subprocess.Popen(["nsenter", f"--net={cluster.namespace('hub')}", "docker-registry", "serve",
                          str(tmp_path / "config.yml")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: cluster.run_in("hub", "bash", "-c", ": </dev/tcp/127.0.0.1/5000",
                                        check=False).returncode == 0, 20, "the registry does not start")
        yield cluster, "127.0.0.1:5000"
    finally:
        p.terminate()
        p.wait()


def test_an_image_comes_from_a_registry_and_what_is_wrong_is_said(registry, tmp_path):
    c, host = registry
    layout = Layout(tmp_path / "layout")
    busybox = open("/bin/busybox", "rb").read()
    layout.index(layout.manifest([make_tar([Entry("bin", "dir"), Entry("bin/busybox", data=busybox, mode=0o755)])],
                                 Entrypoint=["/bin/busybox"], Cmd=["echo", "from afar"], Env=["FROM=afar"],
                                 WorkingDir="/bin"))
    c.run_in("hub", "skopeo", "--insecure-policy", "copy", "--dest-tls-verify=false",
             f"oci:{layout.path}", f"docker://{host}/team/app:1")
    for ref in (f"{host}/team/app:1", f"docker://{host}/team/app:1", f"{host}#team/app:1"):
        assert c.cli("image", "import", ref, "--name", "app", user="alice", check=0).stdout == "app:latest\n"
    assert c.cli("image", "import", f"{host}/team/app:1", check=0).stdout == f"{host}/team/app:1\n"
    assert c.cli("run", "--kind", "train", "app", user="alice", check=0).stdout == "from afar\n"
    r = c.cli("run", f"{host}/team/app:1", "sh", "-c", "echo $FROM; pwd", user="bob", check=0)
    assert r.stdout == "afar\n/bin\n"
    for ref, says in [
            (f"{host}/team/app:2", f"registry '{host}': .*manifest unknown"),
            (f"{host}/none:1", f"registry '{host}': .*manifest unknown"),
            ("127.0.0.1:1/app:1", "registry '127.0.0.1:1': .*Connection refused"),
            ("localhost:5000/team/app:1", "registry 'localhost:5000': .*HTTPS"),  # not one of the trusted
            ("127.0.0.1:5000/Team/app", "the name may have a-z")]:
        r = c.cli("image", "import", ref, "--name", "wrong", user="alice")
        assert r.returncode in (1, 125) and re.search(says, r.stderr), (ref, r.returncode, r.stderr)
        assert r.stdout == ""
    assert "wrong:latest" not in table(c, "image", "ls")[0]
