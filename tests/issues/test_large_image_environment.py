"""An image whose variables no order can carry left its sessions waiting until their deadline, and the
answer to its import was cut off. Such an image is imported, and refused when it is asked for; what
is just within the limit works everywhere."""
import pytest

from harness.cluster import ApiError
from image_tools import Entry, Layout, make_tar


@pytest.fixture
def image(cluster, tmp_path):
    """Import one with so many variables of so many bytes, and our busybox."""
    names = []

    def make(name, count, size):
        layout = Layout(tmp_path / name)
        busybox = open("/bin/busybox", "rb").read()
        tar = make_tar([Entry("bin", "dir"), Entry("bin/sh", data=busybox, mode=0o755)])
        layout.index(layout.manifest([tar], Env=[f"BIG{i}={'x' * size}" for i in range(count)]))
        r = cluster.cli("image", "import", layout.path, "--name", name, check=0)
        assert r.stdout == f"{name}:latest\n" and r.stderr == ""
        names.append(name)
        return name
    yield make
    cluster.stop_sessions()
    cluster.cli("image", "rm", *names, check=0)


@pytest.mark.parametrize("count, size, says", [
    (10, 30_000, "have 300080 bytes; at most 122866"), (1024, 10, "set 2023 variables; at most 1984")])
def test_too_much_is_refused_with_numbers(cluster, image, count, size, says):
    body = {"image": image("big", count, size), "env": {f"U{i}": "" for i in range(999)} if count > 100 else {}}
    for path in ("/v1/sessions", "/v1/sessions?dry_run=1"):
        with pytest.raises(ApiError) as e:
            cluster.api("POST", path, body, user="alice")
        assert e.value.status == 422 and says in e.value.message and "'big'" in e.value.message, str(e.value)
    r = cluster.cli("create", "big", user="alice", check=1 if count < 100 else 0)
    assert count > 100 or says in r.stderr


def test_what_is_within_the_limit_works_everywhere(cluster, image):
    name = image("large", 4, 30_000)
    sid = cluster.create("--size", "4", "--mode", "multi-node", "--cpus", "2", "--mem", "128M", name, user="alice")
    count = "env | grep -c '^BIG[0-9]=xxxxx'; hostname"
    assert cluster.sh(f"{sid}/sub3", count) == "4\nsub3\n"
    assert cluster.exec(sid, "ssh", "sub3", count) == "4\nsub3\n"
