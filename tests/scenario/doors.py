# SPDX-License-Identifier: MIT
"""Sessions that stay open, and clients of sluice inside them.

    with Door() as door:
        door.sessions("a", "b")          # two tasks
        door.run = door.start()
        door.said("a", "task")           # sluice session task, inside a
        with door.server("a") as mcp:    # sluice mcp, inside a
            mcp.tool("plan")
        door.release("a")                # its session exits with 0
"""

import json
import os
import pathlib
import subprocess

import tap
from place import GUARD, Place, task

MODERN = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Server:
    """`sluice mcp`, and requests to it."""

    def __init__(self, env, *words):
        self.last = 0
        self.process = subprocess.Popen(
            [tap.SLUICE, "mcp", *words],
            env=env,
            stderr=subprocess.PIPE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, line):
        """Send bytes, or a message."""
        if not isinstance(line, bytes):
            line = json.dumps(line).encode() + b"\n"
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self):
        """The next message."""
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def request(self, method, modern=False, **params):
        """Make a request; its answer."""
        self.last += 1
        if modern:
            params["_meta"] = META
        message = {"jsonrpc": "2.0", "id": self.last, "method": method}
        self.send({**message, "params": params})
        answer = self.receive()
        tap.equal((answer["jsonrpc"], answer["id"]), ("2.0", self.last))
        return answer

    def tool(self, name, error=False, **arguments):
        """Call a tool; its text."""
        answer = self.request("tools/call", name=name, arguments=arguments)
        result = answer["result"]
        (content,) = result["content"]
        tap.equal((content["type"], result["isError"]), ("text", error), content)
        return content["text"]

    def close(self):
        """End it by the end of its input; what it printed on standard error."""
        if self.process.poll() is not None and self.process.stdin.closed:
            return ""
        _, errors = self.process.communicate(timeout=GUARD)
        text = errors.decode()
        assert "Sanitizer" not in text and "runtime error" not in text, text
        return text


class Door(Place):
    """A place whose sessions tell their environment and wait."""

    run = None

    def body(self, after=""):
        """A command for a session that waits at the gate of its task."""
        told = f"{self.folder}/env-$name"
        return self.session(
            'name=$(echo "$SLUICE_TASK-$SLUICE_ATTEMPT" | tr / _); '
            f'env -0 >"{told}.new"; mv "{told}.new" "{told}"; '
            + self.gate("$name")
            + after
        )

    def release(self, name, attempt=1):
        """Let a session exit."""
        self.open(f"{name}-{attempt}".replace("/", "_"))

    def sessions(self, *names, settings="retry: 0", **more):
        """Write a plan with these tasks."""
        tasks = "".join(task(name, self.body(), **more) for name in names)
        self.plan(f"defaults: {{{settings}}}\ntasks:\n{tasks}")

    def env(self, name, attempt=1):
        """The environment of a session, when it has begun."""
        path = self.folder / ("env-" + f"{name}-{attempt}".replace("/", "_"))
        self.until(path.exists, f"the start of {name}")
        self.until(lambda: self.states().get(name) != "starting")
        lines = path.read_bytes().split(b"\0")
        pairs = [os.fsdecode(line).split("=", 1) for line in lines if line]
        return dict(pair for pair in pairs if len(pair) == 2)

    def begin(self, name, *words, stdin=""):
        """Start a command of sluice inside a session."""
        process = subprocess.Popen(
            [tap.SLUICE, *map(str, words)],
            cwd=self.folder,
            env=self.env(name),
            stderr=subprocess.PIPE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        process.stdin.write(stdin.encode())
        process.stdin.close()
        process.stdin = None
        return process

    def call(self, name, *words, attempt=1, code=0, stdin=None, **other):
        """A command of sluice inside a session; its output or its message."""
        env = {**self.env(name, attempt), **other}
        done = subprocess.run(
            [tap.SLUICE, *map(str, words)],
            capture_output=True,
            check=False,
            cwd=self.folder,
            encoding="utf-8",
            env=env,
            input=stdin,
        )
        text = done.stdout + done.stderr
        assert "Sanitizer" not in text and "runtime error" not in text, text
        tap.equal(done.returncode, code, f"{words}: {text}")
        return done.stdout if code == 0 else done.stderr

    def said(self, name, *words, **more):
        """`sluice session` inside a session."""
        return self.call(name, "session", *words, **more)

    def server(self, name, *words, attempt=1, **other):
        """`sluice mcp` inside a session."""
        return Server({**self.env(name, attempt), **other}, *words)

    def refusals(self):
        """(verb, by, text) of the requests that were refused, by the log."""
        found = []
        for event in self.events("order"):
            answer = event["answer"]
            answer = json.loads(answer) if isinstance(answer, str) else answer
            if not answer["ok"]:
                found.append((event["verb"], event["by"], answer["text"]))
        return found

    def result(self, name, attempt=1):
        """The result file of an attempt."""
        path = pathlib.Path(self.env(name, attempt)["SLUICE_RESULT"])
        return json.loads(path.read_text(encoding="utf-8"))

    def outcomes(self, name):
        """Outcome and reason of the attempts of a task."""
        sql = (
            "SELECT outcome, reason FROM attempt WHERE task ="
            " (SELECT ix FROM task WHERE id = ?) ORDER BY token"
        )
        return self.rows(sql, name)
