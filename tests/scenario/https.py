# SPDX-License-Identifier: MIT
"""A place that `sluice serve` serves, and clients of it.

    with Site() as site:
        site.plan("tasks:\\n  - {id: a, run: 'true'}\\n")
        site.start("--wait")
        server = site.serve()                 # 127.0.0.1, a port of its own
        server.json("/api/v1/status")         # with the operator's token
        server.ask("GET", "/", token=None)    # an Answer, whatever its status
        server.order({"verb": "pause"})
        with server.stream(after=0) as stream:
            stream.next()                     # an Event
        server.stop()                         # SIGTERM; it must exit with 0

site.serve(unix=True) listens on the unix socket of the store instead. Raw
bytes go over server.connect(), or server.raw() for a whole conversation.
"""

import collections
import contextlib
import http.client
import json
import re
import signal
import socket
import sqlite3
import struct
import threading
import time

import tap
from place import GUARD, Place

Answer = collections.namedtuple("Answer", "status headers body")
Event = collections.namedtuple("Event", "number name data")

TCP = "127.0.0.1:0"
OPERATOR = "http-token"
VIEWER = "http-token-view"
# Members whose values depend on the moment at which they were printed.
MOVING = ("age_s", "elapsed_s", "forecast", "left_s", "silent_s")


class Connection(http.client.HTTPConnection):
    """A connection to a server, TCP or unix."""

    def __init__(self, server):
        super().__init__("127.0.0.1", timeout=GUARD)
        self.server = server

    def connect(self):
        self.sock = self.server.connect()


def parse(data):
    """The answers in what a server has sent: a list of Answer."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = re.fullmatch(r"HTTP/1\.[01] (\d{3})(?: .*)?", lines[0])
        assert status, f"no answer of HTTP: {lines[0][:200]!r}"
        headers = http.client.HTTPMessage()
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            assert colon, f"no header: {line!r}"
            headers[name] = value.strip()
        size = int(headers.get("Content-Length", len(data)))
        code = int(status.group(1))
        size = 0 if code < 200 else size
        found.append(Answer(code, headers, data[:size]))
        data = data[size:]
    return found


def read_all(client, guard=GUARD):
    """What a server sends until it closes the connection; what it has sent
    when the time is up."""
    client.settimeout(guard)
    data = b""
    try:
        while part := client.recv(65536):
            data += part
    except OSError:
        pass  # reset, or it stays open
    return data


class Stream:
    """The events that a server sends."""

    def __init__(
        self, server, after=None, seen=None, headers=None, path="/api/v1/events/stream"
    ):
        words = {**server.bearer(), **(headers or {})}
        if seen is not None:
            words["Last-Event-ID"] = str(seen)
        query = "" if after is None else f"?after={after}"
        self.client = server.connect()
        lines = "".join(f"{name}: {text}\r\n" for name, text in words.items())
        self.client.sendall(
            f"GET {path}{query} HTTP/1.1\r\n"
            f"Host: {server.host}\r\n{lines}\r\n".encode()
        )
        self.wire = b""
        self.text = b""
        self.over = False
        while b"\r\n\r\n" not in self.wire:
            self._receive()
            assert not self.over, "no answer"
        head, _, self.wire = self.wire.partition(b"\r\n\r\n")
        head = head.decode("latin-1").split("\r\n")
        self.status = int(head[0].split(" ")[1])
        self.headers = dict(line.lower().split(": ", 1) for line in head[1:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Go away."""
        self.client.close()

    def _receive(self):
        try:
            part = self.client.recv(65536)
        except ConnectionError:
            part = b""
        self.over = self.over or not part
        self.wire += part

    def _chunk(self):
        """Move whole chunks from the wire to the text; False: it is not
        whole."""
        size, line, rest = self.wire.partition(b"\r\n")
        if not line or len(rest) < int(size, 16) + 2:
            return False
        size = int(size, 16)
        self.over = self.over or size == 0
        self.text += rest[:size]
        self.wire = rest[size + 2 :]
        return True

    def next(self, guard=GUARD):
        """The next event, comments left out; None: the stream has ended. An
        exception, when there is none in time."""
        end = time.monotonic() + guard
        while True:
            block, found, rest = self.text.partition(b"\n\n")
            if found:
                self.text = rest
                event = self._event(block.decode())
                if event is not None:
                    return event
            elif self.over:
                return None
            elif not self._chunk():
                self.client.settimeout(max(0.001, end - time.monotonic()))
                self._receive()

    @staticmethod
    def _event(block):
        fields = dict(
            line.split(": ", 1)
            for line in block.split("\n")
            if not line.startswith(":")
        )
        if not fields:
            return None
        number = fields.get("id")
        return Event(
            None if number is None else int(number),
            fields.get("event", "message"),
            json.loads(fields["data"]),
        )


