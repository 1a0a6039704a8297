"""Lists a page at a time: every session and every name once, in order, filtered; and the command line
that goes on until nothing is left."""
import json
import urllib.parse

import pytest

from harness.cluster import ApiError


def pages(cluster, path, what, user="admin", **query):
    """Everything, and how many were on each page."""
    found, sizes = [], []
    while True:
        page = cluster.api("GET", f"{path}?{urllib.parse.urlencode(query)}", user=user)
        found += page[what]
        sizes.append(len(page[what]))
        if page["next"] is None:
            return found, sizes
        query["after"] = page["next"]


def nums(cluster, **query):
    return [s["num"] for s in pages(cluster, "/v1/sessions", "sessions", **query)[0]]


def refused(cluster, path, user="admin"):
    with pytest.raises(ApiError) as e:
        cluster.api("GET", path, user=user)
    return str(e.value)


@pytest.fixture
def held(cluster):
    """Twelve sessions that wait; the first four of them were stopped, in another order."""
    made = []
    for i in range(12):
        body = {"image": "base", "hold": True, "name": f"list-{i % 3}"}
        if i % 4 == 3:
            body["command"] = ["true"]  # train
        made.append(cluster.api("POST", "/v1/sessions", body, user="bob" if i % 2 else "alice"))
    for i in (2, 0, 3, 1):
        cluster.api("POST", f"/v1/sessions/{made[i]['id']}/stop", {"now": True})
    return [s["num"] for s in made]


def test_pages_give_each_session_once_in_the_order_that_was_asked_for(cluster, held):
    first = cluster.session(str(held[0]))["submitted"]
    live, all_of_them = held[4:], held
    found, sizes = pages(cluster, "/v1/sessions", "sessions", all=1, limit=3)
    assert [s["num"] for s in found] == live[::-1] and sizes == [3, 3, 2]
    assert nums(cluster, all=1, limit=4) == live[::-1]  # a last page that is just full
    assert nums(cluster, all=1, sort="num", limit=5) == live
    since = {"all": 1, "ended": 1, "submitted_after": first, "limit": 5}
    assert nums(cluster, **since) == all_of_them[::-1]
    assert nums(cluster, **since, sort="submitted") == all_of_them
    assert nums(cluster, **since, sort="-num") == all_of_them[::-1]
    assert nums(cluster, **since, sort="ended") == [held[i] for i in (2, 0, 3, 1)]
    assert nums(cluster, **since, sort="-ended") == [held[i] for i in (1, 3, 0, 2)]


def test_filters_are_joined(cluster, held):
    first = cluster.session(str(held[0]))["submitted"]
    last = cluster.session(str(held[-1]))["submitted"]
    assert nums(cluster, all=1, kind="train", limit=1) == [held[11], held[7]]
    assert nums(cluster, all=1, kind="debug", group="nowhere") == []
    assert nums(cluster, owner="bob", name="list-1") == [held[7]]
    assert nums(cluster, owner="bob", state="ended", submitted_after=first) == [held[3], held[1]]
    assert nums(cluster, all=1, submitted_before=first) == []
    assert nums(cluster, all=1, submitted_after=last) == held[11:]
    assert nums(cluster, user="alice", sort="num") == [n for n in held[4:] if held.index(n) % 2 == 0]
    assert nums(cluster, user="alice", owner="alice", all=1, sort="num") == held[4::2]


def test_what_comes_and_goes_between_two_pages_moves_nothing(cluster, held):
    page = cluster.api("GET", "/v1/sessions?all=1&limit=3")
    new = cluster.api("POST", "/v1/sessions", {"image": "base", "hold": True})
    cluster.api("POST", f"/v1/sessions/{held[9]}/stop", {"now": True})  # the last one of that page
    assert nums(cluster, all=1, after=page["next"]) == held[8:3:-1]
    assert nums(cluster, all=1, limit=1)[0] == new["num"]


@pytest.mark.parametrize("query, says", [
    ("state=runing", "400 bad_query: 'state' must be pending, preparing, starting, running, stopping or ended"),
    ("kind=batch", "400 bad_query: 'kind' must be debug or train"),
    ("sort=size", "400 bad_query: 'sort' must be num, submitted or ended, with '-' in front for the last ones "
                  "first"),
    ("submitted_after=yesterday",
     "400 bad_query: 'submitted_after' must be a time like 2026-12-24T18:00:00Z (RFC 3339)"),
    ("limit=1001", "400 bad_query: 'limit' must be a whole number from 0 to 1000"),
    ("after=17", "400 bad_query: 'after' is no 'next' of a list in the order '-num'"),
    ("sort=num&after=-num.0.17", "400 bad_query: 'after' is no 'next' of a list in the order 'num'"),
    ("after=-num.0.17.5", "400 bad_query: 'after' is no 'next' of a list in the order '-num'"),
    ("after=-num.0.", "400 bad_query: 'after' is no 'next' of a list in the order '-num'"),
])
def test_a_query_that_cannot_be_is_refused_with_what_can(cluster, query, says):
    assert refused(cluster, f"/v1/sessions?{query}") == says


def test_other_peoples_sessions_are_not_for_everybody(cluster):
    assert refused(cluster, "/v1/sessions?owner=bob", user="alice") == (
        "403 forbidden: other people's sessions are for administrators to see")


def test_names_come_in_order_a_page_at_a_time(cluster):
    for name in ("c", "a", "d", "b"):
        cluster.api("POST", "/v1/volumes", {"name": name}, user="alice")
    cluster.api("POST", "/v1/volumes", {"name": "a"}, user="bob")
    found, sizes = pages(cluster, "/v1/volumes", "volumes", user="alice", limit=2)
    assert [v["name"] for v in found] == ["a", "b", "c", "d"] and sizes == [2, 2]
    found, sizes = pages(cluster, "/v1/volumes", "volumes", all=1, limit=2)
    assert [(v["owner"], v["name"]) for v in found] == [
        ("alice", "a"), ("alice", "b"), ("alice", "c"), ("alice", "d"), ("bob", "a")]
    assert sizes == [2, 2, 1]
    for path, what in (("nodes", "nodes"), ("users", "users"), ("images", "images"), ("groups", "groups")):
        whole = cluster.api("GET", f"/v1/{path}")
        names = [x["name"] for x in whole[what]]
        assert whole["next"] is None and names == sorted(names)
        found, sizes = pages(cluster, f"/v1/{path}", what, limit=1)
        assert [x["name"] for x in found] == names and sizes == [1] * len(names)


def test_the_command_line_goes_on_until_it_has_what_was_asked_for(cluster, held):
    def ls(*words):
        return json.loads(cluster.cli("ls", "-a", "-o", "json", *words, check=0).stdout)
    with cluster.recorded():
        assert [s["num"] for s in ls()["sessions"]] == held[:3:-1]
        some = ls("--limit", "3", "--sort", "num")
        assert [s["num"] for s in some["sessions"]] == held[4:7] and some["next"]
        assert [s["num"] for s in ls("--kind", "train")["sessions"]] == [held[11], held[7]]
        assert [s["num"] for s in ls("--owner", "bob", "--name", "list-1")["sessions"]] == [held[7]]
        ended = ls("--sort", "-ended", "--limit", "4")["sessions"]
        assert [s["num"] for s in ended] == [held[i] for i in (1, 3, 0, 2)]
        r = cluster.cli("ls", "--limit", "1", check=0, user="alice")
        assert r.stderr == "muster: there are more; see --limit\n"
        r = cluster.cli("ls", "--sort", "size", check=1)
        assert r.stderr.startswith("muster: 'sort' must be num, submitted or ended")
