# SPDX-License-Identifier: MIT
"""Hubs for tests: bare repositories that plans name by a URL.

    wave = HubWave("api")                  # a hub api.git, branch dev
    wave.repos["api"].commit({...}, "why") # a commit that a person pushes
    wave.repos["api"].url = "..."          # another way to it

A hub is reached as a file, unless its URL is changed."""

import os
import pathlib
import subprocess

import tap
from gits import ENV, Repo
from wave import Wave

GIT_PROGRAM = os.environ.get(
    "SLUICE_GIT", pathlib.Path(tap.SLUICE).parent.parent / "git" / "sluice-git"
)


class Hub(Repo):
    """A bare repository with a branch dev, and a person's clone of it."""

    def __init__(self, path, files=None):
        self.seed = Repo(path.with_name(path.name + ".seed"), files)
        self.seed.git("clone", "-q", "--bare", self.seed.path, path)
        self.seed.git("remote", "add", "hub", path)
        self.path = path  # pylint: disable=super-init-not-called
        self.url = f"file://{path}"

    def place(self):
        return f'url: "{self.url}"'

    def commit(self, files, why, branch="dev"):
        self.seed.git("fetch", "-q", "hub")
        self.seed.git("checkout", "-q", "-B", branch, f"hub/{branch}")
        made = self.seed.commit(files, why)
        self.seed.git("push", "-q", "hub", branch)
        return made

    def refs(self):
        """All refs, with what they point to."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split() for line in lines.splitlines())

    def hook(self, name, text):
        """Write a hook of the hub."""
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)


class HubWave(Wave):
    """A place whose repositories are hubs."""

    def __init__(self, *names, files=None, base_gates=False):
        super().__init__(base_gates=base_gates)
        self.repos = {
            name: Hub(self.folder / f"{name}.git", files) for name in names
        }
        self.settings = {name: "" for name in names}

    def mirrors(self):
        """The mirrors of this store."""
        return sorted((self.store / "mirrors").glob("*.git"))

    def check_hub(self, name="api", gated=True):
        """Require that the hub is whole, and that every commit on the first
        parents of its agent branch was gated as it is."""
        self.repos[name].git("fsck", "--strict", "--no-dangling")
        if gated:
            self.sluice("verify", name)


class Machine:
    """A worker's home, for calls of sluice-git as a worker makes them: several
    of them share a hub, as on several machines."""

    def __init__(self, folder, url, run="made", owner="store, submitted at 1"):
        self.home = folder
        self.home.mkdir(parents=True)
        self.url = url
        self.run = run
        self.owner = owner

    def words(self, kind, token, group, *more, command=None):
        """The words of one call."""
        task = f"{group}/{'implement' if kind == 'session' else 'merge'}"
        folder = self.home / f"attempt-{token}"
        folder.mkdir(exist_ok=True)
        words = [GIT_PROGRAM, kind, "--store", self.home, "--run", self.run]
        words += ["--owner", self.owner, "--repo", "api", "--url", self.url]
        words += ["--base", "dev", "--dir", folder, "--token", token]
        words += ["--task", task, "--group", group, *more]
        if kind == "session":
            words += ["--writes", "--round", 1, "--", "/bin/sh", "-c", command]
        return list(map(str, words))

    def start(self, kind, token, group, *more, command=None, env=None):
        """Start a call."""
        words = self.words(kind, token, group, *more, command=command)
        folder = self.home / f"attempt-{token}"
        with open(folder / "log", "ab") as log:
            return subprocess.Popen(  # pylint: disable=consider-using-with
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **ENV,
                    "SLUICE_RESULT": str(folder / "result"),
                    "SLUICE_RUN": self.run,
                    "SLUICE_TASK": group,
                    "SLUICE_GROUP": group,
                    "SLUICE_ATTEMPT": str(token),
                    **(env or {}),
                },
            )

    def call(self, kind, token, group, *more, command=None, code=0, env=None):
        """Make a call that ends with this code; its log."""
        done = self.start(
            kind, token, group, *more, command=command, env=env
        ).wait(120)
        log = self.log(token)
        assert done == code, f"{kind} {group}: {done}\n{log}"
        assert "Sanitizer" not in log and "runtime error" not in log, log
        return log

    def log(self, token):
        """The log of a call."""
        path = self.home / f"attempt-{token}" / "log"
        return path.read_text(encoding="utf-8", errors="replace")
