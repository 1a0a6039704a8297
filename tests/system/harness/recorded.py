"""Messages of a release as text, and what they have to be today.

tests/recorded/VERSION/cli.txt: what its command line asked, a block each:

    $ muster node ls                      the command, for readers
    > GET /v1/nodes?limit=1000            the request, and its body if there is one
    < 200 {"nodes": [{"name": "text", ..  the reply's status and shape

tests/recorded/VERSION/link.txt: what its agent and its manager said, a line each:

    ! POST /v1/sessions {...}             what a person did meanwhile
    > {"type": "hello", ...}              of the agent, as it was
    < {"type": "'welcome'", ...}          of the manager, its shape

Words in braces stand for what differs from run to run: {session1}, {cluster}. A shape keeps members
and types; what was there must be there today, with such a type. More may be.
"""
import json
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "recorded"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Members whose names are somebody's own: env of a session or an image.
FREE = {"env"}


def first_event(body):
    """The first of a session in an event stream."""
    events = (json.loads(line) for line in re.findall(rb"^data: (.*)$", body, re.M))
    return next(e for e in events if e["type"].startswith("session."))


def type_name(value):
    return ("null" if value is None else "flag" if isinstance(value, bool) else
            "number" if isinstance(value, (int, float)) else "text")


def shape(value, key=None):
    """Members and types; of a list its first. What kind of message or error it is stays as it is."""
    if isinstance(value, dict) and set(value) == {"code", "message"}:
        return {"code": f"'{value['code']}'", "message": "text"}
    if isinstance(value, dict):
        return {} if key in FREE else {k: shape(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(v) for v in value[:1]]
    if key in ("type", "phase") and isinstance(value, str):
        return f"'{value}'"
    return type_name(value)


def missing(wanted, value, way=""):
    """What a reader of that release would look for in vain, a line each."""
    if isinstance(wanted, dict):
        if not isinstance(value, dict):
            return [f"{way or 'the whole'} is no object"]
        return [line for k, w in wanted.items() for line in
                (missing(w, value[k], f"{way}.{k}".lstrip(".")) if k in value
                 else [f"{way}.{k}".lstrip(".") + " is gone"])]
    if isinstance(wanted, list):
        if not isinstance(value, list):
            return [f"{way or 'the whole'} is no list"]
        if wanted and not value:
            return [f"{way} is empty"]
        return [line for v in value[:1] for w in wanted for line in missing(w, v, f"{way}[0]")]
    if wanted.startswith("'"):
        return [] if value == wanted[1:-1] else [f"{way} is '{value}', not {wanted}"]
    if isinstance(value, (dict, list)):
        return [f"{way} is not of type {wanted} any more"]
    now = type_name(value)
    return [] if "null" in (wanted, now) or wanted == now else [f"{way} is {now}, was {wanted}"]


def fill(text, names):
    """Words in braces put in."""
    return re.sub(r"\{([a-z]+[0-9]*)\}", lambda m: names.get(m.group(1), m.group(0)), text)


def blank(text, names):
    """What differs from run to run as words in braces; names as for fill."""
    for name, value in names.items():
        if value:
            text = text.replace(value, "{" + name + "}")
    return text


def dump(value):
    return json.dumps(value, separators=(", ", ": "), ensure_ascii=False)


class Block:
    def __init__(self, command, method, path, body, status, reply):
        self.command, self.method, self.path, self.body = command, method, path, body
        self.status, self.reply = status, reply

    def text(self):
        words = f"> {self.method} {self.path}" + (f" {self.body}" if self.body else "")
        return f"$ {self.command}\n{words}\n< {self.status}" + (
            f" {dump(self.reply)}" if self.reply is not None else "") + "\n"


def read_blocks(text):
    found = re.findall(r"^\$ (.*)\n> (\S+) (\S+)(?: (.*))?\n< (\d+)(?: (.*))?$", text, re.M)
    return [Block(command, method, path, body, int(status), json.loads(reply) if reply else None)
            for command, method, path, body, status, reply in found]
