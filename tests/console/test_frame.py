"""Files, headers, login, language, theme: what every page rests on."""

import re
import unittest
import urllib.error
import urllib.request

from harness import FORUM, ROOT, TOKEN, Journey, expect

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
MAX_FIRST_VISIT_BYTES = 150_000


class Frame(Journey):
    def test_20_first_visit_is_small_and_strict_and_the_second_only_asks(self):
        server = self.server(FORUM)
        context = self.context()
        page = self.page(server, context)
        answers = []
        page.on("response", lambda answer: answers.append(answer))
        page.goto(server.origin)
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        page.wait_for_load_state("networkidle")
        first, answers[:] = list(answers), []
        paths = {answer.url.removeprefix(server.origin): answer for answer in first}
        files = {path: answer for path, answer in paths.items() if not path.startswith("/v1/")}
        for path, answer in files.items():
            self.assertTrue(path == "/" or path.startswith("/console/"), path)
            for name, value in HEADERS.items():
                self.assertEqual(answer.headers.get(name), value, f"{name} of {path}")
        wire = sum(answer.request.sizes()["responseBodySize"] + answer.request.sizes()["responseHeadersSize"] for answer in files.values())
        print(f"first visit: {wire} bytes in {len(files)} files")
        self.assertLess(wire, MAX_FIRST_VISIT_BYTES)
        self.assertGreater(len(files), 10)
        page.reload()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        page.wait_for_load_state("networkidle")
        # The browser asks for the icon when it likes, perhaps for the first time now.
        again = [answer for answer in answers if answer.url.removeprefix(server.origin) in files]
        brought = [answer.url for answer in again if answer.request.sizes()["responseBodySize"] > 0]
        self.assertEqual(brought, [], "the second visit brings no file")
        self.assertGreater(len(again), 10)
        # Every file is asked for with its ETag and answered with 304.
        for path, answer in files.items():
            request = urllib.request.Request(server.origin + path, headers={"If-None-Match": answer.headers["etag"], "Accept-Encoding": "gzip"})
            with self.assertRaises(urllib.error.HTTPError) as unchanged:
                urllib.request.urlopen(request, timeout=60)
            self.assertEqual(unchanged.exception.code, 304, path)
            self.assertEqual(answer.headers["cache-control"], "no-cache", path)

    def test_15_login(self):
        server = self.server(FORUM)
        page = self.page(server, expected=("401 (Unauthorized)",))
        requests = []
        page.on("request", lambda request: requests.append(request))
        page.goto(f"{server.origin}/#/edit")
        token = page.get_by_label("admin_token or view_token")
        expect(token).to_be_focused()
        token.fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("not right")
        token.fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        # The page that was asked for comes up.
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(FORUM + "# mine\n")
        # The key ends: the login lies over the page, and the draft is whole.
        page.evaluate("sessionStorage.setItem('flowgate.session', JSON.stringify({key: 'fgs1.1.00', until: 1, view: false}))")
        page.reload()
        expect(page.get_by_role("dialog", name="Log in")).to_be_visible()
        page.get_by_label("admin_token or view_token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(text).to_have_value(FORUM + "# mine\n")
        self.is_forgotten(page, server)
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("dialog").get_by_role("button", name="Discard it and log out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        self.assertEqual(page.evaluate("sessionStorage.length"), 0)
        # Only the login itself has carried the token.
        carried = [request for request in requests if TOKEN in request.url or TOKEN in str(request.headers) or TOKEN in (request.post_data or "")]
        self.assertEqual({request.url for request in carried}, {f"{server.origin}/v1/session"})
        self.assertTrue(all(TOKEN not in request.url and TOKEN not in str(request.headers) for request in carried))

    def is_forgotten(self, page, server):
        """The token is in no address, no storage and no log."""
        stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
        self.assertNotIn(server.token, stored)
        self.assertNotIn(server.token, server.log.read_text())

    def test_15_the_login_lies_over_the_page_when_the_key_has_ended(self):
        server = self.server(FORUM)
        page = self.open(server, "#/edit", expected=("401 (Unauthorized)", "ERR_CONNECTION_", "ERR_EMPTY_RESPONSE"))
        text = page.get_by_role("textbox", name="text of the file")
        expect(text).to_have_value(FORUM)
        text.fill(FORUM + "# mine\n")
        # Another token ends all keys.
        server.kill()
        server.token = "another-token-of-the-tests-0123456789"
        server.start()
        dialog = page.get_by_role("dialog", name="Log in")
        expect(dialog).to_be_visible()
        expect(text).to_have_value(FORUM + "# mine\n")
        dialog.get_by_label("admin_token or view_token").fill(server.token)
        dialog.get_by_role("button", name="Log in").click()
        expect(dialog).to_have_count(0)
        expect(text).to_have_value(FORUM + "# mine\n")
        expect(page.get_by_role("button", name="Publish…")).to_be_enabled()
        self.is_forgotten(page, server)

    def test_15_after_a_log_out_nothing_is_left_and_a_login_begins_anew(self):
        server = self.server(FORUM)
        server.take(20, act="reply", user="42")
        context = self.context()
        context.clock.install()
        page = self.open(server, context=context)
        for user in ("43", "44"):
            expect(page.get_by_text("user=42").first).to_be_visible()
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            expect(page.get_by_text("user=42")).to_have_count(0)
            expect(page.get_by_role("navigation")).to_have_count(0)
            expect(page.get_by_role("dialog")).to_have_count(0)
            # Longer than the pause of any source that every page watches.
            page.clock.fast_forward(5500)
            page.get_by_label("admin_token or view_token").fill(TOKEN)
            page.get_by_role("button", name="Log in").click()
            # What every page watches goes on: the rates of the rail, the subjects of the overview.
            server.take(20, act="reply", user=user)
            expect(page.get_by_text(f"user={user}").first).to_be_visible()
            expect(page.get_by_role("navigation").get_by_role("link", name=re.compile(r"^Live [0-9.]+"))).to_be_visible()
            with page.expect_response(lambda answer: "range=5m&rules=top" in answer.url):
                pass
            with page.expect_response(lambda answer: "/v1/sample" in answer.url):
                page.clock.fast_forward(5500)

    def test_15_a_log_out_asks_before_a_draft_goes_and_closes_the_menu(self):
        server = self.server(FORUM)
        page = self.open(server, "#/edit", viewport={"width": 360, "height": 640})
        text = page.get_by_role("textbox", name="text of the file")
        text.fill(FORUM + "# mine\n")
        page.get_by_role("button", name="menu").click()
        page.get_by_role("button", name="Log out").click()
        dialog = page.get_by_role("dialog", name="Log out with a draft?")
        dialog.get_by_role("button", name="Cancel").click()
        expect(text).to_have_value(FORUM + "# mine\n")
        page.get_by_role("button", name="menu").click()
        page.get_by_role("button", name="Log out").click()
        dialog.get_by_role("button", name="Discard it and log out").click()
        # The card has the same room on both sides, and the language can be chosen before the login.
        box = page.locator(".login > .card").bounding_box()
        self.assertAlmostEqual(box["x"], 360 - box["x"] - box["width"], delta=1)
        page.get_by_role("button", name="中文").click()
        expect(page.get_by_role("heading", name="登录")).to_be_visible()
        page.get_by_role("button", name="English").click()
        page.get_by_label("admin_token or view_token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        expect(text).to_have_value(FORUM)
        expect(page.get_by_role("navigation")).to_be_hidden()

    def test_15_the_link_of_the_terminal_is_forgotten_too(self):
        server = self.server(FORUM)
        page = self.open(server)
        expect(page.get_by_role("navigation")).to_be_visible()
        self.is_forgotten(page, server)
        self.assertNotIn(server.token, page.evaluate("history.state === null ? location.href : JSON.stringify(history.state)"))

    def test_15_view_token_shows_and_changes_nothing(self):
        server = self.server(FORUM, settings='[auth]\nview_token = "only-looking-0123456789"\n')
        server.take(20, act="reply", user="42")
        page = self.page(server)
        page.goto(f"{server.origin}/#login=only-looking-0123456789")
        expect(page.get_by_role("navigation")).to_be_visible()
        self.go(page, "#/bans")
        expect(page.get_by_role("heading", name="Bans")).to_be_visible()
        expect(page.get_by_role("button", name="Ban…")).to_have_count(0)
        # What this login may not do is not offered, and the page says why.
        expect(page.get_by_role("navigation").get_by_text("view only")).to_be_visible()
        expect(page.get_by_text("A rule with a ban does it, or an admin login.")).to_be_visible()
        expect(page.get_by_text("flowgate ban")).to_have_count(0)
        self.go(page, "#/try")
        expect(page.locator(".verdict .more")).to_contain_text("This login may only look. Recording needs an admin login.")
        self.go(page, "#/edit")
        expect(page.get_by_text("This login may only look.")).to_be_visible()
        expect(page.get_by_role("button", name="Publish…")).to_have_count(0)
        for address, ready, writing in [
            ("#/", "Denied most", "^ban "), ("#/rules", "reply", "Pause|Edit"), ("#/rules/reply", "Most requests", "Edit here|shadow|Raise"), ("#/try", "Nothing is recorded.", "Record|Forget|Stop"),
        ]:
            self.go(page, address)
            expect(page.get_by_text(ready).first).to_be_visible()
            expect(page.get_by_role("button", name=re.compile(writing))).to_have_count(0)

    def test_only_keys_of_pages_that_are_there_are_listed(self):
        for arguments, count in (([], 0), (["--koala", str(ROOT / "testdata/koala/sample.conf")], 1)):
            page = self.open(self.server(FORUM, arguments=arguments))
            expect(page.get_by_role("link", name="Koala")).to_have_count(count)
            page.keyboard.press("?")
            dialog = page.get_by_role("dialog", name="Keys")
            expect(dialog.get_by_role("row").filter(has_text="Store")).to_have_count(1)
            expect(dialog.get_by_role("row").filter(has_text="Koala")).to_have_count(count)

    def test_keys_go_to_pages_and_can_be_switched_off(self):
        server = self.server(FORUM)
        page = self.open(server)
        self.go_by_keys(page, "b", "Bans")
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keys")
        dialog.get_by_role("checkbox").uncheck()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        page.keyboard.press("g")
        page.keyboard.press("e")
        # The key that opens the list works all the same, and comes after the two.
        page.keyboard.press("?")
        expect(dialog).to_be_visible()
        self.assertTrue(page.url.endswith("#/bans"), page.url)


if __name__ == "__main__":
    unittest.main()
