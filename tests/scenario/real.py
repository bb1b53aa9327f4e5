# SPDX-License-Identifier: MIT
"""Waves with real coding agents, against a stand-in for their models."""

import functools
import json
import os
import re
import shutil
import subprocess

from agents import PROGRAMS, Standin, programs, setup
from tap import Skip
from wave import NO_RETRY, Wave

__all__ = ["GUARD", "PRICE", "PROGRAMS", "Real", "need", "usable"]

PRICE = {"input": 1.25, "cached": 0.125, "output": 10}
GUARD = 600  # seconds: these programs are slow to start


@functools.cache
def usable():
    """The programs that can be run here, by name."""
    found = programs()
    node = shutil.which("node")
    text = subprocess.run(
        [node, "--version"], capture_output=True, check=False, text=True
    ).stdout if node else ""  # fmt: skip
    major = re.match(r"v(\d+)", text)
    if not major or int(major.group(1)) < 20:
        for name in ("gemini", "qwen"):
            found.pop(name, None)
    return found


def need(*names):
    """Skip the case unless these programs are there."""
    missing = sorted(set(names) - set(usable()))
    if missing:
        raise Skip(f"not installed: {', '.join(missing)}")


class Real(Wave):
    """A wave with real agents."""

    def __init__(self, *names):
        super().__init__(*names)
        self.standin = Standin()
        folders = {os.path.dirname(path) for path in usable().values()}
        self.path = os.pathsep.join([*sorted(folders), os.environ["PATH"]])

    def agent(self, program, mode="ok", **more):
        """The declaration of an agent, as JSON, which is YAML."""
        home = self.folder / "home" / f"{program}-{mode}"
        env, args, _ = setup(program, home, self.standin, mode)
        known = {"program": program, "env": env, "args": args}
        if more.pop("confined", False):
            # What only these tests put into a home.
            read = [str(home / "opencode.json")] if program == "opencode" else []
            known["sandbox"] = {"write": [str(home / "tmp")], "read": read}
        if program in ("codex", "gemini", "qwen"):
            known["price"] = PRICE
        return json.dumps({**known, **more})

    def write(self, agents, stages, groups, top=NO_RETRY, sessions=2):
        """A plan: agents by name, the pipeline, groups of each repository."""
        repos = "".join(
            f"  {name}: {{path: {repo.path}, base: dev}}\n"
            for name, repo in self.repos.items()
        )
        self.plan(
            f"{top}limits: {{sessions: {sessions}, active: 4}}\nagents:\n"
            + "".join(f"  {name}: {text}\n" for name, text in agents.items())
            + f"repos:\n{repos}pipelines:\n  issue:\n{stages}groups:\n"
            + "".join(
                f"  - {{id: {group}, repo: {repo}, pipeline: issue,"
                f' title: "Issue {group}", body: "Do {group}."}}\n'
                for repo, list_of in groups.items()
                for group in list_of
            )
        )

    def start(self, *words, env=None, plan="plan.yaml"):
        return super().start(
            *words, env={"PATH": self.path, **(env or {})}, plan=plan
        )

    def attempts(self, task):
        """(outcome, tokens, dollars) of the attempts of a task."""
        sql = (
            "SELECT outcome, input_tokens + output_tokens, usd FROM attempt WHERE"
            " task = (SELECT ix FROM task WHERE id = ?) ORDER BY token"
        )
        return self.rows(sql, task)

    def conversation(self, task, number):
        """The id of the conversation of an attempt."""
        path = self.attempt(task, number) / "result"
        text = json.loads(path.read_text(encoding="utf-8"))["resume"]
        return json.loads(text)["id"]

    def close(self):
        self.standin.close()
        super().close()
