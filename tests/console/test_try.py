"""Try: the draft against recorded traffic, with the numbers of `flowgate replay --compare`."""

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


class Try(Journey):
    def test_09_the_numbers_are_those_of_a_replay(self):
        server = self.server(FORUM)
        page = self.open(server, "#/edit")
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(DRAFT)
        self.go(page, "#/try")
        expect(page.get_by_text("Nothing is recorded.")).to_be_visible()
        page.get_by_role("button", name="1 min").click()
        page.get_by_role("button", name="Record").click()
        expect(page.get_by_role("link", name="recording")).to_be_visible()
        for user, times in REPLIES.items():
            server.take(times, act="reply", user=user)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("link", name="recording")).to_have_count(0)
        expect(page.get_by_text(re.compile("^The draft would have denied"))).to_be_visible()
        expect(page.get_by_text(f"{sum(REPLIES.values())} requests")).to_be_visible()
        replayed = self.replay(server)
        newly = replayed["compare"]["newly_denied"]
        self.assertGreater(newly["requests"], 0)
        expect(page.locator(".lead")).to_have_text(f"The draft would have denied {newly['requests']} more, of {newly['subjects']['count']} subjects")
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="reply", exact=True))
        before = next(rule for rule in replayed["rules"] if rule["name"] == "reply")
        after = next(rule for rule in replayed["compare"]["outcome"]["rules"] if rule["name"] == "reply")
        cells = row.get_by_role("cell")
        expect(cells.nth(1)).to_have_text(str(before["denied"]))
        expect(cells.nth(2)).to_have_text(str(after["denied"]))
        expect(cells.nth(3)).to_have_text(f"+{newly['requests']}")
        share = lambda outcome: f"{100 * outcome['denied'] / outcome['requests']:.1f}"
        more = page.locator(".verdict .more")
        expect(more).to_contain_text(share(replayed))
        expect(more).to_contain_text(share(replayed["compare"]["outcome"]))
        curve = next(each for each in replayed["what_if"]["curves"] if each["rule"] == "reply")
        expect(page.get_by_text("The sample has 5 subjects of this rule: too few for advice.")).to_be_visible()
        expect(page.get_by_text(curve["advice"])).to_have_count(0)
        if curve["spares"] is not None:
            expect(cells.nth(5)).to_have_text(curve["points"][curve["spares"]]["count"])
        expect(page.get_by_text("longer than the sample").first).to_be_visible()
        for hit in newly["most"]:
            found = page.get_by_role("row").filter(has_text=f"user={hit['subject']}").filter(has_text="inspect")
            expect(found.locator(".num")).to_have_text(f"+{hit['count']}")
        page.get_by_role("button", name="Forget").click()
        expect(page.get_by_text("Nothing is recorded.")).to_be_visible()
        self.assertEqual(server.call("/v1/sample")["requests"], 0)

    def test_09_advice_is_of_many_subjects(self):
        server = self.server(FORUM)
        server.call("/v1/sample", {"for": "1m"})
        for user in range(100):
            server.take(3, act="reply", user=str(user))
        page = self.open(server, "#/try")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("The sample has 100 subjects of this rule.")).to_be_visible()
        expect(page.get_by_text(re.compile("99.9 % of users"))).to_be_visible()

    def replay(self, server):
        """The same requests, replayed by the command."""
        folder = pathlib.Path(server.folder.name)
        (folder / "draft.toml").write_text(DRAFT)
        lines = [json.dumps({"ts": 1_700_000_000 + i / 100, "fields": {"act": "reply", "user": user}}) for i, user in enumerate(u for u, times in REPLIES.items() for _ in range(times))]
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
