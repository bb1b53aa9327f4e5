# SPDX-License-Identifier: MIT
"""Disks after a power cut: what a file system may have kept of a recording.

record.c writes the log of a recording. A cut is a place in it: the records
before it were made, those after it were not. Syncs make earlier changes
durable; each other change may be on the disk, or not, or in part. Two models
of file systems say what goes together:

journal  As ext4 with data=ordered. Changes of names are kept in their order,
         up to some change of the whole disk. The sync of a file also keeps all
         changes of names up to the last one that concerns it. A file never has
         a size that its data does not fill.
posix    No more than POSIX promises. Each directory keeps its changes in their
         order, up to some change, and its own sync is the only one that makes
         them durable: a synced file without a name is gone. A file may have
         its new size, and zeros in place of its data.

In both, blocks of a file are kept independently of each other: each has the
content that it had after some write to it. A block is a sector of 512 bytes or
a page of 4096, so a write of several blocks may be torn. A rename is kept or
not kept as a whole, and so is a change of a size.
"""

import collections
import os
import random
import shutil
import stat
import struct

HEAD = struct.Struct("=IIQQQIIQ")
MAGIC = 0x72776F70
KINDS = (
    "none create mkdir symlink write size zero sync rename link unlink mark"
    " sync-all"
).split()
ROOT = 0

Record = collections.namedtuple(
    "Record", "kind ino other offset name name2 data"
)
# A change of names: directory and name, and what the name stands for; `old` is
# where a renamed file was.
Change = collections.namedtuple("Change", "at dir name node old")
# A change of a file: bytes at an offset, or data None: a new size.
Edit = collections.namedtuple("Edit", "at offset data")


def mark(path, text):
    """Append a mark of the harness to a log, in its order."""
    import fcntl  # pylint: disable=import-outside-toplevel

    name, data = b"harness", text.encode()
    head = HEAD.pack(
        MAGIC, KINDS.index("mark"), 0, 0, 0, len(name), 0, len(data)
    )
    with open(path, "ab", buffering=0) as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.write(head + name + data)


def read_log(path):
    """The records of a log."""
    with open(path, "rb") as file:
        text = file.read()
    records = []
    at = 0
    while at < len(text):
        magic, kind, ino, other, offset, *lens = HEAD.unpack_from(text, at)
        assert magic == MAGIC, f"the log is damaged at byte {at}"
        at += HEAD.size
        parts = []
        for length in lens:
            parts.append(text[at : at + length])
            at += length
        names = (os.fsdecode(parts[0]), os.fsdecode(parts[1]))
        records.append(
            Record(KINDS[kind], ino, other, offset, *names, parts[2])
        )
    return records


class Node:
    """A file, a directory or a symbolic link, under all its names."""

    # pylint: disable=too-few-public-methods
    def __init__(self, kind, content=b"", mode=0o600):
        self.kind = kind
        self.content = content  # of a file before the recording, or a target
        self.mode = mode
        self.names = {}  # of a directory before the recording: to numbers
        self.edits = []
        self.syncs = []  # their places in the log
        self.changes = []  # those that concern it: of its names, or in it


class Recording:
    """All that a log tells about a disk.

    Places (`at`) are positions in the log. Nodes have numbers, because the
    number of an inode is used again.
    """

    def __init__(self, base, log, ignore_syncs=False):
        """`base`: the disk before the recording, as from snapshot()."""
        self.nodes = []
        self.changes = []
        self.marks = []  # (place, name, text)
        self.records = read_log(log)
        self.ignore_syncs = ignore_syncs
        self.sync_alls = []
        self._inodes = {}
        self._now = {}  # directory and name to node, as the recording goes on
        for entry in base:
            self._add_base(*entry)
        for at, record in enumerate(self.records):
            self._add(at, record)

    def _add_base(self, ino, parent, name, kind, mode, content):
        self._inodes[ino] = len(self.nodes)
        self.nodes.append(Node(kind, content, mode))
        if name is not None:
            self.nodes[self._inodes[parent]].names[name] = self._inodes[ino]
            self._now[self._inodes[parent], name] = self._inodes[ino]

    def _change(self, at, folder, name, node, old=None):
        change = Change(at, folder, name, node, old)
        self.changes.append(change)
        concerned = {folder}
        if node is not None:
            concerned.add(node)
        if old is not None:
            concerned.add(old[0])
        gone = self._now.pop((folder, name), None)
        if gone is not None:
            concerned.add(gone)
        if old is not None:
            self._now.pop(old, None)
        if node is not None:
            self._now[folder, name] = node
        for number in concerned:
            self.nodes[number].changes.append(change)

    def _new(self, ino, kind, content=b""):
        self._inodes[ino] = len(self.nodes)
        mode = 0o700 if kind == "mkdir" else 0o600
        kinds = {"create": "file", "mkdir": "folder", "symlink": "link"}
        self.nodes.append(Node(kinds[kind], content, mode))
        return self._inodes[ino]

    def _add(self, at, record):
        kind = record.kind
        inodes = self._inodes
        if kind in ("create", "mkdir", "symlink"):
            node = self._new(record.other, kind, record.data)
            self._change(at, inodes[record.ino], record.name, node)
        elif kind in ("write", "size", "zero"):
            data = {"write": record.data, "size": None}.get(
                kind, bytes(record.other if kind == "zero" else 0)
            )
            node = self.nodes[inodes[record.ino]]
            node.edits.append(Edit(at, record.offset, data))
        elif kind == "rename":
            old = (inodes[record.ino], record.name)
            node = self._now.get(old)
            if node is not None:  # not a socket
                folder = inodes[record.other]
                self._change(at, folder, record.name2, node, old)
        elif kind == "link":
            node = inodes[record.offset]
            self._change(at, inodes[record.ino], record.name, node)
        elif kind == "unlink":
            if (inodes[record.ino], record.name) in self._now:
                self._change(at, inodes[record.ino], record.name, None)
        elif kind == "mark":
            self.marks.append((at, record.name, record.data.decode()))
        elif self.ignore_syncs:
            pass
        elif kind == "sync":
            self.nodes[inodes[record.ino]].syncs.append(at)
        else:
            self.sync_alls.append(at)

    def last_sync(self, number, cut):
        """The place of the last sync of a node before a cut, or -1."""
        places = self.nodes[number].syncs + self.sync_alls
        return max((at for at in places if at < cut), default=-1)


