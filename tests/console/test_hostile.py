"""Values are the internet's: on every page they are text, and nothing but text."""

import json
import unittest

from harness import Journey, expect

HOSTILE = [
    "<img src=x onerror=hit=1>",
    '"><script>hit=1</script>',
    "javascript:hit=1",
    "{{7*7}}",
    "left\u202eright",
    "two\nlines",
    "x" * 10_000,
    "__proto__",
]
RULES = """
[[rule]]
name   = "reply"
title  = %s
when   = { act = "reply", user = "*" }
by     = ["user"]
limits = ["1/60s"]
"""
# No rule can ask for such a field; a request can bring it.
FIELD = "<img src=x onerror=hit=1>"


class Hostile(Journey):
    def test_11_hostile_values_are_text(self):
        title = json.dumps(" ".join(HOSTILE[:5]))
        server = self.server(RULES % title)
        server.call("/v1/sample", {"for": "10m"})
        for value in HOSTILE:
            for _ in range(3):
                server.call("/v1/take", {"fields": {"act": "reply", "user": value, FIELD: value}})
            server.call("/v1/bans", {"field": "user", "value": value[:1000], "for": "1h", "reason": value[:1000]})
        server.call("/v1/sample", {"for": "0s"})
        page = self.open(server)
        for address, seen in [
            ("#/", "Denied most"), ("#/live", "javascript:hit=1"), ("#/rules", "5 min"), ("#/rules/reply", "Most requests"),
            ("#/bans", "{{7*7}}"), ("#/subject", "Ask"), ("#/edit", "Findings"), ("#/try", "What this sample cannot judge"), ("#/store", "Connections"),
        ]:
            self.go(page, address)
            expect(page.get_by_text(seen).first).to_be_visible()
            self.is_whole(page, address)
        # The subject itself, inspected, banned and lifted.
        self.go(page, "#/live")
        row = page.get_by_role("row").filter(has_text="<img src=x").first
        row.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".lead")).to_contain_text("Denied")
        self.is_whole(page, "inspected")
        self.go(page, "#/bans")
        page.get_by_role("searchbox").fill("<script>")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("button", name="lift").click()
        expect(page.get_by_text("No ban is found.")).to_be_visible()
        self.is_whole(page, "lifted")

    def is_whole(self, page, where):
        """Nothing ran, nothing was made of the values, and the page is as wide as its window."""
        self.assertEqual(page.evaluate("typeof hit"), "undefined", where)
        self.assertEqual(page.locator("main img, main script, main iframe").count(), 0, where)
        self.assertNotIn("\u202e", page.locator("main").inner_text(), where)
        self.assertEqual(page.locator("main a[href^='javascript']").count(), 0, where)
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(wide, 0, where)


if __name__ == "__main__":
    unittest.main()
