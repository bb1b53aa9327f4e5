# SPDX-License-Identifier: MIT
"""What the scenarios of sluice import have in common: the corpus.

Each directory of tests/data/import has exports, the options (args, one word
per line), and the expected output: plan.yaml or errors. With IMPORT_WRITE=1
the output is written there instead of being compared. The name of a directory
begins with its source, beads- or taskmaster-; all others are of GitHub.
"""

import json
import os
import subprocess

import tap
from tap import ROOT, SLUICE, equal, sluice

DATA = ROOT / "tests" / "data" / "import"


def source_of(folder):
    """The source of a directory of the corpus."""
    name = folder.name.split("-")[0]
    return name if name in ("beads", "taskmaster") else "github"


def folders(source, least):
    """The cases of one source."""
    found = sorted(path for path in DATA.iterdir() if path.is_dir())
    found = [path for path in found if source_of(path) == source]
    assert len(found) >= least, found
    return found


def run_in(folder, *words, code=0):
    """Run sluice import in a directory of the corpus with its options."""
    args = (folder / "args").read_text(encoding="utf-8").splitlines()
    files = sorted(path.name for path in folder.glob("*.json*"))
    answer = subprocess.run(
        [SLUICE, "import", source_of(folder), *args, *words, *files],
        capture_output=True,
        check=False,
        cwd=folder,
        encoding="utf-8",
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    said = answer.stdout + answer.stderr
    assert answer.returncode == code, f"{folder.name}: {answer.returncode} {said}"
    assert "Sanitizer" not in said and "runtime error" not in said, said
    return answer


def compare(path, text):
    """Compare with a file of the corpus, or write it."""
    if os.environ.get("IMPORT_WRITE"):
        path.write_text(text, encoding="utf-8")
    equal(text, path.read_text(encoding="utf-8"), f"{path.parent.name}:")


def check_corpus(source, least):
    """Every export gives its plan, which is good, or its errors."""
    for folder in folders(source, least):
        if (folder / "errors").exists():
            answer = run_in(folder, code=2)
            equal(answer.stdout, "", folder.name)
            compare(folder / "errors", answer.stderr)
        else:
            answer = run_in(folder)
            equal(answer.stderr, "", folder.name)
            compare(folder / "plan.yaml", answer.stdout)
            sluice("check", "--no-disk", folder / "plan.yaml")
            sluice("simulate", folder / "plan.yaml")


def check_gate(source, path, *more):
    """--gate tests each merged result, `--gate none` says that nothing does;
    without it, `sluice check` warns."""
    words = (*more, "--agent", "claude", "--merge")
    for gate, stages in (
        (("--gate", "make test"), ["implement", "gate", "merge"]),
        (("--gate", "none"), ["implement", "merge"]),
        ((), ["implement", "merge"]),
    ):
        made = plan_of(source, path, *words, *gate)
        equal([stage["stage"] for stage in made["pipelines"]["issue"]], stages)
        for repo in made["repos"].values():
            equal(repo.get("gate"), gate[1] if gate else None)
        for form in ((), ("--json",)):
            text = sluice("import", source, path, *words, *gate, *form).stdout
            said = sluice("check", "--no-disk", "-", stdin=text).stderr
            equal("merges without a gate" in said, not gate, said)


def blocks(lines):
    """The bodies in the lines of a plan."""
    found = []
    inside = False
    for line in lines:
        if line == "    body: |2-":
            found.append([])
            inside = True
        elif inside and (line == "" or line.startswith("      ")):
            found[-1].append(line[6:])
        else:
            inside = False
    return ["\n".join(body) for body in found]


def check_json(source):
    """With --json the plan is JSON: the same groups and needs, and good."""
    for folder in folders(source, 1):
        if not (folder / "plan.yaml").exists():
            continue
        text = run_in(folder, "--json").stdout
        made = json.loads(text)
        sluice("check", "--no-disk", "-", stdin=text)
        lines = (folder / "plan.yaml").read_text(encoding="utf-8").splitlines()
        ids = [line.split(": ")[1] for line in lines if line.startswith("  - id: ")]
        equal(list(parents(made)), ids, folder.name)
        listed = [line[12:-1] for line in lines if line.startswith("    needs: [")]
        equal([", ".join(n) for n in needs(made).values() if n], listed)
        equal([g["body"] for g in made["groups"] if "body" in g], blocks(lines))
        urgent = [int(line.split()[1]) for line in lines if line.startswith("    priority: ")]
        equal([g["priority"] for g in made["groups"] if "priority" in g], urgent)


def fails(text, *words, stdin=None):
    """Require exit code 2, a text on stderr and nothing on stdout."""
    answer = sluice("import", *words, code=2, stdin=stdin)
    assert text in answer.stderr, f"{words}: {answer.stderr!r} lacks {text!r}"
    equal(answer.stdout, "", f"{words}: standard output")


def needs(plan):
    """Needs of each group of a plan that is JSON, without parents."""
    return {one["id"]: one.get("needs", []) for one in plan["groups"] if "pipeline" in one}


def parents(plan):
    """Parent of each group of a plan that is JSON."""
    return {one["id"]: one.get("parent") for one in plan["groups"]}


def plan_of(source, path, *words):
    """The plan of a file, as JSON."""
    return json.loads(sluice("import", source, "--json", path, *words).stdout)


def files_under(folder):
    """All files below a directory, by relative path, with their texts."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def jsonl(*issues, name="api.jsonl"):
    """A file with one object per line."""
    return tap.plan("".join(json.dumps(one) + "\n" for one in issues), name)