def snapshot(root):
    """The content of a disk: (inode, parent, name, kind, mode, content)."""
    info = os.stat(root)
    found = [(info.st_ino, None, None, "folder", 0o700, b"")]
    for folder, folders, files in os.walk(root):
        parent = os.stat(folder).st_ino
        for name in sorted(folders + files):
            path = os.path.join(folder, name)
            info = os.lstat(path)
            content = b""
            if stat.S_ISLNK(info.st_mode):
                kind, content = "link", os.fsencode(os.readlink(path))
            elif stat.S_ISDIR(info.st_mode):
                kind = "folder"
            elif stat.S_ISREG(info.st_mode):
                kind = "file"
                with open(path, "rb") as file:
                    content = file.read()
            else:
                continue  # a socket
            mode = stat.S_IMODE(info.st_mode)
            found.append((info.st_ino, parent, name, kind, mode, content))
    return found


class Image:
    """One disk after a cut. Equal arguments give equal disks.

    pick: which of the unsynced changes are kept: "none", "all" or "some".
    """

    def __init__(self, recording, cut, seed):
        self.recording = recording
        self.cut = cut
        self.chance = random.Random(seed)
        self.model = self.chance.choice(("journal", "posix"))
        self.pick = self.chance.choice(
            ("none", "all", "some", "some", "some", "most")
        )
        self.block = self.chance.choice((512, 4096))
        self.junk = self.chance.random() < 0.5  # in -shm files
        self.tree = self._names()
        self.contents = {}

    def describe(self):
        """The choices, for a message."""
        return f"{self.model}, {self.pick} kept, blocks of {self.block}"

    def _some(self, low, high):
        """A number from low to high: how many changes are kept."""
        if self.pick == "none":
            return low
        if self.pick == "all":
            return high
        if self.pick == "most":
            return max(low, high - self.chance.randint(0, 2))
        return self.chance.randint(low, high)

    def _kept_by_journal(self, changes):
        """Names: in the order of the whole disk."""
        last = -1
        for number, node in enumerate(self.recording.nodes):
            synced = self.recording.last_sync(number, self.cut)
            for change in node.changes if synced >= 0 else ():
                if change.at < synced:
                    last = max(last, change.at)
        forced = sum(1 for change in changes if change.at <= last)
        return changes[: self._some(forced, len(changes))]

    def _kept_by_folders(self, changes):
        """Names: in the order of each directory."""
        places = collections.defaultdict(list)
        for change in changes:
            for folder in {change.dir, change.old[0] if change.old else None}:
                if folder is not None:
                    places[folder].append(change.at)
        limits = {}
        for folder, listed in places.items():
            synced = self.recording.last_sync(folder, self.cut)
            forced = sum(1 for at in listed if at < synced)
            count = self._some(forced, len(listed))
            limits[folder] = listed[count - 1] if count else -1
        return [
            change
            for change in changes
            if change.at <= limits[change.dir]
            and (change.old is None or change.at <= limits[change.old[0]])
        ]

    def _names(self):
        """Directories that are kept: to the nodes of their names."""
        changes = [c for c in self.recording.changes if c.at < self.cut]
        if self.model == "journal":
            changes = self._kept_by_journal(changes)
        else:
            changes = self._kept_by_folders(changes)
        tree = {
            number: dict(node.names)
            for number, node in enumerate(self.recording.nodes)
            if node.kind == "folder"
        }
        for change in changes:
            if change.old is not None:
                folder, name = change.old
                if tree[folder].pop(name, None) is None:
                    continue
            if change.node is None:
                tree[change.dir].pop(change.name, None)
            else:
                tree[change.dir][change.name] = change.node
        return tree

    def content(self, number):
        """The bytes of a file."""
        if number not in self.contents:
            self.contents[number] = bytes(self._content(number))
        return self.contents[number]

    def _content(self, number):
        node = self.recording.nodes[number]
        synced = self.recording.last_sync(number, self.cut)
        content = bytearray(node.content)
        pending = []
        for edit in node.edits:
            if edit.at < synced:
                apply(content, edit)
            elif edit.at < self.cut:
                pending.append(edit)
        # Of pending shrinkings, some are kept, and what was between them.
        size = len(content)
        shrinks = []
        for ix, edit in enumerate(pending):
            if edit.data is None and edit.offset < size:
                shrinks.append(ix)
            size = size_after(size, edit)
        count = self._some(0, len(shrinks))
        first = shrinks[count - 1] + 1 if count else 0
        last = shrinks[count] if count < len(shrinks) else len(pending)
        for edit in pending[:first]:
            apply(content, edit)
        self._scatter(content, pending[first:last])
        return content

    def _scatter(self, content, edits):
        """Keep some blocks of each edit; none of them shrinks the file."""
        old_size = len(content)
        sizes = [old_size]
        for edit in edits:
            sizes.append(size_after(sizes[-1], edit))
        kept = self._some(0, len(edits))
        size = sizes[kept]
        touching = collections.defaultdict(list)
        for ix, edit in enumerate(edits):
            if edit.data:
                end = edit.offset + len(edit.data)
                first = edit.offset // self.block
                for block in range(first, (end - 1) // self.block + 1):
                    touching[block].append(ix)
        content.extend(bytes(max(sizes) - len(content)))
        for block, listed in touching.items():
            low = block * self.block
            forced = 0
            if self.model == "journal" and low + self.block > old_size:
                # What the size covers is there.
                forced = sum(1 for ix in listed if ix < kept)
            for ix in listed[: self._some(forced, len(listed))]:
                edit = edits[ix]
                start = max(low, edit.offset)
                stop = min(low + self.block, edit.offset + len(edit.data))
                part = edit.data[start - edit.offset : stop - edit.offset]
                content[start:stop] = part
        del content[size:]

    def write(self, root):
        """Make the disk in a directory, which is replaced."""
        shutil.rmtree(root, ignore_errors=True)
        paths = {}
        todo = [(ROOT, os.fspath(root))]
        while todo:
            number, path = todo.pop()
            node = self.recording.nodes[number]
            if node.kind == "folder":
                os.mkdir(path, node.mode)
                for name, child in sorted(self.tree[number].items()):
                    todo.append((child, f"{path}/{name}"))
            elif number in paths:
                os.link(paths[number], path)
            elif node.kind == "link":
                os.symlink(node.content, path)
            else:
                paths[number] = path
                content = self.content(number)
                if path.endswith("-shm") and self.junk:
                    content = self.chance.randbytes(32768)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
                with open(os.open(path, flags, node.mode), "wb") as file:
                    file.write(content)


def size_after(size, edit):
    """The size of a file after an edit."""
    if edit.data is None:
        return edit.offset
    return max(size, edit.offset + len(edit.data))


def apply(content, edit):
    """Make an edit."""
    if edit.data is None:
        if len(content) > edit.offset:
            del content[edit.offset :]
        content.extend(bytes(edit.offset - len(content)))
    else:
        content.extend(bytes(max(0, edit.offset - len(content))))
        content[edit.offset : edit.offset + len(edit.data)] = edit.data


class Whole(Image):
    """The disk without a cut: everything that the log has."""

    def __init__(self, recording):
        super().__init__(recording, len(recording.records), 0)
        self.model, self.pick, self.junk = "journal", "all", False
        self.tree = self._names()


def differences(recording, root):
    """How the disk differs from what the log says: the recorder has missed
    something. The content of -shm files is not recorded."""
    whole = Whole(recording)
    found = []
    inodes = {}

    def compare(number, path):
        node = recording.nodes[number]
        if node.kind == "folder":
            names = {
                entry.name
                for entry in os.scandir(path)
                if not stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)
            }
            for name in names ^ set(whole.tree[number]):
                found.append(f"{path}/{name}")
            for name in sorted(names & set(whole.tree[number])):
                compare(whole.tree[number][name], f"{path}/{name}")
        elif node.kind == "file" and not path.endswith("-shm"):
            inode = inodes.setdefault(number, os.stat(path).st_ino)
            with open(path, "rb") as file:
                same = file.read() == whole.content(number)
            if inode != os.stat(path).st_ino or not same:
                found.append(f"{path}: content")

    compare(ROOT, os.fspath(root))
    return found
