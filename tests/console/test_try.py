"""Try: the draft against recorded traffic, with the numbers of `flowgate replay --compare`."""

import datetime
import json
import pathlib
import re
import subprocess
import unittest
import urllib.error

from harness import BINARY, FORUM, Journey, expect

DRAFT = FORUM.replace('limits = ["5/60s", "fixed', 'limits = ["3/60s", "fixed')
# Each user replies so often, all within the same minute.
REPLIES = {"1": 2, "2": 4, "3": 5, "4": 9, "5": 20}


def shorn(answer):
    """An answer without the instants within a second, which the timeline does not tell."""
    if isinstance(answer, dict):
        return {name: shorn(value) for name, value in answer.items() if name not in ("first", "last")}
    return [shorn(each) for each in answer] if isinstance(answer, list) else answer


class Try(Journey):
    def test_09_the_numbers_are_those_of_a_replay(self):
        server = self.server(FORUM)
        page = self.open(server, "#/edit")
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(DRAFT)
        self.go(page, "#/try")
        expect(page.get_by_text("Nothing is recorded.")).to_be_visible()
        # What a sample can judge: a minute, but not a day.
        expect(page.get_by_text("For 3/60s in reply, the longest period that a sample can judge, record 5 min at least")).to_be_visible()
        expect(page.get_by_text("For fixed 100/day tz=Asia/Shanghai in reply no sample is long enough")).to_be_visible()
        expect(page.get_by_role("button", name="5 min", exact=True)).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="1 min").click()
        page.get_by_role("button", name="Record").click()
        expect(page.get_by_role("link", name="recording")).to_be_visible()
        for user, times in REPLIES.items():
            server.call("/v1/batch", [{"op": "take", "fields": {"act": "reply", "user": user}}] * times)
            # The pace of the traffic, so that the charts have several periods.
            page.wait_for_timeout(600)
        with page.expect_response(lambda answer: "/v1/rules/try" in answer.url) as tried:
            page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("link", name="recording")).to_have_count(0)
        expect(page.get_by_text(f"{sum(REPLIES.values())} requests")).to_be_visible()
        replayed = self.replay(server, tried.value.json()["timeline"])
        self.whole_answer_is_that_of(tried.value.json(), replayed)
        self.sentence_is_that_of(page, replayed)
        self.tables_are_those_of(page, replayed)
        self.charts_are_those_of(page, replayed)
        page.get_by_role("button", name="Forget").click()
        expect(page.get_by_text("Nothing is recorded.")).to_be_visible()
        self.assertEqual(server.call("/v1/sample")["requests"], 0)

    def whole_answer_is_that_of(self, tried, replayed):
        """Every member that both answers have is the same, but for the names of the files."""
        self.assertGreater(replayed["compare"]["newly_denied"]["requests"], 0)
        for name in ("requests", "passed", "denied", "unmatched", "rules", "subjects_denied", "period_seconds", "timeline", "what_if"):
            self.assertEqual(tried[name], replayed[name], name)
        for name in ("outcome", "passed_by_both", "denied_by_both", "newly_denied", "newly_passed"):
            self.assertEqual(shorn(tried["compare"][name]), shorn(replayed["compare"][name]), name)

    def sentence_is_that_of(self, page, replayed):
        newly = replayed["compare"]["newly_denied"]
        expect(page.locator(".lead")).to_have_text(f"The draft would have denied {newly['requests']} more, of {newly['subjects']['count']} subjects")
        share = lambda outcome: f"{100 * outcome['denied'] / outcome['requests']:.1f} %"
        expect(page.locator(".verdict .more")).to_have_text(
            f"Denied: {share(replayed)} in force, {share(replayed['compare']['outcome'])} under the draft; {replayed['compare']['newly_passed']['requests']} newly passed."
        )

    def tables_are_those_of(self, page, replayed):
        compare = replayed["compare"]
        before = {rule["name"]: rule for rule in replayed["rules"]}
        of = lambda list: {each["rule"]: each["requests"] for each in list}
        newly, passed = of(compare["newly_denied"]["rules"]), of(compare["newly_passed"]["rules"])
        spares = {}
        for curve in replayed["what_if"]["curves"]:
            if curve["spares"] is not None:
                spares.setdefault(curve["rule"], curve["points"][curve["spares"]]["count"])
        rules = page.locator(".card").filter(has=page.get_by_role("heading", name="By rule"))
        expect(rules.locator("tbody tr")).to_have_count(len(compare["outcome"]["rules"]))
        for row, rule in zip(rules.locator("tbody tr").all(), compare["outcome"]["rules"]):
            name = rule["name"]
            more = f"+{newly[name]}" if newly.get(name) else "0"
            expected = [name, str(before[name]["denied"]), str(rule["denied"]), more, str(passed.get(name, 0)), spares.get(name, "–")]
            self.assertEqual(row.get_by_role("cell").all_inner_texts(), expected)
        whom = page.locator(".card").filter(has=page.get_by_role("heading", name="Newly denied", exact=True)).locator("tbody tr")
        hits = [(f"user={hit['subject']}", f"+{hit['count']}") for hit in compare["newly_denied"]["most"]]
        self.assertEqual([tuple(row.get_by_role("cell").all_inner_texts()[:2]) for row in whom.all()], hits)
        # Five subjects are too few to spare 99.9 % of.
        expect(page.get_by_text("The sample has 5 subjects of this rule: too few for advice.")).to_be_visible()
        expect(page.get_by_text("longer than the sample").first).to_be_visible()

    def charts_are_those_of(self, page, replayed):
        """Each number of both charts, from their tables; and as many points are drawn."""
        timeline, after = replayed["timeline"], replayed["compare"]["outcome"]["timeline"]
        curve = next(each for each in replayed["what_if"]["curves"] if each["rule"] == "reply")
        over_time = page.locator(".card").filter(has=page.get_by_role("heading", name="Over time"))
        what_if = page.locator(".card").filter(has=page.get_by_role("heading", name="reply: other counts"))
        bars = sum(period["denied"] > 0 for period in after)
        self.assertEqual(over_time.locator(".chart path.bars").get_attribute("d").count("M"), bars)
        self.assertEqual(len(over_time.locator(".chart polyline.edge").get_attribute("points").split()), len(timeline))
        expect(what_if.locator("circle.dot")).to_have_count(len(curve["points"]))
        expect(what_if.locator(".upright text").first).to_have_text(f"in force: {curve['points'][curve['configured']]['count']}")
        expect(what_if.locator(".upright text").nth(1)).to_have_text("draft: 3")
        clock = page.evaluate("starts => starts.map(start => new Intl.DateTimeFormat('en-US', {hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'}).format(new Date(start)))", [each["start"] for each in after])
        expected = [[time, str(now["denied"]), str(then["denied"])] for time, now, then in zip(clock, timeline, after, strict=True)]
        self.assertEqual(self.table_of(over_time), expected)
        self.assertEqual(self.table_of(what_if), [[point["count"], str(point["requests"]), str(point["subjects"])] for point in curve["points"]])

    def table_of(self, card):
        """The cells of a chart as a table."""
        card.get_by_role("button", name="as a table").click()
        expect(card.locator("tbody tr").first).to_be_visible()
        return [row.get_by_role("cell").all_inner_texts() for row in card.locator("tbody tr").all()]

    def test_09_advice_is_of_many_subjects(self):
        server = self.server(FORUM)
        server.call("/v1/sample", {"for": "1m"})
        for user in range(100):
            server.take(3, act="reply", user=str(user))
        page = self.open(server, "#/try")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("The sample has 100 subjects of this rule.")).to_be_visible()
        expect(page.get_by_text(re.compile("all 100 users"))).to_be_visible()

    def test_a_loosened_limit_tells_who_newly_passes_on_a_phone_too(self):
        server = self.server(FORUM)
        server.call("/v1/sample", {"for": "1m"})
        server.take(9, act="reply", user="1")
        page = self.open(server, "#/edit", viewport={"width": 360, "height": 640})
        page.get_by_role("textbox", name="text of the file").fill(FORUM.replace("5/60s", "7/60s"))
        self.go(page, "#/try")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".lead")).to_have_text("The draft would have let 2 more pass")
        rules = page.locator(".card").filter(has=page.get_by_role("heading", name="By rule"))
        cell = rules.get_by_role("row").filter(has_text="reply").locator("[data-l='newly passed']")
        expect(cell).to_be_visible()
        expect(cell).to_have_text("2")
        whom = page.locator(".card").filter(has=page.get_by_role("heading", name="Newly passed", exact=True))
        expect(whom.get_by_role("row").filter(has_text="user=1")).to_contain_text("−2")
        page.get_by_role("button", name="10 min").click()
        page.reload()
        expect(page.get_by_role("button", name="10 min")).to_have_attribute("aria-pressed", "true")

    def test_a_shadow_rule_is_compared_with_what_it_would_have_denied(self):
        server = self.server(FORUM.replace('name   = "reply"', 'name   = "reply"\nshadow = true'))
        server.call("/v1/sample", {"for": "1m"})
        server.take(9, act="reply", user="1")
        page = self.open(server, "#/try")
        expect(page.get_by_text("When the recording ends, the rules are tried on it.")).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        row = page.locator(".card").filter(has=page.get_by_role("heading", name="By rule")).get_by_role("row").filter(has_text="reply")
        expect(row.get_by_role("cell").nth(1)).to_have_text("4")
        expect(row.get_by_role("cell").nth(2)).to_have_text("4")
        # Without a draft nothing is said of one.
        expect(page.locator(".lead")).to_have_text("The rules in force deny 0 of 9 on this sample")
        expect(page.get_by_text("would have decided the same")).to_have_count(0)
        # The head of a card is one line, in both languages.
        for locale in ("en-US", "zh-CN"):
            page = self.open(server, "#/try", locale=locale)
            expect(page.locator(".chart svg").first).to_be_visible()
            high = page.evaluate("[...document.querySelectorAll('.card > header')].filter(e => e.getBoundingClientRect().height > 42).map(e => e.textContent)")
            self.assertEqual(high, [])

    def test_a_rule_on_a_header_is_not_judged_by_a_sample_without_headers(self):
        rule = '[[rule]]\nname = "{}"\nwhen = {{ {} ip = "*" }}\nby = ["ip"]\nlimits = ["{}"]\n'
        server = self.server(rule.format("robots", '"header.user-agent" = "~bot",', "2/h") + rule.format("addresses", "", "3/2s"))
        page = self.open(server, "#/try")
        page.get_by_role("button", name="1 min").click()
        page.get_by_role("button", name="Record").click()
        # Requests that come before the server has begun to record are in no sample.
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        server.take(4, **{"ip": "192.0.2.66", "header.user-agent": "bot"})
        # The recording is longer than the limit of two seconds.
        page.wait_for_timeout(2500)
        page.get_by_role("button", name="Stop").click()
        rules = page.locator(".card").filter(has=page.get_by_role("heading", name="By rule"))
        robots = rules.get_by_role("row").filter(has_text="robots")
        expect(robots.get_by_role("cell")).to_have_text(["robots", "–", "–", "–", "–", "–"])
        expect(rules).to_contain_text("these are not the denials that happened")
        cannot = page.locator(".card").filter(has=page.get_by_role("heading", name="What this sample cannot judge"))
        expect(cannot).to_contain_text("Headers and queries are not recorded: robots header.user-agent")
        expect(cannot).not_to_contain_text("Longer than the sample")
        # The length that was picked stays.
        self.go(page, "#/bans")
        self.go(page, "#/try")
        expect(page.get_by_role("button", name="1 min", exact=True)).to_have_attribute("aria-pressed", "true")

    def replay(self, server, timeline):
        """The same requests, replayed by the command. The timeline tells in which second each of them came."""
        folder = pathlib.Path(server.folder.name)
        (folder / "draft.toml").write_text(DRAFT)
        seconds = [datetime.datetime.fromisoformat(period["start"]).timestamp() for period in timeline for _ in range(period["passed"] + period["denied"])]
        users = [user for user, times in REPLIES.items() for _ in range(times)]
        lines = [json.dumps({"ts": second, "fields": {"act": "reply", "user": user}}) for second, user in zip(seconds, users, strict=True)]
        (folder / "trace.jsonl").write_text("\n".join(lines) + "\n")
        command = [BINARY, "replay", "--config", server.file, "--compare", folder / "draft.toml", "--input", folder / "trace.jsonl", "--json", "--advice"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout)

    def test_09_off_by_the_configuration(self):
        server = self.server(FORUM, settings='[console]\nsample = "off"\n')
        page = self.open(server, "#/try")
        expect(page.get_by_text("Recording is switched off by console.sample.")).to_be_visible()
        expect(page.get_by_role("button", name="Record")).to_have_count(0)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.call("/v1/sample", {"for": "1m"})
        self.assertEqual(refused.exception.code, 403)
        server.take(3, act="reply", user="1")
        self.assertEqual(server.call("/v1/sample")["requests"], 0)


if __name__ == "__main__":
    unittest.main()
