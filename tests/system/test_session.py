"""One container on one node: a session of size 1, from the command line to its end."""
import json
import re
import time

import pytest

from harness.cluster import ApiError

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def run(cluster, *words, user="alice", **more):
    return cluster.cli("run", *words, user=user, **more)


def test_run_prints_what_the_command_prints(cluster):
    r = run(cluster, "base", "echo", "hello", check=0)
    assert r.stdout == "hello\n"


def test_words_behind_two_dashes_are_the_command_too(cluster):
    r = run(cluster, "base", "--", "echo", "-n", "hello", check=0)
    assert r.stdout == "hello"


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137),
                                          ("kill -TERM $$", 143)])
def test_run_exits_with_the_commands_code(cluster, script, code):
    run(cluster, "base", "sh", "-c", script, check=code)


def test_a_command_that_is_not_there_is_said(cluster):
    r = run(cluster, "base", "no-such-program", check=127)
    assert "no-such-program" in r.stderr


def test_stdout_and_stderr_come_out_apart(cluster):
    r = run(cluster, "base", "sh", "-c", "echo one; echo two >&2; printf three", check=0)
    assert r.stdout == "one\nthree"
    assert "two\n" in r.stderr


def test_output_is_byte_exact(cluster):
    script = "head -c 300000 /dev/zero | tr '\\0' '\\377'; printf 'a\\000b\\r\\n\\n\\r'"
    r = run(cluster, "base", "sh", "-c", script, check=0, text=False)
    assert r.stdout == b"\xff" * 300000 + b"a\0b\r\n\n\r"


def test_the_environment_is_the_containers_own_and_what_was_asked(cluster):
    r = run(cluster, "--env", "COLOR=deep blue", "base", "env", check=0)
    env = dict(line.split("=", 1) for line in r.stdout.splitlines())
    assert env["COLOR"] == "deep blue"
    assert env["HOME"] == "/home/work" and env["USER"] == "work"
    assert env["BACKENDAI_CLUSTER_HOST"] == env["MUSTER_CLUSTER_HOST"] == "main1"
    assert env["BACKENDAI_CLUSTER_SIZE"] == "1" and env["BACKENDAI_CLUSTER_ROLE"] == "main"
    assert re.fullmatch(UUID, env["BACKENDAI_SESSION_ID"])
    assert env["BACKENDAI_SESSION_ID"] == env["BACKENDAI_KERNEL_ID"]
    leaked = [k for k in env if k in ("MUSTER_TOKEN", "MUSTER_URL", "ASAN_OPTIONS")]
    assert not leaked


def test_what_says_who_a_container_is_cannot_be_asked_for(cluster):
    r = run(cluster, "--env", "BACKENDAI_CLUSTER_HOST=liar", "base", "env", check=125)
    assert "'env' must not set 'BACKENDAI_CLUSTER_HOST'" in r.stderr


def test_the_command_runs_as_work_without_rights(cluster):
    r = run(cluster, "base", "sh", "-c",
            "id -u; id -un; echo ~; grep -E 'CapEff|CapBnd|Seccomp:' /proc/self/status", check=0)
    lines = r.stdout.splitlines()
    assert lines[:3] == ["1000", "work", "/home/work"]
    assert re.search(r"CapEff:\s+0000000000000000", r.stdout)
    assert re.search(r"Seccomp:\s+2", r.stdout)


def test_workdir_is_where_the_command_starts(cluster):
    assert run(cluster, "--workdir", "/usr", "base", "pwd", check=0).stdout == "/usr\n"


def test_create_prints_the_id_and_nothing_else(cluster):
    r = cluster.cli("create", "base", user="alice", check=0)
    assert re.fullmatch(UUID + "\n", r.stdout)


def test_a_session_is_found_by_id_prefix_number_and_name(cluster):
    sid = cluster.create("--name", "known", "base", user="alice")
    num = cluster.session(sid)["num"]
    for ref in (sid, sid[:8], str(num), "known"):
        shown = json.loads(cluster.cli("show", "-o", "json", ref, user="alice", check=0).stdout)
        assert shown["id"] == sid


def test_ls_shows_what_lives_and_why_explains(cluster):
    sid = cluster.create("--name", "here", "--cpus", "1", "--mem", "256M", "base", user="alice")
    r = cluster.cli("ls", user="alice", check=0)
    assert "here" in r.stdout and "running" in r.stdout
    assert "here" not in cluster.cli("ls", user="bob", check=0).stdout
    assert cluster.cli("why", sid, user="alice", check=0).stdout.strip()


