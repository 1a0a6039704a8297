"""A start that failed for the machine's reasons is tried again, but whoever waited for it was told
that the session was over: `create --wait` failed, and `run` showed nothing of the output."""


def test_who_waits_sees_the_start_that_works(new_cluster):
    c = new_cluster(nodes=1)
    for words, code in ((("run", "base", "sh", "-c", "echo here; exit 3"), 3), (("create", "--wait", "base"), 0)):
        c.agents["n1"].stop()
        c.agents["n1"].start(crash="container.after_mount=fail")
        c.wait_nodes()
        r = c.cli(*words, user="alice", check=code)
        s = c.sessions(ended=True)[0]
        assert s["attempt"] == 2, s["reason"]
        assert r.stdout == ("here\n" if code else f"{s['id']}\n")
