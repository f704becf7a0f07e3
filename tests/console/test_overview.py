"""The first minutes and the night: start card, who is denied and why, ban and lift, shadow rules."""

import re
import time
import unittest
import urllib.request

from harness import FORUM, PATIENCE_MS, Journey, expect

SHADOW = """
[[rule]]
name   = "strict"
when   = { act = "search", user = "*" }
by     = ["user"]
limits = ["2/60s"]
shadow = true
"""

SPACING = """
[[rule]]
name   = "spacing"
when   = { act = ["reply", "post"], user = "*", captcha = "!*" }
by     = ["user"]
limits = ["1/60s"]
"""

ROBOTS = """
[[rule]]
name   = "robots"
when   = { "header.user-agent" = "~(?i)bot|spider|crawl", ip = "*" }
by     = ["ip"]
limits = ["bucket 30/h burst=1"]

[[rule]]
name   = "addresses"
when   = { ip = "*" }
by     = ["ip"]
limits = ["100/min"]
"""


class Overview(Journey):
    def test_01_the_newcomer(self):
        server = self.server(token=None, terminal=True)
        page = self.page(server)
        page.goto(server.link())
        expect(page.get_by_text("Send a request, and watch it be denied")).to_be_visible()
        self.assertNotIn("login=", page.url)
        expect(page.get_by_role("textbox", name="limit")).to_have_value("5/60s")
        # With this range the numbers are asked for every second. The card stays though they count its own requests.
        page.get_by_role("button", name="5m").click()
        for number in range(1, 7):
            page.get_by_role("button", name=re.compile("^Send")).click()
            expect(page.get_by_text(f"sent {number} time")).to_be_visible()
            with page.expect_response(lambda answer: "/v1/stats/history" in answer.url and sum(filter(None, answer.json()["total"]["allowed"])) > 0):
                pass
        expect(page.locator(".sent li.no")).to_contain_text("passes in")
        # The numbers of the overview count it. It shows them once the card is left.
        page.get_by_role("link", name="Rules").click()
        with self.timed("the overview counts it", 2):
            page.get_by_role("link", name="Overview").click()
            expect(page.get_by_role("heading", name="Allowed and denied")).to_be_visible()
            expect(page.get_by_role("row").filter(has_text="user:42:reply").locator(".num")).to_have_text("1")

    def test_02_who_is_denied_and_why_and_03_ban_and_lift(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        page = self.open(server)
        row = page.get_by_role("row").filter(has_text="user=42")
        expect(row).to_contain_text("reply")
        expect(row.locator(".num")).to_have_text("15")
        # The two tables beside each other are of different times, and say so.
        expect(page.locator(".card").filter(has=page.get_by_role("heading", name="Denied most")).locator("header .label")).to_have_text("the last two minutes")
        expect(page.locator(".card").filter(has=page.get_by_role("heading", name="Rules that deny most")).locator("header .label")).to_have_text("last 1 h, every 10 s")
        since = server.call("/v1/stats")["most_denied"]["subjects"][0]["first"]
        shown = page.evaluate("at => new Intl.DateTimeFormat('en-US', {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'}).format(at * 1000)", since)
        expect(row.locator("time").first).to_contain_text(shown)
        row.get_by_role("button", name="inspect").click()
        expect(page.get_by_role("heading", name="Subject")).to_be_visible()
        expect(page.get_by_label("value of user")).to_have_value("42")
        sentence = page.locator(".lead")
        expect(sentence).to_contain_text("Denied by reply, passes in")
        expect(page.locator(".rulebox").filter(has_text="5/60s")).to_contain_text("0 of 5 left")
        expect(page.locator(".rulebox").filter(has_text="5/60s").locator("svg rect.zero").first).to_be_attached()
        expect(page.locator(".verdict .more")).to_have_text(re.compile(r"^As of \d\d:\d\d:\d\d\. Until \d\d:\d\d:\d\d\.$"))
        # A limit is shown whole.
        for limit in page.locator(".lim > code").all():
            self.assertEqual(limit.evaluate("e => e.scrollWidth - e.clientWidth"), 0, limit.inner_text())
        # Ban it.
        page.get_by_role("button", name="Ban by hand…").click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        dialog.get_by_label("Reason").fill("floods")
        dialog.get_by_role("button", name="Ban for 1 h").click()
        expect(dialog).to_have_count(0)
        expect(sentence).to_contain_text("ban by hand")
        self.assertEqual(self.taken(server), "0", "FG.TAKE is denied")
        page.get_by_role("link", name="Bans").click()
        banned = page.get_by_role("row").filter(has_text="user=42")
        expect(banned).to_contain_text("floods")
        expect(banned.locator(".num")).to_have_text(re.compile(r"^(5\d min( \d+ s)?|1 h)$"))
        left = banned.locator(".num").inner_text()
        expect(banned.locator(".num")).not_to_have_text(left)
        banned.get_by_role("button", name="lift").click()
        expect(page.get_by_text("Nobody is banned")).to_be_visible()
        self.assertEqual(self.taken(server), "1", "it passes")

    def taken(self, server):
        """The verdict of FG.TAKE: the first number of its reply."""
        return re.search(r":(\d+)", server.command("FG.TAKE", "1", "act", "view", "user", "42")).group(1)

    def test_nothing_on_the_overview_is_cut(self):
        # A rule with an action of its own adds a sixth number.
        server = self.server(FORUM + '[[rule]]\nname = "crawlers"\nwhen = { act = "crawl" }\nby = ["ip"]\nlimits = ["1/h"]\naction = "captcha"\n' + ROBOTS)
        server.take(30, act="crawl", ip="203.0.113.177")
        server.take(150, act="login", ip="203.0.113.178")
        for locale in ("en-US", "zh-CN"):
            page = self.open(server, locale=locale)
            expect(page.locator("table.most tbody tr").first).to_be_visible()
            cut = page.evaluate("[...document.querySelectorAll('.strip dd, table.most td, .card > header > *')].filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.clientWidth).map(e => e.textContent)")
            self.assertEqual(cut, [])
            # The head of a card is one line.
            high = page.evaluate("[...document.querySelectorAll('.cols .card > header')].filter(e => e.getBoundingClientRect().height > 42).map(e => e.textContent)")
            self.assertEqual(high, [])

    def test_a_click_on_a_row_of_live_inspects(self):
        server = self.server(FORUM)
        server.take(6, act="reply", user="42")
        page = self.open(server, "#/live")
        page.get_by_role("row").filter(has_text="user=42").get_by_text("limit").click()
        expect(page.locator(".lead")).to_contain_text("Denied by reply")

    def test_inspect_asks_for_a_request_that_the_rule_denied(self):
        server = self.server(SPACING)
        server.take(2, act="reply", user="42")
        server.take(2, act="post", user="42")
        page = self.open(server)
        row = page.get_by_role("row").filter(has_text="user=42")
        row.get_by_role("button", name="inspect").click()
        expect(page.get_by_label("value of act")).to_have_value("post")
        expect(page.locator(".lead")).to_contain_text("Denied by spacing")

    def test_the_sentence_names_who_has_most_of_the_denials(self):
        server = self.server(FORUM)
        server.take(5, act="reply", user="7")
        for _ in range(4):
            server.take(30, act="reply", user="42")
            server.take(act="reply", user="7")
        page = self.open(server)
        expect(page.locator(".lead")).to_contain_text("reply denies mostly user=42")
        # Subjects are counted for a minute or two; the sentence below compares them with the denials of the same time.
        # Samples, of which a busy machine may lose some of the 115.
        expect(page.locator(".verdict .more")).to_contain_text(re.compile("119 times in 1 min.* 1[01][0-9] .*user=42"))

    def test_a_ban_begins_with_the_field_that_rules_count_by(self):
        server = self.server(FORUM)
        page = self.open(server, "#/bans")
        page.get_by_role("button", name="Ban…").click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        expect(dialog.get_by_label("Field")).to_have_value("user")
        expect(dialog).to_contain_text("Holds on this node.")

    def test_a_rule_that_matches_but_does_not_decide_is_not_called_unmatched(self):
        server = self.server(FORUM)
        server.take(2, act="reply", user="42")
        page = self.open(server, "#/rules")
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="spacing", exact=True))
        expect(row).to_contain_text("no decision yet")
        row.get_by_role("link").click()
        expect(page.locator(".lead")).to_contain_text("Has decided nothing in 1 h")
        expect(page.locator(".verdict .more")).to_contain_text("Each user: the first 30 per day of Asia/Shanghai freely, then 1 per 10 s.")

    def test_02_at_the_end_of_the_countdown_it_turns_to_allowed_by_itself(self):
        server = self.server('[[rule]]\nname = "short"\nwhen = { user = "*" }\nby = ["user"]\nlimits = ["1/4s"]\n')
        page = self.open(server, "#/subject")
        page.get_by_label("value of user").fill("7")
        # The sentences are noted as they come: on a busy machine a look at the page may come after the end of the wait.
        page.evaluate(
            """() => {
              window.said = [];
              new MutationObserver(() => window.said.push(document.querySelector(".lead")?.textContent ?? "")).observe(document.querySelector("#app"), {subtree: true, childList: true, characterData: true});
            }"""
        )
        denied = False
        while not denied:
            server.take(user="7")
            with page.expect_response(lambda answer: "/v1/explain" in answer.url) as asked:
                page.get_by_role("button", name="Ask").click()
            denied = not asked.value.json()["decision"]["allowed"]
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not any("Denied by short, passes in" in sentence for sentence in page.evaluate("window.said")):
            self.assertLess(time.monotonic(), deadline, "the denial is never told")
            page.wait_for_timeout(50)
        expect(page.locator(".lead")).to_contain_text("Allowed")

    def test_a_header_that_is_not_kept_is_asked_for_before_an_answer_is_shown(self):
        server = self.server(ROBOTS)
        server.take(5, **{"ip": "192.0.2.66", "path": "/", "header.user-agent": "robot"})
        page = self.open(server)
        page.get_by_role("row").filter(has_text="192.0.2.66").get_by_role("button", name="inspect").click()
        notice = page.locator(".notice")
        expect(notice).to_contain_text("Fill in header.user-agent, and ask")
        expect(notice).to_contain_text("robots matches no request without this field. Headers and queries of denied requests are not kept.")
        expect(page.get_by_text("Allowed: ")).to_have_count(0)
        page.get_by_label("value of header.user-agent").fill("robot")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator(".lead")).to_contain_text("Denied by robots")
        expect(notice).to_have_count(0)
        # A row of Live leads to the same question.
        self.go(page, "#/live")
        page.locator("table.live tbody tr").first.click()
        expect(notice).to_contain_text("Fill in header.user-agent, and ask")

    def test_a_subject_is_watched_and_found_again(self):
        server = self.server('[[rule]]\nname = "daily"\nwhen = { user = "*" }\nby = ["user"]\nlimits = ["3/day"]\n')
        page = self.open(server, "#/subject")
        page.get_by_label("value of user").fill("7")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator(".lead")).to_have_text("Allowed: 3 of 3 left under daily")
        # Nobody presses "Ask" again: counts and verdict follow.
        server.take(1, user="7")
        expect(page.locator(".lead")).to_have_text("Allowed: 2 of 3 left under daily")
        server.take(2, user="7")
        # A long wait has units, and the time of its end stands below.
        expect(page.locator(".lead")).to_have_text(re.compile(r"^Denied by daily, passes in 23 h 59 min$"))
        expect(page.locator(".verdict .more")).to_have_text(re.compile(r"^As of [\d:]+\. Until .*\d\d:\d\d"))
        page.get_by_role("link", name="Bans").click()
        page.get_by_role("link", name="Subject").click()
        expect(page.get_by_label("value of user")).to_have_value("7")
        expect(page.locator(".lead")).to_contain_text("Denied by daily")
        # A log-out forgets it.
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("admin_token or view_token").fill(server.token)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("link", name="Subject").click()
        expect(page.get_by_label("value of user")).to_have_value("")

    def test_a_ban_tells_its_command_and_its_end(self):
        server = self.server(FORUM)
        page = self.open(server, "#/bans")
        page.get_by_role("button", name="Ban…").click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        dialog.get_by_label("Value").fill("7")
        expect(dialog.locator("code")).to_have_text("flowgate ban user=7 --for 1h")
        dialog.get_by_label("Reason").fill("it's spam")
        expect(dialog.locator("code")).to_have_text("flowgate ban user=7 --for 1h --reason 'it'\\''s spam'")
        dialog.get_by_role("button", name="Ban for 1 h").click()
        until = server.call("/v1/bans/find", {})["bans"][0]["until"]
        shown = page.evaluate("at => new Intl.DateTimeFormat('en-US', {hour: '2-digit', minute: '2-digit', hourCycle: 'h23'}).format(at * 1000)", until)
        expect(page.get_by_role("columnheader", name="until")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="user=7").locator("time").first).to_have_text(shown)

    def test_cancel_of_a_ban_leaves_the_page_as_it_was(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        page = self.open(server)
        row = page.get_by_role("row").filter(has_text="user=42")
        row.get_by_role("button", name="ban user=42", exact=True).click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        expect(dialog.get_by_label("Value")).to_have_value("42")
        dialog.get_by_role("button", name="Cancel").click()
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        expect(row.get_by_role("button", name="ban user=42", exact=True)).to_be_focused()
        # Banned from there, the row says so.
        row.get_by_role("button", name="ban user=42", exact=True).click()
        dialog.get_by_role("button", name="Ban for 1 h").click()
        expect(row.locator(".tag")).to_have_text("banned")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

    def test_a_ban_tells_the_whole_command_and_what_the_server_warns_of(self):
        server = self.server(FORUM)
        page = self.open(server, "#/bans")
        page.get_by_role("button", name="Ban…").click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        dialog.get_by_label("Field").fill("ip")
        dialog.get_by_label("Value").fill("0.0.0.0/0")
        reason = "a long reason " * 20
        dialog.get_by_label("Reason").fill(reason)
        expect(dialog.locator("code")).to_have_text(f"flowgate ban ip=0.0.0.0/0 --for 1h --wide --reason '{reason}'")
        self.assertLessEqual(dialog.evaluate("e => e.scrollWidth - e.clientWidth"), 0)
        dialog.get_by_role("button", name=re.compile("^Ban .* for 1 h$")).click()
        toast = page.locator(".toast")
        expect(toast).to_contain_text("Banned ip=0.0.0.0/0.")
        expect(toast.locator("[lang=en]")).to_contain_text("lift it if that is not meant")
        toast.get_by_role("button", name="Lift this ban").click()
        expect(page.get_by_text("Nobody is banned")).to_be_visible()

    def test_the_form_of_a_ban_tells_mistakes_before_the_click(self):
        server = self.server(FORUM)
        page = self.open(server, "#/bans")
        page.get_by_role("button", name="Ban…").click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        dialog.get_by_label("Value").fill("0.0.0.0/0")
        # It is a value of the field `user`, so that no width is told; the address is offered.
        expect(dialog.get_by_text("0.0.0.0/0 reads as an address or a network, and the field is user.")).to_be_visible()
        expect(dialog.get_by_text("holds 4,294,967,296 addresses")).to_have_count(0)
        dialog.get_by_role("button", name="Ban ip=0.0.0.0/0", exact=True).click()
        expect(dialog.get_by_label("Field")).to_have_value("ip")
        expect(dialog.get_by_text("holds 4,294,967,296 addresses")).to_be_visible()
        ban = dialog.locator("footer .danger")
        for wrong in ("10.0.0.0/33", "999.1.1.1"):
            dialog.get_by_label("Value").fill(wrong)
            expect(dialog.get_by_role("alert")).to_contain_text("neither an address nor a network")
            expect(ban).to_be_disabled()
        dialog.get_by_label("Value").fill("::ffff:192.0.2.7")
        expect(ban).to_be_enabled()
        dialog.get_by_role("button", name="other…").click()
        dialog.get_by_label("length").fill("5 parsecs")
        expect(dialog.get_by_role("alert")).to_contain_text("Expected a number and a unit")
        expect(ban).to_be_disabled()
        dialog.get_by_label("length").fill("90m")
        ban.click()
        expect(page.get_by_role("row").filter(has_text="192.0.2.7")).to_be_visible()

    def test_a_wide_ban_is_imposed_again_only_after_a_question(self):
        server = self.server(FORUM)
        server.call("/v1/bans", {"field": "ip", "value": "10.0.0.0/7", "for": "1h", "reason": "a test"})
        page = self.open(server, "#/bans", locale="zh-CN", viewport={"width": 360, "height": 640})
        page.get_by_role("button", name="解除对 ip=10.0.0.0/7 的封禁").click()
        toast = page.locator(".toast")
        again = toast.get_by_role("button", name="重新封禁")
        # The sentence has the width of the toast.
        self.assertGreater(toast.locator("> span").bounding_box()["width"], 250)
        again.click()
        dialog = page.get_by_role("dialog", name="手动封禁")
        expect(dialog.get_by_label("值或网段")).to_have_value("10.0.0.0/7")
        expect(dialog.get_by_label("原因")).to_have_value("a test")
        self.assertEqual(server.call("/v1/bans")["bans"], [])
        dialog.locator("footer .danger").click()
        expect(toast).to_contain_text("已封禁 ip=10.0.0.0/7。")
        # What it offers belongs to this page.
        self.go(page, "#/rules")
        expect(toast).to_have_count(0)

    def test_a_ban_from_the_page_of_a_subject_is_of_that_subject(self):
        server = self.server(FORUM)
        server.take(20, ip="10.0.0.7", act="reply", user="u17")
        page = self.open(server)
        page.get_by_role("row").filter(has_text="user=u17").get_by_role("button", name="inspect").click()
        expect(page.get_by_label("value of ip")).to_have_value("10.0.0.7")
        dialog = page.get_by_role("dialog", name="Ban by hand")
        page.get_by_role("button", name="Ban by hand…").click()
        expect(dialog.get_by_label("Field")).to_have_value("user")
        expect(dialog.get_by_label("Value")).to_have_value("u17")
        dialog.get_by_role("button", name="Cancel").click()
        # Typed, it is whom the deciding rule counts.
        self.go(page, "#/subject?fields=ip%3D10.0.0.7+act%3Dreply+user%3Du17")
        page.reload()
        page.get_by_role("button", name="Ban by hand…").click()
        expect(dialog.get_by_label("Value")).to_have_value("u17")

    def test_inspect_stays_in_its_column_beside_banned(self):
        server = self.server(FORUM)
        for user in ("7", "8"):
            server.take(20, act="reply", user=user)
        server.call("/v1/bans", {"field": "user", "value": "7", "for": "1h"})
        page = self.open(server)
        expect(page.get_by_role("row").filter(has_text="user=7").locator(".tag")).to_have_text("banned")
        left = [page.get_by_role("row").filter(has_text=f"user={user}").get_by_role("button", name="inspect").bounding_box()["x"] for user in ("7", "8")]
        self.assertAlmostEqual(left[0], left[1], delta=1)

    def test_10_a_shadow_rule_denies_nobody(self):
        server = self.server(SHADOW)
        server.take(10, act="search", user="7")
        page = self.open(server, "#/rules/strict")
        expect(page.locator(".lead")).to_contain_text("Would have denied 8 times in 1 h")
        with urllib.request.urlopen(f"{server.origin}/metrics") as answer:
            metrics = answer.read().decode()
        self.assertIn('flowgate_shadow_denials_total{rule="strict"} 8', metrics)
        self.assertIn('flowgate_decisions_total{rule="strict",action="deny"} 0', metrics)
        self.assertIn('flowgate_decisions_total{rule="(none)",action="allow"} 10', metrics, "nobody was denied")
        expect(page.get_by_role("row").filter(has_text="user=7").first).to_be_visible()
        # The list of rules does not count it among those that deny.
        self.go(page, "#/rules")
        expect(page.get_by_role("row").filter(has_text="strict").locator(".num")).to_contain_text("8")
        expect(page.locator("label").filter(has_text="denied now")).to_contain_text("denied now 0")

    def test_a_rule_in_the_list_is_whole(self):
        server = self.server(ROBOTS.replace('by     = ["ip"]', 'by     = ["ip"]\nshadow = true', 1))
        page = self.open(server, "#/rules")
        row = page.get_by_role("row").filter(has_text="robots")
        expect(row.locator("td").last).to_have_text("no decision yet")
        for cell in row.locator("td").all():
            self.assertLessEqual(cell.evaluate("e => e.scrollWidth - e.clientWidth"), 0, cell.inner_text())
        # The expression is in one line.
        expression = row.locator(".cond > bdi").first
        expect(expression).to_have_text("~(?i)bot|spider|crawl")
        self.assertLess(expression.bounding_box()["height"], 20)

    def test_on_a_phone_the_title_is_whole_and_in_chinese_actions_are_words(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        page = self.open(server, locale="zh-CN", viewport={"width": 345, "height": 740})
        title = page.get_by_role("heading", level=1)
        expect(title).to_have_text("概览")
        self.assertLessEqual(title.evaluate("e => e.scrollWidth - e.clientWidth"), 0)
        page = self.open(server, "#/rules", locale="zh-CN")
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="reply", exact=True))
        expect(row.get_by_role("cell").nth(4)).to_contain_text("拒绝")

    def test_on_a_phone_the_bar_has_room_for_every_state(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        server.call("/v1/sample", {"for": "10m"})
        for locale in ("en-US", "zh-CN"):
            page = self.open(server, locale=locale, viewport={"width": 360, "height": 640})
            expect(page.locator(".bar .seg")).to_be_visible()
            expect(page.get_by_role("link", name="recording" if locale == "en-US" else "录制中")).to_be_visible()
            cut = page.evaluate("[...document.querySelectorAll('.bar > h1, .bar > .state')].filter(e => e.scrollWidth > e.clientWidth || e.getBoundingClientRect().width < 8).map(e => e.textContent)")
            self.assertEqual(cut, [])

    def test_on_a_phone_the_list_of_rules_has_limits(self):
        server = self.server(FORUM)
        page = self.open(server, "#/rules", viewport={"width": 360, "height": 640})
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="reply", exact=True))
        limits = row.get_by_text("5/60s, fixed 100/day tz=Asia/Shanghai")
        expect(limits.locator("visible=true")).to_have_count(1)
        self.assertLessEqual(limits.locator("visible=true").evaluate("e => e.scrollWidth - e.clientWidth"), 0)


if __name__ == "__main__":
    unittest.main()
