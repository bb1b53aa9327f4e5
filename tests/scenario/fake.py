# SPDX-License-Identifier: MIT
"""A wave whose agent is tests/support/fake-claude.

    with Fake("api") as fake:
        fake.play("init(); commit('a.txt'); done()")
        fake.agents([IMPLEMENT, REVIEW, MERGE], {"api": ["a"]})
        fake.start().end(0)
        fake.calls("a/implement")[0]["prompt"]
"""

import json
import os
import pathlib

from wave import NO_RETRY, Wave, stage

PROGRAM = pathlib.Path(__file__).parent.parent / "support/fake-claude"


def agent(name, **settings):
    """A stage that is done by the agent."""
    text = stage(name, "x", **settings)
    return text.replace("run: x", "agent: claude")


IMPLEMENT = agent("implement")
REVIEW = agent("review", rework="{to: implement}")


class Fake(Wave):
    """A place with repositories, and a program that passes for claude."""

    def __init__(self, *names, files=None):
        super().__init__(*names, files=files)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        (self.bin / "claude").symlink_to(PROGRAM)
        self.env = {
            "FAKE_CALLS": str(self.folder / "calls"),
            "IS_SANDBOX": "1",
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def play(self, text):
        """What the program does, instead of its work."""
        path = self.folder / "play"
        path.write_text(text, encoding="utf-8")
        self.env["FAKE_PLAY"] = str(path)

    def agents(self, stages, groups, top=NO_RETRY, **more):
        """A plan of issues for agents."""
        self.issues(stages, groups, top=top, **more)

    def start(self, *words, env=None, plan="plan.yaml"):
        return super().start(*words, env={**self.env, **(env or {})}, plan=plan)

    def calls(self, task=None):
        """The calls of the program, of all tasks or of one."""
        path = self.folder / "calls"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        notes = [json.loads(line) for line in text.splitlines()]
        return [one for one in notes if task in (None, one["task"])]

    def result(self, task, number=1):
        """The result that sluice-agent has written."""
        path = self.attempt(task, number) / "result"
        return json.loads(path.read_text(encoding="utf-8"))

    def outcomes(self, task):
        """How the attempts of a task ended."""
        sql = (
            "SELECT outcome FROM attempt WHERE task ="
            " (SELECT ix FROM task WHERE id = ?) ORDER BY token"
        )
        return [row[0] for row in self.rows(sql, task)]
