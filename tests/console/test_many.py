"""A thousand rules, ten thousand bans: the pages stay quick."""

import socket
import unittest

from harness import LENIENCE, Journey, expect

RULES = "".join(
    f'[[rule]]\nname = "rule-{i}"\ntitle = "The rule number {i}"\nwhen = {{ act = "a{i}", user = "*" }}\nby = ["user"]\nlimits = ["5/60s"]\n\n'
    for i in range(1000)
)
BANS = 10_000
# Milliseconds from one moment to another, as the page itself sees them, on a user's machine.
MAX_LIST_MS, MAX_FILTER_MS, MAX_TASK_MS = 1000, 100, 200


class Many(Journey):
    def test_12_a_thousand_rules(self):
        server = self.server(RULES)
        page = self.open(server)
        page.evaluate(
            """() => {
              window.tasks = [];
              new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(each => each.duration))).observe({type: "longtask"});
              window.answered = null;
              new PerformanceObserver(list => list.getEntries().forEach(each => { if (each.name.endsWith("/v1/policy")) window.answered = each.responseEnd; })).observe({type: "resource"});
            }"""
        )
        page.get_by_role("link", name="Rules").click()
        rows = page.locator("table.rules tbody tr")
        expect(rows).to_have_count(1000)
        shown = page.evaluate("performance.now() - window.answered")
        self.assertLess(shown, MAX_LIST_MS * LENIENCE)
        page.evaluate("window.tasks.length = 0")
        for _ in range(10):
            page.mouse.move(700, 500)
            page.mouse.wheel(0, 3000)
        longest = page.evaluate("Math.max(0, ...window.tasks)")
        self.assertLess(longest, MAX_TASK_MS * LENIENCE)
        # The browser's own search finds the last rule.
        self.assertTrue(page.evaluate("window.find('rule-999')"))
        expect(page.get_by_role("link", name="rule-999", exact=True)).to_be_in_viewport()
        page.evaluate("window.scrollTo(0, 0)")
        filter_box = page.get_by_role("searchbox")
        took = filter_box.evaluate(
            """async box => {
              const before = performance.now();
              box.value = "number 777";
              box.dispatchEvent(new Event("input", {bubbles: true}));
              await new Promise(done => { const look = () => document.querySelectorAll("table.rules tbody tr").length === 1 ? done() : requestAnimationFrame(look); look(); });
              return performance.now() - before;
            }"""
        )
        print(f"1,000 rules: list after {shown:.0f} ms (bar {MAX_LIST_MS}), longest task while scrolling {longest:.0f} ms (bar {MAX_TASK_MS}), filter {took:.0f} ms (bar {MAX_FILTER_MS})")
        self.assertLess(took, MAX_FILTER_MS * LENIENCE)
        expect(rows).to_contain_text(["rule-777"])

    def test_13_ten_thousand_bans(self):
        server = self.server("")
        for start in range(0, BANS, 1000):
            self.ban(server, start, 1000)
        page = self.open(server)
        with self.timed("the first page of 10,000 bans", 1):
            self.go(page, "#/bans")
            expect(page.get_by_text("1 to 100 of 10,000")).to_be_visible()
        self.assertLessEqual(page.locator("tbody tr").count(), 200)
        page.get_by_role("searchbox").fill(f"user-{BANS - 1:05}")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("button", name="lift").click()
        expect(page.get_by_text("No ban is found.")).to_be_visible()
        page.get_by_role("searchbox").fill("")
        expect(page.get_by_text("1 to 100 of 9,999")).to_be_visible()
        self.assertEqual(server.call("/v1/bans/find", {})["total"], BANS - 1)

    def ban(self, server, start, count):
        """Bans by one pipeline of the Redis protocol."""
        def command(*words):
            return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w.encode()), w.encode()) for w in words)

        with socket.create_connection(("127.0.0.1", server.resp), timeout=60) as connection:
            connection.sendall(command("AUTH", "admin", server.token))
            for i in range(start, start + count):
                connection.sendall(command("FG.BAN", "user", f"user-{i:05}", "3600", "flood"))
            replies = b""
            while replies.count(b"\r\n") < count + 1:
                data = connection.recv(65536)
                assert data, replies[-200:]
                replies += data


if __name__ == "__main__":
    unittest.main()
