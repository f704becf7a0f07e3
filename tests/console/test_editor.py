"""The editor: mistakes at their place, difference, publish, history, roll back, conflicts."""

import re
import unittest

from harness import FORUM, Journey, expect

OLD, NEW = 'limits = ["5/60s", "fixed', 'limits = ["10/60s", "fixed'


class Editor(Journey):
    def edit(self, server, **options):
        page = self.open(server, "#/edit", **options)
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(re.compile("rule"))
        return page, text

    def publish(self, page, note):
        page.get_by_role("button", name="Publish…").click()
        dialog = page.get_by_role("dialog", name="Publish the draft")
        dialog.get_by_label("Note").fill(note)
        dialog.get_by_role("button", name="Publish", exact=True).click()
        expect(dialog).to_have_count(0)

    def test_04_a_mistake_is_marked_while_typing(self):
        server = self.server(FORUM)
        page, text = self.edit(server)
        with self.timed("a mistake is marked after the last key", 1):
            text.fill(FORUM.replace(OLD, 'limit = ["5/60s", "fixed'))
            expect(page.locator(".code-area mark")).to_have_text("limit")
        expect(page.locator(".finding")).to_contain_text("did you mean")
        expect(page.get_by_role("button", name="Publish…")).to_be_disabled()
        text.focus()
        page.keyboard.press("Control+Home")
        page.keyboard.press("F8")
        chosen = text.evaluate("area => area.value.slice(area.selectionStart, area.selectionEnd)")
        self.assertEqual(chosen, "limit")

    def test_a_hint_of_several_lines_stays_on_the_line_it_is_about(self):
        server = self.server(FORUM)
        page, text = self.edit(server)
        text.fill(FORUM.replace('name   = "post"', 'name   = "reply"'))
        expect(page.locator(".finding .hint")).to_contain_text("each needs its own; it is at ")
        hint = page.locator(".code-area .say")
        expect(hint).to_contain_text("each needs its own; it is at ")
        self.assertLessEqual(hint.bounding_box()["height"], 21, "the height of one line")

    def test_a_hint_that_is_longer_than_its_line_ends_at_the_edge(self):
        server = self.server(FORUM)
        for width in (1400, 360):
            page, text = self.edit(server, viewport={"width": width, "height": 800})
            text.fill(FORUM.replace('limits = ["5/60s", "fixed', 'zzz = ["5/60s", "fixed'))
            expect(page.locator(".finding .hint").first).to_contain_text("the keys are: name")
            hint, area = page.locator(".code-area .say").first, page.locator(".code-area .paint").bounding_box()
            box = hint.bounding_box()
            line = page.locator(".code-area .tx").filter(has=page.locator(".say")).first.bounding_box()
            # It ends with its line, cut with an ellipsis; where there is no room for words, the finding below has them.
            seen = box["y"] < line["y"] + line["height"] - 1
            self.assertEqual(seen, width == 1400)
            if seen:
                self.assertLessEqual(box["x"] + box["width"], area["x"] + area["width"] + 0.5)
                self.assertEqual(hint.evaluate("e => getComputedStyle(e).textOverflow"), "ellipsis")

    def test_the_steps_lead_to_what_they_name(self):
        server = self.server(FORUM)
        page, text = self.edit(server, viewport={"width": 360, "height": 480})
        text.fill(FORUM.replace(OLD, NEW))
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        for step, heading in (("Check", "Findings"), ("Difference", "Difference to the file")):
            page.locator(".steps").get_by_role("button", name=step, exact=True).click()
            expect(page.get_by_role("heading", name=heading)).to_be_in_viewport()
            page.evaluate("scrollTo(0, 0)")
            expect(page.get_by_role("heading", name=heading)).not_to_be_in_viewport()

    def test_the_findings_of_the_file_in_force_are_there_before_one_types(self):
        # The second limit has no effect beside the first.
        server = self.server(FORUM.replace('"5/60s"', '"5/60s", "50/60s"'))
        found = server.call("/v1/rules/validate", raw=server.file.read_text())["findings"]
        self.assertNotEqual(found, [])
        page = self.open(server, "#/edit")
        expect(page.locator(".finding")).to_have_count(len(found))
        expect(page.get_by_text("Type, and each mistake is shown here")).to_have_count(0)

    def test_hints_for_slips_in_short_words(self):
        server = self.server(FORUM)
        page, text = self.edit(server)
        text.fill(FORUM.replace('by     = ["user"]', 'byy    = ["user"]', 1))
        expect(page.locator(".finding .hint").first).to_have_text('did you mean "by"?')
        text.fill(FORUM.replace('"5/60s"', '"60/mn"', 1))
        expect(page.locator(".finding .hint").first).to_have_text('did you mean "min"?')
        expect(page.locator(".finding").first).to_contain_text("s, m, min, h")

    def test_a_draft_that_was_tried_has_its_tick(self):
        server = self.server(FORUM)
        server.call("/v1/sample", {"for": "10m"})
        server.take(5, act="reply", user="42")
        server.call("/v1/sample", {"for": "0s"})
        page, text = self.edit(server)
        text.fill(FORUM.replace(OLD, NEW))
        step = page.locator(".steps li").filter(has_text="Try")
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        expect(step.locator("svg")).to_have_count(0)
        step.get_by_role("link").click()
        expect(page.locator(".lead")).to_have_text("The draft would have decided the same")
        page.get_by_role("link", name="Back to the draft").click()
        expect(step.locator("svg")).to_have_count(1)
        page.reload()
        expect(step.locator("svg")).to_have_count(1)
        # Another text was not tried.
        text.fill(FORUM.replace(OLD, NEW) + "# more\n")
        expect(step.locator("svg")).to_have_count(0)

    def test_05_publish_and_06_roll_back(self):
        server = self.server(FORUM)
        server.take(3, act="reply", user="42")
        page, text = self.edit(server)
        text.fill(FORUM.replace(OLD, NEW))
        difference = page.locator(".diff").first
        expect(difference.locator(".tx.out")).to_have_count(1)
        expect(difference.locator(".tx.ins")).to_have_count(1)
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        self.publish(page, "reply: ten a minute")
        expect(page.locator(".toast").get_by_role("button", name="roll back")).to_be_visible()
        self.assertIn("10/60s", server.file.read_text())
        # The limit is another, and what was used stays used.
        answer = server.call("/v1/peek", {"fields": {"act": "reply", "user": "42"}})
        self.assertEqual((answer["limit"], answer["remaining"]), (10, 7))
        history = page.get_by_role("table").filter(has=page.get_by_role("columnheader", name="version"))
        published = history.get_by_role("row").filter(has_text="reply: ten a minute")
        # The note and the author have a line each.
        self.assertLess(published.bounding_box()["height"], 52)
        expect(published).to_contain_text("in force")
        expect(published).to_contain_text("admin token, 127.0.0.1")
        expect(history.get_by_role("row").filter(has_text="v1")).to_contain_text("found in the file")
        # The file is older than its entry, which the publication of v2 has written.
        expect(history.get_by_role("row").filter(has_text="v1").get_by_role("cell").nth(1)).to_contain_text("before ")
        expect(published.get_by_role("cell").nth(1)).not_to_contain_text("before")
        # The chart has a mark, drawn and in its table.
        mark = "v2 published"
        self.go(page, "#/?range=5m")
        expect(page.locator("svg[role=img] g title").filter(has_text=mark)).to_have_count(1)
        page.get_by_role("button", name="as a table").first.click()
        expect(page.get_by_role("region", name="as a table").get_by_text(mark)).to_be_visible()
        self.go(page, "#/edit")
        # What a version changed is compared with the one before it, also for the version in force.
        history.get_by_role("button", name="changes v2").click()
        expect(page.get_by_role("heading", name="What v2 changed in v1")).to_be_visible()
        expect(difference.locator(".tx.ins")).to_contain_text("10/60s")
        expect(history.get_by_role("button", name="changes v1")).to_have_count(0)
        # Back, after a look at the difference.
        history.get_by_role("button", name="difference v1").click()
        expect(page.get_by_role("heading", name="Difference to v1")).to_be_visible()
        history.get_by_role("button", name=re.compile("^roll back v")).first.click()
        dialog = page.get_by_role("dialog", name=re.compile("Roll back"))
        expect(dialog.locator(".tx.ins")).to_contain_text("5/60s")
        dialog.get_by_label("Note").fill("ten were too many: 五次就够")
        dialog.get_by_role("button", name=re.compile("^Roll back to")).click()
        expect(dialog).to_have_count(0)
        expect(text).to_have_value(FORUM)
        self.assertEqual(server.file.read_text(), FORUM)
        self.assertEqual([each["version"] for each in server.call("/v1/rules/history")["versions"]], [3, 2, 1], "a new version")
        answer = server.call("/v1/peek", {"fields": {"act": "reply", "user": "42"}})
        self.assertEqual((answer["limit"], answer["remaining"]), (5, 2), "in force")
        restored = history.get_by_role("row").filter(has_text="v3")
        expect(restored).to_contain_text("in force")
        expect(restored).to_contain_text("v1 again")
        # The text of v1 is in force: nothing is compared with it any more, and there is no way back to it.
        expect(page.get_by_role("heading", name="Difference to v3")).to_be_visible()
        expect(history.get_by_role("button", name="roll back v2")).to_be_visible()
        expect(history.get_by_role("button", name="roll back v1")).to_have_count(0)
        expect(restored).to_contain_text("ten were too many: 五次就够")

    def test_settings_that_wait_for_a_restart_are_named(self):
        server = self.server(FORUM)
        page, text = self.edit(server)
        text.fill("[server]\nthreads = 3\n" + FORUM.replace(OLD, NEW))
        # The findings and the dialog say so before anything is published.
        waits = page.locator(".finding").filter(has_text="server.threads")
        expect(waits).to_have_text("server.threads waits for a restart of the server. The rules do not wait.")
        expect(page.get_by_text("0 mistakes, 1 warning")).to_be_visible()
        page.get_by_role("button", name="Publish…").click()
        dialog = page.get_by_role("dialog", name="Publish the draft")
        expect(dialog).to_contain_text("The rules come into force at once, all of them or none")
        expect(dialog).to_contain_text("server.threads waits for a restart of the server.")
        dialog.get_by_role("button", name="Publish", exact=True).click()
        notice = page.locator(".notice").filter(has_text="wait")
        expect(notice.locator("b")).to_have_text("server.threads waits for a restart of the server.")
        expect(page.locator(".toast")).to_contain_text("The rules of v2 are in force. Some settings wait for a restart.")
        self.assertEqual(server.call("/v1/peek", {"fields": {"act": "reply", "user": "42"}})["limit"], 10, "the rules are in force")
        # It stays when the page is left, and goes with the restart.
        self.go(page, "#/rules")
        self.go(page, "#/edit")
        expect(notice).to_be_visible()
        # The server knows it, so that a reload and another browser tell it, too.
        page.reload()
        expect(notice).to_be_visible()
        other = self.open(server, "#/store")
        expect(other.locator(".notice")).to_contain_text("server.threads waits for a restart of the server.")
        text.fill("[server]\nthreads = 3\n" + FORUM)
        self.publish(page, "back to five")
        expect(page.get_by_role("row").filter(has_text="back to five")).to_contain_text("in force")
        expect(text).to_have_value("[server]\nthreads = 3\n" + FORUM)
        expect(notice).to_be_visible()
        text.fill(FORUM)
        self.publish(page, "without threads")
        expect(notice).to_have_count(0)

    def test_07_two_people_at_once(self):
        server = self.server(FORUM)
        a, text_a = self.edit(server)
        b, text_b = self.edit(server, expected=("412 (Precondition Failed)",))
        text_b.fill(FORUM.replace("fixed 10/day", "fixed 20/day"))
        b.get_by_role("button", name="Publish…").click()
        dialog = b.get_by_role("dialog", name="Publish the draft")
        expect(dialog).to_be_visible()
        text_a.fill(FORUM.replace(OLD, NEW))
        expect(a.get_by_role("button", name="Publish…")).to_be_enabled()
        self.publish(a, "A")
        expect(a.get_by_role("table").filter(has_text="A")).to_contain_text("v2")
        # B publishes over it: the server refuses, and the page compares.
        with b.expect_response(lambda answer: answer.request.method == "PUT") as refused:
            dialog.get_by_role("button", name="Publish", exact=True).click()
        self.assertEqual(refused.value.status, 412)
        expect(dialog).to_have_count(0)
        expect(b.get_by_text("changed by you")).to_be_visible()
        expect(b.locator(".part").filter(has_text="changed by you").locator("pre.yours")).to_contain_text("fixed 20/day")
        self.assertNotIn("20/day", server.file.read_text(), "nothing was overwritten")
        expect(b.locator(".part").filter(has_text="changed by them").locator("pre.theirs")).to_contain_text("10/60s")
        b.get_by_role("button", name="take theirs").click()
        b.get_by_role("button", name="Continue with this text").click()
        expect(text_b).to_have_value(FORUM.replace(OLD, NEW).replace("fixed 10/day", "fixed 20/day"))
        expect(b.get_by_role("button", name="Publish…")).to_be_enabled()
        self.publish(b, "B")
        self.assertEqual(server.file.read_text(), FORUM.replace(OLD, NEW).replace("fixed 10/day", "fixed 20/day"))

    def test_08_the_file_changes_on_disk(self):
        server = self.server(FORUM)
        page, text = self.edit(server, expected=("412 (Precondition Failed)",))
        text.fill(FORUM + "# mine\n")
        server.replace("# theirs\n" + FORUM)
        with self.timed("a file that changes under a draft is told", 3):
            expect(page.get_by_text("The file has changed under your draft.")).to_be_visible()
        # Publishing leads to the conflict view.
        publish = page.get_by_role("button", name="Publish…")
        expect(publish).to_be_enabled()
        publish.click()
        expect(page.get_by_text("changed by them")).to_be_visible()
        page.get_by_role("button", name="take theirs").click()
        page.get_by_role("button", name="Continue with this text").click()
        expect(text).to_have_value("# theirs\n" + FORUM + "# mine\n")
        # So does a 412, where the file changes while the dialog is open.
        expect(publish).to_be_enabled()
        publish.click()
        dialog = page.get_by_role("dialog", name="Publish the draft")
        expect(dialog).to_be_visible()
        server.replace("# theirs again\n" + FORUM)
        with page.expect_response(lambda answer: answer.request.method == "PUT") as refused:
            dialog.get_by_role("button", name="Publish", exact=True).click()
        self.assertEqual(refused.value.status, 412)
        expect(page.get_by_text("changed by both").or_(page.get_by_text("changed by them")).first).to_be_visible()
        self.assertEqual(server.file.read_text(), "# theirs again\n" + FORUM, "nothing was overwritten")

    def test_08_a_broken_file(self):
        server = self.server(FORUM)
        page = self.open(server)
        server.replace(FORUM.replace("limits", "limit", 1))
        broken = page.get_by_role("link", name=re.compile("rules broken"))
        with self.timed("a broken file is told", 3):
            expect(broken).to_be_visible()
        broken.click()
        expect(page.locator(".report")).to_contain_text("did you mean")
        self.assertEqual(server.call("/v1/peek", {"fields": {"act": "reply", "user": "42"}})["limit"], 5, "the old rules hold")
        server.replace(FORUM)
        expect(broken).to_have_count(0)


if __name__ == "__main__":
    unittest.main()
