# SPDX-License-Identifier: MIT
"""Machines for tests: hosts in namespaces, a database, and a witness.

    with Fleet() as fleet:
        host = fleet.host("a")                 # its own network, clock, boot id
        host.start("work", "--slots", "2")     # a sluice process on it
        host.cut(fleet.base)                   # from the database, both ways
        host.heal()

A host is a set of namespaces: network, mounts, processes, host name, time. Its
disk is a small tmpfs that survives reboot(). All hosts share the directory
fleet.folder, where sessions note what they do (class Witness).

main() runs the scenario inside of namespaces of its own: whatever happens to
it, no process, mount or interface is left. It prints a skip where that is not
possible.
"""

import concurrent.futures
import importlib.machinery
import importlib.util
import itertools
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid

import tap

# MACHINES_LEASES=default takes leases as users have them: minutes.
REAL_LEASES = os.environ.get("MACHINES_LEASES", "") == "default"
# Seconds after which something that should happen is given up.
GUARD = 600 if REAL_LEASES else 120
INSIDE = "SLUICE_TEST_INSIDE"
DISK = "24m"
LEASE_MS = 120000 if REAL_LEASES else 3000
MARGIN_MS = 2000

# The first process of a host: it adopts orphans, and waits for them.
INIT = """
mount -t proc proc /proc || exit 1
mount --bind "$1" /proc/sys/kernel/random/boot_id || exit 1
hostname "$2" || exit 1
ip link set lo up || exit 1
: >"$3"
while :; do sleep 1000 & wait $!; done
"""

SUPPORT = tap.ROOT / "tests" / "support" / "postgres"


