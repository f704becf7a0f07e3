"""The server goes away and comes back; Redis goes away and comes back; colours, sizes, keys alone."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import FORUM, Journey, expect


class States(Journey):
    def test_14_the_server_is_killed_under_a_draft(self):
        server = self.server(FORUM)
        server.take(7, act="reply", user="42")
        page = self.open(server, "#/bans", expected=("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"))
        expect(page.get_by_role("button", name="Ban…")).to_be_enabled()
        self.go(page, "#/edit")
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(FORUM + "# mine\n")
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        with self.timed("a killed server is told", 6):
            server.kill()
            expect(page.get_by_text("No answer since")).to_be_visible()
        expect(page.locator(".bar").get_by_role("status").filter(has_text="away")).to_be_visible()
        expect(page.locator(".aged")).to_be_visible()
        expect(page.get_by_role("button", name="Publish…")).to_be_disabled()
        page.evaluate("window.unloaded = false")
        self.go(page, "#/bans")
        expect(page.get_by_role("button", name="Ban…")).to_be_disabled()
        self.go(page, "#/edit")
        server.start()
        with self.timed("all is fresh after a start", 15):
            expect(page.get_by_text("No answer since")).to_have_count(0)
            expect(page.get_by_text("The server has started anew")).to_be_visible()
            expect(page.locator(".aged")).to_have_count(0)
        expect(text).to_have_value(FORUM + "# mine\n")
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        # The restart is marked in the chart, and the page was never loaded anew.
        server.take(1, act="reply", user="42")
        self.go(page, "#/?range=5m")
        page.get_by_role("button", name="as a table").first.click()
        expect(page.get_by_role("region", name="as a table").get_by_text("counts begin here")).to_be_visible()
        self.assertIs(page.evaluate("window.unloaded"), False)

    def test_19_redis_stops_and_starts(self):
        redis = Redis()
        self.addCleanup(redis.stop)
        server = self.server(FORUM, settings=f'[store]\ntype = "redis"\nurl = "redis://127.0.0.1:{redis.port}"\n')
        server.take(1, act="reply", user="42")
        page = self.open(server, "#/store")
        expect(page.get_by_role("status").filter(has_text="ready")).to_be_visible()
        with self.timed("degraded is told", 2):
            redis.stop()
            expect(page.get_by_role("status").filter(has_text="degraded")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text=f":{redis.port}").first).to_contain_text("away")
        with self.timed("ready again is told", 2):
            redis.start()
            expect(page.get_by_role("status").filter(has_text="ready")).to_be_visible()
        self.go(page, "#/?range=5m")
        expect(page.locator("svg[role=img] rect.out").first).to_be_attached()

    def test_16_keyboard_alone(self):
        server = self.server(FORUM)
        server.call("/v1/bans", {"field": "user", "value": "7", "for": "1h"})
        page = self.open(server)
        self.go_by_keys(page, "r", "Rules")
        expect(page.get_by_role("searchbox")).to_be_visible()
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("reply")
        expect(page.locator("table.rules tbody tr")).to_have_count(3)
        self.tab_to(page, lambda: page.get_by_role("link", name="reply", exact=True))
        page.keyboard.press("Enter")
        self.tab_to(page, lambda: page.get_by_role("button", name="Edit here"))
        page.keyboard.press("Enter")
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_be_focused()
        page.keyboard.press("Control+End")
        page.keyboard.type("# by keys\n")
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        page.keyboard.press("Control+Enter")
        expect(page.get_by_label("Note")).to_be_focused()
        page.keyboard.type("by keys")
        page.keyboard.press("Enter")
        expect(page.get_by_text("is in force with")).to_be_visible()
        self.assertIn("# by keys", server.file.read_text())
        # The focus is back in the text. Escape, then Tab, leaves it.
        expect(text).to_be_focused()
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        expect(text).not_to_be_focused()
        self.go_by_keys(page, "b", "Bans")
        self.tab_to(page, lambda: page.get_by_role("button", name="lift the ban of user=7"))
        page.keyboard.press("Enter")
        expect(page.get_by_text("Nobody is banned")).to_be_visible()
        self.tab_to(page, lambda: page.get_by_role("button", name="Log out"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()

    def tab_to(self, page, target):
        """Presses Tab until the target has the focus; the focus is seen at each step."""
        expect(target()).to_be_visible()
        for _ in range(120):
            page.keyboard.press("Tab")
            seen = page.evaluate("(e => e === document.body || (getComputedStyle(e).outlineStyle !== 'none' && (parseInt(getComputedStyle(e).outlineOffset) < 0 || !e.closest('.seg'))) || e.tagName === 'H1')(document.activeElement)")
            self.assertTrue(seen, page.evaluate("document.activeElement.outerHTML"))
            if target().evaluate("e => e === document.activeElement"):
                return
        self.fail("the focus does not come there")


class Redis:
    """A Redis on a free port, which can be stopped and started again."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="flowgate-redis-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self):
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", self.folder.name, "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def stop(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()


if __name__ == "__main__":
    unittest.main()
