# SPDX-License-Identifier: MIT
"""A place to run plans in for real: a folder with a plan and a store.

    place = Place()
    place.plan("tasks:\\n  - {id: a, run: 'exit 0'}\\n")
    run = place.start()                   # sluice run, in the background
    place.until(lambda: place.states() == {"a": "done"})
    run.end(0)                            # waits, requires the exit code

Sessions tell what they do by themselves: a command made with Place.session()
appends a line with O_APPEND to the witness file when it begins and when it
ends, so that what is counted does not come from sluice. Every process started
here is ended at the end of its case by its pid, sessions by their marker in
the environment.
"""

import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import time

import pgplace
import tap

GUARD = 60  # seconds after which something that should happen is given up
QUIET = 30  # the same, when no sluice process of the case is alive

# A shell command that names all tasks of a batch as done, as YAML.
ALL_DONE = json.dumps(
    '[ -z "$SLUICE_BATCH" ] ||'
    ' sed \'s/.*/{"task":"&","outcome":"done"}/\' "$SLUICE_BATCH" | paste -sd, |'
    ' sed \'s/.*/{"tasks":[&]}/\' >"$SLUICE_RESULT"'
)


def task(name, command, **settings):
    """A line of plan text; settings are YAML."""
    parts = "".join(f", {key}: {value}" for key, value in settings.items())
    return f"  - {{id: {name}, run: {command}{parts}}}\n"


def children(pid):
    """Pids of the children of a process."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text(encoding="utf-8")
            except OSError:
                continue
            if int(text.rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.name))
    return found


def pids_with(variable, in_run=None):
    """Pids of the processes with this variable, as bytes, at their start; only
    those of a run, or those of none."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            of_run = any(word.startswith(b"SLUICE_RUN=") for word in words)
            if variable in words and in_run in (None, of_run):
                found.append(int(entry.name))
    return found


def worker_of(run):
    """Pid of the worker beside `sluice run`, or None."""
    for pid in children(run.pid):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        if b"--attached" in words:
            return pid
    return None


def spawn_servers(run):
    """Pids of the processes that start the sessions of `sluice run`: its own,
    or those of the worker beside it."""
    return children(worker_of(run) if pgplace.ON else run.pid)


def spawn_server(run):
    """The only one of them."""
    found = spawn_servers(run)
    tap.equal(len(found), 1, "spawn servers")
    return found[0]


def has_socket(run):
    """Whether a process has a socket open."""
    folder = pathlib.Path(f"/proc/{run.pid}/fd")
    try:
        return any("socket:" in os.readlink(fd) for fd in folder.iterdir())
    except OSError:
        return False  # one was closed just now


