# SPDX-License-Identifier: MIT
"""A headless Chromium, driven through its DevTools protocol over a pipe.

    with Browser() as browser:
        page = browser.open(path)
        page.run("document.title")
        page.check()                      # no error, no request

No package but Chromium itself is needed, and nothing goes over a network.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

GUARD = 60  # seconds after which an answer is given up
PARTS = ("Page", "Runtime", "Log", "Network")
# Keys by their names: their codes, and what they type.
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Space": (32, " "), "Tab": (9, "")}


class Browser:
    """The process, and the pipe to it."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(
            prefix="sluice-browser-", ignore_cleanup_errors=True
        )
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()
        words = [
            program(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", "--disable-component-update",
            "--hide-scrollbars", "--remote-debugging-pipe",
            "--force-device-scale-factor=1", f"--user-data-dir={self.folder.name}",
            "about:blank",
        ]
        shell = f'exec "$@" 3<&{to_child} 4>&{from_child}'
        self.process = subprocess.Popen(
            ["sh", "-c", shell, "sh", *words],
            pass_fds=(to_child, from_child),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self.buffer = b""
        self.number = 0
        self.events = []

    def read(self):
        """The next message from the browser."""
        end = time.monotonic() + GUARD
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            ready, _, _ = select.select([self.into], [], [], max(0, left))
            assert ready, "the browser does not answer"
            data = os.read(self.into, 1 << 20)
            assert data, "the browser has ended"
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **params):
        """Call a method of the protocol; its result. Events are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + GUARD
        while time.monotonic() < end:
            answer = self.read()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)
        raise AssertionError(f"the browser does not answer {method}")

    def open(self, path, **options):
        """Open a file or an address in a page of its own."""
        return Page(self, path, **options)

    def close(self):
        """End the browser."""
        try:
            self.call("Browser.close")
        except (AssertionError, OSError):
            self.process.kill()
        os.close(self.out)
        try:
            self.process.wait(GUARD)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.into)
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Page:
    """One page of the browser."""

    def __init__(
        self,
        browser,
        path,
        scripts=True,
        dark=False,
        width=1280,
        height=900,
        parts=PARTS,
        early=None,
    ):
        """Open it. `parts` of the protocol report what happens, `early` is a
        script that runs before those of the page."""
        self.browser = browser
        url = str(path)
        self.url = url if url.startswith(("about:", "http:")) else f"file://{url}"
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for part in parts:
            self.call(f"{part}.enable")
        if early:
            self.call("Page.addScriptToEvaluateOnNewDocument", source=early)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        # As if it was in front: others have no frames, and slow timers.
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=self.url)
        self.until("Page.loadEventFired")

    def call(self, method, **params):
        """Call a method for this page."""
        return self.browser.call(method, session=self.session, **params)

    def mine(self, *names):
        """What was told about this page so far."""
        return [
            event["params"]
            for event in self.browser.events
            if event.get("sessionId") == self.session and event.get("method") in names
        ]

    def until(self, name):
        """Wait for an event."""
        while not self.mine(name):
            self.browser.events.append(self.browser.read())

    def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, (script, answer)
        return answer["result"].get("value")

    def go(self, url):
        """Follow a link to another document, and wait until it is loaded."""
        loads = len(self.mine("Page.loadEventFired"))
        self.run(f"setTimeout(() => location.href = {json.dumps(url)}), 0")
        while len(self.mine("Page.loadEventFired")) == loads:
            self.browser.events.append(self.browser.read())

    def settle(self):
        """Wait until what was asked for is drawn."""
        frame = "new Promise(d=>requestAnimationFrame(()=>requestAnimationFrame(d)))"
        self.run(frame)

    def mouse(self, kind, x, y, **more):
        """An event of the mouse."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name, shift=False):
        """Press a key and let it go: one of KEYS, or a character."""
        code, text = KEYS.get(name, (ord(name[0].upper()), name))
        common = {
            "key": text if name == "Space" else name,
            "modifiers": 8 if shift else 0,
            "windowsVirtualKeyCode": code,
        }
        down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
        self.call("Input.dispatchKeyEvent", **down, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def picture(self, path, whole=False):
        """Keep what can be seen, for people."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def check(self):
        """Nothing went wrong, and nothing but the file was asked for."""
        bad = self.mine("Runtime.exceptionThrown")
        assert not bad, bad
        said = self.mine("Runtime.consoleAPICalled", "Log.entryAdded")
        assert not said, said
        asked = {event["request"]["url"] for event in self.mine("Network.requestWillBeSent")}
        assert asked == {self.url}, asked


def program():
    """The browser, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")
