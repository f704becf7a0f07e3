"""What the journeys share: a real server on free ports, a real Chromium, and a guard over each page.

Every page fails its journey on an error in the console, a violation of the content policy, or a request to another
origin. Waits are for things that are seen.
"""

import contextlib
import functools
import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from playwright.sync_api import expect, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("FLOWGATE", ROOT / "target/debug/flowgate")).resolve()
FORUM = (ROOT / "examples/forum.toml").read_text()
TOKEN = "a-token-of-the-tests-0123456789"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
# Pages are local; what takes longer than this on a busy machine is missing.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
# The bars of times are those of a user's machine. One that tests share with others may take so many times as long.
LENIENCE = 20


class Server:
    """`flowgate serve` on free ports, with a configuration of its own."""

    def __init__(self, config=None, settings="", token=TOKEN, arguments=(), terminal=False):
        self.folder = tempfile.TemporaryDirectory(prefix="flowgate-console-")
        self.file = pathlib.Path(self.folder.name) / "forum.toml"
        self.log = pathlib.Path(self.folder.name) / "log"
        self.token = token
        self.arguments = list(arguments)
        self.terminal = terminal
        self.http = self.resp = 0
        if config is not None:
            self.file.write_text(settings + config)
        self.has_file = config is not None
        self.start()

    def start(self):
        """Starts the process; after a kill on the same ports."""
        environment = {**os.environ, "STATE_DIRECTORY": self.folder.name, "HOME": self.folder.name}
        if self.token:
            environment["FLOWGATE_AUTH__ADMIN_TOKEN"] = self.token
        command = [BINARY, "serve", "--http", f"127.0.0.1:{self.http}", "--resp", f"127.0.0.1:{self.resp}", *self.arguments]
        if self.has_file:
            command += ["--config", str(self.file)]
        with self.log.open("wb") as log:
            output = self._terminal() if self.terminal else log
            self.process = subprocess.Popen(command, env=environment, stderr=output, stdout=output, cwd=self.folder.name)
        self.http, self.resp = (self._port(word) for word in ("http", "resp"))
        self.origin = f"http://127.0.0.1:{self.http}"

    def _terminal(self):
        """A terminal for the server to write on; what it writes goes to the log."""
        mine, theirs = pty.openpty()

        def copy():
            with self.log.open("ab", buffering=0) as log:
                while data := _read(mine):
                    log.write(data.replace(b"\r\n", b"\n"))

        threading.Thread(target=copy, daemon=True).start()
        return theirs

    def link(self):
        """The link that the server prints on a terminal."""
        found = re.search(r"http://\S+/#login=\S+", self.log.read_text())
        assert found, self.log.read_text()
        return found.group(0)

    def _port(self, word):
        """The port that the server says it listens on."""
        for _ in range(3000):
            found = re.search(rf"^\s+{word}\s+(?:https?://|redis://)?127\.0\.0\.1:(\d+)", self.log.read_text(), re.M)
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"the server does not start:\n{self.log.read_text()}")

    def replace(self, text):
        """Puts another file in its place. One that is written in place is empty for a moment, and the server may read it then."""
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.replace(self.file)

    def call(self, path, body=None, method=None, headers=None, raw=None):
        """One call of the API, without a browser."""
        data = raw.encode() if raw is not None else json.dumps(body).encode() if body is not None else None
        kind = "application/toml" if raw is not None else "application/json"
        request = urllib.request.Request(self.origin + path, data, method=method)
        for name, value in {"Authorization": f"Bearer {self.token}", "Content-Type": kind, **(headers or {})}.items():
            request.add_header(name, value)
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
        return json.loads(text) if "json" in (answer.headers["Content-Type"] or "") else text

    def take(self, times=1, **fields):
        """Takes by the rules; the last answer."""
        for _ in range(times):
            answer = self.call("/v1/take", {"fields": fields})
        return answer

    def command(self, *words):
        """A command of the Redis protocol; the reply as it is on the wire."""
        with socket.create_connection(("127.0.0.1", self.resp), timeout=60) as connection:
            message = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words)
            connection.sendall(message)
            return connection.recv(65536).decode()

    def metric(self, name):
        """The value of a metric, labels included in the name."""
        found = re.search(rf"^{re.escape(name)} (\S+)$", self.call("/metrics"), re.M)
        assert found, name
        return float(found.group(1))

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.kill()
        self.folder.cleanup()


def _read(terminal):
    """What was written, or nothing after the end: a terminal tells its end by an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""


@functools.cache
def browser():
    """The browser of this process. Its driver ends it with the process; journeys have contexts of their own."""
    return sync_playwright().start().chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)


class Journey(unittest.TestCase):
    """One journey: `self.server(..)` starts servers, `self.open(..)` opens guarded pages."""

    def server(self, *arguments, **named):
        server = Server(*arguments, **named)
        self.addCleanup(server.stop)
        return server

    def context(self, **options):
        options = {"viewport": {"width": 1400, "height": 900}, "locale": "en-US", **options}
        context = browser().new_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        self.addCleanup(context.close)
        return context

    def page(self, server, context=None, expected=(), **options):
        """A page with its guard. `expected`: parts of messages that this journey causes on purpose."""
        page = (context or self.context(**options)).new_page()
        mistakes = []
        allowed = tuple(expected)

        def note(text):
            if not any(part in text for part in allowed):
                mistakes.append(text)

        page.on("console", lambda message: note(f"console: {message.text}") if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: note(f"error: {error}"))
        page.on("request", lambda request: note(f"foreign request: {request.url}") if not request.url.startswith(server.origin) else None)
        self.addCleanup(lambda: self.assertEqual(mistakes, [], "the page must be without mistakes"))
        return page

    def open(self, server, address="#/", context=None, expected=(), **options):
        """A page that is logged in, at an address."""
        page = self.page(server, context, expected, **options)
        page.goto(f"{server.origin}/#login={server.token}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("navigation")).to_be_visible() if (options.get("viewport") or {"width": 1400})["width"] >= 720 else None
        if address != "#/":
            self.go(page, address)
        return page

    def go_by_keys(self, page, letter, heading):
        """`g` and a letter. The page waits 1.5 s for the letter, which a busy machine may miss: then both are pressed again."""
        for _ in range(20):
            page.keyboard.press("g")
            page.keyboard.press(letter)
            try:
                return expect(page.get_by_role("heading", level=1, name=heading)).to_be_focused(timeout=5000)
            except AssertionError:
                continue
        self.fail(f"g {letter} does not lead to {heading}")

    @contextlib.contextmanager
    def timed(self, what, bar):
        """Prints how long something took beside its bar in seconds. Only far beyond the bar it fails."""
        before = time.monotonic()
        yield
        took = time.monotonic() - before
        print(f"{what}: {took:.2f} s (bar {bar} s)")
        self.assertLess(took, bar * LENIENCE, what)

    def go(self, page, address):
        """Another address of the same page, as if typed."""
        page.goto(f"{page.url.split('#')[0]}{address}")
