# SPDX-License-Identifier: MIT
"""Power cuts: record a run, cut it, let the next scheduler go on, and judge.

A Recorder is a directory with a disk, on which sluice works under record.c. A
Judge has the machine boot with a disk after a cut (disk.py): `sluice run` goes
on until it ends, and what was told to the outside before the cut, by the
sessions and by the commands, must still hold.
"""

import collections
import contextlib
import json
import os
import pathlib
import pickle
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scenario"))

import disk as disks  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position
import workloads  # noqa: E402 pylint: disable=wrong-import-position

# Nothing that goes well takes so long, even on a machine that is very busy.
STUCK_S = 900
BUILD = pathlib.Path(tap.SLUICE).parent.parent.parent
LIBRARY = os.environ.get(
    "POWER_LIBRARY", str(BUILD / "tests/power/libpower_record.so")
)
# The program that finds the disk; a build without sanitizers is faster.
NEXT = os.path.abspath(os.environ.get("POWER_NEXT", tap.SLUICE))


class Finding(Exception):
    """Something that must not happen has happened."""


def environment(folder, **more):
    """The environment of both machines: before and after the cut."""
    found = {
        **os.environ,
        "ASAN_OPTIONS": f"detect_leaks=0:log_path={folder}/sanitizer",
        "UBSAN_OPTIONS": f"log_path={folder}/sanitizer",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "POWER_MARKS": str(folder / "marks"),
        **more,
    }
    for name in ("SLUICE_STORE", "SLUICE_SHIM", "SLUICE_GIT", "SLUICE_AGENT"):
        found.pop(name, None)
    return found


def processes():
    """The processes of this machine."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def variables(pid):
    """The environment of a process."""
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


class Recorder:
    """A disk, and the processes that are recorded while they use it."""

    def __init__(self, workload, seed):
        self.workload = workload
        self.seed = seed
        place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = pathlib.Path(
            tempfile.mkdtemp(prefix="sluice-power-", dir=place)
        )
        self.disk = self.folder / "disk"
        self.log = self.folder / "log"
        self.marks = self.folder / "marks"
        self.plan = self.disk / "plan.yaml"
        self.disk.mkdir()
        self.marks.mkdir()
        self.log.touch()
        self.readers = []
        self.started = threading.Event()
        self.plan.write_text(workload.plan, encoding="utf-8")
        for name, text in workload.files.items():
            (self.disk / name).write_text(text, encoding="utf-8")
        shutil.copy(HERE / "session", self.disk)
        (self.folder / "boot").write_text(f"{uuid.uuid4()}\n", "ascii")

    def _environment(self):
        return environment(
            self.folder,
            # A path for its reports makes ASan fault before it has begun.
            ASAN_OPTIONS="detect_leaks=0:verify_asan_link_order=0",
            LD_PRELOAD=LIBRARY,
            POWER_BOOT=str(self.folder / "boot"),
            POWER_DISK=str(self.disk),
            POWER_LOG=str(self.log),
        )

    def _listen(self, pipe):
        for line in pipe:
            disks.mark(self.log, f"run {line}")
            if " start " in line:
                self.started.set()
        self.started.set()

    def run(self, plan=None):
        """Start `sluice run`; what it prints is told to the outside."""
        self.started.clear()
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [tap.SLUICE, "run", "--store", ".sluice", plan or self.plan],
            cwd=self.disk,
            encoding="utf-8",
            env=self._environment(),
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        reader = threading.Thread(target=self._listen, args=(process.stdout,))
        reader.start()
        self.readers.append(reader)
        return process

    def finish(self, process, code=None):
        """Wait for the end of `sluice run`."""
        wanted = self.workload.code if code is None else code
        tap.equal(process.wait(STUCK_S), wanted, f"recording in {self.folder}")

    def order(self, *words):
        """Give an order; its answer is told to the outside."""
        disks.mark(self.log, f"asked {json.dumps(words)}")
        done = subprocess.run(
            [tap.SLUICE, words[0], "--store", ".sluice", *words[1:]],
            capture_output=True,
            check=False,
            cwd=self.disk,
            encoding="utf-8",
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            timeout=STUCK_S,
        )
        if done.returncode == 0:
            said = [words, done.stdout.strip()]
            disks.mark(self.log, f"answered {json.dumps(said)}")

    def record(self):
        """Record the workload."""
        base = disks.snapshot(self.disk)
        self.workload.drive(self, random.Random(self.seed))
        for reader in self.readers:
            reader.join()
        self._die()
        with open(self.folder / "base", "wb") as file:
            pickle.dump((self.workload.name, base), file)
        wrong = disks.differences(
            disks.Recording(base, self.log), self.disk
        )
        assert not wrong, f"not recorded: {wrong}"

    def _die(self):
        """Nothing that was recorded outlives the cut."""
        mine = f"POWER_LOG={self.log}".encode()
        deadline = time.monotonic() + STUCK_S
        while True:
            left = [pid for pid in processes() if mine in variables(pid)]
            if not left:
                return
            assert time.monotonic() < deadline, f"processes are left: {left}"
            time.sleep(0.02)

    def close(self):
        """Remove it."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Told:
    """What the outside knew at a cut."""

    def __init__(self, recording, cut):
        self.begun = {}  # token: (run, task, attempt)
        self.ended = {}  # token: outcome
        self.outcomes = []  # (task, word), as `sluice run` has printed them
        self.answers = []  # (words of an order, its answer)
        self.asked = []  # words of orders that were given
        self.added = set()
        for at, name, text in recording.marks:
            if at < cut:
                for line in text.splitlines():
                    self._read(name, line)

    def _read(self, name, line):
        words = line.split()
        if name == "witness" and words[0] == "begin":
            self.begun[words[4]] = tuple(words[1:4])
        elif name == "witness" and words[0] == "end":
            self.ended[words[4]] = words[5]
        elif name == "witness":
            self.added.add(words[1])
        elif words[:1] == ["run"] and len(words) > 3 and ":" in words[1]:
            self.outcomes.append((words[3].rstrip(":"), words[2]))
        elif words[:1] == ["answered"]:
            order, said = json.loads(line.partition(" ")[2])
            self.answers.append((order, said))
        elif words[:1] == ["asked"]:
            self.asked.append(json.loads(line.partition(" ")[2]))


    def was_answered(self, order):
        """Whether an order has succeeded."""
        return any(found == order for found, _ in self.answers)


