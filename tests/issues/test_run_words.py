"""`./run demo --help` started the demo, and words that a command does not know were ignored."""
import subprocess

import pytest

from harness.cluster import ROOT


def run(*words):
    return subprocess.run([ROOT / "run", *words], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("command", ["demo", "test", "bench", "lint", "build", "deps"])
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_explains_one_command_and_does_nothing(command, option):
    r = run(command, option)
    assert (r.returncode, r.stderr) == (0, "")
    lines = r.stdout.splitlines()
    assert lines[0] == f"usage: ./run {command} ..." and lines[1].startswith(f"  {command} ")
    others = {"demo", "test", "bench", "lint", "build", "deps", "help"} - {command}
    assert not [line for line in lines[1:] if line[2:].split(" ")[0] in others]


@pytest.mark.parametrize("words", [["demo", "now"], ["build", "all"], ["test", "--ful"], ["test", "--full", "x"],
                                   ["help", "demo"]])
def test_words_that_a_command_does_not_know_are_refused(words):
    r = run(*words)
    assert r.returncode == 1
    assert r.stderr.endswith(f"./run: {words[0]} takes no '{words[-1]}'\n")
