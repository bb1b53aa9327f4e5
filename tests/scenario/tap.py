# SPDX-License-Identifier: MIT
"""What the scenarios in Python have in common: TAP, and running sluice.

A scenario decorates its cases with @case and ends with tap.main(). A case
fails by an exception; assert says what was expected. Cases run in the root of
the tree.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SLUICE = os.path.abspath(os.environ.get("SLUICE", ROOT / "build/src/cli/sluice"))

HEAD = "sluice: 1\nname: made\n"

_cases = []
_folders = []


class Skip(Exception):
    """Raised by a case that cannot run here; its text says why."""


def case(function):
    """Register a case; its docstring is its name."""
    _cases.append(function)
    return function


def folder():
    """A temporary folder, which is removed at the end."""
    # A shim whose session was killed may write there while it is removed.
    _folders.append(
        tempfile.TemporaryDirectory(
            prefix="sluice-", ignore_cleanup_errors=True
        )
    )
    return pathlib.Path(_folders[-1].name)


def plan(text, name="plan.yaml"):
    """Write a plan (or another file) to a folder of its own; its path."""
    path = folder() / name
    path.write_text(text, encoding="utf-8")
    return path


def sluice(*words, code=0, stdin=None, env=None):
    """Run sluice, require the exit code, return what it answered."""
    answer = subprocess.run(
        [SLUICE, *map(str, words)],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
        input=stdin,
    )
    said = f"{words}: exit code {answer.returncode}\n{answer.stdout[:2000]}"
    assert answer.returncode == code, said + answer.stderr
    assert "Sanitizer" not in answer.stderr, answer.stderr
    assert "runtime error" not in answer.stderr, answer.stderr
    return answer


def has_crash_points():
    """Whether the program can be told where to die."""
    return b"SLUICE_CRASH" in pathlib.Path(SLUICE).read_bytes()


def simulate(*words, code=0):
    """The JSON that `sluice simulate` prints."""
    return json.loads(sluice("simulate", "--json", *words, code=code).stdout)


def shown(value, start):
    """A value for a message, long ones around where they differ."""
    text = repr(value)
    if len(text) <= 500:
        return text
    start = max(0, start - 60)
    return f"... {text[start : start + 200]} ..."


def equal(got, wanted, what=""):
    """Require equality, and show both otherwise."""
    if got != wanted:
        pairs = enumerate(zip(repr(got), repr(wanted)))
        start = next((ix for ix, (a, b) in pairs if a != b), 0)
        raise AssertionError(
            f"{what} got {shown(got, start)}, expected {shown(wanted, start)}"
        )


def main():
    """Run the cases and print TAP; the exit code."""
    os.chdir(ROOT)
    print(f"1..{len(_cases)}", flush=True)
    bad = 0
    for number, function in enumerate(_cases, 1):
        name = " ".join(function.__doc__.split()).rstrip(".")
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
        except Exception:  # pylint: disable=broad-except
            bad += 1
            print(f"not ok {number} - {name}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    for made in _folders:
        made.cleanup()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit("this is not a scenario: the scenarios import it")
