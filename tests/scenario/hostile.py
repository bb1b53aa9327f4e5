# SPDX-License-Identifier: MIT
"""A place with a hostile repository, and witnesses of what it achieves.

    with Hostile() as place:
        place.config("core.fsmonitor", place.payload("fsmonitor"))
        place.proves(["fsmonitor"], "status")    # plain git runs it
        place.survives()                         # sluice does not

A payload is a command that puts its name into a file. Below a session, which
has the right to run what it likes, it does nothing: sessions and the commands
of plans set OWN. What lies outside of the store and of what git itself keeps
in the repository is compared before and after.
"""

import hashlib
import json
import os
import pathlib
import subprocess

import tap
from gits import ENV, Repo
from place import GUARD, Place

SLUICE_GIT = os.environ.get(
    "SLUICE_GIT",
    str(pathlib.Path(tap.SLUICE).parent.parent / "git" / "sluice-git"),
)
AGENT = "sluice/made/main"

# What git and sluice may change in a repository.
CHANGING = {"refs", "objects", "logs", "worktrees", "packed-refs"}
LOCKS = ["sluice.lock", "sluice-refs.lock", "sluice-worktrees.lock"]
CHANGING |= set(LOCKS)

PAYLOAD = """#!/bin/sh
[ -n "$OWN" ] || echo "$1" >>'{}'
[ "$2" = deaf ] || exec cat
"""

# Sessions commit without asking for a signature or a hook; no two make the
# same commit.
COMMIT = (
    "git -c commit.gpgSign=false -c user.name=agent"
    " -c user.email=$SLUICE_RUN/$SLUICE_TASK/$SLUICE_ATTEMPT@localhost"
    " commit -q --no-verify -m"
)
OWN = "export OWN=1; "
WORK = (
    f"{OWN}echo $SLUICE_GROUP >shared; echo x >only-$SLUICE_GROUP;"
    f" git add -A && {COMMIT} work"
)
REPAIR = "echo both >shared"


def quoted(text):
    """A text for a shell."""
    return "'" + str(text).replace("'", "'\\''") + "'"


def print_of(path):
    """What can be seen of a file."""
    mode = path.lstat().st_mode
    if path.is_symlink():
        return mode, os.readlink(path)
    if path.is_file():
        return mode, hashlib.sha256(path.read_bytes()).hexdigest()
    return mode, None


