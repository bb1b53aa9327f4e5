# SPDX-License-Identifier: MIT
"""kill -9 at random while agents work: the scheduler, shims, sluice-git,
sluice-agent and the agent's program."""

import os
import pathlib
import signal
import time

KINDS = (b"sluice-agent", b"sluice-git", b"sluice-shim")


def _victims(place, programs):
    """(kind, pid) of the processes of a place."""
    found = []
    for pid in place.processes():
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        text = b" ".join(words[:2])
        for kind in (*KINDS, *(name.encode() for name in programs)):
            if kind in text:
                found.append((kind.decode(), pid))
    if place.store.joinpath("sluice.db").exists():
        sql = "SELECT pid FROM attempt WHERE state = 'running' AND pid > 0"
        found += [("sluice-shim", row[0]) for row in place.rows(sql)]
    return found


def _kill(pid):
    """Kill it, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def work_through(place, programs, chance, count, pause=0.25):
    """Start the plan, kill so many processes, and let it come to its end; how
    often each kind was killed."""
    run = place.start()
    killed = {}
    for _ in range(count):
        time.sleep(chance.random() * pause)
        if not run.alive():
            run = place.start()
        kinds = [("sluice", run.pid), *_victims(place, programs)]
        wanted = chance.choice(sorted({kind for kind, _ in kinds}))
        _kill(chance.choice([pid for kind, pid in kinds if kind == wanted]))
        killed[wanted] = killed.get(wanted, 0) + 1
    while not run.alive() or run.process.wait(600) != 0:
        run = place.start()
        if run.process.wait(600) == 0:
            break
    return killed
