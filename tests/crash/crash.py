# SPDX-License-Identifier: MIT
"""What the crash tests have in common: running a plan, killing, judging.

A trial is a folder with a plan and a store. `sluice run` is started in it,
killed, and simply started again until it ends; then everything that can be
known from outside is compared with what must be: the store, the events, and
the lines of the sessions themselves. CRASH_KEEP=1 keeps the folder of a trial
that failed.
"""

import atexit
import collections
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scenario"))

import pgplace  # noqa: E402 pylint: disable=wrong-import-position
import shape as shapes  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position

if pgplace.ON:
    pgplace.server()  # now: trials run in threads, which get no signals

# Nothing that goes well takes so long; a run that takes longer is stuck.
STUCK_S = 60
# How long processes may take to be gone, which is not what is tested here.
GONE_S = 15
MARK = "SLUICE_CRASH_TRIAL"

Expired = subprocess.TimeoutExpired
DatabaseError = (sqlite3.Error, pgplace.Error)

# Exit codes of `sluice run`.
ALL_DONE = 0
PERSON_NEEDED = 1
NO_SERVER = 3


def points():
    """The names of all crash points, from the source, with their files."""
    found = {}
    for path in sorted((tap.ROOT / "src").rglob("*.c")):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r'\bcrash_point\("([^"]*)"\)', text):
            assert name not in found, f"two points are called {name}"
            found[name] = str(path.relative_to(tap.ROOT))
    return found


def number(name, default):
    """A number from the environment, for longer or shorter tests."""
    return int(os.environ.get(name, default))


