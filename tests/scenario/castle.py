# SPDX-License-Identifier: MIT
"""A server under attack, for the scenarios that attack `sluice serve`.

    with Castle() as castle:
        answer = castle.ask("GET", "/api/v1/status", token=None)
        expect(castle, "no token", answer, 401)
        castle.holds("no token")          # the server lives, the store is as before

Each attack has a name: what it does, and after a colon to whom, if there are
several. At the end of a scenario, main() prints how many were made, or
with ATTACKS=1 in the environment their names.
"""

import json
import os
import re

import tap
from https import Site
from tap import equal

CANARY = "canary-4711"
ORDERS = "/api/v1/orders"
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
CAP = json.dumps({"verb": "cap", "max": 77}).encode()
CAP_FORM = b"verb=cap&step=1"
READS = (
    "/",
    "/?run=made&task=a",
    "/api/v1/status",
    "/api/v1/runs/made",
    "/api/v1/runs/made/tasks",
    "/api/v1/runs/made/tasks/a",
    "/api/v1/runs/made/tasks/a/attempts/1/log",
    "/api/v1/events",
    "/api/v1/events/stream",
    "/api/v1/nothing",
    "/metrics",
    "/api/v1/workers",
    "/api/v1/runs",
    "/api/v1/runs/made/graph",
    "/api/v1/runs/made/report",
    "/api/v1/runs/made/tasks/a/diff",
    "/api/v1/runs/made/tasks/a/attempts/1/log?find=x",
    "/parts?run=made",
    "/live",
    "/live.css",
    "/live.js",
    "/runs",
    "/log?run=made&task=a",
    "/lines?run=made&task=a",
    "/diff?run=made&task=a",
    "/graph?run=made",
    "/report?run=made",
)


# Names of the attacks that had no effect.
WITHSTOOD = []


class Castle(Site):
    """A site under attack: a scheduler with a session that goes on, a server,
    and files that nobody may get."""

    def __init__(self, unix=False):
        super().__init__()
        self.unix = unix
        self.run = self.server = self.before = None
        self.seen = b""

    def __enter__(self):
        (self.folder / "canary").write_text(CANARY, encoding="ascii")
        try:
            self.run = self.begin("--wait")
            self.until(lambda: self.states()["c/d"] == "done")
            (self.store / "canary").write_text(CANARY, encoding="ascii")
            self.server = self.serve(unix=self.unix)
            self.before = self.digest()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *failed):
        try:
            if failed == (None, None, None):
                self.holds("the end")
                WITHSTOOD.pop()
                self.server.stop()
                self.open()
        finally:
            super().__exit__(*failed)

    def holds(self, name, *left_out):
        """Require that an attack had no effect; tables may be left out."""
        try:
            self.server.is_well()
        except (AssertionError, OSError) as error:
            raise AssertionError(f"{name}: {error!r}") from error
        assert self.run.alive(), f"{name}: {self.run.text()}"
        now = self.digest(*left_out)
        for table, rows in now.items():
            equal(rows, self.before[table], f"{name}: {table}")
        secrets = [CANARY, *self.server.tokens.values()]
        for secret in secrets:
            assert secret.encode() not in self.seen, f"{name}: {secret}"
        self.seen = b""
        WITHSTOOD.append(name)

    def ask(self, *words, **more):
        """Ask the server, and remember the answer."""
        answer = self.server.ask(*words, **more)
        self.seen += str(answer.headers).encode() + answer.body
        return answer

    def raw(self, data, last=False):
        """Send bytes; what comes back."""
        found = self.server.raw(data, last)
        self.seen += found
        return found

    def head(self, method="GET", path="/api/v1/status", token=True, **more):
        """The lines of a request without the empty one."""
        words = {"Host": self.server.host}
        if token and not self.server.unix:
            words |= self.server.bearer()
        words |= {name.replace("_", "-"): text for name, text in more.items()}
        lines = "".join(f"{name}: {text}\r\n" for name, text in words.items())
        return f"{method} {path} HTTP/1.1\r\n{lines}".encode()


def protects(name, answer):
    """Require headers that protect; a redirection leads to this server."""
    headers = answer.headers
    equal(headers["Location"] is not None, answer.status == 303, name)
    if answer.status == 303:
        # One line, of characters that no browser drops, with one slash.
        good = re.fullmatch(r"/(?:[\w.~%?&=#+-][\w.~%?&=#+/-]*)?", headers["Location"])
        assert good, f"{name}: {headers['Location']!r}"
    equal(headers["X-Content-Type-Options"], "nosniff", name)
    equal(headers["Cache-Control"], "no-store", name)
    equal(headers["Cross-Origin-Resource-Policy"], "same-origin", name)
    assert "default-src 'none'" in headers["Content-Security-Policy"], name
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"], name
    assert not [one for one in headers if one.startswith("Access-Control")], name
    equal(headers["X-Evil"], None, name)


def expect(castle, name, answer, *wanted):
    """Require one of some statuses, headers that protect, and no effect."""
    assert answer.status in wanted, f"{name}: {answer.status}, not {wanted}"
    protects(name, answer)
    castle.holds(name)


def kinds():
    """What was done so far, whoever it was done to."""
    return sorted({name.partition(":")[0] for name in WITHSTOOD})


def main():
    """Run the cases and print TAP and the number of attacks; the exit code."""
    code = tap.main()
    print(f"# {len(kinds())} attacks in {len(WITHSTOOD)} forms had no effect")
    if os.environ.get("ATTACKS"):
        print("".join(f"#   {name}\n" for name in kinds()), end="")
    return code
