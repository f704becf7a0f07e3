"""What happened is told in the charts: bans by hand with their author, close events each with words of their own, above the bars."""

import re
import unittest

from harness import FORUM, Journey, expect

# Rectangles of the words above a chart, of the bars, and of the lines.
PLACES = """svg => ({
  words: [...svg.querySelectorAll("text.mark-t, text.onset-t, text.key")].map(each => [each.textContent, each.getBBox().x, each.getBBox().y, each.getBBox().width, each.getBBox().height]),
  drawn: [...svg.querySelectorAll("path.bars, polygon.area, rect.hollow")].map(each => [each.getBBox().x, each.getBBox().y, each.getBBox().width, each.getBBox().height]),
})"""


class Marks(Journey):
    def test_bans_and_close_events_are_told_above_the_bars(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        ban = server.call("/v1/bans", {"field": "user", "value": "7", "for": "1h", "reason": "spam"})
        server.call("/v1/rules", raw=FORUM + "# two\n", method="PUT", headers={"If-Match": "*"})
        server.call(f"/v1/bans/{ban['id']}", method="DELETE")
        for user in "890":
            server.call("/v1/bans", {"field": "user", "value": user, "for": "1h"})
        for width in (1400, 360):
            page = self.open(server, "#/?range=5m", viewport={"width": width, "height": 900})
            chart = page.get_by_role("img", name=re.compile("^Allowed and denied"))
            words = chart.locator("text.mark-t")
            expect(words.filter(has_text="4 bans by hand")).to_have_count(1)
            expect(words.filter(has_text="ban of user=7 lifted")).to_have_count(1)
            expect(words.filter(has_text="v2 published")).to_have_count(1)
            # Who did it is in the title, and in the table.
            expect(chart.locator("title").filter(has_text="user=7 banned (admin token, 127.0.0.1)")).to_have_count(1)
            self.assertNothingIsCovered(chart)
            page.get_by_role("button", name="as a table").first.click()
            expect(page.get_by_role("cell").filter(has_text="ban of user=7 lifted (admin token, 127.0.0.1)")).to_have_count(1)

    def test_the_words_of_a_rise_cover_no_bars(self):
        server = self.server(FORUM)
        server.take(40, act="reply", user="42")
        page = self.open(server, "#/rules/reply?range=5m")
        chart = page.get_by_role("img", name=re.compile("^Over time"))
        expect(chart.locator("text.onset-t")).to_have_count(1)
        self.assertNothingIsCovered(chart)

    def assertNothingIsCovered(self, chart):
        places = chart.evaluate(PLACES)
        self.assertGreater(len(places["words"]), 1)
        self.assertGreater(len(places["drawn"]), 0)
        meets = lambda a, b: a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] - 2 and b[1] < a[1] + a[3] - 2
        for i, (text, *place) in enumerate(places["words"]):
            for drawn in places["drawn"]:
                self.assertFalse(meets(place, drawn), f"{text} covers what is drawn")
            for other, *there in places["words"][i + 1 :]:
                self.assertFalse(meets(place, there), f"{text} covers {other}")

    def test_bans_tell_their_author(self):
        server = self.server(FORUM)
        server.call("/v1/bans", {"field": "user", "value": "42", "for": "10m", "reason": "spam"})
        page = self.open(server, "#/bans")
        row = page.get_by_role("row").filter(has_text="user=42")
        expect(row).to_contain_text("admin token, 127.0.0.1")
        page.get_by_role("searchbox").fill("127.0.0.1")
        expect(row).to_be_visible()
        self.go(page, "#/subject")
        page.get_by_label("value of user").fill("42")
        page.get_by_role("button", name="Ask").click()
        # A length with units: 09:58 would read as a time of day.
        expect(page.locator(".lead")).to_have_text(re.compile(r"Denied by a ban by hand, passes in 9 min \d+ s"))
        expect(page.locator(".rulebox").first).to_contain_text("admin token, 127.0.0.1")


if __name__ == "__main__":
    unittest.main()
