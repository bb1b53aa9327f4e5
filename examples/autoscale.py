#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Start and drain workers by what the runs of a store can use.

    autoscale.py [OPTION]... COMMAND [ARGUMENT]...

One call compares the sessions that could run now with the slots of the workers.
If slots are missing, it calls COMMAND with the name of a new worker as its last
argument, such as burst-2; COMMAND starts a machine with 'sluice work --name
burst-2 --slots 4'. If slots are idle, it drains workers of its own that have no
session. It keeps no state, so a call may be repeated at any time, and COMMAND
must accept a name that is starting already, as 'systemctl start' does.

Call it by a timer, and as a hook when a run has finished:

    hooks:
      run-finished: [examples/autoscale.py, --store, "postgresql:///?service=sluice",
        systemctl, --host=cloud, start]

See docs/machines.md.
"""

import argparse
import json
import math
import os
import subprocess
import sys


def sluice(options, *words):
    """Run a command of sluice; return its output."""
    words = [os.environ.get("SLUICE", "sluice"), *words]
    if options.store:
        words += ["--store", options.store]
    return subprocess.run(
        words, check=True, encoding="utf-8", stdout=subprocess.PIPE
    ).stdout


def wanted_slots(status):
    """How many sessions the unfinished runs could have now."""
    total = 0
    for run in status["runs"]:
        states = run["states"]
        count = states["running"] + states["starting"] + states["ready"]
        for limit in run["limits"]:
            if limit["limit"] == "sessions" and limit["max"] is not None:
                count = min(count, limit["max"])
        if not run["finished"] and not run["paused"]:
            total += count
    return total


def plan(options, wanted, workers):
    """The names of workers to start, and of those to drain."""
    own = {
        worker["worker"]: worker
        for worker in workers
        if worker["worker"].startswith(options.prefix)
    }
    others = sum(
        worker["slots"] or 0
        for worker in workers
        if worker["worker"] not in own and worker["state"] == "up"
    )
    count = math.ceil(max(wanted - others, 0) / options.slots)
    count = max(options.min, min(count, options.max))
    live = {
        name: worker
        for name, worker in own.items()
        if worker["state"] in ("up", "late", "trouble", "draining")
    }
    up = [name for name, worker in live.items() if worker["state"] == "up"]
    start = []
    number = 1
    while len(up) + len(start) < count and len(live) + len(start) < options.max:
        if options.prefix + str(number) not in live:
            start.append(options.prefix + str(number))
        number += 1
    idle = [
        name
        for name in up
        if live[name]["sessions"] == 0 and live[name]["age"] >= options.idle
    ]
    surplus = max(len(up) - count, 0)
    return start, sorted(idle, reverse=True)[:surplus]


def parse():
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", help="address of the store")
    parser.add_argument("--prefix", default="burst-", help="names of its workers")
    parser.add_argument("--slots", type=int, default=4, help="of each of them")
    parser.add_argument("--min", type=int, default=0, help="fewest of them")
    parser.add_argument("--max", type=int, default=4, help="most of them")
    parser.add_argument(
        "--idle", type=float, default=300, help="least age to drain one, in s"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("missing COMMAND")
    return options


def main():
    """Look once, and act."""
    options = parse()
    status = json.loads(sluice(options, "status", "--json"))
    lines = sluice(options, "workers", "--json").splitlines()
    workers = [json.loads(line) for line in lines]
    start, drain = plan(options, wanted_slots(status), workers)
    for name in start:
        print(f"start {name}", flush=True)
        subprocess.run([*options.command, name], check=True)
    for name in drain:
        print(f"drain {name}", flush=True)
        sluice(options, "drain", "--worker", name)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as why:
        sys.exit(f"autoscale: {why}")
