"""Every lint finds what it is there for: a small tree with one bad line each."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import rules
import tools
from lint import LINTS, ROOT


class Tree:
    """A git repository with a few files of ours in it."""

    def __init__(self, path):
        self.path = path
        subprocess.run(["git", "init", "-q", "-b", "main", path], check=True)
        for name in (".clang-format", ".clang-tidy", "tests/lint/cppcheck.txt",
                     "tests/lint/cppcheck.h"):
            self.write(name, (ROOT / name).read_text())
        self.write("src/base/crash_points.h", "/* points */\n#define X 1\n")

    def write(self, name, text):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def lint(self, name, full=True):
        return LINTS[name](self.path, full)


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def test_a_clean_tree_has_no_findings(tree):
    tree.write("src/base/good.c", "/* Good. */\nint good(void);\n\nint good(void)\n{\n"
                                  "    return 0;\n}\n")
    for name in set(LINTS) - {"clang-tidy", "pyflakes", "shellcheck"}:
        assert tree.lint(name) == [], name


@pytest.mark.parametrize("path, include, says", [
    ("src/base/a.c", "net/net.h", "'base' may not include 'net/net.h'"),
    ("src/net/a.c", "model/node.h", "'net' may not include 'model/node.h'"),
    ("src/sched/a.c", "wire/link.h", "'sched' may not include 'wire/link.h'"),
    ("src/image/a.c", "manager/api.h", "'image' may not include 'manager/api.h'"),
    ("src/manager/a.c", "agent/agent.h", "'manager' may not include 'agent/agent.h'"),
    ("src/init/a.c", "base/base.h", "init stands alone: it may not include 'base/base.h'"),
    ("src/fun/a.c", "base/base.h", "the folder 'src/fun' has no place among the layers"),
    ("src/net/a.c", "net.h", "'net.h' is not named from src/ on"),
])
def test_a_wrong_include_is_found(tree, path, include, says):
    tree.write(path, f'/* A. */\n#include "{include}"\n')
    assert tree.lint("layers") == [f"{path}:2: {says}"]


def test_a_right_include_is_not_found(tree):
    tree.write("src/manager/a.c", '/* A. */\n#include "image/image.h"\n#include "store/store.h"\n')
    tree.write("src/init/a.c", '/* A. */\n#include "base/banned.h"\n#include "init/plan.h"\n')
    assert tree.lint("layers") == []


def test_a_banned_call_is_found_but_not_in_comments_and_strings(tree):
    tree.write("src/base/a.c", '/* strcpy(a, b) */\nvoid f(void)\n{\n    puts("strcpy(a)");\n'
                               "    strcpy(a, b);\n    uv_signal_start(&s);\n}\n")
    assert tree.lint("banned") == ["src/base/a.c:5: strcpy() is banned: see base/banned.h"]


def test_a_signal_handler_set_by_signal_is_found(tree):
    tree.write("src/base/a.c", "/* A. */\nsignal(SIGPIPE, SIG_IGN);\nsignal(SIGTERM, stop);\n")
    assert tree.lint("banned") == ["src/base/a.c:3: signal() is banned: see base/banned.h"]


def test_crash_points_that_do_not_agree_are_found(tree):
    tree.write("src/base/crash_points.h",
               '/* P. */\nstatic const char *const p[] = {\n    "a.good",\n    "a.uncalled",\n'
               '    "a.untested",\n};\n')
    tree.write("src/net/a.c", '/* A. */\nr = crash_point("a.good", err);\n'
                              'crash_point("a.untested", NULL);\ncrash_point("a.unknown", err);\n'
                              "crash_point(name, err);\n")
    tree.write("tests/system/test_a.py", "POINTS = ['a.good', 'a.uncalled', 'a.untested_more']\n")
    assert tree.lint("crash-points") == [
        "src/net/a.c:4: 'a.unknown' is not in base/crash_points.h",
        "src/net/a.c:5: crash_point wants its name as a string, not 'name'",
        'src/base/crash_points.h:4: nobody calls crash_point("a.uncalled")',
        "src/base/crash_points.h:5: no test names 'a.untested'",
    ]


@pytest.mark.parametrize("text", [
    "see /work/" + "main/src",
    "cd /home/" + "alice/muster",
    "http://pkg-" + "mirror.example/debian",
    '"resolved": "https://registry.' + 'npmjs.org/x"',
])
def test_a_path_or_host_of_one_machine_is_found(tree, text):
    tree.write("docs/a.md", f"Words.\n{text}\n")
    found = tree.lint("machine-paths")
    assert len(found) == 1 and found[0].startswith("docs/a.md:2: ")


def test_paths_that_every_machine_has_are_fine(tree):
    tree.write("docs/a.md", "/home/work/data, /tmp/x, https://example.org, docker.io/library/x\n")
    assert tree.lint("machine-paths") == []


def test_a_file_that_does_not_say_what_it_owns_is_found(tree):
    tree.write("src/net/a.c", "#include <stdio.h>\n")
    tree.write("src/net/b.c", "/* B. */\nint a;\t\n")
    assert tree.lint("shape") == ["src/net/a.c:1: opens without saying what it owns",
                                  "src/net/b.c:2: a tab or blanks at the end"]


def test_a_wrong_layout_is_found(tree):
    tree.write("src/net/a.c", "/* A. */\nint f(int a){return a;}\n")
    found = tree.lint("clang-format")
    assert found and found[0].startswith("src/net/a.c:2:")


def test_cppcheck_finds_a_read_past_the_end(tree):
    tree.write("src/net/a.c", "/* A. */\nint f(void);\nint f(void)\n{\n    int a[2] = {0, 1};\n"
                              "    return a[2];\n}\n")
    found = tree.lint("cppcheck")
    assert found == ["src/net/a.c:6: Array 'a[2]' accessed at index 2, which is out of bounds. "
                     "[arrayIndexOutOfBounds]"]


def with_commands(tree, *files):
    os.makedirs(tree.path / "build")
    entries = ",".join(f'{{"directory": "{tree.path}", "file": "{f}", "command": "cc -c {f}"}}'
                       for f in files)
    (tree.path / "build/compile_commands.json").write_text(f"[{entries}]")


def commit(tree):
    subprocess.run(["git", "add", "-A"], cwd=tree.path, check=True)
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"],
                   cwd=tree.path, check=True)


LEAK = ("/* A. */\n#include <stdlib.h>\nint f(int n);\nint f(int n)\n{\n    int *p = NULL;\n"
        "    if (n)\n        return *p;\n    return 0;\n}\n")


def test_clang_tidy_finds_a_null_dereference(tree):
    tree.write("src/net/a.c", LEAK)
    with_commands(tree, "src/net/a.c")
    found = tree.lint("clang-tidy")
    assert len(found) == 1 and "clang-analyzer-core.NullDereference" in found[0]


def test_clang_tidy_looks_at_changed_files_only_in_the_fast_tier(tree):
    tree.write("src/net/a.c", LEAK)
    with_commands(tree, "src/net/a.c")
    commit(tree)
    tree.write("docs/x", "x\n")
    commit(tree)
    assert tree.lint("clang-tidy", full=False) == []
    tree.write("src/net/a.c", LEAK + "\n")
    assert len(tree.lint("clang-tidy", full=False)) == 1


def test_shellcheck_looks_at_scripts_without_an_ending_too(tree):
    tree.write("go", "#!/bin/sh\necho $1\n")
    found = tree.lint("shellcheck")
    assert len(found) == 1 and found[0].startswith("go:2:") and "[SC2086]" in found[0]


def test_pyflakes_finds_an_unused_import(tree):
    tree.write("tests/a.py", "import os\n")
    assert tree.lint("pyflakes") == ["tests/a.py:1:1: 'os' imported but unused"]


def test_a_linter_that_is_not_installed_is_an_error_not_a_pass(tree, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(tools.MissingTool, match="cppcheck is not installed: ./run deps lint"):
        tree.lint("cppcheck")


API_SOURCES = ("docs/openapi.yaml", "src/manager/api.c", "src/sched/explain.c")


def doctored(tree, path, old, new):
    """The real contract and its sources, with one word changed."""
    for name in [*API_SOURCES, *rules.tracked(ROOT, "src/manager/*.c", "src/net/*.c", "src/agent/*.c")]:
        tree.write(name, (ROOT / name).read_text())
    text = (ROOT / path).read_text()
    assert old in text
    tree.write(path, text.replace(old, new, 1))
    return [re.sub(r":\d+: ", ": ", line, count=1) for line in tree.lint("contract")]


@pytest.mark.parametrize("path, old, new, says", [
    ("src/manager/api.c", '"/v1/whoami", WHO_USER', '"/v1/whoami", WHO_ADMIN',
     "src/manager/api.c: GET /v1/whoami is for 'admin', docs/openapi.yaml says 'user'"),
    ("src/manager/api.c", '"/v1/queue"', '"/v1/line"',
     "src/manager/api.c: GET /v1/line is not in docs/openapi.yaml"),
    ("docs/openapi.yaml", "  /v1/queue:", "  /v1/line:",
     "docs/openapi.yaml: GET /v1/line: '/v1/line' is not in src/manager/api.c"),
    ("src/manager/api_node.c", '"in_use"', '"occupied"',
     "src/manager/api_node.c: the error 'occupied' with 409 is not in x-muster-errors of"
     " docs/openapi.yaml"),
    ("src/agent/stream.c", '"failed"', '"went_wrong"',
     "src/agent/stream.c: the error 'went_wrong' with websocket is not in x-muster-errors of"
     " docs/openapi.yaml"),
    ("docs/openapi.yaml", "code: websocket_needed, in: [426]", "code: websocket_needed, in: [426, 505]",
     "docs/openapi.yaml: code: 'websocket_needed' with 505 is nowhere in the source"),
    ("src/sched/explain.c", '"begin_time"', '"too_early"',
     "src/sched/explain.c: the reason 'too_early' is not in docs/openapi.yaml"),
    ("docs/openapi.yaml", "description: Shown with the node.", "description: Shown, with the node.",
     "docs/openapi.yaml: paths./v1/nodes/{node}/drain.post.requestBody.content.application/json."
     "schema.properties.reason: Additional properties are not allowed ('with the node.' was"
     " unexpected)"),
    ("docs/openapi.yaml", "example: { name: alice, role: user, uid: 20011, disabled: false }",
     "example: { name: alice, role: user, uid: many, disabled: false }",
     "docs/openapi.yaml: the example of paths./v1/whoami.get.responses.200.content.application/json:"
     " uid: 'many' is not of type 'integer'"),
    ("docs/openapi.yaml", "'#/components/responses/NoSpace'", "'#/components/responses/Full'",
     "docs/openapi.yaml: cannot be read: 'Full'"),
])
def test_a_contract_that_is_not_that_of_the_source_is_found(tree, path, old, new, says):
    assert says in doctored(tree, path, old, new)


def test_the_contract_as_it_is_has_no_findings(tree):
    assert doctored(tree, "docs/openapi.yaml", "openapi: 3.1.0", "openapi: 3.1.0") == []


def test_files_that_git_ignores_are_nobodys_business(tree):
    tree.write(".gitignore", "/build/\n")
    tree.write("build/a.c", "x\n")
    assert rules.tracked(tree.path, "*.c") == []
    assert Path(tree.path, "build/a.c").exists()
