# SPDX-License-Identifier: MIT
"""What is recorded: plans, and what happens while they run.

A workload is a plan and a function that drives it in a Recorder. A task
`anchor`, which is parked, keeps the run unfinished, so that `sluice run`
continues it.
"""

import time

HEAD = """sluice: 1
name: power
limits: {sessions: 3, lane: {max: 1, per: repo}, review: {max: none}}
providers:
  local: {backoff: 2ms, max_backoff: 10ms, probe: 2ms, max_probe: 10ms}
classes: {review: {defer: false}}
defaults:
  retry: {max: 50, backoff: 2ms, max_backoff: 10ms}
"""
ANCHOR = "  - {id: anchor, run: [./session, blocked, 1000000]}\n"


class Workload:
    """A plan, and what must come of it.

    again: tasks that are done several times, because a review sends them back;
    files: others beside the plan; code: of the exit of `sluice run`.
    """

    # pylint: disable=too-few-public-methods
    def __init__(self, name, plan, drive, again=(), files=None, code=1):
        # pylint: disable=too-many-arguments
        self.name = name
        self.plan = plan
        self.drive = drive
        self.again = again
        self.files = files or {}
        self.code = code


def run_once(recorder, _chance):
    """Nothing happens while it runs."""
    recorder.finish(recorder.run())


def killed(recorder, chance):
    """Schedulers are killed, and the next one goes on."""
    for _ in range(chance.randint(1, 3)):
        process = recorder.run()
        time.sleep(chance.uniform(0.01, 0.25))
        process.kill()
        process.wait()
    recorder.finish(recorder.run())


def ordered(recorder, chance):
    """An operator gives orders, with and without a scheduler."""
    process = recorder.run()
    recorder.started.wait(30)
    orders = [
        ("cap", "2"),
        ("hold", "last"),
        ("add", "extra.yaml"),
        ("priority", "second", "5"),
        ("pause",),
        ("resume",),
        ("skip", "spare"),
        ("cap", "4"),
    ]
    chance.shuffle(orders)
    pause, resume = orders.index(("pause",)), orders.index(("resume",))
    if resume < pause:
        orders[pause], orders[resume] = orders[resume], orders[pause]
    for words in orders:
        recorder.order(*words)
    recorder.order("release", "last")
    recorder.finish(process)
    recorder.order("cap", "3")
    recorder.order("answer", "anchor", "no")
    recorder.finish(recorder.run())


def collected(recorder, _chance):
    """Finished runs are removed while others follow."""
    for number in range(3):
        recorder.finish(recorder.run(f"old-{number}.yaml"), 0)
    recorder.order("gc", "--keep", "0s", "--rows", "0s")
    recorder.finish(recorder.run())
    recorder.order("gc", "--keep", "0s", "--rows", "0s")


PLAIN = (
    HEAD
    + "tasks:\n"
    + ANCHOR
    + """
  - {id: first, run: [./session, ok]}
  - {id: second, run: [./session, fail, 1], needs: [first]}
  - {id: saved, run: [./session, save, 2], needs: [first]}
  - {id: refused, run: [./session, refuse, 1]}
  - {id: outputs, run: [./session, outputs, 1000]}
  - {id: need, run: [./session, need, 1000], needs: [outputs]}
  - {id: last, run: [./session, ok], needs: [second, saved, refused, need]}
"""
)

GROUPS = (
    HEAD
    + """
repos: {one: {}, two: {}}
pipelines:
  issue:
    - {stage: implement, run: [./session, ok]}
    - {stage: gate, run: [./session, fail, 1], rework: {to: implement, max: 60}}
    - {stage: review, run: [./session, KIND, 2], rework: {to: implement, max: 60}}
groups:
  - {id: one, repo: one, pipeline: issue}
  - {id: two, repo: two, pipeline: issue, needs: [one]}
  - {id: three, repo: two, pipeline: issue}
tasks:
"""
    + ANCHOR
)

ORDERED = (
    HEAD
    + "tasks:\n"
    + ANCHOR
    + """
  - {id: first, run: [./session, ok, 0, 0.03]}
  - {id: second, run: [./session, ok, 0, 0.05], needs: [first]}
  - {id: third, run: [./session, fail, 1, 0.05], needs: [first]}
  - {id: spare, run: [./session, ok], needs: [third]}
  - {id: last, run: [./session, ok], needs: [second]}
"""
)

ADDING = (
    HEAD
    + "tasks:\n"
    + ANCHOR
    + """
  - {id: first, run: [./session, add, 1000]}
  - {id: second, run: [./session, request, 1000]}
  - {id: last, run: [./session, ok], needs: [first, second]}
"""
)

STAGES = tuple(
    f"{group}/{stage}"
    for group in ("one", "two", "three")
    for stage in ("implement", "gate", "review")
)

EXTRA = {"extra.yaml": "tasks: [{id: extra, run: [./session, ok]}]\n"}

OLD = {
    f"old-{number}.yaml": HEAD.replace("name: power", f"name: old-{number}")
    + "tasks: [{id: a, run: [./session, ok]}]\n"
    for number in range(3)
}

WORKLOADS = [
    Workload("plain", PLAIN, run_once),
    Workload("groups", GROUPS.replace("KIND", "changes"), run_once, STAGES),
    Workload("growing", GROUPS.replace("KIND", "flood"), run_once, STAGES),
    Workload("killed", PLAIN, killed),
    Workload("ordered", ORDERED, ordered, files=EXTRA),
    Workload("adding", ADDING, run_once),
    Workload("collected", PLAIN, collected, files=OLD),
]
