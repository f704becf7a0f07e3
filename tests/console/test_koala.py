"""Koala's rules: the page is there where they are served, tells what each did today, and checks a text."""

import unittest

from harness import FORUM, ROOT, Journey, expect


class Koala(Journey):
    def test_koala_rules_are_shown_and_a_text_is_checked(self):
        server = self.server(FORUM, arguments=["--koala", str(ROOT / "testdata/koala/sample.conf")])
        page = self.open(server)
        page.get_by_role("navigation").get_by_role("link", name="Koala").click()
        expect(page.locator("tbody tr").first).to_be_visible()
        shown = server.call("/v1/koala")["rules"]
        expect(page.locator("tbody tr")).to_have_count(len(shown))
        expect(page.get_by_role("heading", name="As TOML")).to_be_visible()
        page.get_by_role("textbox", name="Check a text").fill("nonsense")
        page.get_by_role("button", name="Check").click()
        report = page.locator(".report").first
        expect(report).to_contain_text("error")
        self.assertNotIn("\ufffd", report.inner_text(), "the lines of a report stay lines")
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        self.assertLessEqual(wide, 0)

    def test_what_koala_denies_leads_to_its_page(self):
        server = self.server(FORUM, arguments=["--koala", str(ROOT / "testdata/koala/sample.conf")])
        for _ in range(130):
            server.call("/rule/update?act=audit&qid=1")
            server.call("/rule/update?act=index_page&ip=192.0.2.7")
            server.call("/rule/browse?act=index_page&ip=192.0.2.7")
        page = self.open(server)
        expect(page.locator(".lead")).to_contain_text("koala:1201 denies")
        row = page.get_by_role("row").filter(has_text="koala-1201")
        expect(row.first).to_be_visible()
        row.first.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Koala")).to_be_visible()
        self.go(page, "#/live")
        row = page.get_by_role("row").filter(has_text="koala-1201").first
        expect(row).to_contain_text("–")
        row.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Koala")).to_be_visible()
        # Inspected, Koala's own verdict stands beside that of the policy.
        self.go(page, "#/live")
        row.get_by_role("cell").nth(4).click()
        koala = page.get_by_role("region", name="Koala")
        expect(koala).to_contain_text("denies it by koala-1201")
        expect(koala.locator(".rulebox")).to_have_count(1)

    def test_without_koala_rules_there_is_no_page(self):
        server = self.server(FORUM)
        page = self.open(server)
        expect(page.get_by_role("link", name="Store")).to_be_visible()
        expect(page.get_by_role("link", name="Koala")).to_have_count(0)


if __name__ == "__main__":
    unittest.main()