def pids_with(variable):
    """Processes that were started with VARIABLE=VALUE in their environment."""
    wanted = b"\0" + variable.encode() + b"\0"
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                environment = b"\0" + file.read()
            with open(f"/proc/{entry}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if wanted in environment and state not in b"ZX":
            found.append(int(entry))
    return found


def wait_until(condition, what, limit_s=GONE_S, pause_s=0.005):
    """Wait for it; the seconds that it took. Half of the time at most goes to
    looking."""
    begin = look = time.monotonic()
    while not condition():
        now = time.monotonic()
        assert now - begin < limit_s, f"{what}: {limit_s} s"
        time.sleep(max(pause_s, now - look))
        look = time.monotonic()
    return time.monotonic() - begin


def kill(pid):
    """Kill a process; whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def servers(pid):
    """The spawn servers of a scheduler. A sanitizer may have children too."""
    found = []
    try:
        path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        for child in path.read_text("ascii").split():
            comm = pathlib.Path(f"/proc/{child}/comm").read_text("utf-8")
            if comm.startswith("sluice-shim"):
                found.append(int(child))
    except OSError:
        pass  # it is gone
    return found


def checksum(before, row):
    """The checksum of an event, from that of the event before it."""
    event, wall_ns, run, task, kind, data = row
    none = 0xFFFFFFFF
    text = b"".join(
        value.to_bytes(size, "little")
        for value, size in (
            (before, 8),
            (event, 8),
            (wall_ns & (1 << 64) - 1, 8),
            (none if run is None else run, 4),
            (none if task is None else task, 4),
        )
    )
    total = 0xCBF29CE484222325
    for byte in text + kind.encode() + b"\0" + data.encode() + b"\0":
        total = (total ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return total


class Trial:
    """A plan, its store, and the processes that run it."""

    def __init__(self, text, extra=""):
        # In memory, if possible: a kill loses nothing that was written.
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = pathlib.Path(
            tempfile.mkdtemp(prefix="sluice-crash-", dir=place)
        )
        self.store = self.folder / "store"
        self.database = pgplace.Database() if pgplace.ON else None
        self.address = self.database.address if pgplace.ON else str(self.store)
        self.plan = self.folder / "plan.yaml"
        self.plan.write_text(text, encoding="utf-8")
        (self.folder / "extra").write_text(extra, encoding="utf-8")
        (self.folder / "witness").touch()
        for name in ("session", "order"):
            (self.folder / name).symlink_to(HERE / name)
        self.starts = 0
        self.running = []
        self.closing = atexit.register(self.close, number("CRASH_KEEP", 0))

    def start(self, crash=None, fault=None, env=None, words=()):
        """Start `sluice run` with these options; it dies at the point `crash`
        ("NAME:N")."""
        self.starts += 1
        counts = self.folder / f"counts-{self.starts}"
        counts.mkdir()
        # Looking for leaks needs a helper process, which the kills would hit;
        # the scenarios look for them.
        logs = f"detect_leaks=0:log_path={self.folder}/sanitizer"
        environment = {
            **os.environ,
            "ASAN_OPTIONS": logs,
            "UBSAN_OPTIONS": f"log_path={self.folder}/sanitizer",
            "LC_ALL": "C.UTF-8",
            "SLUICE_CRASH_COUNT": str(counts),
            MARK: str(self.folder),
            **(env or {}),
        }
        environment.pop("SLUICE_STORE", None)
        if self.database:
            environment["SLUICE_HOME"] = str(self.store)
        if crash is not None:
            environment["SLUICE_CRASH"] = crash
        if fault is not None:
            environment["SLUICE_FAULT"] = fault
        with open(self.folder / f"output-{self.starts}", "wb") as output:
            process = subprocess.Popen(
                [tap.SLUICE, "run", "--store", self.address, *words, self.plan],
                cwd=self.folder,
                env=environment,
                start_new_session=True,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                stdout=output,
            )
        self.running.append(process)
        return process

    def passed(self, point, start=None):
        """How often a point was passed in a start (default: the last)."""
        path = self.folder / f"counts-{start or self.starts}" / point
        return path.stat().st_size if path.exists() else 0

    def wait(self, process, limit_s=STUCK_S):
        """Wait for its end: the exit code."""
        try:
            return process.wait(limit_s)
        except Expired:
            raise AssertionError(f"stuck\n{self.story()}") from None

    def finish(self, code):
        """Start it once more, without harm, and require the exit code."""
        got = self.wait(self.start())
        assert got == code, f"exit code {got}\n{self.story()}"

    def kill_after(self, seconds):
        """Start it and kill it after a time; false: it ended by itself."""
        process = self.start()
        try:
            got = process.wait(seconds)
        except Expired:
            process.kill()
            got = process.wait()
        assert got in (PERSON_NEEDED, -9), f"exit code {got}\n{self.story()}"
        return got == -9

    def story(self):
        """What is known, for a message."""
        parts = [f"folder {self.folder}"]
        for start in range(1, self.starts + 1):
            path = self.folder / f"output-{start}"
            lines = path.read_text(encoding="utf-8", errors="replace")
            parts += [f"-- output {start}", *lines.splitlines()[-12:]]
        parts += ["-- states", str(self.states())]
        return "\n".join(parts)

    def ask(self, question):
        """Rows of the store, which is opened for reading only."""
        if self.database:
            return self.database.rows(question)
        path = f"file:{self.store}/sluice.db?mode=ro"
        try:
            database = sqlite3.connect(path, uri=True, timeout=10)
        except sqlite3.OperationalError:
            return []
        try:
            return database.execute(question).fetchall()
        finally:
            database.close()

    def states(self):
        """The state of each task."""
        try:
            return dict(self.ask("SELECT id, state FROM task"))
        except DatabaseError:
            return {}

    def attempts(self):
        """Attempts in flight or ended: dictionaries."""
        names = "token task number task_count state outcome pid".split()
        rows = self.ask(
            "SELECT a.token, t.id, a.number, a.task_count, a.state, a.outcome,"
            " a.pid FROM attempt a JOIN task t"
            " ON t.key = (a.run << 32) + a.task ORDER BY a.token"
        )
        return [dict(zip(names, row)) for row in rows]

    def witness(self):
        """What the sessions told: lists of words, in order."""
        text = (self.folder / "witness").read_text(encoding="utf-8")
        return [line.split() for line in text.splitlines()]

    def pids(self):
        """All that lives of this trial."""
        return pids_with(f"{MARK}={self.folder}")

    def sessions(self, task=None, attempt=None):
        """Processes of sessions: of all, or of one attempt."""
        if task is None:
            shown = self.database.shown if self.database else self.store
            return pids_with(f"SLUICE_STORE={shown}")
        result = self.store / "runs" / "crash" / task / str(attempt) / "result"
        return pids_with(f"SLUICE_RESULT={result}")

    def close(self, keep=False):
        """End what may be left, and remove the folder."""
        atexit.unregister(self.closing)
        for process in self.running:
            if process.poll() is None:
                process.kill()
                process.wait()
        for pid in self.pids():
            kill(pid)
        if self.database:
            self.database.close()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


# --- what must hold, whatever was killed ------------------------------------


def describe(pid):
    """The command line of a process, and of which attempt it is."""
    place = pathlib.Path(f"/proc/{pid}")
    try:
        command = place.joinpath("cmdline").read_bytes().replace(b"\0", b" ")
        environment = place.joinpath("environ").read_bytes().split(b"\0")
    except OSError:
        return "gone"
    names = (b"SLUICE_TASK=", b"SLUICE_ATTEMPT=", b"SLUICE_TOKEN=")
    return [command, *(text for text in environment if text.startswith(names))]


def check_no_process_left(trial):
    """No session, shim or server lives on."""
    try:
        wait_until(lambda: not trial.pids(), "processes are left")
    except AssertionError as why:
        left = [describe(pid) for pid in trial.pids()]
        rows = "\n".join(str(row) for row in trial.attempts())
        story = f"{trial.story()}\n{rows}"
        raise AssertionError(f"{why}: {left}\n{story}") from None


def check_no_report(trial):
    """No sanitizer has found anything, in any process."""
    for path in trial.folder.glob("sanitizer*"):
        raise AssertionError(path.read_text(encoding="utf-8"))
    for path in trial.folder.glob("output-*"):
        text = path.read_text(encoding="utf-8", errors="replace")
        assert "Sanitizer" not in text, text
        assert "runtime error" not in text, text
        assert "invariant" not in text.lower(), text


def check_store(trial):
    """The database is sound, its events are chained and tell its states."""
    if not trial.database:
        tap.equal(trial.ask("PRAGMA integrity_check"), [("ok",)])
    before = 0
    told = {}
    rows = trial.ask(
        "SELECT number, wall_ns, run, task, kind, data, sum FROM event"
        " ORDER BY number"
    )
    for place, row in enumerate(rows, 1):
        tap.equal(row[0], place, "the number of an event")
        before = checksum(before, row[:6])
        tap.equal(row[6] & (1 << 64) - 1, before, f"the sum of event {place}")
        data = json.loads(row[5])
        if row[4] == "task":
            told[data["task"]] = data["to"]
    states = trial.states()
    told = {task: told.get(task, states[task]) for task in states}
    tap.equal(told, states, "what the events tell")
    ((writes, last, total),) = trial.ask(
        "SELECT writes, last_event, last_sum FROM scheduler"
    )
    assert writes > 0
    home = {"SLUICE_HOME": str(trial.store)}
    unsafe = trial.address.startswith("postgresql:")  # fsync is off, for speed
    said = tap.sluice("doctor", "--store", trial.address, code=int(unsafe),
                      env=home).stdout
    assert "checksums and states agree" in said or not unsafe, said
    tap.equal((last, total & (1 << 64) - 1), (len(rows), before))


def check_no_attempt_twice(trial):
    """Each attempt has run once at most, and is one of the store."""
    rows = {attempt["token"]: attempt for attempt in trial.attempts()}
    begun = set()
    tokens = set()
    ended = {}
    for what, task, attempt, token, _pid, rest in trial.witness():
        token = int(token)
        row = rows.get(token)
        assert row, f"{task} {attempt}: its token {token} is not in the store"
        tap.equal((row["task"], row["number"]), (task, int(attempt)))
        if what == "begin":
            assert (task, attempt) not in begun, f"{task} {attempt} ran twice"
            assert token not in tokens, f"token {token} ran twice"
            begun.add((task, attempt))
            tokens.add(token)
        else:
            assert token in tokens and token not in ended, (task, attempt)
            ended[token] = rest
    for token, row in rows.items():
        tap.equal(row["state"], "ended", f"{row}")
        if row["outcome"] not in ("lost", "refused", "stopped", None):
            assert token in ended, f"{row} has an outcome, no end"
        if row["outcome"] == "done":
            tap.equal(ended[token], "0", f"{row}")


def check_order(trial, shape):
    """No session began before what its task needs was done."""
    last = {}
    once = set()
    for what, task, _attempt, _token, _pid, rest in trial.witness():
        if what == "end":
            last[task] = rest == "0"
            if rest == "0":
                once.add(task)
            continue
        for member in rest.split(","):
            for need in shape.needs.get(member, ()):
                # What another group needs of a group may be done again later.
                group = need.partition("/")
                loose = group[1] and not member.startswith(group[0] + "/")
                done = need in once if loose else last.get(need)
                assert done, f"{member} began before {need} was done"
        for member in rest.split(","):
            last[member] = False
            if member != task:
                # Its leader tells the end of all.
                last[member] = True
                once.add(member)


def check_limits(trial, shape):
    """Never more sessions than the cap, nor two in one repository."""
    ended = {line[3] for line in trial.witness() if line[0] == "end"}
    live = {}
    for what, task, attempt, token, _pid, _rest in trial.witness():
        if what == "end":
            live.pop(token, None)
            continue
        if token in ended:  # when one that was killed ended is not known
            live[token] = task
        assert len(live) <= shape.cap, f"{task} {attempt}: {live}"
        lanes = [shape.repos.get(name) for name in live.values()]
        lanes = [lane for lane in lanes if lane is not None]
        assert len(lanes) == len(set(lanes)), f"{task} {attempt}: {live}"


def services(trial):
    """How many sessions each task had."""
    counts = collections.Counter()
    for what, *_, rest in trial.witness():
        if what == "begin":
            counts.update(rest.split(","))
    return counts


def check(trial, shape, lossy):
    """All of it, and how many attempts were lost: none, unless it is `lossy`,
    that is, a shim was killed. Without, each task has run as often as it must.
    """
    check_no_process_left(trial)
    check_no_report(trial)
    check_store(trial)
    states = dict(shape.states)
    if lossy and "extra-1" not in trial.states():
        # A hook that was killed is told, and the run goes on without it.
        told = trial.ask("SELECT data FROM event WHERE kind = 'sync'")
        assert any('"failed"' in data for (data,) in told), told
        states = {k: v for k, v in states.items() if not k.startswith("extra")}
    tap.equal(trial.states(), states, f"states {trial.folder}")
    check_no_attempt_twice(trial)
    check_order(trial, shape)
    check_limits(trial, shape)
    lost = [row for row in trial.attempts() if row["outcome"] == "lost"]
    if not lossy:
        assert not lost, f"lost although no shim was killed: {lost}"
        begun = {int(line[3]) for line in trial.witness()}
        for row in trial.attempts():
            ran = row["token"] in begun or row["task"] in shapes.UNEVEN
            assert ran, f"an attempt that never ran: {row}"
        got, wanted = services(trial), shape.services
        for task in shapes.UNEVEN:
            got[task] = wanted[task] = 0
        tap.equal(+got, +wanted, "sessions of each task")
    return len(lost)


def reference(seed, stubborn=False):
    """A shape, with what came of it when nothing was killed."""
    shape = shapes.Shape(seed, stubborn)
    trial = Trial(shape.text, shapes.FRAGMENT)
    trial.finish(PERSON_NEEDED)
    shape.services = services(trial)
    check(trial, shape, lossy=False)
    shape.passed = {point: trial.passed(point) for point in points()}
    trial.close()
    return shape