class Follower(threading.Thread):
    """A client that comes back whenever its stream ends, as browsers do, and
    keeps the numbers of the events that it gets."""

    def __init__(self, server, after=0):
        super().__init__(daemon=True)
        self.server = server
        self.numbers = []
        self.resets = 0
        self.streams = 0
        self.last = after
        self.done = threading.Event()
        self.start()

    def run(self):
        while not self.done.is_set():
            try:
                with Stream(self.server, seen=self.last) as stream:
                    self.streams += stream.status == 200
                    while not self.done.is_set():
                        event = self._next(stream)
                        if event is None:
                            break
            except (AssertionError, OSError):
                self.done.wait(0.05)  # nobody listens

    def _next(self, stream):
        while not self.done.is_set():
            try:
                event = stream.next(0.5)
            except TimeoutError:
                continue
            if event is not None and event.name == "reset":
                self.resets += 1
                self.last = event.number
            elif event is not None:
                self.numbers.append(event.number)
                self.last = event.number
            return event
        return None

    def stop(self):
        """End it; the numbers of all events."""
        self.done.set()
        self.join(GUARD)
        return self.numbers


class Server:
    """`sluice serve` in the background."""

    def __init__(self, site, words, unix):
        self.site = site
        self.unix = unix
        self.run = site.start_order("serve", *words)
        self.until_ready()
        text = self.run.text()
        self.where = re.search(r"serving at (\S+)\n", text).group(1)
        self.link = None
        self.host = "localhost"
        self.tokens = {}
        if not unix:
            self.host = re.fullmatch(r"http://(.*)/", self.where).group(1)
            link = re.search(r"log in within a minute: (\S+)\n", text).group(1)
            assert link.startswith(self.where), text
            self.link = link[len(self.where) - 1 :]
            name, _, port = self.host.rpartition(":")
            self.address = (name.strip("[]"), int(port))

    def until_ready(self):
        """Wait until it has said where it is."""

        def is_ready():
            text = self.run.text()
            assert self.run.alive(), text
            ready = text.count("\n") >= 1 if self.unix else "log in" in text
            return ready and text.endswith("\n")

        self.site.until(is_ready, "the start of sluice serve")

    def connect(self, source=None):
        """A new connection, TCP from a given address."""
        if self.unix:
            # With a time-out of Python's, a full queue would be an error.
            limit = struct.pack("ll", GUARD, 0)
            client = socket.socket(socket.AF_UNIX)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            client.connect(self.where)
            client.settimeout(GUARD)
            return client
        family = socket.AF_INET6 if ":" in self.address[0] else socket.AF_INET
        client = socket.socket(family)
        client.settimeout(GUARD)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if source is not None:
            client.bind((source, 0))
        client.connect(self.address)
        return client

    def token(self, name=OPERATOR):
        """A token in the home, which may be away later."""
        if name not in self.tokens:
            path = self.site.store / name
            self.tokens[name] = path.read_text(encoding="ascii")
        return self.tokens[name]

    def bearer(self, name=OPERATOR):
        """The header with a token; on a unix socket none is needed."""
        if self.unix:
            return {}
        return {"Authorization": f"Bearer {self.token(name)}"}

    def ask(self, method, path, body=None, token=OPERATOR, **headers):
        """One request on a connection of its own; its Answer. Headers have an
        underscore for a dash; None: leave it out."""
        words = {} if token is None else self.bearer(token)
        words["Host"] = self.host
        for name, text in headers.items():
            words[name.replace("_", "-")] = text
        connection = Connection(self)
        try:
            connection.putrequest(
                method, path, skip_host=True, skip_accept_encoding=True
            )
            for name, text in words.items():
                if text is not None:
                    connection.putheader(name, text)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def json(self, path, status=200, **headers):
        """What is at a path, with the operator's token."""
        answer = self.ask("GET", path, **headers)
        tap.equal(answer.status, status, f"{path}: {answer.body[:500]}")
        tap.equal(answer.headers["Content-Type"], "application/json", path)
        return json.loads(answer.body)

    def send(self, order, **headers):
        """Send an order, a dictionary or bytes; its Answer."""
        if not isinstance(order, bytes):
            order = json.dumps(order).encode()
        headers = {"Content_Type": "application/json", **headers}
        return self.ask("POST", "/api/v1/orders", order, **headers)

    def post(self, order, **headers):
        """Send an order without waiting for its answer; the connection."""
        body = json.dumps(order)
        words = {
            "Host": self.host,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **self.bearer(),
            **{name.replace("_", "-"): text for name, text in headers.items()},
        }
        lines = "".join(f"{name}: {text}\r\n" for name, text in words.items())
        client = self.connect()
        client.sendall(f"POST /api/v1/orders HTTP/1.1\r\n{lines}\r\n{body}".encode())
        return client

    def order(self, order, status=200, **headers):
        """Send an order and require the status; the answer, decoded."""
        answer = self.send(order, **headers)
        tap.equal(answer.status, status, f"{order}: {answer.body[:500]}")
        reply = json.loads(answer.body)
        tap.equal(reply["ok"], status == 200, reply)
        return reply

    def raw(self, data, last=False, source=None):
        """Send bytes, and read until the connection is closed. `last`: tell the
        server that no more will come, so that it does not wait for it."""
        with self.connect(source) as client:
            try:
                client.sendall(data)
                if last:
                    client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it has answered before the end
            return read_all(client)

    def stream(self, **more):
        """A Stream."""
        return Stream(self, **more)

    def follow(self, **more):
        """A Follower."""
        return Follower(self, **more)

    def log_in(self):
        """The cookie that the one-time link sets, as "name=value"."""
        answer = self.ask("GET", self.link, token=None)
        tap.equal(answer.status, 303, answer.body)
        return answer.headers["Set-Cookie"].split(";")[0]

    def is_well(self):
        """Require that it lives, answers, and no sanitizer has complained."""
        assert self.run.alive(), self.run.text()
        text = self.run.text()
        assert "Sanitizer" not in text and "runtime error" not in text, text
        tap.equal(self.ask("GET", "/api/v1/status").status, 200)

    def kill(self, number=signal.SIGKILL):
        """Send it a signal."""
        self.run.kill(number)

    def stop(self):
        """End it as systemd does; what it has printed."""
        self.run.kill(signal.SIGTERM)
        return self.run.end(0)


