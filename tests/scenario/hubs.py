# SPDX-License-Identifier: MIT
"""Hubs for tests: bare repositories that plans name by a URL.

    wave = HubWave("api")                  # a hub api.git, branch dev
    wave.repos["api"].commit({...}, "why") # a commit that a person pushes
    wave.repos["api"].url = "..."          # another way to it

A hub is reached as a file, unless its URL is changed."""

import http.server
import os
import pathlib
import subprocess
import threading

import tap
from gits import ENV, Repo
from wave import Wave

GIT_PROGRAM = os.environ.get(
    "SLUICE_GIT", pathlib.Path(tap.SLUICE).parent.parent / "git" / "sluice-git"
)


class Hub(Repo):
    """A bare repository with a branch dev, and a person's clone of it."""

    def __init__(self, path, files=None):
        self.seed = Repo(path.with_name(path.name + ".seed"), files)
        self.seed.git("clone", "-q", "--bare", self.seed.path, path)
        self.seed.git("remote", "add", "hub", path)
        self.path = path  # pylint: disable=super-init-not-called
        self.url = f"file://{path}"

    def place(self):
        return f'url: "{self.url}"'

    def commit(self, files, why, branch="dev"):
        self.seed.git("fetch", "-q", "hub")
        self.seed.git("checkout", "-q", "-B", branch, f"hub/{branch}")
        made = self.seed.commit(files, why)
        self.seed.git("push", "-q", "hub", branch)
        return made

    def refs(self):
        """All refs, with what they point to."""
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split() for line in lines.splitlines())

    def drop_locks(self):
        """Remove git's locks, as its operator does when no push runs: a git that
        was killed while it received one has left them."""
        for path in self.path.rglob("*.lock"):
            path.unlink()

    def hook(self, name, text):
        """Write a hook of the hub."""
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)


class HubWave(Wave):
    """A place whose repositories are hubs."""

    def __init__(self, *names, files=None, base_gates=False):
        super().__init__(base_gates=base_gates)
        self.repos = {
            name: Hub(self.folder / f"{name}.git", files) for name in names
        }
        self.settings = {name: "" for name in names}

    def mirrors(self):
        """The mirrors of this store."""
        return sorted((self.store / "mirrors").glob("*.git"))

    def check_hub(self, name="api", gated=True):
        """Require that the hub is whole, and that every commit on the first
        parents of its agent branch was gated as it is."""
        self.repos[name].git("fsck", "--strict", "--no-dangling")
        if gated:
            self.sluice("verify", name)


class Machine:
    """A worker's home, for calls of sluice-git as a worker makes them: several
    of them share a hub, as on several machines."""

    def __init__(self, folder, url, run="made", owner="store, submitted at 1"):
        self.home = folder
        self.home.mkdir(parents=True)
        self.url = url
        self.run = run
        self.owner = owner

    def words(self, kind, token, group, *more, command=None):
        """The words of one call."""
        task = f"{group}/{'implement' if kind == 'session' else 'merge'}"
        folder = self.home / f"attempt-{token}"
        folder.mkdir(exist_ok=True)
        words = [GIT_PROGRAM, kind, "--store", self.home, "--run", self.run]
        words += ["--owner", self.owner, "--repo", "api", "--url", self.url]
        words += ["--base", "dev", "--dir", folder, "--token", token]
        words += ["--task", task, "--group", group, *more]
        if kind == "session":
            words += ["--writes", "--round", 1, "--", "/bin/sh", "-c", command]
        return list(map(str, words))

    def start(self, kind, token, group, *more, command=None, env=None):
        """Start a call, in a process group of its own."""
        words = self.words(kind, token, group, *more, command=command)
        folder = self.home / f"attempt-{token}"
        with open(folder / "log", "ab") as log:
            return subprocess.Popen(  # pylint: disable=consider-using-with
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={
                    **ENV,
                    "SLUICE_RESULT": str(folder / "result"),
                    "SLUICE_RUN": self.run,
                    "SLUICE_TASK": group,
                    "SLUICE_GROUP": group,
                    "SLUICE_ATTEMPT": str(token),
                    **(env or {}),
                },
            )

    def call(self, kind, token, group, *more, command=None, code=0, env=None):
        """Make a call that ends with this code; its log."""
        done = self.start(
            kind, token, group, *more, command=command, env=env
        ).wait(120)
        log = self.log(token)
        assert done == code, f"{kind} {group}: {done}\n{log}"
        assert "Sanitizer" not in log and "runtime error" not in log, log
        return log

    def log(self, token):
        """The log of a call."""
        path = self.home / f"attempt-{token}" / "log"
        return path.read_text(encoding="utf-8", errors="replace")


