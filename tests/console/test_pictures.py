"""The pictures of docs/console.md: the pages under a flood of logins.

UPDATE_PICTURES=1 makes them anew, with two minutes of traffic; otherwise the same pages are drawn and thrown away.
"""

import os
import pathlib
import random
import re
import tempfile
import threading
import time
import unittest

from harness import ROOT, Journey, expect

UPDATE = os.environ.get("UPDATE_PICTURES") == "1"
THROWN_AWAY = tempfile.TemporaryDirectory(prefix="flowgate-pictures-")
FOLDER = ROOT / "docs/img" if UPDATE else pathlib.Path(THROWN_AWAY.name)
SECONDS = 120 if UPDATE else 3
RULES = """
[[rule]]
name   = "login"
title  = "Sign-in attempts of an address"
when   = { act = "login", ip = "*" }
by     = ["ip"]
limits = ["5/10m"]

[[rule]]
name   = "reply"
title  = "Five replies a minute, a hundred a day"
when   = { act = "reply", user = "*" }
by     = ["user"]
limits = ["5/60s", "fixed 100/day tz=Asia/Shanghai"]

[[rule]]
name   = "search"
title  = "Searches of an address"
when   = { act = "search", ip = "*" }
by     = ["ip"]
limits = ["bucket 30/60s burst=15"]

[[rule]]
name   = "search-strict"
title  = "Is twelve a minute enough?"
when   = { act = "search", ip = "*" }
by     = ["ip"]
limits = ["bucket 12/60s burst=6"]
shadow = true
"""


class Pictures(Journey):
    def test_pictures_of_every_page(self):
        server = self.server(RULES)
        drawn = threading.Event()
        traffic = threading.Thread(target=self.flood, args=(server, drawn))
        self.addCleanup(traffic.join)
        self.addCleanup(drawn.set)
        traffic.start()
        # The time that the pictures show, not a wait for the page.
        drawn.wait(SECONDS)
        for scheme, language in (("light", "en"), ("dark", "en"), ("light", "zh-CN")):
            page = self.open(server, context=self.context(color_scheme=scheme, locale=language))
            self.draw(page, scheme, language)

    def draw(self, page, scheme, language):
        name = lambda base: f"console-{base}{'' if language == 'en' else '-zh'}{'' if scheme == 'light' else '-dark'}.png"
        self.go(page, "#/?range=5m")
        expect(page.get_by_text("203.0.113.77").first).to_be_visible()
        page.screenshot(path=FOLDER / name("overview"))
        if scheme == "dark" or language != "en":
            return
        self.go(page, "#/rules")
        expect(page.locator("svg.spark").first).to_be_visible()
        page.screenshot(path=FOLDER / name("rules"), clip={"x": 0, "y": 0, "width": 1400, "height": 420})
        self.go(page, "#/live")
        row = page.get_by_role("row").filter(has_text="203.0.113.77").first
        row.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".lead")).to_contain_text("Denied by login")
        page.screenshot(path=FOLDER / name("subject"), clip={"x": 0, "y": 0, "width": 1400, "height": 560})
        self.go(page, "#/edit")
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(re.compile("rule"))
        text.fill(RULES.replace('limits = ["5/10m"]', 'limit  = ["3/10m"]'))
        expect(page.locator(".finding")).to_contain_text("did you mean")
        page.screenshot(path=FOLDER / name("editor"))

    def flood(self, server, drawn):
        """Some traffic, and a flood of logins from the last third on, until all is drawn."""
        random.seed(7)
        begin = time.monotonic()
        while not drawn.is_set():
            batch = [{"op": "take", "fields": {"act": "search", "ip": f"198.51.{random.randrange(100)}.{int(random.paretovariate(0.6)) % 256}"}} for _ in range(40)]
            batch += [{"op": "take", "fields": {"act": "reply", "user": str(int(random.paretovariate(0.7)) % 5000)}} for _ in range(3)]
            if time.monotonic() - begin > SECONDS * 0.6:
                batch += [{"op": "take", "fields": {"act": "login", "ip": f"203.0.113.{random.choice([77, 77, 77, 14, 14, 203, 91, 148, 9, 36])}", "user": "admin"}} for _ in range(8)]
            server.call("/v1/batch", batch)
            # The pace of the traffic.
            drawn.wait(0.2)


if __name__ == "__main__":
    unittest.main()
