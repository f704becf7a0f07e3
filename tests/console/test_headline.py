"""The sentence of the overview under a pause, after a ban, in the first minute, and for actions that are not denials."""

import re
import threading
import unittest

from harness import FORUM, Journey, expect

CAPTCHA = """
[[rule]]
name   = "robots"
when   = { act = "post", user = "*" }
by     = ["user"]
limits = ["1/60s"]
action = "captcha"

[[rule]]
name   = "asked"
when   = { act = "sign-up" }
action = "captcha"

[[rule]]
name   = "blocked"
when   = { act = "scrape" }
action = "deny"
"""

# The lines of marks that cross the words of a mark, and words that cross the name of the panel.
CROSSED = """() => {
  const boxes = selector => [...document.querySelectorAll(`.chart svg ${selector}`)].map(e => e.getBoundingClientRect());
  const others = [...boxes("line.mark"), ...boxes("text.key")];
  return boxes("text.mark-t").flatMap(box => others.filter(each => each.left < box.right && each.right > box.left && each.top < box.bottom && each.bottom > box.top).map(each => each.left));
}"""


class Headline(Journey):
    def test_a_pause_is_not_all_well_and_is_not_offered_twice(self):
        server = self.server(FORUM)
        server.take(7, act="reply", user="42")
        page = self.open(server, "#/rules")
        expect(page.get_by_role("button", name="Pause all rules…")).to_be_visible()
        page.get_by_role("button", name="Pause all rules…").click()
        page.get_by_role("dialog").get_by_role("button", name=re.compile("^Pause for")).click()
        expect(page.get_by_text("All rules are paused until")).to_be_visible()
        expect(page.get_by_role("button", name="Pause all rules…")).to_have_count(0)
        self.go(page, "#/")
        expect(page.locator(".lead")).to_contain_text(re.compile(r"^Paused: no rule denies until \d\d:\d\d$"))
        expect(page.get_by_text("All well")).to_have_count(0)
        # The sentence says it, and no notice says it again.
        expect(page.get_by_text("All rules are paused until")).to_have_count(0)
        expect(page.locator(".verdict").get_by_role("button", name="End the pause")).to_be_visible()
        # The rates still hold the time before the pause, and the page says so.
        more = page.locator(".verdict .more")
        expect(more).to_have_text(re.compile(r"^The pause began at \d\d:\d\d:\d\d\. Rates are means of the last minute"))
        allowed = page.locator(".strip > div").filter(has=page.get_by_text("Allowed", exact=True))
        expect(allowed.locator(".s")).to_have_text(re.compile("/s, last minute$"))
        # What a rule did before the pause is past, and a paused rule is not a shadow rule.
        self.go(page, "#/rules/reply")
        expect(page.locator(".lead")).to_have_text("Denied 2 of 7 in 1 h")
        self.go(page, "#/live")
        expect(page.locator(".bar")).to_contain_text("denied in the last minute")
        self.go(page, "#/subject?fields=act%3Dreply+user%3D42")
        expect(more).to_contain_text("reply, which is paused, would have denied it.")
        box = page.locator(".rulebox").filter(has=page.get_by_role("link", name="reply", exact=True))
        expect(box.locator(".tag")).to_have_text("paused")
        expect(page.locator(".grp").filter(has_text="and would deny it, but is a shadow or paused")).to_be_visible()
        self.go(page, "#/")
        page.get_by_role("button", name="End the pause").click()
        expect(page.locator(".lead")).not_to_contain_text("Paused")
        expect(more).to_contain_text("The pause ended at ")
        self.go(page, "#/rules")
        expect(page.get_by_role("button", name="Pause all rules…")).to_be_visible()

    def test_the_words_of_marks_are_all_there_and_cross_no_line(self):
        server = self.server(FORUM)
        server.take(7, act="reply", user="42")
        server.call("/v1/pause", {"for": "10m"})
        server.call("/v1/pause", method="DELETE")
        for locale, words in {"en-US": ["started: counts begin here", "rules paused", "pause ended"], "zh-CN": ["启动，重新计数", "规则已暂停", "暂停结束"]}.items():
            page = self.open(server, "#/?range=5m", locale=locale)
            label = page.locator(".chart svg text.mark-t")
            expect(label).to_have_text(words)
            self.assertEqual(page.evaluate(CROSSED), [])

    def test_after_a_ban_the_rule_is_not_blamed_and_the_row_offers_no_second_ban(self):
        server = self.server(FORUM)
        server.take(130, act="reply", user="42")
        page = self.open(server)
        expect(page.locator(".lead")).to_contain_text("reply denies user=42")
        row = page.get_by_role("row").filter(has_text="user=42").filter(has=page.get_by_role("link", name="reply", exact=True))
        number = page.get_by_role("link", name=re.compile("^Live")).locator("small")
        expect(number).to_have_class("denied")
        expect(row.get_by_role("button", name="ban user=42", exact=True)).to_be_visible()
        ban = server.call("/v1/bans", {"field": "user", "value": "42", "for": "1h"})
        server.take(30, act="reply", user="42")
        expect(page.locator(".lead")).to_have_text("user=42 is banned by hand")
        expect(page.locator(".verdict .more")).to_have_text(re.compile(r"Bans by hand deny [\d.]+/s since \d\d:\d\d\."))
        expect(page.locator(".verdict").get_by_role("link", name="Open bans")).to_be_visible()
        # The number in the menu is orange while the sentence is.
        expect(number).to_have_class("")
        # What the ban denies is among what is denied most, and leads to the bans.
        banned = page.get_by_role("row").filter(has_text="user=42").filter(has=page.get_by_role("link", name="bans by hand", exact=True))
        expect(banned.locator(".num")).to_have_text("30")
        expect(banned.locator(".tag")).to_have_text("banned")
        expect(row.get_by_role("button", name="ban user=42", exact=True)).to_have_count(0)
        expect(row.locator(".tag")).to_have_text("banned")
        self.go(page, "#/rules/reply")
        denied = page.locator(".card").filter(has=page.get_by_role("heading", name="Denied", exact=True))
        expect(denied.get_by_role("row").filter(has_text="user=42").locator(".tag")).to_have_text("banned")
        # Lifted, it can be banned again.
        server.call(f"/v1/bans/{ban['id']}", method="DELETE")
        expect(denied.get_by_role("row").filter(has_text="user=42").get_by_role("button", name="ban")).to_be_visible()

    def test_a_ban_of_everybody_is_the_news_at_once_and_on_every_page(self):
        server = self.server(FORUM)
        server.take(400, act="reply", user="42", ip="10.0.0.7")
        page = self.open(server)
        expect(page.locator(".lead")).to_contain_text("reply denies user=42")
        ban = server.call("/v1/bans", {"field": "ip", "value": "0.0.0.0/0", "for": "1h"})
        seen = threading.Event()

        def ask():
            while not seen.wait(0.1):
                server.take(1, act="view", user="7", ip="10.0.0.7")

        asking = threading.Thread(target=ask)
        asking.start()
        self.addCleanup(asking.join)
        self.addCleanup(seen.set)
        # The minute of the rule's denials is not over.
        expect(page.locator(".lead")).to_have_text(re.compile(r"^Bans by hand deny [\d.]+/s since \d\d:\d\d$"), timeout=20_000)
        expect(page.get_by_role("link", name=re.compile("^Live")).locator("small")).to_have_class("denied")
        expect(page.locator(".verdict").get_by_role("link", name="Open bans")).to_be_visible()
        notice = page.locator(".notice").filter(has_text="A ban by hand denies every IPv4 address until")
        for address in ("#/", "#/rules", "#/store"):
            self.go(page, address)
            expect(notice.get_by_role("link", name="Open bans")).to_be_visible()
        server.call(f"/v1/bans/{ban['id']}", method="DELETE")
        expect(notice).to_have_count(0)

    def test_a_noticeable_part_is_told_calmly_with_its_rule(self):
        server = self.server(FORUM)
        server.take(7, act="reply", user="42")
        page = self.open(server)
        lead = page.locator(".lead")
        # Too few a second for the orange sentence, and too large a part for "All well".
        expect(lead).to_have_text(re.compile(r"^Denied: [\d.]+/s, 28\.6 % of all, by reply$"))
        expect(lead.locator("svg.denied")).to_have_count(0)
        expect(page.get_by_text("All well")).to_have_count(0)
        # A ban denies too: the rule is named as what denies most.
        server.call("/v1/bans", {"field": "user", "value": "9", "for": "1h"})
        server.take(1, act="view", user="9")
        expect(lead).to_have_text(re.compile("^Denied: .* of all, most by reply$"))
        number = page.get_by_role("link", name=re.compile("^Live")).locator("small")
        expect(number).to_have_class("")
        self.go(page, "#/live")
        expect(page.locator(".bar b").filter(has_text="/s")).to_have_class("")
        self.go(page, "#/")
        # A hundredth of all is no news.
        server.take(150, act="view", user="1")
        expect(lead).to_contain_text("All well: ")

    def test_headline_and_rates_agree_in_the_first_minute(self):
        server = self.server(FORUM)
        page = self.open(server)
        # Requests that no rule denies come first: the rule has no counts of these seconds.
        expect(page.locator(".lead")).to_contain_text("rules are in force, and nothing was asked yet")
        server.take(1, act="view", user="1")
        expect(page.get_by_text("All well: nobody is denied")).to_be_visible()
        server.take(400, act="reply", user="42")
        expect(page.locator(".lead")).to_contain_text("reply denies user=42")
        said, counted = page.evaluate("() => [document.querySelector('.lead span.denied').textContent, [...document.querySelectorAll('.strip > div')].find(e => e.querySelector('dt').textContent === 'Denied').querySelector('.n').textContent]")
        self.assertEqual(said, counted)

    def test_a_captcha_is_told_apart_from_a_denial(self):
        server = self.server(CAPTCHA)
        server.take(130, act="post", user="42")
        page = self.open(server, "#/?range=5m")
        expect(page.locator(".lead")).to_contain_text(re.compile(r"^robots asks user=42 for captcha, [\d.]+/s since"))
        numbers = page.locator(".strip > div")
        expect(numbers.filter(has=page.get_by_text("Denied", exact=True)).locator(".n")).to_have_text("0/s")
        expect(numbers.filter(has=page.get_by_text("Asked for captcha", exact=True)).locator(".n")).not_to_have_text("0/s")
        expect(page.get_by_role("row").filter(has_text="user=42").locator(".tag")).to_have_text("captcha")
        page.get_by_role("button", name="as a table").click()
        region = page.get_by_role("region", name="as a table")
        expect(region.get_by_role("columnheader", name="captcha/s")).to_be_visible()
        self.go(page, "#/rules/robots")
        expect(page.locator(".lead")).to_contain_text("Asks for captcha")
        expect(page.get_by_role("heading", name="Asked for captcha")).to_be_visible()

    def test_live_tells_the_action_and_is_filtered_by_subject(self):
        server = self.server(CAPTCHA)
        server.take(3, act="post", user="42")
        server.take(3, act="post", user="7")
        server.take(1, act="sign-up", user="8")
        server.take(1, act="scrape", user="9")
        page = self.open(server, "#/live")
        rows = page.locator("table.live tbody tr")
        expect(rows).to_have_count(6)
        cells = {name: index for index, name in enumerate(page.locator("table.live th").all_inner_texts())}
        asked = rows.filter(has_text="user=8").get_by_role("cell")
        expect(asked.nth(cells["action"])).to_have_text("captcha")
        self.assertEqual(asked.nth(cells["passes in"]).inner_text(), "–")
        blocked = rows.filter(has_text="user=9").get_by_role("cell")
        expect(blocked.nth(cells["action"])).to_have_text("deny")
        expect(blocked.nth(cells["passes in"])).to_have_text("never")
        page.keyboard.press("/")
        page.keyboard.type("user=42")
        expect(rows).to_have_count(2)
        server.take(1, act="post", user="7")
        server.take(1, act="post", user="42")
        expect(rows).to_have_count(3)
        page.get_by_role("searchbox").fill("nobody")
        expect(page.get_by_text("No row has these words.")).to_be_visible()
        page.get_by_role("searchbox").fill("")
        expect(rows).to_have_count(8)
        # Why, in the words of the action.
        rows.filter(has_text="user=8").click()
        expect(page.locator(".lead")).to_have_text("asked asks for captcha")

    def test_a_pause_of_live_counts_what_waits(self):
        server = self.server(CAPTCHA)
        server.take(2, act="scrape", user="9")
        page = self.open(server, "#/live")
        rows = page.locator("table.live tbody tr")
        expect(rows).to_have_count(2)
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Go on p", exact=True)).to_be_visible()
        server.take(3, act="scrape", user="7")
        go_on = page.get_by_role("button", name="Go on, 3 new")
        expect(go_on).to_be_visible()
        expect(rows).to_have_count(2)
        # Who follows a row and goes back finds the words, the pause and the rows; what waits is what the words show.
        page.get_by_role("searchbox").fill("user=9")
        expect(page.get_by_role("button", name="Go on p", exact=True)).to_be_visible()
        self.assertNotIn("user", page.url)
        page.get_by_role("row", name=re.compile("^inspect .*user=9")).first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Subject")
        server.take(1, act="scrape", user="9")
        page.go_back()
        expect(page.get_by_role("searchbox")).to_have_value("user=9")
        expect(page.get_by_role("button", name="Go on, 1 new")).to_be_visible()
        expect(rows).to_have_count(2)
        server.take(1, act="scrape", user="7")
        page.get_by_role("searchbox").fill("")
        go_on = page.get_by_role("button", name="Go on, 5 new")
        expect(go_on).to_be_visible()
        go_on.click()
        expect(rows).to_have_count(7)
        page.get_by_label("rule", exact=True).select_option("blocked")
        expect(rows).to_have_count(7)
        rows.first.click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Subject")
        page.go_back()
        expect(page.get_by_label("rule", exact=True)).to_have_value("blocked")
        expect(page.get_by_role("button", name="Pause")).to_be_visible()

    def test_live_tells_actions_in_chinese(self):
        server = self.server(CAPTCHA)
        server.take(1, act="scrape", user="9")
        server.take(1, act="sign-up", user="8")
        page = self.open(server, "#/live", locale="zh-CN")
        rows = page.locator("table.live tbody tr")
        expect(rows).to_have_count(2)
        cells = {name: index for index, name in enumerate(page.locator("table.live th").all_inner_texts())}
        expect(rows.filter(has_text="user=9").get_by_role("cell").nth(cells["动作"])).to_have_text("拒绝")
        # A word of the rule's own stays as the file has it.
        expect(rows.filter(has_text="user=8").get_by_role("cell").nth(cells["动作"])).to_have_text("captcha")
        page.get_by_role("searchbox").fill("拒绝")
        expect(rows).to_have_count(1)

    def test_live_finds_denials_by_bans_by_hand(self):
        server = self.server(CAPTCHA)
        server.take(1, act="scrape", user="9")
        server.call("/v1/bans", {"field": "user", "value": "66", "for": "1h"})
        server.take(2, act="view", user="66")
        page = self.open(server, "#/live")
        rows = page.locator("table.live tbody tr")
        expect(rows).to_have_count(3)
        cells = {name: index for index, name in enumerate(page.locator("table.live th").all_inner_texts())}
        banned = rows.filter(has_text="user=66").first.get_by_role("cell")
        expect(banned.nth(cells["rule"])).to_have_text("bans by hand")
        expect(banned.nth(cells["subject"])).to_have_text("user=66")
        expect(banned.nth(cells["other fields"])).to_have_text("act=view")
        search = page.get_by_role("searchbox", name="Any word of these rows")
        for words, count in {"by hand": 2, "ban": 2, "blocked": 1, "66 view": 2}.items():
            search.fill(words)
            expect(rows).to_have_count(count)
        search.fill("")
        page.get_by_label("rule", exact=True).select_option("bans by hand")
        expect(rows).to_have_count(2)
        server.take(1, act="scrape", user="9")
        server.take(1, act="view", user="66")
        expect(rows).to_have_count(3)
        expect(rows.filter(has_text="user=9")).to_have_count(0)

    def test_with_rules_in_force_the_overview_waits_for_requests(self):
        server = self.server(FORUM)
        page = self.open(server)
        expect(page.locator(".lead")).to_have_text("4 rules are in force, and nothing was asked yet")
        expect(page.get_by_text("Send a request, and watch it be denied")).to_have_count(0)
        expect(page.get_by_text("Make it a rule")).to_have_count(0)
        # The line that it offers is a request that the rule counts.
        line = page.locator("pre.cmd").filter(has_text="redis-cli").inner_text()
        words = re.search(r"FG\.TAKE (.*?)(?:\n|copy|$)", line).group(1).replace("'", "").split()
        server.command("FG.TAKE", *words)
        expect(page.get_by_role("heading", name="Allowed and denied")).to_be_visible()
        counted = {rule["name"]: rule["total"]["allowed"] for rule in server.call("/v1/policy")["rules"]}
        self.assertEqual(counted["reply"], 1)


if __name__ == "__main__":
    unittest.main()