def test_a_session_of_another_user_does_not_exist_for_one(cluster):
    sid = cluster.create("base", user="alice")
    with pytest.raises(ApiError) as e:
        cluster.api("GET", f"/v1/sessions/{sid}", user="bob")
    assert e.value.status == 404
    cluster.cli("stop", sid, user="bob", check=1)
    cluster.cli("exec", sid, "true", user="bob", check=125)
    assert cluster.session(sid)["state"] == "running"
    assert cluster.api("GET", f"/v1/sessions/{sid}", user="admin")["id"] == sid


def test_stop_ends_a_session_and_frees_its_node(cluster):
    sid = cluster.create("--cpus", "3", "base", user="alice")
    assert sum(n["used"]["cpus"] for n in cluster.nodes().values()) == 3
    cluster.cli("stop", sid, user="alice", check=0)
    s = cluster.wait_state(sid, "ended")
    assert s["result"] == "cancelled"
    cluster.wait_free()
    assert sid not in [x["id"] for x in cluster.sessions()]
    assert sid in [x["id"] for x in cluster.sessions(ended=True)]


def test_exec_runs_beside_and_passes_everything_on(cluster):
    sid = cluster.create("base", user="alice")
    r = cluster.cli("exec", sid, "sh", "-c", "cat; echo err >&2; exit 5", user="alice",
                    input="from stdin", check=5)
    assert r.stdout == "from stdin" and r.stderr == "err\n"
    assert cluster.exec(sid, "id", "-u", user="alice").strip() == "1000"
    assert cluster.exec(sid, "id", "-u", user="alice", root=True).strip() == "0"


def test_logs_are_there_after_the_end(cluster):
    run(cluster, "--name", "talker", "base", "sh", "-c", "echo out; echo err >&2", check=0)
    r = cluster.cli("logs", "talker", user="alice", check=0)
    assert r.stdout + r.stderr == "out\nerr\n"
    stamped = cluster.cli("logs", "--timestamps", "talker", user="alice", check=0).stdout
    assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? out$", stamped, re.M)


def test_ctrl_c_on_run_stops_the_session(cluster):
    p = cluster.popen("run", "--name", "long", "base", "sh", "-c", "echo up; sleep 100",
                      user="alice")
    assert p.stdout.readline() == b"up\n"
    p.send_signal(2)
    try:
        p.wait(30)
    finally:
        p.kill()
        p.communicate()
    assert cluster.wait_state("long", "ended")["result"] == "cancelled"


def test_a_running_container_has_its_own_pid_1_and_hostname(cluster):
    r = run(cluster, "base", "sh", "-c", "tr '\\0' ' ' </proc/1/cmdline; echo; hostname", check=0)
    one, host = r.stdout.splitlines()
    assert "muster-init" in one and host == "main1"


def test_limits_are_the_containers_own(cluster):
    sid = cluster.create("--cpus", "2", "--mem", "300M", "--shm", "32M", "base", user="alice")
    df = cluster.sh(sid, "df -B1 --output=size /dev/shm | tail -1")
    assert int(df) == 32 << 20
    r = cluster.cli("exec", sid, "sh", "-c",
                    "head -c 600M /dev/zero | tail", user="alice")
    assert r.returncode != 0
    assert cluster.session(sid)["state"] in ("running", "stopping", "ended")


def test_a_session_without_a_command_waits_until_it_is_stopped(cluster):
    sid = cluster.create("base", user="alice")
    time.sleep(2)
    assert cluster.session(sid)["state"] == "running"


@pytest.mark.parametrize("image, what", [
    ("nolibc", None), ("uid1000", ["id", "-u"]), ("mpi", ["python3", "-c", "import mpi4py"])])
def test_every_image_runs(cluster, image, what):
    if what:
        run(cluster, image, *what, check=0)
    else:
        sid = cluster.create(image, user="alice")
        assert cluster.session(sid)["state"] == "running"


def test_gpus_are_given_and_no_others_open(cluster):
    script = "for d in /dev/nvidia[0-9]*; do echo $d; done; echo $CUDA_VISIBLE_DEVICES"
    r = run(cluster, "--gpus", "1", "base", "sh", "-c", script, check=0)
    devices = [x for x in r.stdout.splitlines() if x.startswith("/dev/nvidia")]
    assert len(devices) == 1
    none = run(cluster, "base", "sh", "-c", "ls /dev | grep -c nvidia", check=1)
    assert none.stdout == "0\n"
