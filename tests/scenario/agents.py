# SPDX-License-Identifier: MIT
"""Coding agents for tests, and the stand-in for the models they talk to.

    with Standin() as standin:
        env, args, _ = setup("codex", home, standin, "429then2")
        # a plan with `agents: {codex: {args: ARGS, env: ENV}}`, or a program
        # of programs() with `args` and `env`
        standin.charged("429then2")["input"]   # tokens

What the model does is told by tests/support/standin_model.py, the modes by
tests/support/agent-standin. The programs are those that people have; tests
that need one skip themselves where it is not installed.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import tap

PROGRAMS = ("claude", "codex", "gemini", "opencode", "qwen")
STANDIN = tap.ROOT / "tests/support/agent-standin"
GUARD = 60  # seconds to start and to end

_GEMINI = {
    "general": {"disableAutoUpdate": True, "maxAttempts": 2},
    "privacy": {"usageStatisticsEnabled": False},
    "security": {"auth": {"selectedType": "gemini-api-key"}},
}
_QWEN = {
    "general": {"disableAutoUpdate": True},
    "model": {"generationConfig": {"maxRetries": 1}},
    "privacy": {"usageStatisticsEnabled": False},
}


class Standin:
    """A stand-in for the model APIs, which ends with the test."""

    def __init__(self, folder=None, bodies=False):
        self.folder = folder or tap.folder()
        words = ["--bodies"] if bodies else []
        self.process = subprocess.Popen(
            [sys.executable, STANDIN, "--stdin", *words, self.folder],
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        if not line.startswith("port "):
            self.close()
            raise AssertionError(f"the stand-in did not start: {line!r}")
        self.port = int(line.split()[1])

    def url(self, mode="ok"):
        """Where a program finds the model that behaves like this."""
        return f"http://127.0.0.1:{self.port}/{mode}"

    def requests(self, mode=None):
        """The requests so far, of one mode or of all, in order."""
        path = self.folder / "requests.jsonl"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = text.rpartition("\n")[0].splitlines()  # the last may be half
        found = map(json.loads, lines)
        return [one for one in found if mode in (None, one["mode"])]

    def charged(self, mode=None, side=True):
        """Sums of the tokens that were charged; without `side`, only those of
        requests that belong to conversations."""
        sums = {"input": 0, "cached": 0, "output": 0}
        for one in self.requests(mode):
            if side or not one["side"]:
                for name in sums:
                    sums[name] += one["usage"][name]
        return sums

    def close(self):
        """End it."""
        self.process.stdin.close()
        try:
            self.process.wait(GUARD)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def programs():
    """Paths of the programs that are installed, by name."""
    folders = [tap.ROOT / "build-agents"]
    if os.environ.get("SLUICE_AGENTS"):
        folders.insert(0, pathlib.Path(os.environ["SLUICE_AGENTS"]))
    places = [str(folder / "node_modules/.bin") for folder in folders]
    path = os.pathsep.join([*places, os.environ.get("PATH", os.defpath)])
    found = {name: shutil.which(name, path=path) for name in PROGRAMS}
    return {name: place for name, place in found.items() if place}


def _claude(url):
    env = {
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "IS_SANDBOX": "1",
    }
    return env, [], {}


def _codex(url):
    provider = {
        "name": "mock",
        "base_url": f"{url}/v1",
        "env_key": "MOCK_KEY",
        "wire_api": "responses",
    }
    table = ",".join(f"{key}={json.dumps(v)}" for key, v in provider.items())
    args = ["-m", "gpt-5", "-c", "model_provider=mock"]
    args += ["-c", f"model_providers.mock={{{table}}}"]
    return {"MOCK_KEY": "x"}, args, {}


def _gemini(url):
    env = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": url}
    args = ["-m", "gemini-2.5-flash"]
    return env, args, {".gemini/settings.json": _GEMINI}


def _opencode(url):
    model = {
        "name": "m1",
        "cost": {"input": 1.25, "output": 10, "cache_read": 0.125},
        "limit": {"context": 100000, "output": 8000},
    }
    provider = {
        "name": "mock",
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
        "models": {"m1": model},
    }
    config = {
        "autoupdate": False,
        "model": "mock/m1",
        "provider": {"mock": provider},
        "share": "disabled",
        "small_model": "mock/m1",
    }
    off = ("AUTOUPDATE", "DEFAULT_PLUGINS", "LSP_DOWNLOAD", "MODELS_FETCH")
    env = {f"OPENCODE_DISABLE_{what}": "1" for what in off}
    env["OPENCODE_CONFIG"] = "opencode.json"
    return env, ["-m", "mock/m1"], {"opencode.json": config}


def _qwen(url):
    env = {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "m1",
    }
    return env, [], {".qwen/settings.json": _QWEN}


_SETUPS = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "opencode": _opencode,
    "qwen": _qwen,
}


def setup(program, home, standin, mode="ok"):
    """Let a program talk to the stand-in, with a home of its own: variables
    for its session, further arguments, and the files written in the home."""
    env, args, contents = _SETUPS[program](standin.url(mode))
    home = pathlib.Path(home).resolve()
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    files = []
    for name, content in contents.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        files.append(path)
    if "OPENCODE_CONFIG" in env:
        env["OPENCODE_CONFIG"] = str(home / env["OPENCODE_CONFIG"])
    for what in ("cache", "config", "data", "state"):
        env[f"XDG_{what.upper()}_HOME"] = str(home / ".xdg" / what)
    env |= {"HOME": str(home), "TMPDIR": str(home / "tmp")}
    env |= {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    return env, args, files