def check_metrics(text):
    """promtool has nothing to say against the text of `sluice metrics`."""
    fetched = tap.ROOT / "build-promtool" / "usr" / "bin" / "promtool"
    done = subprocess.run(
        [shutil.which("promtool") or fetched, "check", "metrics"],
        check=False,
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    tap.equal((done.returncode, done.stdout), (0, ""))


class Run:
    """A sluice process in the background."""

    def __init__(self, place, words, env):
        self.output = place.folder / f"out-{len(place.runs)}"
        with open(self.output, "wb") as out:
            self.process = subprocess.Popen(
                [tap.SLUICE, *map(str, words)],
                cwd=place.folder,
                env={
                    **os.environ,
                    "LC_ALL": "C.UTF-8",
                    **place.env_run(),
                    **env,
                },
                start_new_session=True,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                stdout=out,
            )
        self.pid = self.process.pid

    def text(self):
        """What it has printed so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def alive(self):
        """Whether it has not ended."""
        return self.process.poll() is None

    def kill(self, number=signal.SIGKILL):
        """Send it a signal; with SIGKILL, wait for its end, and with SIGSTOP
        until it has stopped."""
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self.process.wait(GUARD)
        elif number == signal.SIGSTOP:
            what = os.WSTOPPED | os.WEXITED | os.WNOWAIT
            os.waitid(os.P_PID, self.pid, what)

    def end(self, code=None, guard=GUARD):
        """Wait for its end and require the exit code; what it printed."""
        try:
            got = self.process.wait(guard)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running:\n{self.text()}") from None
        text = self.text()
        assert "Sanitizer" not in text and "runtime error" not in text, text
        if code is not None:
            assert got == code, f"exit code {got}, expected {code}:\n{text}"
        return text


class Place:
    """A folder with a plan and a store."""

    def __init__(self, folder=None):
        self.folder = folder or tap.folder()
        self.store = self.folder / ".sluice"
        self.database = pgplace.Database() if pgplace.ON else None
        self.witness_path = self.folder / "witness"
        self.witness_path.touch()
        self.runs = []

    @property
    def address(self):
        """What --store takes."""
        return self.database.address if self.database else str(self.store)

    @property
    def shown(self):
        """What a session has as SLUICE_STORE."""
        return self.database.shown if self.database else str(self.store)

    def env_run(self):
        """The environment of `sluice run`, which finds .sluice by itself."""
        return self.database.env(self.store) if self.database else {}

    def env_store(self):
        """The environment of other commands on this store."""
        return self.env_run() or {"SLUICE_STORE": str(self.store)}

    def plan(self, text, head=tap.HEAD, name="plan.yaml"):
        """Write the plan; `head` goes before the text."""
        (self.folder / name).write_text(head + text, encoding="utf-8")

    def session(self, body="", seconds=0.0):
        """A shell command that tells when it begins and ends, as YAML."""
        tell = 'echo "$1 $SLUICE_TASK $SLUICE_ATTEMPT $SLUICE_TOKEN $$"'
        return json.dumps(
            f"t() {{ {tell} >>'{self.witness_path}'; }}; t begin; "
            + (f"sleep {seconds}; " if seconds else "")
            + (body + "; " if body else "")
            + "t end"
        )

    def gate(self, name="go", every=0.05):
        """A shell command that waits until open(name); `name` may have shell
        variables in it, as in "$SLUICE_TASK". It looks every so many seconds:
        seldom, where hundreds wait."""
        path = f"{self.folder}/gate-{name}"
        return f'while [ ! -e "{path}" ]; do sleep {every}; done'

    def open(self, *names):
        """Let those go on that wait at the gates; without names, at "go"."""
        for name in names or ("go",):
            (self.folder / f"gate-{name}").touch()

    def start(self, *words, env=None, plan="plan.yaml"):
        """Start `sluice run` in the background."""
        run = Run(self, ["run", *words, plan], env or {})
        self.runs.append(run)
        return run

    def start_order(self, *words):
        """Start another command on this store in the background."""
        run = Run(self, words, self.env_store())
        self.runs.append(run)
        return run

    def sluice(self, *words, code=0, stdin=None, env=None):
        """Run another command on this store."""
        env = {**self.env_store(), **(env or {})}
        return tap.sluice(*words, code=code, stdin=stdin, env=env)

    def metrics(self, *words):
        """The metrics, by name and labels."""
        text = self.sluice("metrics", *words).stdout
        lines = [line for line in text.split("\n") if line and line[0] != "#"]
        found = [line.rsplit(" ", 1) for line in lines]
        return {name: float(number) for name, number in found}

    def rows(self, sql, *values):
        """Ask the database, read-only; [] while there is none."""
        if self.database:
            return self.database.rows(sql, *values)
        path = self.store / "sluice.db"
        if not path.exists():
            return []
        db = sqlite3.connect(f"file:{path}?mode=ro", timeout=10, uri=True)
        try:
            return db.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise
        finally:
            db.close()

    def edit(self, sql, *values):
        """Change the database by hand; nobody may have it open. The number of
        rows that were changed."""
        assert not any(run.alive() for run in self.runs), "sluice is running"
        if self.database:
            return self.database.edit(sql, *values)
        db = sqlite3.connect(self.store / "sluice.db", isolation_level=None)
        try:
            return db.execute(sql, values).rowcount
        finally:
            db.close()

    def states(self):
        """State of each task, by its id."""
        return dict(self.rows("SELECT id, state FROM task"))

    def count(self, state):
        """How many tasks are in a state."""
        return sum(s == state for s in self.states().values())

    def in_flight(self):
        """Ids of the tasks that the store says are in flight."""
        live = ("starting", "running")
        return {task for task, s in self.states().items() if s in live}

    def status(self, run="made"):
        """What `sluice status --json` tells about a run."""
        text = self.sluice("status", "--json", "--run", run).stdout
        return json.loads(text)["runs"][0]

    def slots(self, run="made", limit="sessions"):
        """(used, max) of a limit, as `sluice status` shows it."""
        limits = {one["limit"]: one for one in self.status(run)["limits"]}
        return limits[limit]["used"], limits[limit]["max"]

    def witness(self):
        """What the sessions told: (what, task, attempt, token, pid)."""
        text = self.witness_path.read_text(encoding="utf-8")
        lines = text.rpartition("\n")[0].splitlines()  # the last may be half
        return [
            (what, task, int(attempt), int(token), int(pid))
            for what, task, attempt, token, pid in map(str.split, lines)
        ]

    def begun(self):
        """The attempts that began, as (task, attempt), in order."""
        return [(w[1], w[2]) for w in self.witness() if w[0] == "begin"]

    def alive(self):
        """Tasks whose sessions told that they began and not that they ended."""
        found = set()
        for what, task, *_ in self.witness():
            (found.add if what == "begin" else found.discard)(task)
        return found

    def most_at_once(self):
        """The largest number of sessions alive at once, by their witness."""
        alive = most = 0
        for what, *_ in self.witness():
            alive += 1 if what == "begin" else -1
            most = max(most, alive)
        return most

    def check_witness(self):
        """No attempt began twice."""
        seen = [(w[1], w[2], w[3]) for w in self.witness() if w[0] == "begin"]
        tap.equal(sorted(set(seen)), sorted(seen), "attempts")

    def events(self, kind=None):
        """The log of events, data as dictionaries, in order."""
        rows = self.rows("SELECT kind, data FROM event ORDER BY number")
        return [
            {"kind": k, **json.loads(data)}
            for k, data in rows
            if kind in (None, k)
        ]

    def processes(self):
        """Pids of all live processes of this store's sessions."""
        marker = f"SLUICE_STORE={self.shown}".encode()
        hooks = f"SLUICE_STORE={self.address}".encode()
        return sorted({*pids_with(marker), *pids_with(hooks, in_run=True)})

    def check_gone(self):
        """No process of a session is left; one that was killed goes when it
        gets a CPU."""
        self.until(lambda: not self.processes(), "the end of all processes")

    def until(self, condition, what="what was waited for", guard=GUARD):
        """Wait until the condition holds; seconds it took. Half of the time
        at most goes to looking."""
        begin = alive = look = time.monotonic()
        while not condition():
            now = time.monotonic()
            if any(run.alive() for run in self.runs):
                alive = now
            if now - begin > guard or now - alive > QUIET:
                said = "\n".join(run.text()[-3000:] for run in self.runs)
                raise AssertionError(f"{what} did not happen:\n{said}")
            time.sleep(max(0.01, now - look))
            look = time.monotonic()
        return time.monotonic() - begin

    def workers(self):
        """Pids of the workers beside `sluice run`."""
        marker = f"SLUICE_STORE={self.address}".encode()
        return pids_with(marker, in_run=False) if self.database else []

    def close(self):
        """End whatever is left."""
        for run in self.runs:
            if run.alive():
                run.process.send_signal(signal.SIGCONT)
                run.kill()
        self.end_sessions()
        if self.database:
            self.database.close()

    def end_sessions(self):
        """End what no `sluice run` has any more."""
        for _ in range(100):
            left = self.processes() + self.workers()
            if not left:
                return
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
