"""What the server refuses and finds is said in Chinese, by code: the everyday refusals, findings with their hints, warnings of bans."""

import re
import unittest

from harness import FORUM, Journey, expect


class ChineseAnswers(Journey):
    def open_chinese(self, server, address="#/", **options):
        return self.open(server, address, context=self.context(locale="zh-CN"), **options)

    def test_findings_and_their_hints(self):
        server = self.server(FORUM)
        page = self.open_chinese(server, "#/edit")
        text = page.locator("textarea")
        expect(text).to_have_value(FORUM)
        finding = page.locator(".finding").first
        for wrong, message, hint in [
            (FORUM.replace("limits", "limit", 1), "未知的键 \"limit\"", "是否想写 \"limits\"？"),
            (FORUM.replace("5/60s", "5/60mn", 1), "时间 \"60mn\" 不正确", "是否想写 \"60min\"？"),
            (FORUM + '\n[[rule]]\nname = "reply"\naction = "deny"\n', "已有同名规则 \"reply\"", "计数按规则名称保存"),
            (FORUM + '\n[[rule]]\nname = "x"\nwhen = { ip = "@nobody" }\naction = "deny"\n', "没有名单 \"nobody\"", "[lists]"),
            (FORUM.replace('["5/60s"', '["5/60s", ["x"', 1), "没有闭合", "缺少"),
        ]:
            text.fill(wrong)
            expect(finding).to_contain_text(message)
            expect(finding.locator(".hint")).to_contain_text(hint)
            self.assertEqual(finding.locator("[lang=en]").count(), 0, message)
        # The hint at the end of the line, too.
        text.fill(FORUM.replace("limits", "limit", 1))
        expect(page.locator(".say").first).to_have_text("是否想写 \"limits\"？")
        expect(finding.locator("[title]").first).to_have_attribute("title", "unknown key \"limit\" in this rule")

    def test_refusals(self):
        server = self.server(FORUM)
        page = self.open_chinese(server, "#/bans", expected=["400", "412"])
        page.get_by_role("button", name="封禁…").click()
        dialog = page.get_by_role("dialog", name="手动封禁")
        dialog.get_by_label("字段").fill("user")
        dialog.get_by_label("值或网段").fill("1.2.3.0/33")
        dialog.get_by_role("button", name="封禁 1 小时").click()
        expect(dialog.get_by_role("alert")).to_contain_text("1.2.3.0/33 不是可以封禁的值")
        dialog.get_by_label("值或网段").fill("0.0.0.0/0")
        dialog.get_by_role("button", name="封禁 1 小时").click()
        toast = page.locator(".toast")
        expect(toast).to_contain_text("此封禁影响字段 user 的值为 IPv4 地址的请求")
        self.assertEqual(toast.locator("[lang=en]").count(), 0)

        headers = {"If-Match": "*", "X-Flowgate-Note": "first"}
        server.call("/v1/rules", raw=FORUM + "# two\n", method="PUT", headers=headers)
        self.go(page, "#/edit")
        page.get_by_role("button", name="回滚 v1").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator(".diff")).to_be_visible()
        server.replace(FORUM + "# three\n")
        # The page reads the file again when it learns of the change; here it has not learnt of it yet.
        page.route(re.compile("/v1/(stats|rules)$"), lambda route: route.continue_() if route.request.method == "POST" else route.abort())
        dialog.get_by_role("button", name="回滚到 v1").click()
        expect(dialog.get_by_role("alert")).to_have_text(re.compile("文件已被修改，请重新读取。"))

    def test_a_wrong_token(self):
        server = self.server(FORUM)
        page = self.page(server, self.context(locale="zh-CN"), expected=["401"])
        page.goto(server.origin)
        page.get_by_label("本服务端的").fill("nonsense")
        page.get_by_role("button", name="登录").click()
        expect(page.get_by_role("alert")).to_have_text(re.compile("token 不正确"))


if __name__ == "__main__":
    unittest.main()
