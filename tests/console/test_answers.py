"""Answers that do not come, or come as "later": a write is sent once, and a wait is obeyed."""

import re
import time
import unittest

from harness import FORUM, TOKEN, Journey, expect

UNKNOWN = "No answer: it is not known whether it was done. Look before you try again."
LOST = ("ERR_FAILED", "ERR_CONNECTION_", "ERR_EMPTY_RESPONSE", "429 (Too Many Requests)", "503 (Service Unavailable)")


class Answers(Journey):
    def lost(self, page, method, path):
        """The server does what a request asks; its answer is lost on the way. Returns the requests so far."""
        seen = []

        def lose(route):
            if route.request.method != method:
                return route.continue_()
            seen.append(route.request)
            route.fetch()
            return route.abort()

        page.route(re.compile(rf"{re.escape(path)}$"), lose)
        return seen

    def test_a_write_without_an_answer_is_not_repeated(self):
        server = self.server(FORUM)
        page = self.open(server, "#/bans", expected=LOST)
        sent = self.lost(page, "POST", "/v1/bans")
        page.get_by_role("button", name="Ban…").click()
        dialog = page.get_by_role("dialog", name="Ban by hand")
        dialog.get_by_label("Value").fill("7")
        dialog.get_by_role("button", name="Ban for 1 h").click()
        expect(dialog.get_by_role("alert")).to_have_text(UNKNOWN)
        # The server was away for the page and is back: sources are asked again, and the list shows the ban; the write is not sent again.
        expect(page.get_by_role("row").filter(has_text="user=7")).to_be_visible()
        expect(page.get_by_text("No answer since")).to_have_count(0)
        self.outlasts_some_polls(page)
        self.assertEqual(len(sent), 1)
        self.assertEqual(server.call("/v1/bans/find", {})["total"], 1)
        expect(dialog.get_by_role("alert")).to_have_text(UNKNOWN)

    def test_a_publication_without_an_answer_is_not_repeated_and_the_draft_stays(self):
        server = self.server(FORUM)
        page = self.open(server, "#/edit", expected=LOST)
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(FORUM + "# mine\n")
        sent = self.lost(page, "PUT", "/v1/rules")
        publish = page.get_by_role("button", name="Publish…")
        expect(publish).to_be_enabled()
        publish.click()
        dialog = page.get_by_role("dialog", name="Publish the draft")
        dialog.get_by_role("button", name="Publish", exact=True).click()
        expect(dialog.get_by_role("alert")).to_have_text(UNKNOWN)
        expect(page.get_by_text("No answer since")).to_have_count(0)
        self.outlasts_some_polls(page)
        self.assertEqual(len(sent), 1)
        self.assertEqual(server.file.read_text(), FORUM + "# mine\n", "it was done")
        self.assertEqual([each["version"] for each in server.call("/v1/rules/history")["versions"]], [2, 1], "once")
        expect(text).to_have_value(FORUM + "# mine\n")

    def outlasts_some_polls(self, page):
        """The page goes on to ask: three more answers of a source that every page watches."""
        for _ in range(3):
            with page.expect_response(lambda answer: answer.url.endswith("/v1/stats")):
                pass

    def test_wrong_tokens_are_told_how_long_to_wait(self):
        server = self.server(FORUM)
        page = self.page(server, expected=("401 (Unauthorized)", "429 (Too Many Requests)"))
        page.goto(server.origin)
        token = page.get_by_label("admin_token or view_token")
        for number in range(1, 12):
            token.fill(f"wrong-{number}")
            with page.expect_response(lambda answer: answer.url.endswith("/v1/session")) as answered:
                page.get_by_role("button", name="Log in").click()
            if answered.value.status == 429:
                break
            expect(page.get_by_role("alert")).to_contain_text("not right")
        self.assertEqual(answered.value.status, 429)
        wait = answered.value.headers["retry-after"]
        expect(page.get_by_role("alert")).to_contain_text("Too many wrong tokens. Again in ")
        # It counts down.
        expect(page.get_by_role("alert")).to_have_text(f"Too many wrong tokens. Again in {int(wait) - 2} s.")
        self.assertEqual(page.evaluate("sessionStorage.length"), 0)
        # Whoever has a key goes on; only new logins wait.
        self.assertIn("now", server.call("/v1/stats"))

    def test_a_source_obeys_the_wait_it_is_told(self):
        server = self.server(FORUM)
        page = self.open(server, expected=LOST)
        # Both are asked once a second.
        for address, path in [("#/live", "/v1/denials"), ("#/try", "/v1/sample")]:
            asked = []

            def answer(route):
                asked.append(time.monotonic())
                headers = {"Retry-After": "2", "Content-Type": "application/json"}
                return route.fulfill(status=503, headers=headers, body='{"error":"overloaded","field":null}') if len(asked) == 1 else route.continue_()

            page.route(re.compile(re.escape(path)), answer)
            with page.expect_response(lambda answer: path in answer.url and answer.status == 200):
                self.go(page, address)
            self.assertGreaterEqual(asked[1] - asked[0], 1.9, path)
            page.unroute(re.compile(re.escape(path)))

    def tried(self, answer):
        """The page Try with a sample, whose first try has this answer. Returns the page and the tries so far."""
        server = self.server(FORUM)
        server.call("/v1/sample", {"for": "1m"})
        server.take(7, act="reply", user="42")
        server.call("/v1/sample", {"for": "0s"})
        page = self.open(server, expected=LOST)
        asked = []

        def first(route):
            asked.append(route.request)
            return answer(route) if len(asked) == 1 else route.continue_()

        page.route(re.compile("/v1/rules/try$"), first)
        self.go(page, "#/try")
        return page, asked

    def test_a_try_that_is_refused_says_why_and_is_made_again_by_a_click(self):
        body = '{"error":"the try took longer than 10 seconds","field":null}'
        page, asked = self.tried(lambda route: route.fulfill(status=503, headers={"Retry-After": "1", "Content-Type": "application/json"}, body=body))
        told = page.get_by_role("alert")
        expect(told).to_have_text("the try took longer than 10 seconds. Again in 1 s.")
        # It is heavy for the server: the page does not repeat it by itself.
        self.outlasts_some_polls(page)
        self.assertEqual(len(asked), 1)
        page.get_by_role("button", name="Try once more").click(timeout=10_000)
        expect(page.get_by_role("heading", name="By rule")).to_be_visible()
        expect(told).to_have_count(0)

    def test_a_try_without_an_answer_is_made_again_when_the_server_is_back(self):
        page, asked = self.tried(lambda route: route.abort())
        expect(page.get_by_role("heading", name="By rule")).to_be_visible(timeout=20_000)
        self.assertEqual(len(asked), 2)

    def test_a_write_that_is_told_to_wait_says_so(self):
        server = self.server(FORUM)
        page = self.open(server, "#/bans", expected=LOST)
        for status in (429, 503):
            page.route(re.compile("/v1/bans$"), lambda route: route.fulfill(status=status, headers={"Retry-After": "17", "Content-Type": "application/json"}, body='{"error":"too many","field":null}'))
            page.get_by_role("button", name="Ban…").click()
            dialog = page.get_by_role("dialog", name="Ban by hand")
            dialog.get_by_label("Value").fill("7")
            dialog.get_by_role("button", name="Ban for 1 h").click()
            expect(dialog.get_by_role("alert")).to_have_text("too many. Again in 17 s.")
            # The button was off during the call, and has lost the focus: Escape leaves all the same.
            page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
            page.unroute(re.compile("/v1/bans$"))


if __name__ == "__main__":
    unittest.main()
