"""A window of 360 x 640 pixels, and one of 1440 x 900 at a zoom of 200 %: every control of the journeys is reached."""

import re
import unittest

from harness import FORUM, ROOT, Journey, expect

SMALL = {"viewport": {"width": 360, "height": 640}}
ZOOMED = {"viewport": {"width": 720, "height": 450}, "device_scale_factor": 2}
OLD, NEW = 'limits = ["5/60s", "fixed', 'limits = ["10/60s", "fixed'
# The least height of a button or a link on a small screen, in CSS pixels.
MIN_TARGET = 24


class Small(Journey):
    def test_17_every_control_of_the_journeys_at_360(self):
        self.walk(SMALL)

    def test_another_page_begins_at_its_top(self):
        server = self.server(FORUM)
        server.take(9, act="reply", user="42")
        page = self.open(server, "#/edit", viewport={"width": 360, "height": 400})
        expect(page.locator("textarea")).to_have_value(FORUM)
        page.evaluate("scrollTo(0, 300)")
        self.assertGreater(page.evaluate("scrollY"), 0)
        self.go(page, "#/")
        expect(page.get_by_role("heading", name="Denied most")).to_be_attached()
        self.assertGreater(page.evaluate("document.documentElement.scrollHeight"), 1000)
        self.assertEqual(page.evaluate("scrollY"), 0)

    def test_17_every_control_of_the_journeys_at_200_percent(self):
        self.walk(ZOOMED)

    def walk(self, size):
        self.size = size
        self.newcomer()
        server = self.server(FORUM, arguments=["--koala", str(ROOT / "testdata/koala/sample.conf")])
        server.take(20, act="reply", user="42")
        page = self.open(server, expected=("ERR_CONNECTION_", "ERR_EMPTY_RESPONSE", "412 (Precondition Failed)"), **size)
        self.denied_banned_lifted(page)
        self.edited(page, server)
        self.recorded(page)
        self.rule_and_pages(page, server)
        self.away(page, server)

    def reach(self, page, locator):
        """A control is there, can be scrolled to, is large enough, and nothing lies over it."""
        expect(locator).to_be_visible()
        locator.click(trial=True)
        expect(locator).to_be_in_viewport()
        box = locator.bounding_box()
        self.assertLessEqual(box["x"] + box["width"], self.size["viewport"]["width"] + 0.5, f"{locator} at {self.size}")
        if self.size is SMALL and locator.evaluate("e => e.matches('a, button')"):
            self.assertGreaterEqual(box["height"], MIN_TARGET - 0.5, f"{locator}")
        return locator

    def button(self, page, name, exact=True):
        return self.reach(page, page.get_by_role("button", name=name, exact=exact).first)

    def menu(self, page, name):
        """A control of the rail, which is a menu on a small screen."""
        found = page.get_by_role("navigation").get_by_role("link", name=name).or_(page.get_by_role("navigation").get_by_role("button", name=name)).first
        if not found.is_visible():
            self.button(page, "menu").click()
        return self.reach(page, found)

    def newcomer(self):
        """Journeys 1 and 15: the login and the start card."""
        server = self.server(token="a-token-of-the-tests-0123456789")
        page = self.page(server, **self.size)
        page.goto(server.origin)
        self.reach(page, page.get_by_label("admin_token or view_token")).fill(server.token)
        self.button(page, "Log in").click()
        self.reach(page, page.get_by_role("textbox", name="key"))
        self.reach(page, page.get_by_role("textbox", name="limit"))
        self.button(page, re.compile("^Send"), exact=False).click()
        expect(page.get_by_text("sent 1 time")).to_be_visible()

    def denied_banned_lifted(self, page):
        """Journeys 2, 3, 13: from the overview to the subject, a ban and its end."""
        row = page.get_by_role("row").filter(has_text="user=42").first
        self.reach(page, row.get_by_role("button", name="inspect")).click()
        expect(page.locator(".lead")).to_contain_text("Denied by reply")
        self.reach(page, page.get_by_label("value of user"))
        self.reach(page, page.get_by_role("checkbox", name="watch"))
        self.button(page, "Ask")
        self.button(page, "Reset…", exact=False)
        self.button(page, "Ban by hand…").click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        self.reach(page, dialog.get_by_label("Reason")).fill("floods")
        self.reach(page, dialog.get_by_role("button", name="Cancel"))
        self.reach(page, dialog.get_by_role("button", name="Ban for 1 h")).click()
        expect(dialog).to_have_count(0)
        self.menu(page, "Bans").click()
        banned = page.get_by_role("row").filter(has_text="user=42")
        expect(banned.get_by_text("floods")).to_be_visible()
        self.reach(page, page.get_by_role("searchbox"))
        self.button(page, "Ban…")
        self.button(page, "lift the ban of user=42").click()
        expect(page.get_by_text("Nobody is banned")).to_be_visible()

    def edited(self, page, server):
        """Journeys 4 to 8: mistakes, publish, history, roll back, conflict."""
        self.menu(page, "Editor").click()
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(FORUM.replace(OLD, 'limit = ["5/60s", "fixed'))
        self.reach(page, page.locator(".finding .at button").first)
        text.fill(FORUM.replace(OLD, NEW))
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        self.button(page, "discard draft")
        self.button(page, "Publish…").click()
        dialog = page.get_by_role("dialog", name="Publish the draft")
        self.reach(page, dialog.get_by_label("Note")).fill("ten")
        self.reach(page, dialog.get_by_role("button", name="Cancel"))
        self.reach(page, dialog.get_by_role("button", name="Publish", exact=True)).click()
        expect(dialog).to_have_count(0)
        self.button(page, "difference v1")
        self.button(page, "roll back v1").click()
        dialog = page.get_by_role("dialog", name=re.compile("Roll back"))
        self.reach(page, dialog.get_by_role("button", name=re.compile("^Roll back to"))).click()
        expect(dialog).to_have_count(0)
        expect(text).to_have_value(FORUM)
        text.fill(FORUM + "# mine\n")
        server.replace("# theirs\n" + FORUM)
        self.button(page, "Compare").click()
        self.button(page, "take theirs").click()
        self.button(page, "Continue with this text").click()
        expect(text).to_have_value("# theirs\n" + FORUM + "# mine\n")

    def recorded(self, page):
        """Journey 9."""
        self.menu(page, "Try").click()
        self.button(page, "1 min").click()
        self.button(page, "Record").click()
        self.button(page, "Stop").click()
        expect(page.get_by_role("button", name="Record")).to_be_visible()

    def rule_and_pages(self, page, server):
        """Journeys 10, 12, 16, 18, 19: a rule, its drafts, the switches, the pause."""
        self.menu(page, "Rules").click()
        self.reach(page, page.get_by_role("searchbox"))
        self.button(page, "Pause all rules…").click()
        dialog = page.get_by_role("dialog", name="Pause all rules")
        self.reach(page, dialog.get_by_role("button", name=re.compile("^Pause for")))
        self.reach(page, dialog.get_by_role("button", name="Cancel")).click()
        self.reach(page, page.get_by_role("link", name="reply", exact=True)).click()
        for name in ("Edit here", "Make it a shadow"):
            self.button(page, name)
        self.button(page, re.compile("^Raise"), exact=False)
        for name in ("Live", "Store", "Koala", "Overview", "中文", "Log out"):
            self.menu(page, name)
        if self.size is SMALL:
            page.keyboard.press("Escape")
            expect(page.get_by_role("navigation")).to_be_hidden()
            expect(page.get_by_role("button", name="menu")).to_be_focused()
            self.menu(page, "Live")
        page.get_by_role("navigation").get_by_role("link", name="Live").click()
        self.reach(page, page.get_by_role("combobox", name="rule"))
        self.reach(page, page.get_by_role("searchbox"))
        self.button(page, "pause", exact=False)
        server.replace(FORUM.replace("limits", "limit", 1))
        self.reach(page, page.get_by_role("link", name=re.compile("rules broken")))
        server.replace(FORUM)

    def away(self, page, server):
        """Journey 14."""
        server.kill()
        self.button(page, "Try now", exact=False)


if __name__ == "__main__":
    unittest.main()