class Hostile(Place):
    """A place with one repository, deep in a folder that is watched."""

    def __init__(self, name="repo", files=None):
        self.root = tap.folder()
        folder = self.root / "above" / "place"
        folder.mkdir(parents=True)
        super().__init__(folder)
        self.mark = self.root / "foreign"
        self.program = self.root / "payload"
        self.program.write_text(PAYLOAD.format(self.mark), encoding="utf-8")
        self.program.chmod(0o755)
        (self.root / "home").mkdir()
        self.outside = self.root / "outside"
        self.outside.mkdir()
        (self.outside / "precious").write_text("precious\n", encoding="utf-8")
        self.repo = Repo(folder / name, files or {"shared": "begin\n"})
        self.git_dir = self.repo.path / ".git"
        self.before = {}
        self.env = {
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self.root / "home"),
        }

    # What is hostile.

    def payload(self, name):
        """A command that tells that it ran."""
        return f"{quoted(self.program)} {name}"

    def script(self, path, name):
        """The same as a program of its own."""
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"#!/bin/sh\nexec {self.payload(name)}\n"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def config(self, key, value, file=None):
        """Set a key of the repository's configuration, or of a file's."""
        words = ["config", *(["-f", file] if file else []), "--add"]
        self.repo.git(*words, key, value)

    def raw(self, kind, data):
        """Store an object as it is; its id."""
        words = ["git", "hash-object", "-t", kind, "-w", "--literally"]
        done = subprocess.run(
            [*words, "--stdin"],
            check=True,
            cwd=self.repo.path,
            env=ENV,
            input=data if isinstance(data, bytes) else data.encode(),
            stdout=subprocess.PIPE,
        )
        return done.stdout.decode().strip()

    def raw_tree(self, *entries):
        """A tree of (mode, name, id), with names that git would refuse."""
        data = b""
        for mode, name, number in entries:
            data += f"{mode} {name}\0".encode() + bytes.fromhex(number)
        return self.raw("tree", data)

    def raw_commit(self, tree, parent, head=""):
        """A commit of a tree; `head` are more lines of its head."""
        who = "test <test@localhost> 1767225600 +0000"
        return self.raw(
            "commit",
            f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n"
            f"{head}\nraw\n",
        )

    # What comes of it.

    def foreign(self):
        """Names of the payloads that ran."""
        if not self.mark.exists():
            return set()
        return set(self.mark.read_text(encoding="utf-8").split())

    def proves(self, names, *words, folder=None, env=None):
        """Plain git, called so on a terminal, would run these payloads."""
        ours, terminal = os.openpty()
        subprocess.run(
            ["git", *map(str, words)],
            check=False,
            cwd=folder or self.repo.path,
            env={**ENV, "HOME": str(self.root / "home"), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=subprocess.DEVNULL,
            timeout=GUARD,
        )
        os.close(terminal)
        os.close(ours)
        missing = set(names) - self.foreign()
        self.mark.unlink(missing_ok=True)
        assert not missing, f"plain git {words} does not run {missing}"

    def is_watched(self, path):
        """Whether nobody may change a file."""
        parts = path.relative_to(self.root).parts
        if parts[:1] == ("foreign",) or ".sluice" in parts:
            return False
        if path.parent == self.folder and path.is_file():
            return False  # what tests themselves write
        if self.git_dir in path.parents:
            return path.relative_to(self.git_dir).parts[0] not in CHANGING
        return True

    def snapshot(self):
        """All that must not change."""
        return {
            str(path.relative_to(self.root)): print_of(path)
            for path in self.root.rglob("*")
            if self.is_watched(path)
            and path not in (self.folder, self.store)
            and not (path.parent == self.git_dir and path.name in CHANGING)
        }

    def watch(self):
        """From now on nothing outside may change."""
        assert not self.foreign(), f"too early: {self.foreign()}"
        self.before = self.snapshot()

    def check(self):
        """Nothing foreign ran, and nothing was written outside."""
        tap.equal(self.foreign(), set(), "foreign commands")
        after = self.snapshot()
        changed = {
            name
            for name in {*after, *self.before}
            if after.get(name) != self.before.get(name)
        }
        tap.equal(changed, set(), "changed outside")

    # Plans.

    def meeting(self, groups):
        """A shell command that waits until a session of each group has begun:
        so none of them begins on top of what another has merged."""
        here = quoted(self.folder / "here-")
        return f": >{here}$SLUICE_GROUP; " + "".join(
            f"until [ -e {here}{one} ]; do sleep 0.05; done; "
            for one in groups
        )

    def pipeline(self, work=WORK, groups=("a", "b"), stages="", last="", **repo):
        """Write a plan: groups that conflict, if they are two, with a repair
        and a gate."""
        if len(groups) == 2:
            work = self.meeting(groups) + work
        repo = {
            "path": self.repo.path.name,
            "base": "dev",
            "gate": f"{OWN}test -e shared",
            "repair": OWN + REPAIR,
            **repo,
        }
        titles = "; touch x; $(touch y)"
        lines = "".join(
            f"  - {{id: {json.dumps(one)}, repo: r, pipeline: p,"
            f" title: {json.dumps(titles)}}}\n"
            for one in groups
        )
        text = json.dumps(repo).replace('"none"', "none")
        self.plan(
            "defaults: {retry: 0}\n"
            "limits: {sessions: 4, active: {max: 20}}\n"
            f"repos:\n  r: {text}\n"
            "pipelines:\n  p:\n"
            f"    - {{stage: implement, run: {json.dumps(work)}}}\n{stages}"
            f"    - {{stage: merge, merge: true}}\n{last}"
            f"groups:\n{lines}"
        )

    def run(self, code=0, env=None):
        """Run the plan to its end; what it printed. Nothing may have been run
        or written that should not. No code: any."""
        self.watch()
        text = self.start(env={**self.env, **(env or {})}).end(code)
        self.check()
        return text

    def survives(self, env=None, **plan):
        """A run with two groups in conflict ends well."""
        self.pipeline(**plan)
        self.run(env=env)
        tap.equal(set(self.states().values()), {"done"})
        for group in plan.get("groups", ("a", "b")):
            assert f"only-{group}" in self.files(), f"{group} is not merged"
        tap.equal(self.repo.show(AGENT, "shared"), "both")

    def files(self):
        """Files of the agent branch."""
        return self.repo.files(AGENT)

    def reason(self, task):
        """Why a task is in its state."""
        row = self.rows("SELECT reason FROM task WHERE id = ?", task)[0]
        return row[0] or ""

    # sluice-git itself.

    def call(self, kind, *words, code=0, env=None, **options):
        """Call sluice-git as the shim does; what it printed. No code: any."""
        attempt = self.store / "attempt"
        attempt.mkdir(parents=True, exist_ok=True)
        given = {
            "store": self.store,
            "run": "made",
            "owner": f"{self.store}, submitted at 1",
            "repo": "r",
            "path": self.repo.path,
            "base": "dev",
            "dir": attempt,
            "token": 1,
            "task": "t",
            "group": "a",
            **options,
        }
        line = [SLUICE_GIT, kind]
        for name, value in given.items():
            line += [f"--{name}", str(value)]
        done = subprocess.run(
            [*line, *map(str, words)],
            check=False,
            cwd=self.folder,
            encoding="utf-8",
            env={
                **os.environ,
                **self.env,
                "SLUICE_RESULT": str(attempt / "result"),
                "SLUICE_GROUP": "a",
                **(env or {}),
            },
            errors="replace",
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=GUARD,
        )
        assert "Sanitizer" not in done.stdout, done.stdout
        assert "runtime error" not in done.stdout, done.stdout
        said = f"exit code {done.returncode}, expected {code}:\n{done.stdout}"
        assert done.returncode in (range(128) if code is None else [code]), said
        return done.stdout
