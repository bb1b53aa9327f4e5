# SPDX-License-Identifier: MIT
"""A place with git repositories, for plans whose issues go through them.

    wave = Wave("api")                        # a repository api, branch dev
    wave.issues([stage("implement", wave.work()), MERGE], {"api": ["a"]})
    wave.start().end(0)
    wave.line("api")                          # merges of the agent branch

Sessions wait at gates, as in place.py; what they find they put into files,
with Wave.note().
"""

import os
import pathlib
import signal

import tap
from gits import COMMIT, Repo
from place import Place

RUN = "made"
AGENT = f"sluice/{RUN}/main"
QUICK = "defaults: {retry: {max: 2, backoff: 10ms}}\n"
NO_RETRY = "defaults: {retry: 0}\n"


def stage(name, run=None, **settings):
    """A line of a pipeline; `run` and settings are YAML, no run: a merge."""
    parts = {"merge": "true"} if run is None else {"run": run}
    text = ", ".join(f"{k}: {v}" for k, v in {**parts, **settings}.items())
    return f"    - {{stage: {name}, {text}}}\n"


MERGE = stage("merge")


def rework(most=2):
    """The setting that sends an issue back to its first stage."""
    return f"{{to: implement, max: {most}}}"


def environment(pid):
    """The variables a process was started with; none, when it is gone."""
    try:
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(w.decode().split("=", 1) for w in words if b"=" in w)


def is_awaited(path):
    """Whether a process waits for the lock of a file, as the kernel tells."""
    if not path.exists():
        return False
    inode = f":{path.stat().st_ino}"
    lines = pathlib.Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return any(
        words[1] == "->" and words[6].endswith(inode)
        for words in map(str.split, lines)
    )


class Wave(Place):
    """A place with repositories."""

    def __init__(self, *names, files=None, base_gates=False):
        super().__init__()
        self.base_gates = base_gates  # False: only merges are gated
        self.repos = {name: Repo(self.folder / name, files) for name in names}
        self.settings = {name: "" for name in names}

    def repo_settings(self, name):
        """The keys of a repository after its base, as YAML."""
        text = self.settings[name]
        if " gate: " in text and not self.base_gates:
            text += ", base_gate: none"
        return text

    def issues(
        self, stages, groups, top=QUICK, sessions=8, active=8, name=RUN
    ):
        """Write a plan: groups of each repository, all of one pipeline, and so
        many of them open at once in each repository."""
        self.plan(
            f"{top}limits: {{sessions: {sessions}, active: {active}}}\nrepos:\n"
            + "".join(
                f"  {n}: {{{repo.place()}, base: dev{self.repo_settings(n)}}}\n"
                for n, repo in self.repos.items()
            )
            + f"pipelines:\n  issue:\n{''.join(stages)}groups:\n"
            + "".join(
                f"  - {{id: {group}, repo: {repo}, pipeline: issue}}\n"
                for repo, list_of in groups.items()
                for group in list_of
            ),
            head=f"sluice: 1\nname: {name}\n",
        )

    def work(self, before="", after=""):
        """A session that commits a file of its group's name, as YAML."""
        body = f"echo line >>$SLUICE_GROUP.txt; {COMMIT} $SLUICE_GROUP"
        return self.session("; ".join(filter(None, (before, body, after))))

    def note(self, command, name):
        """A shell command that puts another's output into a file, which is
        there when it is whole; the name may have shell variables in it."""
        path = f"{self.folder}/note-{name}"
        return f'{{ {command}; }} >"{path}.new" 2>&1; mv "{path}.new" "{path}"'

    def noted(self, name):
        """What a session has put there, or None."""
        path = self.folder / f"note-{name}"
        return path.read_text(encoding="utf-8") if path.exists() else None

    def line(self, repo="api", run=RUN):
        """Subjects of what is merged in a repository, oldest first."""
        subjects = self.repos[repo].line(f"sluice/{run}/main")
        return [s for s in subjects[::-1] if s.startswith("Merge ")]

    def log(self, task, number=1, run=RUN):
        """The log of an attempt."""
        path = self.attempt(task, number, run) / "log"
        return path.read_text(encoding="utf-8", errors="replace")

    def attempt(self, task, number=1, run=RUN):
        """The directory of an attempt."""
        name = task.replace("/", "+")
        return self.store / "runs" / run / name / str(number)

    def tree(self, group, repo="api", run=RUN):
        """The worktree of a group."""
        return self.store / "worktrees" / run / repo / group

    def reason(self, task):
        """(state, cause, reason) of a task in the store."""
        sql = "SELECT state, cause, reason FROM task WHERE id = ?"
        return self.rows(sql, task)[0]

    def parked(self, task, *texts):
        """Require that a task is parked, and that its reason has these texts;
        the reason."""
        state, _, reason = self.reason(task)
        tap.equal(state, "parked", f"{task} ({reason})")
        for text in texts:
            assert text in (reason or ""), f"{task}: {reason!r} lacks {text!r}"
        return reason

    def kill_tree(self, task):
        """Kill the shim of a task's session and all below it, at once."""
        sql = (
            "SELECT pid FROM attempt WHERE state = 'running' AND task ="
            " (SELECT ix FROM task WHERE id = ?)"
        )
        # The shim first: it must not see, and record, the end of the others.
        pids = [row[0] for row in self.rows(sql, task)]
        pids += [
            pid
            for pid in self.processes()
            if environment(pid).get("SLUICE_TASK") == task
        ]
        assert pids, f"{task} has no process"
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
