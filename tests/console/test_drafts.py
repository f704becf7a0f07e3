"""Nothing takes a line of a draft away unseen: a file that is half written, one that changes again, answers that come late."""

import re
import unittest

from harness import FORUM, Journey, expect

MINE, THEIRS = FORUM + "# mine\n", "# theirs\n" + FORUM


class Drafts(Journey):
    def edit(self, text=None):
        server = self.server(FORUM)
        page = self.open(server, "#/edit")
        area = page.get_by_role("textbox", name="text of the file")
        expect(area).to_have_value(FORUM)
        if text is not None:
            area.fill(text)
        return server, page, area

    def hold(self, page, method):
        """The server does what the next request to /v1/rules asks. Its answer waits in the list that is returned."""
        waiting = []

        def answer(route):
            if route.request.method != method or waiting:
                return route.continue_()
            return waiting.append((route, route.fetch()))

        page.route(re.compile("/v1/rules$"), answer)
        return waiting

    def release(self, waiting):
        route, response = waiting[0]
        route.fulfill(response=response)

    def await_held(self, page, waiting):
        while not waiting:
            self.await_stats(page)

    def await_stats(self, page, **fields):
        """An answer of /v1/stats with these fields has reached the page, and the next one too: the page has acted on it."""
        for _ in range(2):
            with page.expect_response(lambda answer: answer.url.endswith("/v1/stats") and fields.items() <= answer.json().items()):
                pass

    def test_a_draft_that_theirs_replaces_comes_back(self):
        server, page, text = self.edit(MINE)
        # A program that writes in place has emptied the file and not yet written it.
        server.replace("")
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("button", name="take theirs").click()
        page.get_by_role("button", name="Continue with this text").click()
        expect(text).to_have_value("")
        page.get_by_role("button", name="Undo").click()
        expect(text).to_have_value(MINE)
        server.replace(THEIRS)
        expect(page.get_by_text("The file has changed under your draft.")).to_be_visible()
        self.await_stats(page, file_etag=server.call("/v1/stats")["file_etag"])
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("button", name="take theirs").click()
        page.get_by_role("button", name="Continue with this text").click()
        expect(text).to_have_value(THEIRS + "# mine\n")

    def test_a_half_written_file_is_not_taken_for_the_file(self):
        server, page, text = self.edit()
        asked = []

        def half(route):
            asked.append(route.request.url)
            route.fulfill(body=FORUM[: len(FORUM) // 2], headers={"Content-Type": "application/toml", "ETag": '"half"', "X-Flowgate-File": "changing"})

        rules = re.compile("/v1/rules$")
        page.route(rules, half)
        server.replace(THEIRS)
        while len(asked) < 3:
            self.await_stats(page)
        expect(text).to_have_value(FORUM)
        # Somebody who comes in that moment is told.
        other = self.open(server, context=page.context)
        other.route(rules, half)
        self.go(other, "#/edit")
        expect(other.get_by_text("The file is being written.")).to_be_visible()
        for each in (page, other):
            each.unroute(rules)
            expect(each.get_by_role("textbox", name="text of the file")).to_have_value(THEIRS)

    def test_a_log_out_asks_about_the_drafts_of_other_tabs(self):
        server = self.server(FORUM)
        context = self.context()
        first = self.open(server, "#/edit", context=context)
        text = first.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(MINE)
        second = self.page(server, context)
        second.goto(server.origin)
        second.get_by_role("button", name="Log out").click()
        dialog = second.get_by_role("dialog", name="Log out with a draft?")
        expect(dialog).to_contain_text("1 other tab has a draft of the rules that is not published.")
        dialog.get_by_role("button", name="Cancel").click()
        expect(dialog).to_have_count(0)
        expect(text).to_have_value(MINE)
        second.get_by_role("button", name="Log out").click()
        second.get_by_role("dialog").get_by_role("button", name="Discard it and log out").click()
        expect(second.get_by_role("heading", name="Log in")).to_be_visible()
        expect(first.get_by_role("heading", name="Log in")).to_be_visible()

    def test_a_choice_holds_for_the_text_it_was_made_for(self):
        server, page, text = self.edit(MINE)
        server.replace(THEIRS)
        page.get_by_role("button", name="Compare").click()
        page.get_by_role("button", name="take theirs").click()
        go_on = page.get_by_role("button", name="Continue with this text")
        expect(go_on).to_be_enabled()
        server.replace("")
        expect(page.get_by_text("changed by both")).to_be_visible()
        expect(go_on).to_be_disabled()
        expect(page.get_by_text("1 part to decide")).to_be_visible()

    def test_an_older_answer_is_followed_by_the_newer_one(self):
        server, page, text = self.edit()
        waiting = self.hold(page, "GET")
        server.replace(THEIRS)
        self.await_held(page, waiting)
        server.replace("# newer\n" + THEIRS)
        self.await_stats(page, file_etag=server.call("/v1/stats")["file_etag"])
        self.release(waiting)
        expect(text).to_have_value("# newer\n" + THEIRS, timeout=10_000)

    def test_what_is_typed_while_a_publication_is_under_way_stays(self):
        server, page, text = self.edit(MINE)
        waiting = self.hold(page, "PUT")
        publish = page.get_by_role("button", name="Publish…")
        expect(publish).to_be_enabled()
        publish.click()
        dialog = page.get_by_role("dialog", name="Publish the draft")
        dialog.get_by_role("button", name="Publish", exact=True).click()
        self.await_held(page, waiting)
        dialog.get_by_role("button", name="Cancel").click()
        text.fill(MINE + "# more\n")
        self.release(waiting)
        expect(page.get_by_text("is in force")).to_be_visible()
        self.await_stats(page)
        expect(text).to_have_value(MINE + "# more\n")
        # The rest is a draft of what was published.
        expect(page.get_by_text("The file has changed under your draft.")).to_have_count(0)
        expect(publish).to_be_enabled()
        publish.click()
        expect(dialog.locator(".tx.ins")).to_have_count(1)
        dialog.get_by_role("button", name="Publish", exact=True).click()
        expect(dialog).to_have_count(0)
        self.assertEqual(server.file.read_text(), MINE + "# more\n")

    def test_what_is_published_stays_in_the_editor_until_it_is_read_again(self):
        server, page, text = self.edit(MINE)
        publish = page.get_by_role("button", name="Publish…")
        expect(publish).to_be_enabled()
        publish.click()
        waiting = self.hold(page, "GET")
        dialog = page.get_by_role("dialog", name="Publish the draft")
        dialog.get_by_role("button", name="Publish", exact=True).click()
        self.await_held(page, waiting)
        self.assertEqual(text.input_value(), MINE)
        text.fill(MINE + "# more\n")
        expect(page.get_by_text("The file has changed under your draft.")).to_have_count(0)
        self.release(waiting)
        expect(publish).to_be_enabled()
        expect(text).to_have_value(MINE + "# more\n")


if __name__ == "__main__":
    unittest.main()
