"""A client that lost the reply asks again with its key: it got a second session when the manager had
been restarted in between."""


def test_a_key_means_one_session_also_after_a_restart(new_cluster):
    c = new_cluster(nodes=1)
    body = {"image": "base", "mem": "64M"}
    key = {"Idempotency-Key": "only-once"}
    first = c.api("POST", "/v1/sessions", body, headers=key)["id"]
    assert c.api("POST", "/v1/sessions", body, headers=key)["id"] == first
    c.restart(c.manager)
    assert c.api("POST", "/v1/sessions", body, headers=key)["id"] == first
    assert c.api("POST", "/v1/sessions", body, headers={"Idempotency-Key": "another"})["id"] != first
