"""Files, headers, login, language, theme: what every page rests on."""

import re
import unittest

from harness import FORUM, TOKEN, Journey, expect

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
        first, answers[:] = list(answers), []
        files = [answer for answer in first if not answer.url.split(server.origin)[1].startswith("/v1/")]
        for answer in files:
            path = answer.url.split(server.origin)[1]
            self.assertTrue(path == "/" or path.startswith("/console/"), path)
            for name, value in HEADERS.items():
                self.assertEqual(answer.headers.get(name), value, f"{name} of {path}")
        wire = sum(answer.request.sizes()["responseBodySize"] + answer.request.sizes()["responseHeadersSize"] for answer in files)
        print(f"first visit: {wire} bytes in {len(files)} files")
        self.assertLess(wire, MAX_FIRST_VISIT_BYTES)
        page.reload()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        for answer in answers:
            self.assertIn(answer.status, (304, 200), answer.url)
        asked_again = [answer for answer in answers if answer.request.sizes()["responseBodySize"] > 0]
        self.assertEqual([answer.url for answer in asked_again], [], "the second visit brings no file")

    def test_15_login(self):
        server = self.server(FORUM)
        page = self.page(server, expected=("401 (Unauthorized)",))
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
        stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
        self.assertNotIn(TOKEN, stored)
        self.assertNotIn(TOKEN, server.log.read_text())
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        self.assertEqual(page.evaluate("sessionStorage.length"), 0)

    def test_an_address_that_changes_right_after_the_first_drawing_is_shown(self):
        server = self.server(FORUM)
        page = self.page(server)
        # The address changes as soon as the menu is in the page: before the effects of that drawing have run.
        page.add_init_script("""
            new MutationObserver((changes, observer) => {
              if (!document.querySelector("nav")) return;
              observer.disconnect();
              history.replaceState(null, "", "#/bans");
              dispatchEvent(new Event("hashchange"));
            }).observe(document, { childList: true, subtree: true });
        """)
        page.goto(f"{server.origin}/#login={server.token}")
        expect(page.get_by_role("heading", name="Bans")).to_be_visible()

    def test_15_view_token_shows_and_changes_nothing(self):
        server = self.server(FORUM, settings='[auth]\nview_token = "only-looking-0123456789"\n')
        page = self.page(server)
        page.goto(f"{server.origin}/#login=only-looking-0123456789")
        expect(page.get_by_role("navigation")).to_be_visible()
        self.go(page, "#/bans")
        expect(page.get_by_role("heading", name="Bans")).to_be_visible()
        expect(page.get_by_role("button", name="Ban…")).to_have_count(0)
        self.go(page, "#/edit")
        expect(page.get_by_text("This login may only look.")).to_be_visible()
        expect(page.get_by_role("button", name="Publish…")).to_have_count(0)

    def test_18_chinese(self):
        server = self.server(FORUM)
        context = self.context(locale="zh-CN")
        page = self.open(server, context=context)
        expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
        for address, words in [("#/", "概览"), ("#/live", "实时"), ("#/rules", "规则"), ("#/subject", "主体"), ("#/bans", "封禁"), ("#/edit", "编辑"), ("#/store", "存储")]:
            self.go(page, address)
            expect(page.get_by_role("heading", level=1)).to_have_text(words)
        page.get_by_role("button", name="English").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Store")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Store")
        expect(page.locator("html")).to_have_attribute("lang", "en")

    def test_keys_go_to_pages_and_can_be_switched_off(self):
        server = self.server(FORUM)
        page = self.open(server)
        page.keyboard.press("g")
        page.keyboard.press("b")
        expect(page.get_by_role("heading", name="Bans")).to_be_focused()
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keys")
        dialog.get_by_role("checkbox").uncheck()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        page.keyboard.press("g")
        page.keyboard.press("e")
        expect(page.get_by_role("heading", name="Bans")).to_be_visible()


if __name__ == "__main__":
    unittest.main()
