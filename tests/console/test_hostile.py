"""Values are the internet's: on every page they are text, and nothing but text."""

import json
import pathlib
import tempfile
import unittest
import urllib.parse

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


# Koala's file: comments, values and messages as its author has written them.
KOALA = """[rules]
# <img src=x onerror=hit=1> "><script>hit=1</script> {{7*7}} left\u202eright
rule : [count] [act=ask,<img>,javascript:hit,left\u202eright,"><script>; qid=+] [time=60; count=1;] [result=2; return=111]

[result]
0 : { "Ret_type":0, "Ret_code":0, "Err_no":0, "Err_msg":"", "Str_reason":"Allow", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
2 : { "Ret_type":2, "Ret_code":0, "Err_no":10, "Err_msg":"", "Str_reason":"<img src=x onerror=hit=1>", "Need_vcode":0, "Vcode_len":0, "Vcode_type":0, "Other":"", "Version":0 }
"""
# Every page, and what tells that it has its data.
PAGES = [
    ("#/", "Denied most"), ("#/live", "javascript:hit=1"), ("#/rules", "5 min"), ("#/rules/reply", "Most requests"), ("#/rules/koala:111", "There is no rule"),
    ("#/bans", "{{7*7}}"), ("#/subject", "Ask"), ("#/edit", "Findings"), ("#/try", "What this sample cannot judge"), ("#/store", "Connections"),
    ("#/koala", "As TOML"),
]


class Hostile(Journey):
    def test_11_hostile_values_are_text(self):
        title = json.dumps(" ".join(HOSTILE[:5]))
        koala = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "koala.conf"
        koala.write_text(KOALA)
        server = self.server(RULES % title, arguments=["--koala", str(koala)])
        server.call("/v1/sample", {"for": "10m"})
        for value in HOSTILE:
            for _ in range(3):
                server.call("/v1/take", {"fields": {"act": "reply", "user": value, FIELD: value}})
            server.call("/v1/bans", {"field": "user", "value": value[:1000], "for": "1h", "reason": value[:1000]})
        server.call("/v1/sample", {"for": "0s"})
        # Notes and texts of files are somebody's, too. A line of the file turns its direction.
        for note in HOSTILE[:5]:
            text = RULES % title + f"# {note}\n"
            server.call("/v1/rules", raw=text, method="PUT", headers={"If-Match": "*", "X-Flowgate-Note": urllib.parse.quote(note)})
        # What Koala's clients send reaches the same lists.
        for value in HOSTILE:
            for _ in range(3):
                server.call(f"/rule/update?act=ask&qid={urllib.parse.quote(value[:1000])}")
                server.call(f"/rule/browse?act=ask&qid={urllib.parse.quote(value[:1000])}")
        page = self.open(server)
        for size in ({"width": 1400, "height": 900}, {"width": 360, "height": 640}):
            page.set_viewport_size(size)
            for address, seen in PAGES:
                self.go(page, address)
                expect(page.get_by_text(seen).first).to_be_visible()
                self.is_whole(page, address)
        page.set_viewport_size({"width": 1400, "height": 900})
        # Every value is there, as the text that it is.
        self.go(page, "#/live")
        for value in HOSTILE[:4]:
            expect(page.locator("table.live").get_by_text(value).first).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="koala").filter(has_text="<img src=x").first).to_be_visible()
        self.go(page, "#/edit")
        history = page.get_by_role("table").filter(has=page.get_by_role("columnheader", name="version"))
        expect(history.get_by_text("<img src=x onerror=hit=1>")).to_be_visible()
        expect(page.locator(".code-area .layer")).to_contain_text("left\ufffdright")
        page.get_by_role("button", name="difference v2").click()
        expect(page.locator(".diff").first).to_contain_text("left\ufffdright")
        self.is_whole(page, "difference")
        # Koala's page: the file as TOML, and the report of a text.
        self.go(page, "#/koala")
        expect(page.locator(".toml")).to_contain_text('"><script>hit=1</script>')
        expect(page.locator(".toml")).to_contain_text("left\ufffdright")
        page.get_by_role("textbox", name="Check a text").fill("rule : [count] [act=" + " ".join(HOSTILE[:5]) + "] [time=1; count=1;]")
        page.get_by_role("button", name="Check").click()
        expect(page.locator(".report").first).to_contain_text("<img src=x")
        self.is_whole(page, "Koala's report")
        # The subject itself, inspected, banned and lifted.
        self.go(page, "#/live")
        row = page.get_by_role("row").filter(has_text="user=<img src=x").first
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
        # After a change of the window's size a chart is drawn anew a frame later: a page may be too wide for a moment.
        for _ in range(50):
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide <= 0:
                return
            page.wait_for_timeout(100)
        self.fail(f"{where} is {wide} px too wide")


if __name__ == "__main__":
    unittest.main()
