# SPDX-License-Identifier: MIT
"""Git repositories for tests, made on the spot.

    repo = Repo(place.folder / "api")     # branch dev, with one commit
    repo.commit({"file": "text"}, "why")
    repo.git("log", "--oneline")          # its output

No configuration of the user's has a say in them.
"""

import os
import subprocess

ENV = {
    **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_AUTHOR_EMAIL": "test@localhost",
    "GIT_AUTHOR_NAME": "test",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_EMAIL": "test@localhost",
    "GIT_COMMITTER_NAME": "test",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}

# For sessions: a commit of everything, by someone. No two sessions make the
# same commit, however fast they are: one of another run is no evidence.
COMMIT = (
    "git add -A && git -c user.name=agent"
    " -c user.email=$SLUICE_RUN/$SLUICE_TASK/$SLUICE_ATTEMPT@localhost"
    " commit -q -m"
)


class Repo:
    """A repository with a branch dev."""

    def __init__(self, path, files=None):
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "dev", ".")
        self.commit(files or {"README": "a repository\n"}, "begin")

    def place(self):
        """Where it is, as a key of a plan."""
        return f"path: {self.path}"

    def git(self, *words, code=0, folder=None):
        """Call git there; its output."""
        done = subprocess.run(
            ["git", *map(str, words)],
            check=False,
            cwd=folder or self.path,
            env=ENV,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == code, f"git {words}: {done.stdout}"
        return done.stdout.rstrip("\n")

    def commit(self, files, why, branch=None):
        """Write files (None: remove) and commit them; the commit's id."""
        if branch is not None:
            self.git("checkout", "-q", branch)
        for name, text in files.items():
            path = self.path / name
            if text is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", why)
        return self.id("HEAD")

    def id(self, name):
        """The commit that a name means, or None."""
        words = ["rev-parse", "--verify", "-q", f"{name}^{{commit}}"]
        done = subprocess.run(
            ["git", *words],
            check=False,
            cwd=self.path,
            env=ENV,
            stdout=subprocess.PIPE,
            text=True,
        )
        return done.stdout.strip() or None

    def tree(self, name):
        """The tree of a commit."""
        return self.git("rev-parse", f"{name}^{{tree}}")

    def files(self, name):
        """Names of the files of a commit."""
        return self.git("ls-tree", "-r", "--name-only", name).split("\n")

    def show(self, name, file):
        """A file of a commit."""
        return self.git("show", f"{name}:{file}")

    def line(self, name):
        """Subjects of the first parents of a commit, newest first."""
        text = self.git("log", "--first-parent", "--format=%s", name)
        return text.split("\n")

    def holds(self, ancestor, name):
        """Whether a commit is reachable from another."""
        done = subprocess.run(
            ["git", "merge-base", "--is-ancestor", ancestor, name],
            check=False,
            cwd=self.path,
            env=ENV,
        )
        return done.returncode == 0
