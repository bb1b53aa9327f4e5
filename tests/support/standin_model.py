# SPDX-License-Identifier: MIT
"""What the model behind agent-standin does, whatever the protocol.

A script is a list of steps, of which the last is a text:

    ["sh", COMMAND]              a command, in the folder of the session
    ["write", FILE, TEXT]        the same, as a command
    ["tool", NAME, ARGUMENTS]    a call of another tool
    ["text", TEXT]               the answer

A prompt with `MOCK-STEPS:[STEP, ...] END` says it by itself. Else it is one of
src/agent/prompt.c, and the issue's id decides:

    implement    appends a line to a file named after the issue, commits it,
                 and is done
    ...3         asks a question, until the prompt has "the second one"
    ...5         leaves the file uncommitted
    review       approves
    ...2         the first review that was answered asks for changes; so does
                 each task of a batch
"""

import json
import re
import shlex
import threading

FEEDBACK = "{}: add a test for the empty basket; line 3 lacks a null check"
QUESTION = "which of the two payment providers shall be used?"
COMMIT = "git -c user.name=agent -c user.email=agent@localhost commit -q -m"

GIVEN = re.compile(r"MOCK-STEPS:(\[.*?\])\s*(?:$|\n|END)", re.S)
TOPIC = re.compile(
    r"^\W*You (?P<what>work on|continue to work on|review) "
    r"(?:issue (?P<issue>\S+) in the directory |\d+ issues in )",
    re.M,
)
OTHER_TOPIC = re.compile(r"\b(?:ISSUE=|issue:? )([A-Za-z0-9_#./-]*\w)")
MATERIAL = re.compile(
    r"^----- begin of (\w+) (\w+) -----$.*?^----- end of \1 \2 -----$",
    re.M | re.S,
)
SECTION = re.compile(
    r"^# (?P<issue>[^\s:]+)(?:: .*)?$|^Task: (?P<task>\S+)$", re.M
)
BLOCK = re.compile(r"```json\n(.*?)\n```", re.S)


class Memory:
    """Issues whose reviews have asked for changes."""

    def __init__(self):
        self.lock = threading.Lock()
        self.asked = set()

    def verdict(self, issue):
        """The verdict of a review, and the feedback."""
        with self.lock:
            first = issue.endswith("2") and issue not in self.asked
        verdict = "changes" if first else "approve"
        return {
            "verdict": verdict,
            "feedback": FEEDBACK.format(issue) if first else "",
        }

    def note(self, prompt):
        """The review that this prompt wants is being answered."""
        what, issue = topic(prompt, {})
        if what == "review" and not GIVEN.search(prompt):
            with self.lock:
                self.asked.update([issue, *(name for name, _ in tasks(prompt))])


def topic(prompt, properties):
    """Whether the prompt wants "work" or a "review", and of which issue; ""
    for the issues of a batch."""
    found = TOPIC.search(prompt)
    if found:
        what = "review" if found["what"] == "review" else "work"
        return what, found["issue"] or ""
    other = OTHER_TOPIC.search(prompt)
    issue = other.group(1) if other else "x"
    if "tasks" in properties:
        return "review", ""
    wants = "verdict" in properties or '"verdict"' in prompt
    return "review" if wants else "work", issue


def tasks(prompt):
    """The tasks of a batch, as pairs of issue and task."""
    found = []
    issue = ""
    for match in SECTION.finditer(MATERIAL.sub("", prompt)):
        if match["issue"]:
            issue = match["issue"]
        else:
            found.append((issue, match["task"]))
    return found


def say(text, answer):
    """The step of an answer, as programs without a schema are asked for it."""
    return ["text", f"{text}\n\n```json\n{json.dumps(answer)}\n```"]


def review(prompt, issue, memory):
    """The script of a review."""
    if issue:
        return [say("Looked at the diff.", memory.verdict(issue))]
    verdicts = [
        {"task": task, **memory.verdict(name)} for name, task in tasks(prompt)
    ]
    return [say("Looked at each diff.", {"tasks": verdicts})]


def implement(prompt, issue):
    """The script of an implementation."""
    if issue.endswith("3") and "the second one" not in prompt:
        answer = {"outcome": "blocked", "summary": "", "question": QUESTION}
        return [say("I cannot go on.", answer)]
    file = re.sub(r"[^A-Za-z0-9]", "-", issue) + ".txt"
    again = " with feedback" if "empty basket" in prompt else ""
    line = shlex.quote(f"work for {issue}{again}")
    why = shlex.quote(f"{issue}: work{again}")
    steps = [["sh", f"echo {line} >> {file}"]]
    if not issue.endswith("5"):
        steps.append(["sh", f"git add {file} && {COMMIT} {why}"])
    summary = f"implemented {issue}{again}"
    answer = {"outcome": "done", "summary": summary, "question": ""}
    return [*steps, say(f"Done: {summary}.", answer)]


def as_command(step):
    """The same step without "write"."""
    if step[0] != "write":
        return step
    return ["sh", f"printf %s {shlex.quote(step[2])} > {shlex.quote(step[1])}"]


def script(prompt, properties, memory):
    """The steps for a prompt; `properties` of the answer that is wanted."""
    given = GIVEN.search(prompt)
    if given:
        try:
            return [as_command(step) for step in json.loads(given.group(1))]
        except ValueError:
            return [["text", "The MOCK-STEPS of the prompt are not JSON."]]
    what, issue = topic(prompt, properties)
    if what == "review":
        return review(prompt, issue, memory)
    return implement(prompt, issue)


def structured(text, properties):
    """The JSON block at the end of a text as an answer with these properties;
    "reason" stands for the summary or the question."""
    block = BLOCK.search(text)
    said = json.loads(block.group(1)) if block else {}
    reason = said.get("reason", "")
    blocked = said.get("outcome") == "blocked"
    other = {"summary": reason, "question": reason if blocked else ""}
    return {
        name: said.get(
            name, other.get(name, [] if kind.get("type") == "array" else "")
        )
        for name, kind in properties.items()
    }