class Site(Place):
    """A place that is served."""

    def serve(self, *words, unix=False, listen=TCP):
        """Start `sluice serve`, and wait until it listens."""
        words = words if unix else ("--listen", listen, *words)
        return Server(self, words, unix)

    def begin(self, *words, text=None):
        """Start a scheduler, with a plan whose first task waits at the gate
        "go"; without a text, of three tasks."""
        if text is None:
            text = (
                "defaults: {retry: 0}\ntasks:\n"
                f"  - {{id: a, run: {self.session(self.gate())}}}\n"
                "  - {id: b, run: 'true', needs: [a], title: Second}\n"
                "  - {id: c/d, run: 'echo one; echo two'}\n"
            )
        self.plan(text)
        run = self.start(*words)
        self.until(lambda: "running" in self.states().values(), "a session")
        return run

    def last_event(self):
        """The number of the last event."""
        return self.rows("SELECT max(number) FROM event")[0][0]

    def digest(self, *left_out):
        """All rows of the store, but for some tables."""
        sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        # Its heartbeats change the row of the scheduler.
        names = [name for (name,) in self.rows(sql) if name != "scheduler"]
        return {
            name: self.rows(f"SELECT * FROM {name}")
            for name in names
            if name not in left_out
        }

    def add_events(self, count):
        """Write events by hand, as a scheduler would; none may be alive. The
        number of the last one."""
        db = sqlite3.connect(self.store / "sluice.db", timeout=GUARD)
        with contextlib.closing(db), db:
            last = db.execute("SELECT last_event FROM scheduler").fetchone()[0]
            db.executemany(
                "INSERT INTO event SELECT ?, wall_ns, run, task, kind, data, sum"
                " FROM event WHERE number = 2",
                [(last + 1 + ix,) for ix in range(count)],
            )
            db.execute(
                "UPDATE scheduler SET last_event = ?, writes = writes + 1",
                (last + count,),
            )
        return last + count

    def set_back(self, seconds):
        """Have the sessions begin so much later, as if the clock had been set
        back since; no scheduler may be alive."""
        db = sqlite3.connect(self.store / "sluice.db", timeout=GUARD)
        with contextlib.closing(db), db:
            db.execute(
                "UPDATE attempt SET begun_ns = begun_ns + ?",
                (seconds * 1_000_000_000,),
            )
            db.execute("UPDATE scheduler SET writes = writes + 1")


def settled(value):
    """A JSON value without members that move."""
    if isinstance(value, dict):
        return {
            name: settled(one)
            for name, one in value.items()
            if name not in MOVING
        }
    if isinstance(value, list):
        return [settled(one) for one in value]
    return value


def told(site, *words):
    """What a command prints as JSON."""
    return json.loads(site.sluice(*words, "--json").stdout)


def agrees(site, server, path, *words):
    """Wait until a path shows what a command prints, apart from times: the
    server looks at the store four times a second."""

    def is_equal():
        return settled(server.json(path)) == settled(told(site, *words))

    try:
        site.until(is_equal, f"{path} as {words}")
    except AssertionError:
        tap.equal(settled(server.json(path)), settled(told(site, *words)), path)
    return server.json(path)
