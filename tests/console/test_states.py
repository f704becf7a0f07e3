"""The server goes away and comes back; Redis goes away and comes back; colours, sizes, keys alone."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

from harness import FORUM, Journey, expect

ADDRESSES = ["#/", "#/live", "#/rules", "#/rules/reply", "#/subject", "#/bans", "#/edit", "#/try", "#/store"]
# The contrast of every text with what is behind it, as WCAG computes it.
CONTRAST = """() => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => { const f = c => { c /= 255; return c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; }; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
  const over = (top, below) => { const a = top[3] ?? 1; return [0, 1, 2].map(i => top[i] * a + below[i] * (1 - a)); };
  const ground = element => { const chain = []; for (let e = element; e; e = e.parentElement) chain.unshift(e); return chain.reduce((below, e) => { const c = parse(getComputedStyle(e).backgroundColor); return c.length ? over(c, below) : below; }, matchMedia("(prefers-color-scheme: dark)").matches ? [18, 19, 22] : [247, 247, 245]); };
  const bad = [];
  const walker = document.createTreeWalker(document.querySelector("#app"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility() || element.closest(".unseen, textarea, option")) continue;
    const style = getComputedStyle(element);
    const color = parse(element.closest("svg") ? style.fill : style.color);
    const behind = ground(element);
    const [a, b] = [light(over(color, behind)), light(behind)].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    if (contrast < 4.495) bad.push(`${contrast.toFixed(2)} ${node.data.trim().slice(0, 40)}`);
  }
  return bad;
}"""


class States(Journey):
    def test_14_the_server_is_killed_under_a_draft(self):
        server = self.server(FORUM)
        server.take(7, act="reply", user="42")
        page = self.open(server, "#/edit", expected=("ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"))
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(FORUM + "# mine\n")
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        server.kill()
        expect(page.get_by_text("No answer since")).to_be_visible(timeout=6000)
        expect(page.locator(".aged")).to_be_visible()
        expect(page.get_by_role("button", name="Publish…")).to_be_disabled()
        server.start()
        expect(page.get_by_text("No answer since")).to_have_count(0)
        expect(page.get_by_text("The server has started anew")).to_be_visible()
        expect(text).to_have_value(FORUM + "# mine\n")
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()

    def test_19_redis_stops_and_starts(self):
        redis = Redis()
        self.addCleanup(redis.stop)
        server = self.server(FORUM, settings=f'[store]\ntype = "redis"\nurl = "redis://127.0.0.1:{redis.port}"\n')
        page = self.open(server, "#/store")
        expect(page.get_by_role("status").filter(has_text="ready")).to_be_visible()
        redis.stop()
        expect(page.get_by_role("status").filter(has_text="degraded")).to_be_visible()
        redis.start()
        expect(page.get_by_role("status").filter(has_text="ready")).to_be_visible()

    def test_19_every_text_has_contrast(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        for scheme in ("light", "dark"):
            page = self.open(server, context=self.context(color_scheme=scheme, reduced_motion="reduce"))
            for address in ADDRESSES:
                self.go(page, address)
                expect(page.locator("main > *").last).to_be_visible()
                self.assertEqual(page.evaluate(CONTRAST), [], f"{address} {scheme}")
        forced = self.open(server, context=self.context(forced_colors="active"))
        expect(forced.get_by_role("heading", level=1)).to_be_visible()

    def test_17_no_page_scrolls_sideways(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        # 700 pixels at 200 % zoom are 350 wide.
        for size in ({"width": 360, "height": 640}, {"width": 700, "height": 450}):
            page = self.open(server, viewport=size)
            for address in ADDRESSES:
                self.go(page, address)
                expect(page.locator("main > *").last).to_be_visible()
                wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                self.assertLessEqual(wide, 0, f"{address} at {size}")
        page.get_by_role("button", name="menu").click()
        page.get_by_role("navigation").get_by_role("link", name="Bans").click()
        expect(page.get_by_role("button", name="Ban…")).to_be_in_viewport()
        self.go(page, "#/rules")
        page.get_by_role("button", name="Pause all rules…").click()
        expect(page.get_by_role("button", name="Pause for 10 min")).to_be_in_viewport()

    def test_16_keyboard_alone(self):
        server = self.server(FORUM)
        server.call("/v1/bans", {"field": "user", "value": "7", "for": "1h"})
        page = self.open(server)
        page.keyboard.press("g")
        page.keyboard.press("r")
        expect(page.get_by_role("heading", name="Rules")).to_be_focused()
        expect(page.get_by_role("searchbox")).to_be_visible()
        page.keyboard.press("/")
        expect(page.get_by_role("searchbox")).to_be_focused()
        page.keyboard.type("reply")
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
        # Escape, then Tab, leaves the text.
        text.focus()
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        expect(text).not_to_be_focused()
        page.keyboard.press("g")
        page.keyboard.press("b")
        self.tab_to(page, lambda: page.get_by_role("button", name="lift the ban of user=7"))
        page.keyboard.press("Enter")
        expect(page.get_by_text("Nobody is banned")).to_be_visible()
        unnamed = page.evaluate("[...document.querySelectorAll('a, button, input, select, textarea')].filter(e => e.checkVisibility() && !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML)")
        self.assertEqual(unnamed, [])
        self.tab_to(page, lambda: page.get_by_role("button", name="Log out"))
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()

    def tab_to(self, page, target):
        """Presses Tab until the target has the focus; the focus is seen at each step."""
        expect(target()).to_be_visible()
        for _ in range(120):
            page.keyboard.press("Tab")
            seen = page.evaluate("(e => e === document.body || getComputedStyle(e).outlineStyle !== 'none' || e.tagName === 'H1')(document.activeElement)")
            self.assertTrue(seen, page.evaluate("document.activeElement.outerHTML"))
            if target().evaluate("e => e === document.activeElement"):
                return
        self.fail("the focus does not come there")


class Redis:
    """A Redis on a free port, which can be stopped and started again."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="flowgate-redis-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.start()

    def start(self):
        command = ["redis-server", "--port", str(self.port), "--save", "", "--appendonly", "no", "--dir", self.folder, "--bind", "127.0.0.1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def stop(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()


if __name__ == "__main__":
    unittest.main()