class Judge:
    """The machine after a cut, and what it must come to."""

    def __init__(self, folder, ignore_syncs=False):
        self.folder = pathlib.Path(folder)
        with open(self.folder / "base", "rb") as file:
            name, base = pickle.load(file)
        self.workload = next(
            found for found in workloads.WORKLOADS if found.name == name
        )
        self.recording = disks.Recording(
            base, self.folder / "log", ignore_syncs
        )
        self.disk = self.folder / "disk"
        self.witness = self.folder / "marks" / "witness"
        self.outputs = []

    def cuts(self):
        """How many places there are to cut."""
        return len(self.recording.records) + 1

    def _run(self, *words):
        try:
            done = subprocess.run(
                [NEXT, *words],
                check=False,
                cwd=self.disk,
                encoding="utf-8",
                env=environment(self.folder),
                errors="replace",
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=STUCK_S,
            )
        except subprocess.TimeoutExpired as late:
            self.outputs.append(str(late.stdout))
            raise Finding(f"{words[0]} is stuck") from None
        self.outputs.append(
            f"{words[0]}: exit code {done.returncode}\n{done.stdout}"
        )
        for word in ("Sanitizer", "runtime error", "nvariant"):
            if word in done.stdout or list(self.folder.glob("sanitizer*")):
                raise Finding(f"{words[0]}: {word}")
        return done

    def boot(self, cut, seed):
        """Boot with the disk of a cut; raise a Finding."""
        image = disks.Image(self.recording, cut, seed)
        image.write(self.disk)
        self.witness.write_text("")
        self.outputs = [image.describe()]
        told = Told(self.recording, cut)
        self._check(told)

    def _let_go(self, told):
        """Take back what keeps tasks from starting: it is there, if it was
        answered, and if nobody has asked to take it back."""
        for order, back in (
            (["hold", "last"], ["release", "last"]),
            (["pause"], ["resume"]),
        ):
            if order not in told.asked:
                continue
            done = self._run(back[0], "--store", ".sluice", *back[1:])
            kept = back not in told.asked
            if kept and done.returncode != 0 and told.was_answered(order):
                raise Finding(f"lost: {order}")

    def _finish_others(self):
        """Finish the other runs. `sluice run` ends with its own run, and may
        leave a session of another one, which doctor reports."""
        with contextlib.closing(self._open()) as database:
            plans = database.execute(
                "SELECT file FROM run WHERE finished = 0 AND id <> 'power'"
            ).fetchall()
        for (plan,) in plans:
            done = self._run("run", "--store", ".sluice", plan)
            if done.returncode != 0:
                raise Finding(f"{plan}: exit code {done.returncode}")

    def _open(self):
        return sqlite3.connect(
            f"file:{self.disk}/.sluice/sluice.db?mode=ro", uri=True
        )

    def _check(self, told):
        self._let_go(told)
        done = self._run("run", "--store", ".sluice", "plan.yaml")
        if done.returncode not in (0, 1):
            raise Finding("refused: the store cannot be continued")
        self._finish_others()
        doctor = self._run("doctor", "--store", ".sluice")
        if doctor.returncode != 0:
            raise Finding("refused: doctor finds a fault")
        again = [
            line.split() for line in self.witness.read_text().splitlines()
        ]
        with contextlib.closing(self._open()) as database:
            check_attempts(database, told, again)
            check_told(database, told)
            check_answers(database, told)
            self._check_end(database, told, done.returncode)

    def _check_end(self, database, told, code):
        """Everything ends as it does without a cut."""
        states = dict(
            database.execute(
                "SELECT t.id, t.state FROM task t JOIN run r"
                " ON r.number = t.key >> 32 WHERE r.id = 'power'"
            )
        )
        for task, state in states.items():
            allowed = ("parked",) if task == "anchor" else ("done",)
            if task == "spare" and ["skip", "spare"] in told.asked:
                allowed = ("done", "skipped")
            if state not in allowed:
                raise Finding(f"{task} is {state} in the end")
        if code != self.workload.code:
            raise Finding(f"exit code {code}")
        for task in told.added:
            if task not in states:
                raise Finding(f"lost: the added task {task}")
        count = collections.Counter(
            task
            for task, outcome in attempts(database).values()
            if outcome == "done"
        )
        for task, number in count.items():
            if number > 1 and task[1] not in self.workload.again:
                raise Finding(f"twice: {task} is done {number} times")