def _load_postgres():
    loader = importlib.machinery.SourceFileLoader("postgres", str(SUPPORT))
    spec = importlib.util.spec_from_loader("postgres", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


postgres = _load_postgres()


def run(*words, text=None):
    """Run a command of the system; its output."""
    done = subprocess.run(
        words, check=False, capture_output=True, encoding="utf-8", input=text
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def until(condition, what, guard=GUARD):
    """Wait for a condition; seconds that it took."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > guard:
            raise AssertionError(f"{what()if callable(what) else what}: "
                                 f"not within {guard} s")
        time.sleep(0.05)
    return time.monotonic() - begin


def send(pid, number):
    """Send a signal, if there is such a process."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


class Process:
    """A sluice process on a host."""

    def __init__(self, host, words, env):
        self.host = host
        self.words = words
        self.env = env
        self.stopped = False
        self.output = host.fleet.folder / f"out-{next(host.fleet.numbers)}"
        with open(self.output, "wb") as out:
            self.process = subprocess.Popen(
                host.enter("--pid", "--time") + [tap.SLUICE, *words],
                cwd=host.folder,
                env={**host.env(), **env},
                start_new_session=True,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                stdout=out,
            )
        outer = self.process.pid
        path = pathlib.Path(f"/proc/{outer}/task/{outer}/children")
        self.pid = None
        while self.pid is None and self.process.poll() is None:
            pids = path.read_text(encoding="ascii").split() or [None]
            self.pid = pids[0] and int(pids[0])
            time.sleep(0.005)

    def text(self):
        """What it has printed so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")

    def alive(self):
        """Whether it has not exited. nsenter stops itself some time after its
        child was stopped, and is to see its exit."""
        if self.process.poll() is None and not self.stopped:
            send(self.process.pid, signal.SIGCONT)
        return self.process.poll() is None

    def signal(self, number):
        """Send it a signal."""
        if number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL):
            self.stopped = number == signal.SIGSTOP
        if self.pid is not None and self.process.poll() is None:
            send(self.pid, number)

    def kill(self):
        """End it at once."""
        self.signal(signal.SIGKILL)
        until(lambda: not self.alive(), f"the end of {self.words}")

    def end(self, code=None):
        """Wait for its exit, and require an exit code; what it printed."""
        until(lambda: not self.alive(), lambda: f"{self.words}\n{self.text()}")
        got = self.process.poll()
        text = self.check()
        if code is not None:
            assert got == code, f"{self.words}: exit code {got}\n{text}"
        return text

    def check(self):
        """No sanitizer has complained; what it printed."""
        text = self.text()
        for bad in ("Sanitizer", "runtime error", "invariant"):
            assert bad not in text, f"{self.words}:\n{text}"
        return text


class Host:
    """A machine."""

    def __init__(self, fleet, name, number):
        self.fleet = fleet
        self.name = name
        self.number = number
        self.address = f"10.77.{fleet.number}.{number}"
        self.port = f"s{fleet.number}p{number}"  # its end of the wire
        self.folder = fleet.folder / name
        self.home = self.folder / "disk" / "home"
        self.offset = 100000  # of its clock, in seconds
        self.init = None
        self.processes = []
        (self.folder / "disk").mkdir(parents=True)
        run("mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "tmpfs",
            str(self.folder / "disk"))
        self.boot()

    def env(self):
        """The environment of its processes."""
        counters = os.environ.get("LLVM_PROFILE_FILE")  # of tools/coverage
        return {
            **({"LLVM_PROFILE_FILE": counters} if counters else {}),
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", ""),
            "HOME": str(self.folder),
            "LC_ALL": "C.UTF-8",
            "PATH": os.environ["PATH"],
            "SLUICE_HOME": str(self.home),
            "SLUICE_STORE": self.fleet.store,
            "TMPDIR": str(self.folder),
        }

    def boot(self):
        """Start it: with another boot id, and another time since boot."""
        boot = self.folder / "boot_id"
        ready = self.folder / "ready"
        boot.write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        ready.unlink(missing_ok=True)
        self.init = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "--pid", "--time",
             "--fork", "--kill-child", "--propagation", "private",
             "--boottime", str(self.offset),
             "bash", "-c", INIT, "init", str(boot), self.name, str(ready)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # unshare complains when it is killed
        )
        until(ready.exists, f"start of {self.name}")
        outer = self.init.pid
        path = pathlib.Path(f"/proc/{outer}/task/{outer}/children")
        self.init.inner = int(path.read_text(encoding="ascii").split()[0])
        run("ip", "-batch", "-", text=(
            f"link add {self.port} type veth peer name eth0"
            f" netns {self.init.inner}\n"
            f"link set {self.port} master {self.fleet.bridge} up\n"))
        run(*self.enter(), "ip", "-batch", "-", text=(
            f"addr add {self.address}/24 dev eth0\nlink set eth0 up\n"))

    def halt(self):
        """Switch it off: all its processes die at once."""
        send(self.init.inner, signal.SIGKILL)

        def is_off():
            for process in self.processes:
                process.stopped = False
                process.alive()  # has its parent wait for it, if that stands
            return self.init.poll() is not None

        until(is_off, f"the end of {self.name}")
        for process in self.processes:
            process.kill()

    def reboot(self):
        """Switch it off and on."""
        self.halt()
        self.offset -= 10000  # leases of before would be valid for long
        self.boot()

    def enter(self, *more):
        """Words that run a command on it; without --pid, as its parent."""
        return ["nsenter", "--target", str(self.init.inner), "--net", "--mount",
                "--uts", *more, "--"]

    def start(self, *words, **env):
        """Start sluice in the background."""
        process = Process(self, [str(word) for word in words], env)
        self.processes.append(process)
        return process

    def sluice(self, *words, code=0, **env):
        """Run sluice, and require the exit code; its output."""
        done = subprocess.run(
            self.enter("--pid", "--time") + [tap.SLUICE, *map(str, words)],
            check=False,
            cwd=self.folder,
            encoding="utf-8",
            env={**self.env(), **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=GUARD,
        )
        text = f"{words}: exit code {done.returncode}\n{done.stdout}"
        assert done.returncode == code and "Sanitizer" not in text, text
        return done.stdout

    # --- faults

    def cut(self, other, way="both"):
        """Drop packets to and from another host; way: both, in or out."""
        rules = ["add table inet cut",
                 "add chain inet cut i { type filter hook input priority 0; }",
                 "add chain inet cut o { type filter hook output priority 0; }"]
        if way in ("both", "in"):
            rules.append(f"add rule inet cut i ip saddr {other.address} drop")
        if way in ("both", "out"):
            rules.append(f"add rule inet cut o ip daddr {other.address} drop")
        run(*self.enter(), "nft", "-f", "-", text="\n".join(rules) + "\n")

    def link(self, state):
        """Unplug ("down") or plug in ("up")."""
        run("ip", "link", "set", self.port, state)

    def heal(self):
        """Undo cut() and link()."""
        run(*self.enter(), "nft", "flush", "ruleset")
        self.link("up")

    def fill(self):
        """Fill its disk."""
        path = self.folder / "disk" / "ballast"
        with open(path, "ab") as file:
            block = b"x" * 65536
            while block:
                try:
                    os.write(file.fileno(), block)
                except OSError:
                    block = block[: len(block) // 2]

    def empty(self):
        """Undo fill()."""
        (self.folder / "disk" / "ballast").unlink(missing_ok=True)

    def pids(self, *names):
        """The processes on it but the first; of programs with these names."""
        space = os.readlink(f"/proc/{self.init.inner}/ns/pid")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.init.inner:
                continue
            try:
                if os.readlink(entry / "ns/pid") != space:
                    continue
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_text(encoding="utf-8")
            except OSError:
                continue
            parts = state.rpartition(")")[2].split()
            name = os.path.basename(words[0]).decode()
            own = int(parts[1]) == self.init.inner and words[0] == b"sleep"
            if parts[0] != "Z" and not own and (not names or name in names):
                found.append(int(entry.name))
        return found

    def shims(self):
        """The shims of its sessions. One that also is the spawn server of a
        worker has no session below it."""
        return [pid for pid in self.pids("sluice-shim") if _has_session(pid)]

    def signal_all(self, number):
        """Send a signal to all processes on it."""
        for process in self.processes:
            process.signal(number)
        for pid in self.pids():
            send(pid, number)


def _has_session(pid):
    """Whether a child of a process is a session."""
    try:
        path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        return any(
            b"SLUICE_TASK=" in pathlib.Path(f"/proc/{kid}/environ").read_bytes()
            for kid in path.read_text(encoding="ascii").split()
        )
    except OSError:
        return False


class Base(Host):
    """The machine of the database."""

    lock = threading.Lock()
    model = None  # a directory to copy

    def __init__(self, fleet):
        super().__init__(fleet, "base", 1)
        with Base.lock:
            if Base.model is None:
                Base.model = Base.make_model()
        self.server = postgres.Server(
            ["shared_buffers=16MB", "max_wal_size=64MB", "wal_init_zero=off"],
            listen=self.address, port=5432)
        run("cp", "-a", str(Base.model.data), str(self.server.data))
        self.start_server()

    @staticmethod
    def make_model():
        """A database, with short leases unless it is to have real ones."""
        server = postgres.Server()
        server.make()
        with open(server.data / "pg_hba.conf", "a", encoding="ascii") as file:
            file.write("host all all 10.77.0.0/16 trust\n")
        server.start()
        short = (f"worker_lease = {LEASE_MS}", "lease = 1500",
                 f"worker_margin = {MARGIN_MS}")
        for text in () if REAL_LEASES else short:
            ask(server, f"ALTER DATABASE postgres SET sluice.{text}")
        server.stop()
        return server

    def start_server(self):
        """Start it."""
        self.server.start(self.enter())

    def stop_server(self):
        """End it, as by a crash."""
        if self.server.process is not None:
            self.signal_server(signal.SIGCONT)
            self.server.stop(signal.SIGQUIT)

    def restart_server(self):
        """Restart it, as after a crash."""
        self.stop_server()
        self.start_server()

    def signal_server(self, number):
        """Send a signal to all its processes."""
        outer = self.server.process.pid
        path = pathlib.Path(f"/proc/{outer}/task/{outer}/children")
        for pid in [outer, *path.read_text(encoding="ascii").split()]:
            send(int(pid), number)

    def backends(self):
        """The processes that serve sluice."""
        self.signal_server(signal.SIGCONT)
        sql = ("SELECT pid FROM pg_stat_activity WHERE usename = 'sluice'"
               " AND client_addr IS NOT NULL")
        return [int(line) for line in ask(self.server, sql).split()]


def ask(server, sql):
    """Ask the database; lines of columns separated by tabs."""
    return run(postgres.program("psql"), "-XqAt", "-F", "\t", "-h",
               str(server.dir), "-p", str(server.port), "-U", "sluice", "-d",
               "postgres", "-c", "SET search_path = sluice", "-c", sql)


# A session. It holds a lock as long as any process of it is alive; "twice"
# means that another session of the task is.
SESSION = """
say() { echo "$1 $SLUICE_TASK $SLUICE_ATTEMPT $SLUICE_TOKEN $(hostname) $$" \
>>"%(folder)s/witness"; }
exec 9>>"%(folder)s/locks/$(echo "$SLUICE_TASK" | tr / +)"
if flock -n 9; then say begin; else say twice; fi
%(body)s
say effect
"""


class Witness:
    """What sessions note in the common directory."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "locks").mkdir()
        self.path = folder / "witness"
        self.path.touch()

    def session(self, body):
        """A shell command for a plan, as YAML."""
        return json.dumps(SESSION % {"folder": self.folder, "body": body})

    def gate(self, name="go"):
        """A shell command that waits for open(name)."""
        return f'while [ ! -e "{self.folder}/gate-{name}" ]; do sleep 0.1; done'

    def open(self, name="go"):
        """Let sessions pass that wait at a gate."""
        (self.folder / f"gate-{name}").touch()

    def lines(self, *kinds):
        """(kind, task, attempt, token, host, pid) in order."""
        text = self.path.read_text(encoding="utf-8")
        rows = [line.split() for line in text.splitlines()]
        return [
            (kind, task, int(attempt), int(token), host, int(pid))
            for kind, task, attempt, token, host, pid in rows
            if not kinds or kind in kinds
        ]

    def begun(self, task=None):
        """The sessions that began: (task, attempt, host)."""
        return [(line[1], line[2], line[4])
                for line in self.lines("begin", "twice")
                if task in (None, line[1])]


class Fleet:
    """Machines that share a database."""

    counter = itertools.count(1)

    def __init__(self):
        self.number = next(Fleet.counter)
        assert self.number < 250, "too many networks"
        self.folder = tap.folder()
        self.folder.chmod(0o755)
        self.bridge = f"sluice{self.number}"
        self.numbers = itertools.count()
        self.hosts = {}
        self.witness = Witness(self.folder)
        run("ip", "link", "add", self.bridge, "type", "bridge")
        run("ip", "link", "set", self.bridge, "up")
        self.store = f"postgresql://sluice@10.77.{self.number}.1/postgres"
        self.base = None
        try:
            self.base = Base(self)
        except BaseException:
            self.close()
            raise

    def host(self, name):
        """Add a machine."""
        self.hosts[name] = Host(self, name, len(self.hosts) + 2)
        return self.hosts[name]

    def plan(self, text, name="plan.yaml"):
        """Write a plan; its path."""
        path = self.folder / name
        path.write_text(tap.HEAD + text, encoding="utf-8")
        return path

    def rows(self, sql):
        """Ask the database; lists of texts."""
        text = ask(self.base.server, sql)
        return [line.split("\t") for line in text.splitlines()]

    def states(self):
        """State of each task."""
        return dict(self.rows("SELECT id, state FROM task"))

    def attempts(self):
        """(task, number, token, state, outcome, cause, worker) in order."""
        sql = ("SELECT t.id, a.number, a.token, a.state, a.outcome, a.cause,"
               " a.worker FROM attempt a JOIN task t ON t.key ="
               " a.run * 4294967296 + a.task ORDER BY a.token")
        return self.rows(sql)

    def workers(self):
        """State of each worker."""
        return dict(self.rows("SELECT name, state FROM worker"))

    def scheduler(self):
        """(epoch, host) of the scheduler."""
        row = self.rows("SELECT epoch, host FROM scheduler")[0]
        return int(row[0]), row[1]

    def until(self, condition, what, guard=GUARD):
        """Wait for a condition; the failure has everything of interest."""
        return until(condition, lambda: f"{what}\n{self.tell()}", guard)

    def tell(self):
        """All that helps to find out what went wrong."""
        parts = []
        for sql in ("SELECT name, state, wanted, trouble, generation,"
                    " lease_until - clock_timestamp() FROM worker",
                    "SELECT token, worker, state, want, report FROM work",
                    "SELECT id, state, reason FROM task"
                    " WHERE state <> 'done'"):
            try:
                parts.append(ask(self.base.server, sql))
            except AssertionError as error:
                parts.append(str(error))
        parts.append(self.witness.path.read_text(encoding="utf-8"))
        for host in self.hosts.values():
            for process in host.processes:
                parts.append(f"--- {host.name}: {' '.join(process.words)} "
                             f"(exit {process.process.poll()})\n"
                             f"{process.text()[-3000:]}")
        return "\n".join(parts)

    def close(self):
        """End everything."""
        for host in self.hosts.values():
            host.halt()
        if self.base is not None:
            self.base.server.close()
            self.base.halt()
        for path in self.folder.glob("*/disk"):
            subprocess.run(["umount", "-l", str(path)], check=False)
        subprocess.run(["ip", "link", "del", self.bridge], check=False)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None and kind is not tap.Skip:
            for line in self.tell().splitlines():
                print(f"# {line}")
        self.close()


def why_not():
    """Why there cannot be machines here; None: there can."""
    if os.geteuid() != 0:
        return "not root"
    for name in ("ip", "nft", "nsenter", "unshare", "setpriv", "flock"):
        if shutil.which(name) is None:
            return f"no {name}"
    if not os.path.exists(postgres.program("initdb")):
        return "no PostgreSQL"
    done = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--pid", "--time", "--fork",
         "--mount-proc", "--boottime", "1000", "sh", "-c",
         "ip link add va type veth peer name vb && ip link add br0 type bridge"
         " && mount -t tmpfs x /tmp && nft add table inet cut"],
        check=False, capture_output=True, encoding="utf-8")
    return None if done.returncode == 0 else f"namespaces: {done.stderr[:60]!r}"


