"""The rules of this house that no ready-made linter knows. Each takes the root of a tree and gives
its findings as "path:line: what is wrong". Nothing here runs another program but git."""
import re
import subprocess
from pathlib import Path

# A folder of src/ may include itself and what stands to its left.
LAYERS = [{"base"}, {"net", "model"}, {"sched", "wire", "store"}, {"image"},
          {"manager", "agent", "cli", "slurm", "sim"}]
# muster-init runs in every container and links nothing of ours: one header of macros is all.
INIT_MAY_INCLUDE = {"base/banned.h"}

# Beside those that base/banned.h turns into compile errors: what it cannot name, since it is
# needed once, or is a word of other things too. The file after the name may call it.
BANNED = {
    "alloca": (), "vfork": (), "mktemp": (), "tmpnam": (), "gets": (), "tempnam": (),
    "signal": None,  # sigaction where a handler is set; SIG_IGN and SIG_DFL are fine
}
BANNED_BY_HEADER = {"strcpy", "strcat", "strncpy", "strncat", "strtok", "strtok_r", "sprintf",
                    "vsprintf", "gmtime", "localtime", "atoi", "system", "popen"}

# Folders of a developer's machine, and hosts that are somebody's mirror of a package registry.
MACHINE_PATHS = re.compile(
    r"(?<![\w/.])/(?:work/(?:main|wt|shared|\.library|\.local)\b|home/(?!work|someone\b|ubuntu\b|USER\b)\w+"
    r")|/tmp/bash_jobs")
MIRRORS = re.compile(
    r"https?://[\w.-]*(?:artifactory|nexus|mirror|proxy|pkg-cache)[\w.-]*|"
    r"https?://(?:registry\.npmjs\.org|registry\.yarnpkg\.com|pypi\.org|files\.pythonhosted\.org|"
    r"deb\.debian\.org|ftp\.debian\.org|index\.docker\.io|registry-1\.docker\.io)")
# Where text is checked for those: what people and programs read. This file names them.
PATHS_EXEMPT = {"tests/lint/rules.py", "tests/lint/test_lints.py"}


def tracked(root, *patterns):
    """Files that git knows or would add; relative paths, sorted."""
    out = subprocess.run(
        ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached", "--others",
         "--exclude-standard", "--", *patterns],
        cwd=root, check=True, capture_output=True, text=True).stdout
    return sorted({p for p in out.split("\0") if p and (Path(root) / p).is_file()})


def read(root, path):
    return (Path(root) / path).read_text(encoding="utf-8", errors="replace")


def without_comments(text):
    """C text with comments and the insides of strings blanked, line numbers kept."""
    def blank(match):
        token = match.group(0)
        if token[0] in "\"'":
            return token[0] + " " * (len(token) - 2) + token[0]
        return re.sub(r"[^\n]", " ", token)
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text,
                  flags=re.S)


def lines(text):
    return enumerate(text.splitlines(), 1)


def layers(root):
    """A folder of src/ includes only what stands to its left."""
    rank = {folder: i for i, row in enumerate(LAYERS) for folder in row}
    found = []
    for path in tracked(root, "src/*.c", "src/*.h"):
        own = path.split("/")[1]
        for number, line in lines(read(root, path)):
            m = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not m:
                continue
            other = m.group(1).split("/")[0]
            where = f"{path}:{number}: "
            if own == "init":
                if other != "init" and m.group(1) not in INIT_MAY_INCLUDE:
                    found.append(where + f"init stands alone: it may not include '{m.group(1)}'")
            elif own not in rank:
                found.append(where + f"the folder 'src/{own}' has no place among the layers")
            elif "/" not in m.group(1):
                found.append(where + f"'{m.group(1)}' is not named from src/ on")
            elif other != own and rank.get(other, 99) >= rank[own]:
                found.append(where + f"'{own}' may not include '{m.group(1)}'")
    return found


def banned(root):
    """Calls that have hurt people before."""
    found = []
    for path in tracked(root, "src/*.c", "src/*.h", "tests/*.c", "tests/*.h"):
        if path == "src/base/banned.h":
            continue
        text = without_comments(read(root, path))
        for number, line in lines(text):
            for m in re.finditer(r"(?<![\w.>])([a-z_]+)\s*\(", line):
                name = m.group(1)
                if name == "signal" and re.search(r"signal\s*\(\s*\w+,\s*SIG_(IGN|DFL)", line):
                    continue
                if name == "signal" and not re.search(r"signal\s*\(\s*SIG", line):
                    continue
                if name in BANNED or name in BANNED_BY_HEADER:
                    found.append(f"{path}:{number}: {name}() is banned: see base/banned.h")
    return found


def crash_table(root):
    text = read(root, "src/base/crash_points.h")
    return {m.group(1): number for number, line in lines(text)
            for m in re.finditer(r'^\s+"([^"]+)",', line)}


def crash_calls(root):
    calls = {}
    for path in tracked(root, "src/*.c"):
        if path == "src/base/crash.c":
            continue
        for number, line in lines(read(root, path)):
            for m in re.finditer(r"\bcrash_point\(([^,]*),", line):
                calls.setdefault(m.group(1), []).append(f"{path}:{number}")
    return calls


def crash_points(root):
    """The table, the calls and the tests name the same crash points."""
    table = crash_table(root)
    calls = crash_calls(root)
    tests = "".join(read(root, p) for p in tracked(root, "tests/*.c", "tests/*.py")
                    if not p.startswith("tests/lint/"))
    found = []
    for argument, places in calls.items():
        name = argument.strip().strip('"')
        if argument.strip() != f'"{name}"':
            found.append(f"{places[0]}: crash_point wants its name as a string, not '{argument}'")
        elif name not in table:
            found.append(f"{places[0]}: '{name}' is not in base/crash_points.h")
    called = {a.strip().strip('"') for a in calls}
    for name, number in table.items():
        where = f"src/base/crash_points.h:{number}: "
        if name not in called:
            found.append(where + f"nobody calls crash_point(\"{name}\")")
        if not re.search(re.escape(name) + r"(?![\w])", tests):
            found.append(where + f"no test names '{name}'")
    return found


def machine_paths(root):
    """Nothing says where it was written, or where its author's packages come from."""
    found = []
    for path in tracked(root):
        if path in PATHS_EXEMPT:
            continue
        for number, line in lines(read(root, path)):
            m = MACHINE_PATHS.search(line) or MIRRORS.search(line)
            if m:
                found.append(f"{path}:{number}: '{m.group(0)}' is of one machine only")
    return found


def shape(root):
    """What a reader relies on: each .c opens with a paragraph, no tabs, no trailing blanks."""
    found = []
    for path in tracked(root, "src/*.c", "src/*.h", "tests/*.c", "tests/*.h"):
        text = read(root, path)
        if path.startswith("src/") and not text.startswith("/*"):
            found.append(f"{path}:1: opens without saying what it owns")
        if "\r" in text or (text and not text.endswith("\n")):
            found.append(f"{path}:1: line ends are not plain newlines")
        for number, line in lines(text):
            if "\t" in line or line != line.rstrip():
                found.append(f"{path}:{number}: a tab or blanks at the end")
    return found