def attempts(database):
    """Attempts by token: ((run, task, number), outcome)."""
    rows = database.execute(
        "SELECT a.token, r.id, t.id, a.number, a.outcome FROM attempt a"
        " JOIN task t ON t.key = (a.run << 32) + a.task"
        " JOIN run r ON r.number = a.run"
    )
    return {
        str(token): ((run, task, str(number)), outcome)
        for token, run, task, number, outcome in rows
    }


def check_attempts(database, told, again):
    """No attempt runs twice; no outcome is another than that of a session."""
    rows = attempts(database)
    begun = dict(told.begun)
    names = set(begun.values())
    ended = dict(told.ended)
    for words in again:
        if words[0] == "added":
            continue
        token = words[4]
        if words[0] == "begin":
            if token in begun or tuple(words[1:4]) in names:
                raise Finding(f"twice: {words[1:]}")
            begun[token] = tuple(words[1:4])
            names.add(begun[token])
        else:
            ended[token] = words[5]
    pruned = {
        name.partition("/")[2]
        for (name,) in database.execute(
            "SELECT name FROM setting WHERE name LIKE 'pruned/%'"
        )
    }
    collecting = any(order[0] == "gc" for order in told.asked)
    for token, name in begun.items():
        if name[0] in pruned or (collecting and name[0] != "power"):
            continue
        if token not in rows:
            raise Finding(f"lost: attempt {token} {name} is not in the store")
        if rows[token][0] != name:
            raise Finding(f"token {token} is of {rows[token][0]} and {name}")
    for token, (name, outcome) in rows.items():
        allowed = {ended.get(token), "lost", "stopped"}
        if token not in begun:
            allowed.add("refused")  # no process was to be had
        if outcome not in allowed:
            raise Finding(
                f"{name} counts as {outcome}, but its session said"
                f" {ended.get(token)}"
            )


def check_told(database, told):
    """Each end that `sluice run` has printed as done is done in the store, by
    a session of before the cut. Removed runs have no rows any more."""
    collecting = any(order[0] == "gc" for order in told.asked)
    rows = collections.Counter(
        name[1]
        for token, (name, outcome) in attempts(database).items()
        if outcome == "done" and token in told.ended
    )
    printed = collections.Counter(
        task for task, word in told.outcomes if word == "done"
    )
    for task, count in printed.items():
        if rows[task] < count and not (collecting and task == "a"):
            raise Finding(f"lost: {task} was done {count} times")


def check_answers(database, told):
    """Each order that was answered is in the store, with its answer."""
    stored = collections.Counter(
        json.loads(answer).get("text")
        for (answer,) in database.execute(
            "SELECT answer FROM command WHERE answer IS NOT NULL"
        )
    )
    wanted = collections.Counter(
        said for order, said in told.answers if order[0] != "gc"
    )
    for text, count in wanted.items():
        if stored[text] < count:
            raise Finding(f"lost: the order that was answered: {text}")