def enter():
    """Continue in namespaces of our own, or print a skip and exit."""
    if INSIDE in os.environ:
        run("ip", "link", "set", "lo", "up")
        run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")  # goes with us
        os.environ["TMPDIR"] = tempfile.tempdir = "/dev/shm"
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        return
    why = why_not()
    if why is not None:
        print(f"1..0 # SKIP {why}")
        sys.exit(0)
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [
        "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
        "--mount-proc", "--propagation", "private", sys.executable,
        *sys.argv])


def close():
    """Remove what all fleets have in common."""
    if Base.model is not None:
        Base.model.close()


def try_case(function):
    """The failure of a case, as text; "": none."""
    try:
        function()
        return ""
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc()


def main(cases, jobs=4):
    """Run the cases of a scenario, some at a time: they mostly wait. Print TAP;
    the exit code."""
    enter()
    os.chdir(tap.ROOT)
    wanted = sys.argv[1:]
    cases = [c for c in cases if not wanted or c.__name__ in wanted]
    print(f"1..{len(cases)}", flush=True)
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, text in enumerate(pool.map(try_case, cases), 1):
            name = " ".join(cases[number - 1].__doc__.split()).rstrip(".")
            bad += 1 if text else 0
            print(f"{'not ' if text else ''}ok {number} - {name}")
            for line in text.splitlines():
                print(f"# {line}")
            sys.stdout.flush()
    close()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit("this is not a scenario: the scenarios import it")
