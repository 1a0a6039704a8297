"""Images that nobody imported yet, imports that many ask for, secrets, pins and pruning."""
import json
import tarfile


import pytest

from harness import netns
from harness.cluster import ApiError, wait_for
from harness.images import image_file
from harness.registry import Registry

PORT = 5555
HOST = f"127.0.0.1:{PORT}"
REF = f"{HOST}/team/app:1"


def archive(name):
    """Manifest and blobs of an image of images/."""
    with tarfile.open(image_file(name)) as tar:
        def read(member):
            return tar.extractfile(member).read()
        members = {m.name.removeprefix("./"): m for m in tar if m.isfile()}

        def blob(descriptor):
            return read(members["blobs/sha256/" + descriptor["digest"][7:]])
        (entry,) = json.loads(read(members["index.json"]))["manifests"]
        manifest = blob(entry)
        doc = json.loads(manifest)
        return manifest, [blob(d) for d in [doc["config"], *doc["layers"]]]


@pytest.fixture
def c(new_cluster):
    """A cluster, and a registry beside its manager."""
    cluster = new_cluster(nodes=1, gpu="fake:h100:1",
                          manager={"image-insecure": HOST, "image-stall": "1s"})
    with netns.inside(cluster.namespace("hub")):
        cluster.registry = Registry(*archive("nolibc"), port=PORT)
    cluster.registry.layer = list(cluster.registry.blobs)[-1]
    yield cluster
    cluster.registry.close()


def pulls(c):
    return sum(c.registry.layer in s for s in c.registry.seen)


def events(c, kind):
    text = c.cli("-o", "json", "events", check=0).stdout
    return [line for line in text.splitlines() if kind in line and REF in line]


def test_a_session_may_name_an_image_of_a_registry(c):
    r = c.cli("run", REF, "/bin/show", "0", user="alice", check=0)
    assert "arg /bin/show" in r.stdout
    assert REF in [i["name"] for i in c.api("GET", "/v1/images")["images"]]
    assert pulls(c) == 1
    c.cli("run", REF, "/bin/show", "0", user="bob", check=0)
    assert pulls(c) == 1


def test_a_session_that_waits_for_its_image_holds_nothing_and_says_so(c):
    c.registry.faults = {c.registry.layer: ["stall", "stall"]}
    sid = c.create("--gpus", "1", REF, user="alice", wait=False)
    s = wait_for(lambda: c.session(sid), 5, "no session")
    assert s["state"] == "pending" and s["reason"]["code"] == "image"
    assert s["reason"]["text"].startswith("its image ")
    other = c.create("--gpus", "1", "base", user="bob")  # the GPU is free for others
    c.cli("stop", other, user="bob", check=0)
    c.wait_state(sid, "running", seconds=60)


def test_a_waiting_session_survives_a_restart_of_the_manager(c):
    c.registry.faults = {c.registry.layer: ["stall"] * 3}
    sid = c.create(REF, user="alice", wait=False)
    wait_for(lambda: pulls(c), 10, "nothing was asked for")
    c.restart(c.manager)
    c.wait_state(sid, "running", seconds=60)


def test_a_session_whose_image_cannot_be_had_ends_with_the_reason(c):
    sid = c.create(f"{HOST}/team/app:none", user="alice", wait=False)
    s = c.wait_state(sid, "ended", seconds=30)
    assert s["result"] == "failed" and s["reason"]["code"] == "image_import"
    assert HOST in s["reason"]["text"] and "HTTP 404" in s["reason"]["text"]


def test_a_waiting_session_can_be_stopped(c):
    c.registry.faults = {c.registry.layer: ["stall"] * 3}
    sid = c.create(REF, user="alice", wait=False)
    c.cli("stop", sid, user="alice", check=0)
    assert c.wait_state(sid, "ended")["result"] == "cancelled"
    wait_for(lambda: any(i["name"] == REF for i in c.api("GET", "/v1/images")["images"]), 60,
             "the import was given up")


def test_a_short_name_asks_no_registry_unless_that_is_wanted(c):
    with pytest.raises(ApiError) as e:
        c.api("POST", "/v1/sessions", {"image": "no-such"}, user="alice")
    assert e.value.status == 404 and "there is no image 'no-such'" in e.value.message


def test_an_image_that_many_ask_for_is_imported_once_and_all_see_how_it_goes(c):
    c.registry.faults = {c.registry.layer: ["stall", "stall"]}
    imports = [c.popen("-o", "json", "image", "import", REF, user=u, text=True)
               for u in ("alice", "bob", "admin")]
    sids = [c.create(REF, user=u, wait=False) for u in ("alice", "bob")]
    for p in imports:
        out, err = p.communicate(timeout=60)
        assert p.returncode == 0, err
        assert json.loads(out)["name"] == REF
    for sid in sids:
        c.wait_state(sid, "running", seconds=30)
    assert pulls(c) == 3  # two stalls, and once whole
    assert len(events(c, "image.importing")) == 1
    assert events(c, "image.progress") and events(c, "image.imported")


