"""The ready-made linters, on our files. Each takes the root and whether this is the full tier, and
gives its findings as lines of text."""
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rules import read, tracked

# clang-format differs a little from version to version; only this one's word counts.
FORMAT_VERSION = "14"
# Files from before the lint; one that is clean must leave the list, so it only gets shorter.


class MissingTool(Exception):
    pass


def tool(*names):
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise MissingTool(f"{names[0]} is not installed: ./run deps lint")


def run(*argv, cwd, **more):
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, **more)


def parallel(fn, items):
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return [line for found in pool.map(fn, items) for line in found]


def c_files(root):
    return tracked(root, "src/*.c", "src/*.h", "tests/*.c", "tests/*.h")


def format_tool(root):
    program = tool(f"clang-format-{FORMAT_VERSION}", "clang-format")
    version = run(program, "--version", cwd=root).stdout
    if f"version {FORMAT_VERSION}." not in version:
        raise MissingTool(f"clang-format {FORMAT_VERSION} is wanted, here is: {version.strip()}")
    return program


def clang_format(root, full=False):
    """Layout, as .clang-format says."""
    program = format_tool(root)
    files = c_files(root)
    first = {}
    if files:
        r = run(program, "--dry-run", "-Werror", *files, cwd=root)
        for m in re.finditer(r"^([^:\s]+\.[ch]):(\d+):\d+: error:", r.stderr, re.M):
            first.setdefault(m.group(1), m.group(2))
        if r.returncode and not first:
            return [f"clang-format ended with {r.returncode}: {r.stderr[-300:]}"]
    return [f"{path}:{line}: not as clang-format would have it" for path, line in first.items()]


def clang_format_fix(root):
    subprocess.run([format_tool(root), "-i", *c_files(root)], cwd=root, check=True)


def cppcheck(root, full=False):
    """Suspicious C, quickly."""
    folders = sorted({"/".join(p.split("/")[:2]) for p in tracked(root, "src/*.c")})
    r = run(tool("cppcheck"), "--quiet", "--enable=warning,performance,portability",
            "--std=c11", "--language=c", "-D__linux__", "-D__x86_64__",
            "-D_GNU_SOURCE", "-Isrc", "--include=tests/lint/cppcheck.h", "--inline-suppr",
            "--suppressions-list=tests/lint/cppcheck.txt", "-j", str(os.cpu_count() or 1),
            "--template={file}:{line}: {message} [{id}]", *folders, cwd=root)
    found = [line for line in r.stderr.splitlines() if line.strip()]
    if r.returncode and not found:
        found.append(f"cppcheck ended with {r.returncode}: {r.stdout.strip()}")
    return found


def changed(root):
    """C files that differ from main, or on main itself those of the last commit."""
    def git(*argv):
        return run("git", "-c", f"safe.directory={root}", *argv, cwd=root)
    head = git("rev-parse", "HEAD").stdout.strip()
    base = ""
    for main in ("main", "origin/main"):
        base = git("merge-base", "HEAD", main).stdout.strip()
        if base:
            break
    if not base or base == head:
        base = git("rev-parse", "HEAD~1").stdout.strip()
    names = git("diff", "--name-only", base or "HEAD").stdout.split()
    return sorted(set(names) & set(tracked(root, "src/*.c")))


def compile_commands(root):
    for build in ("build-asan", "build"):
        path = Path(root) / build / "compile_commands.json"
        if path.is_file():
            return path.parent
    raise MissingTool("no build folder: ./run build")


def clang_tidy(root, full=False):
    """Bugs that need a look at the whole function; on changed files only in the fast tier."""
    program = tool(f"clang-tidy-{FORMAT_VERSION}", "clang-tidy")
    build = compile_commands(root)
    known = {os.path.normpath(os.path.join(e["directory"], e["file"]))
             for e in json.loads((build / "compile_commands.json").read_text())}
    files = [p for p in (tracked(root, "src/*.c") if full else changed(root))
             if str(Path(root) / p) in known]

    def check(path):
        r = run(program, "-p", str(build), "--quiet", path, cwd=root)
        found = [line.replace(str(root) + "/", "") for line in r.stdout.splitlines()
                 if re.search(r": (warning|error): ", line)]
        if r.returncode and not found:
            found.append(f"{path}:1: clang-tidy ended with {r.returncode}: {r.stderr.strip()[-300:]}")
        return found
    return sorted(set(parallel(check, files)))


def contract(root, full=False):
    """The API's contract; what it is read with may not be there."""
    try:
        import contract as lint
    except ImportError as e:
        raise MissingTool(f"python3-{e.name} is not installed: ./run deps lint") from None
    return lint.contract(root)


def is_shell(root, path):
    if path.endswith(".sh"):
        return True
    if "." in Path(path).name:
        return False
    return bool(re.match(r"#!.*\b(ba|da)?sh\b", read(root, path)[:80]))


def shellcheck(root, full=False):
    """Shell scripts, by their name or their first line."""
    scripts = [p for p in tracked(root) if is_shell(root, p)]
    r = run(tool("shellcheck"), "--format=gcc", "--external-sources", *scripts, cwd=root)
    return r.stdout.splitlines()


def pyflakes(root, full=False):
    """Python: names that are not there, imports that nobody uses."""
    r = run(tool("pyflakes3", "pyflakes"), *tracked(root, "*.py"), cwd=root)
    return (r.stdout + r.stderr).splitlines()
