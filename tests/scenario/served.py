# SPDX-License-Identifier: MIT
"""A place with a server and a real browser.

    with Served() as place:
        page = place.page(place.serve())
        place.shows(page, "#needs", "which one?")
        place.press(page, "skip", "#needs")
"""

import json
import re
import signal
import subprocess

import tap
from browser import Browser, program
from place import GUARD, Place
from tap import Skip, equal

# A text that is markup if it is not escaped.
EVIL = (
    "</p></pre></textarea><script>alert(1)</script><b>x"
    "<img src=x onerror=alert(2)><a href=javascript:alert(3)>"
    "\" onmouseover=alert(4) ' onfocus=alert(5) autofocus x="
)
# What this text must not become.
MARKUP = (
    "main script, main b b, img, [onerror], [onmouseover], [onfocus], [autofocus],"
    " a[href^=javascript]"
)


class Served(Place):
    """A place with a server and a browser."""

    def __init__(self):
        super().__init__()
        if program() is None:
            raise Skip("no chromium")
        self.port = 0
        self.server = None
        self.browser = Browser()

    def serve(self):
        """Start a server; the link to log in with."""
        self.server = subprocess.Popen(
            [tap.SLUICE, "serve", "--store", str(self.store),
             "--listen", f"127.0.0.1:{self.port}"],
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        text = self.server.stdout.readline() + self.server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/login\S+", text)
        assert found, text
        self.port = int(found.group(1))
        return found.group(0)

    def page(self, link=None, **options):
        """A page of the browser."""
        return self.browser.open(link or f"http://127.0.0.1:{self.port}/", **options)

    def shows(self, page, selector, text):
        """Wait until a part of a page has a text."""
        script = f"document.querySelector({json.dumps(selector)})?.textContent||''"

        def has():
            try:
                return text in page.run(script)
            except AssertionError as error:  # another document comes
                assert "navigated" in str(error), error
                return False

        self.until(has, f"{text!r} in {selector}")

    def press(self, page, verb, within="body"):
        """Press a button of the page."""
        selector = json.dumps(f"{within} button[value='{verb}']")
        page.run(f"document.querySelector({selector}).click()")

    def check(self, *pages):
        """No error in the console, no request but to the server."""
        for page in pages:
            bad = page.mine("Runtime.exceptionThrown", "Runtime.consoleAPICalled")
            assert not bad, bad
            said = [
                entry["entry"]
                for entry in page.mine("Log.entryAdded")
                if entry["entry"].get("source") != "network"
            ]
            assert not said, said
            urls = page.mine("Network.requestWillBeSent")
            urls = {url["request"]["url"] for url in urls}
            own = f"http://127.0.0.1:{self.port}/"
            assert all(u.startswith((own, "data:")) for u in urls), urls

    def stop(self):
        """End the server; what it printed."""
        self.server.send_signal(signal.SIGTERM)
        text = self.server.communicate(timeout=GUARD)[0]
        assert "Sanitizer" not in text and "runtime error" not in text, text
        equal(self.server.returncode, 0, text)

    def close(self):
        self.browser.close()
        if self.server is not None and self.server.poll() is None:
            self.stop()
        super().close()