def test_a_failed_import_is_an_event_with_its_reason(c):
    c.registry.faults = {"/manifests/1": ["always", 403]}
    r = c.cli("image", "import", REF, user="alice")
    assert r.returncode != 0 and f"registry '{HOST}'" in r.stderr and "HTTP 403" in r.stderr
    assert any("HTTP 403" in line for line in events(c, "image.failed"))


# ---- secrets ------------------------------------------------------------------------------------------


def nothing_tells(c, word):
    for log in (c.dir / "log").iterdir():
        assert word not in log.read_text(errors="replace"), log
    assert word not in c.cli("-o", "json", "events").stdout


def test_a_private_image_needs_a_secret_of_the_user(c):
    c.registry.login = "bearer"
    r = c.cli("image", "import", REF, user="alice")
    assert "HTTP 401" in r.stderr and "without credentials" in r.stderr
    c.cli("secret", "set", "--user", "bob", HOST, user="alice", input="wrong-word\n", check=0)
    r = c.cli("image", "import", REF, user="alice")
    assert "with the credentials of 'bob' (a secret of alice)" in r.stderr
    c.cli("secret", "set", "--user", "bob", HOST, user="alice", input="secret-word\n", check=0)
    assert "without credentials" in c.cli("image", "import", REF, user="bob").stderr
    c.cli("image", "import", REF, user="alice", check=0)
    nothing_tells(c, "secret-word")
    nothing_tells(c, "wrong-word")


def test_a_secret_of_the_cluster_serves_everybody_and_the_first_use(c):
    c.registry.login = "basic"
    r = c.cli("secret", "set", "--cluster", "--user", "bob", HOST, user="alice", input="x\n")
    assert r.returncode != 0 and "admin" in r.stderr
    c.cli("secret", "set", "--cluster", "--user", "bob", HOST, input="secret-word\n", check=0)
    c.cli("run", REF, "/bin/show", "0", user="alice", check=0)


def test_secrets_are_listed_without_what_is_secret_and_kept(c, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"auths": {
        HOST: {"auth": "Ym9iOnNlY3JldC13b3Jk"}, "docker.io": {
            "username": "carol", "password": "another-word"}}}))
    c.cli("secret", "set", "--docker-config", config, user="alice", check=0)
    c.restart(c.manager)
    r = c.cli("-o", "json", "secret", "ls", user="alice", check=0)
    assert "word" not in r.stdout
    assert sorted((s["registry"], s["username"], s["owner"])
                  for s in json.loads(r.stdout)["secrets"]) == [
        ("127.0.0.1:5555", "bob", "alice"), ("docker.io", "carol", "alice")]
    assert json.loads(c.cli("-o", "json", "secret", "ls", user="bob").stdout)["secrets"] == []
    c.registry.login = "basic"
    c.cli("image", "import", REF, user="alice", check=0)
    c.cli("secret", "rm", HOST, user="alice", check=0)
    assert "there is no secret" in c.cli("secret", "rm", HOST, user="alice").stderr


@pytest.mark.parametrize("body, said", [
    ({"registry": "h", "username": "u"}, "password"), ({"registry": "H/../x", "username": "u", "password": "p"}, "registry"),
    ({"registry": "h", "username": "u\n", "password": "p"}, "username"), ({"auths": {"h": {}}}, "'h'")])
def test_what_is_no_secret_is_refused(cluster, body, said):
    with pytest.raises(ApiError) as e:
        cluster.api("POST", "/v1/secrets", body, user="alice")
    assert e.value.status == 422 and said in e.value.message


# ---- space -------------------------------------------------------------------------------------------


def test_prune_removes_what_nobody_uses_and_nothing_else(c):
    blobs = c.dir / "manager/blobs/sha256"
    c.cli("image", "import", REF, check=0)
    c.create(REF, user="alice")
    (blobs / ("0" * 64)).write_bytes(b"left by an import that was killed")
    ids = {i["name"]: i["id"] for i in c.api("GET", "/v1/images")["images"]}
    names, same = set(ids), {n for n in ids if ids[n] == ids[REF]}  # by other names it is in use, too
    c.cli("image", "pin", "base", check=0)
    assert "operator" in c.cli("image", "prune", user="alice").stderr
    r = c.cli("-o", "json", "image", "prune", "--unused-for", "0s", check=0)
    gone = json.loads(r.stdout)
    left = {i["name"] for i in c.api("GET", "/v1/images")["images"]}
    assert left == {"base:latest", *same} and set(gone["images"]) == names - left
    kept = {b["digest"][7:] for n in left for b in c.api("GET", f"/v1/images/{n}")["blobs"]}
    assert {p.name for p in blobs.iterdir()} == kept
    c.cli("run", "base", "true", user="bob", check=0)


def test_show_tells_size_blobs_and_who_uses_it(c):
    sid = c.create("base", user="alice")
    image = c.api("GET", "/v1/images/base")
    assert image["size"] == sum(b["size"] for b in image["blobs"]) > 0
    assert image["used_by"] == [c.session(sid)["num"]] and image["pinned"] is False
    assert c.api("GET", "/v1/images/base", user="bob")["used_by"] == []
    assert image["last_used_at"]
