# SPDX-License-Identifier: MIT
"""The plan that the crash tests run, in as many shapes as there are seeds.

It has 50 tasks and uses all that can follow from the end of a session: needs,
limits for each repository, pipelines with rework, retries, refusals,
checkpoints, batches, tasks that are parked, skipped, cancelled or optional,
and a barrier that adds three more. Shapes differ in order, cap, pauses,
durations and needs, not in the outcome of a task.
"""

import random

NAME = "crash"
TASKS = 50
# There are at least so many completions, and less than twice as many: so there
# is one barrier.
SYNC_EVERY = 35
EXTRAS = ("extra-1", "extra-2", "extra-3")
FRAGMENT = """tasks:
  - {id: extra-1, run: [./session, ok]}
  - {id: extra-2, run: [./session, flaky, 1], needs: [extra-1]}
  - {id: extra-3, run: [./session, ok], needs: [extra-1]}
"""

# How often a task runs depends on when these are asked to end.
UNEVEN = ("asked", "doomed")


class Shape:
    """A plan, and what must come of it.

    text: the plan; states: of each task in the end; needs: what must have
    been done before a task begins; repos: of those tasks that have one.
    """

    def __init__(self, seed, stubborn=False):
        self.chance = random.Random(seed)
        self.cap = self.chance.randint(3, 6)
        self.states = {}
        self.needs = {}
        self.repos = {}
        self._groups = []
        self._tasks = []
        self._add_groups()
        self._add_tasks(stubborn)
        assert len(self.states) == TASKS, len(self.states)
        self.text = self._write()
        for extra in EXTRAS:
            self.states[extra] = "done"
        self.needs["extra-2"] = self.needs["extra-3"] = ["extra-1"]

    def _seconds(self):
        """Mostly short; some outlive a restart of the scheduler."""
        long = self.chance.random() < 0.1
        seconds = self.chance.uniform(0.002, 0.015) * (20 if long else 1)
        return f"{seconds:.3f}"

    def _group(self, number, pipeline, needs):
        group = f"issue-{number}"
        repo = f"repo-{number % 4}"
        before = [f"issue-{need}/review" for need in needs]
        for stage in ("implement", "gate", "review"):
            task = f"{group}/{stage}"
            self.states[task] = "done"
            self.repos[task] = repo
            self.needs[task] = before
            before = [task]
        listed = ", ".join(f"issue-{need}" for need in needs)
        self._groups.append(
            f"  - {{id: {group}, repo: {repo}, pipeline: {pipeline},"
            f" needs: [{listed}]}}"
        )

    def _add_groups(self):
        for number in range(8):
            pipeline = self.chance.choice(("smooth", "bumpy"))
            if number < 2:
                pipeline = ("smooth", "bumpy")[number]
            few = self.chance.randint(0, min(number, 2))
            needs = self.chance.sample(range(number), few)
            self._group(number, pipeline, needs)

    def _task(self, name, kind, state="done", needs=(), more="", waits=None):
        """One task; `waits` are those needs that are done before it. A kind of
        three words has its seconds in it: tasks of one command share it."""
        self.states[name] = state
        self.needs[name] = list(needs) if waits is None else waits
        if kind.count(",") < 2:
            kind = f"{kind}, {self._seconds()}"
        self._tasks.append(
            f"  - {{id: {name}, run: [./session, {kind}],"
            f" needs: [{', '.join(needs)}]{more}}}"
        )

    def _add_tasks(self, stubborn):
        task = self._task
        task("first", "ok, 0")
        task("left", "ok, 0", needs=["first"], more=", prepare: 'true'")
        task("right", f"flaky, {self.chance.randint(1, 3)}", needs=["first"])
        task("join", "ok, 0", needs=["left", "right"])
        task("flaky", "flaky, 2", needs=["issue-0/gate"])
        task("refused", f"refuse, {self.chance.randint(1, 3)}")
        task("refused-2", "refuse, 1", needs=["join"])
        task("saved", f"save, {self.chance.randint(1, 2)}")
        asking = ", checkpoint: {after: 150ms, max: 5}"
        task("asked", "asked, 0", more=asking)
        once = ", retry: {max: 1, backoff: 5ms}"
        skip = ", on_failure: skip"
        task("broken", "broken, 0", "parked", more=once)
        task("after-broken", "ok, 0", "waiting", ["broken"])
        task("blocked", "blocked, 0", "parked", ["first"])
        task("after-blocked", "ok, 0", "waiting", ["blocked", "first"])
        task("skipping", "broken, 0", "failed", more=once + skip)
        task("skipped", "ok, 0", "skipped", ["skipping", "left"])
        task("skipped-2", "ok, 0", "skipped", ["skipped"])
        optional = once + skip + ", optional: true"
        task("optional", "broken, 0", "failed", more=optional)
        task("goes-on", "ok, 0", needs=["optional", "left"], waits=["left"])
        task("doomed", "doomed, 0", "cancelled", more=", estimate: 10h")
        task("after-doomed", "ok, 0", "skipped", ["doomed"])
        task("boss", "boss, 0", needs=["join"])
        task("leaver", "stubborn, 0" if stubborn else "leaver, 0")
        check = f"ok, 0, {self._seconds()}"
        for number in range(3):
            needs = ["first"] if number % 2 else []
            task(f"check-{number}", check, needs=needs, more=", class: check")
        issues = [f"issue-{number}" for number in (5, 6, 7)]
        waits = [f"{issue}/review" for issue in issues] + ["goes-on"]
        task("last", "ok, 0", needs=issues + ["goes-on"], waits=waits)

    def _write(self):
        self.chance.shuffle(self._tasks)
        circuit = self.chance.choice(("none", "3", "20"))
        changes = self.chance.randint(1, 2)
        lines = [
            "sluice: 1",
            f"name: {NAME}",
            "limits:",
            f"  sessions: {self.cap}",
            "  lane: {max: 1, per: repo}",
            "  review: {max: none}",
            "repos: {repo-0: {}, repo-1: {}, repo-2: {}, repo-3: {}}",
            "providers:",
            "  local: {backoff: 5ms, max_backoff: 20ms, probe: 5ms,"
            f" max_probe: 20ms, circuit: {circuit}}}",
            "classes:",
            "  check: {batch: 3}",
            "  review: {defer: false}",
            "defaults:",
            "  retry: {max: 50, backoff: 2ms, max_backoff: 20ms}",
            "  timeout: 60s",
            f"sync: {{every: {SYNC_EVERY}, run: cat extra}}",
            "hooks: {parked: 'true', run-waiting: 'true'}",
            "pipelines:",
        ]
        for name, gate, review in (
            ("smooth", "ok, 0", "changes, 1"),
            ("bumpy", f"flaky, {changes}", "ok, 0"),
        ):
            lines += [
                f"  {name}:",
                "    - {stage: implement, run: [./session, ok, 0,"
                f" {self._seconds()}]}}",
                f"    - {{stage: gate, run: [./session, {gate}],"
                " rework: {to: implement, max: 5}}",
                f"    - {{stage: review, run: [./session, {review}],"
                " rework: {to: implement, max: 5}}",
            ]
        lines += ["groups:", *self._groups, "tasks:", *self._tasks]
        return "\n".join(lines) + "\n"
