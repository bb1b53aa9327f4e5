# SPDX-License-Identifier: MIT
"""What the coverage data of clang says about files, for tools/mcdc and
tools/coverage."""

import bisect
import collections
import pathlib
import re

BRANCH_OF_DECISION = 6  # a kind of region, in the data of llvm-cov
# Comments, strings, characters and lines of the preprocessor.
NOT_CODE = re.compile(
    r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|^[ ]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.S | re.M,
)
# Cases that cannot be.
RULED_OUT = re.compile(r"(?:case \w+:\s*)+INVARIANT\(false\);")


def blank(match):
    """The same text with everything but the line breaks turned to spaces."""
    return re.sub(r"[^\n]", " ", match.group(0))


class Source:
    """The text of a file, for the places of its conditions."""

    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")
        self.starts = [0]
        for match in re.finditer("\n", self.text):
            self.starts.append(match.end())

    def offset(self, line, column):
        return self.starts[line - 1] + column - 1

    def cut(self, place):
        """The text of a place, on one line."""
        text = self.text[
            self.offset(place[0], place[1]) : self.offset(place[2], place[3])
        ]
        return " ".join(text.split())

    def is_impossible(self, place):
        """Whether it is the missing default of a switch, whose cases are all
        values of its enum, or a case that an INVARIANT(false) rules out."""
        at = self.offset(place[0], place[1])
        return (
            self.text[:at].endswith("switch (")
            or RULED_OUT.match(self.text, at) is not None
        )

    def operators(self):
        """Lines and columns of && and ||, without those of an INVARIANT."""
        code = NOT_CODE.sub(blank, self.text)
        ends = 0
        for match in re.finditer(r"\bINVARIANT\(|&&|\|\|", code):
            if match.start() < ends:
                continue
            if match.group(0) not in ("&&", "||"):
                ends = end_of_call(code, match.end())
                continue
            line = bisect.bisect_right(self.starts, match.start())
            yield line, match.start() - self.starts[line - 1] + 1


def end_of_call(code, at):
    """Where the parenthesis closes that was opened before `at`."""
    depth = 1
    while depth > 0:
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return at


class File:
    """What was measured of one file."""

    def __init__(self, data):
        self.path = pathlib.Path(data["filename"])
        self.source = Source(self.path)
        # By place, because a function of a header is measured in each file
        # that includes it.
        self.branches = collections.defaultdict(lambda: [0, 0])
        self.of_decisions = set()
        self.decisions = {}
        for branch in data["branches"] + self.expanded(data):
            place = tuple(branch[:4])
            if self.source.is_impossible(place):
                continue
            self.branches[place][0] += branch[4]
            self.branches[place][1] += branch[5]
            if branch[8] == BRANCH_OF_DECISION:
                self.of_decisions.add(place)
        for record in data["mcdc_records"]:
            place = tuple(record[:4])
            shown = self.decisions.setdefault(place, record[6])
            self.decisions[place] = [a or b for a, b in zip(shown, record[6])]

    def expanded(self, data):
        """Branches in what macros expand to, at the place of the macro."""
        found = []
        for expansion in data["expansions"]:
            place = expansion["source_region"][:4]
            if self.source.cut(place) != "INVARIANT":
                for branch in expansion["branches"]:
                    found.append(place + branch[4:])
        return found

    def untaken(self):
        """(place, text) of all branches that were not taken."""
        found = []
        for place, (true, false) in self.branches.items():
            missing = [
                word
                for word, count in (("true", true), ("false", false))
                if count == 0
            ]
            if missing:
                found.append((place, "never " + " and never ".join(missing)))
        return found

    def lines(self, found):
        """(line, column, text) of places and texts, in order."""
        return sorted(
            (place[0], place[1], f"{self.source.cut(place)}: {text}")
            for place, text in found
        )

    def branch_gaps(self):
        """(line, column, text) of all branches that were not taken."""
        return self.lines(self.untaken())

    def gaps(self):
        """(line, column, text) of all that was not shown."""
        found = self.untaken()
        for place, shown in self.decisions.items():
            inside = sorted(
                b
                for b in self.of_decisions
                if b[:2] >= place[:2] and b[2:] <= place[2:]
            )
            for condition, independent in zip(inside, shown):
                if not independent and min(self.branches[condition]) > 0:
                    found.append((condition, "not shown independent"))
        for line, column in self.source.operators():
            if not any(
                place[:2] <= (line, column) < place[2:]
                for place in self.decisions
            ):
                place = (line, column, line, column + 2)
                found.append((place, "in a decision that is not measured"))
        return self.lines(found)

    def counts(self):
        """Conditions, those shown; branches, those taken."""
        shown = [flag for flags in self.decisions.values() for flag in flags]
        taken = [
            count > 0 for counts in self.branches.values() for count in counts
        ]
        return len(shown), sum(shown), len(taken), sum(taken)