class Handler(http.server.BaseHTTPRequestHandler):
    """Passes requests to `git http-backend`, or fails as it is told."""

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def do_GET(self):  # pylint: disable=invalid-name
        """Read refs."""
        self.answer(b"")

    def do_POST(self):  # pylint: disable=invalid-name
        """Fetch or push."""
        length = int(self.headers.get("Content-Length", "0"))
        self.answer(self.rfile.read(length))

    def answer(self, body):
        """Answer as the server's plan says."""
        path, _, query = self.path.partition("?")
        push = "git-receive-pack" in self.path
        fate = self.server.web.fate(push and self.command == "POST")
        if isinstance(fate, int):
            self.send_error(fate)
            return
        if fate == "drop":
            self.close_connection = True
            self.connection.close()
            return
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            stdout=subprocess.PIPE,
            check=False,
            env={
                **ENV,
                "CONTENT_LENGTH": str(len(body)),
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROJECT_ROOT": str(self.server.web.folder),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get(
                    "Content-Encoding", ""
                ),
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REMOTE_ADDR": "127.0.0.1",
                "REMOTE_USER": "test",
                "REQUEST_METHOD": self.command,
            },
        )
        if fate == "lose":  # it has happened, but nobody learns of it
            self.close_connection = True
            self.connection.close()
            return
        head, _, text = done.stdout.partition(b"\r\n\r\n")
        lines = dict(h.split(": ", 1) for h in head.decode().split("\r\n"))
        status = lines.pop("Status", "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in lines.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Web:
    """A web server on loopback for the repositories of a folder. `fates` gets
    the number of a push and returns None, a status, "drop" (before) or "lose"
    (after it has happened)."""

    def __init__(self, folder):
        self.folder = folder
        self.fates = lambda push: None
        self.always = None  # the same for every request
        self.pushes = 0
        self.port = 0
        self.server = None
        self.start()

    def fate(self, push):
        """What becomes of a request."""
        if self.always is not None:
            return self.always
        self.pushes += push
        return self.fates(self.pushes) if push else None

    def start(self):
        """Listen, on the same port as before."""
        address = ("127.0.0.1", self.port)
        self.server = http.server.ThreadingHTTPServer(address, Handler)
        self.server.daemon_threads = True
        self.server.web = self
        self.port = self.server.server_address[1]
        threading.Thread(
            target=self.server.serve_forever, args=(0.02,), daemon=True
        ).start()

    def stop(self):
        """No longer listen."""
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def url(self, name):
        """The URL of a repository."""
        return f"http://127.0.0.1:{self.port}/{name}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


# Stands in for ssh: runs the command here, or fails as a file tells it to.
SSH = r"""#!/bin/sh
here=${0%/*}
while [ $# -gt 2 ]; do shift; done
echo "$1 $2" >>"$here/calls"
if [ -e "$here/fails" ]; then
    cat "$here/fails" >&2
    exit 255
fi
exec sh -c "$2"
"""


def ssh(folder, text=None):
    """Write the stand-in; its path. `text`: it fails, and says so."""
    path = folder / "ssh"
    if not path.exists():
        path.write_text(SSH, encoding="utf-8")
        path.chmod(0o755)
    fails = folder / "fails"
    if text is None:
        fails.unlink(missing_ok=True)
    else:
        fails.write_text(text, encoding="utf-8")
    return path
