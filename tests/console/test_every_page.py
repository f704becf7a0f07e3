"""What holds on every page: contrast, names of controls, width, Chinese."""

import re
import unittest

from harness import FORUM, ROOT, Journey, expect

ASKED = "#/subject?fields=act%3Dreply+user%3D42"
ADDRESSES = ["#/", "#/live", "#/rules", "#/rules/reply", ASKED, "#/bans", "#/edit", "#/try", "#/store", "#/koala", "#/nothing"]
# What tells that a page has its data.
READY = {
    "#/": ".chart svg", "#/live": "table.live tbody tr", "#/rules": "table.rules tbody tr", "#/rules/reply": ".ed", ASKED: ".rulebox", "#/bans": "tbody tr",
    "#/edit": "textarea", "#/try": ".chart svg", "#/store": "tbody tr", "#/koala": "tbody tr", "#/nothing": "p",
}
SMALL = {"width": 360, "height": 640}
# The contrast of every text with what is behind it, as WCAG computes it. Every colour is read by painting it, so that
# system colours and other spellings count as what they look like.
CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const read = new Map();
  const parse = text => {
    if (!read.has(text)) { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; read.set(text, [r, g, b, a / 255]); }
    return read.get(text);
  };
  const light = ([r, g, b]) => { const f = c => { c /= 255; return c <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4; }; return .2126 * f(r) + .7152 * f(g) + .0722 * f(b); };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3]));
  const ground = element => { const chain = []; for (let e = element; e; e = e.parentElement) chain.unshift(e); return chain.reduce((below, e) => over(parse(getComputedStyle(e).backgroundColor), below), [255, 255, 255]); };
  const bad = [];
  let seen = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({visibilityProperty: true, opacityProperty: true}) || element.closest(".unseen, textarea, option, title, button:disabled")) continue;
    const style = getComputedStyle(element);
    const color = parse(element.closest("svg") ? style.fill : style.color);
    const behind = ground(element);
    const [a, b] = [light(over(color, behind)), light(behind)].sort((x, y) => y - x);
    const contrast = (a + .05) / (b + .05);
    seen += 1;
    if (contrast < 4.495) bad.push(`${contrast.toFixed(2)} ${node.data.trim().slice(0, 40)} <${element.tagName} ${element.className.baseVal ?? element.className}>`);
  }
  return {bad, seen};
}"""
# Elements that move: under reduced motion there are none.
MOVING = """() => [...document.querySelectorAll("*")].filter(e => {
  const {transitionDuration, animationName, animationDuration} = getComputedStyle(e);
  return transitionDuration.split(",").some(each => parseFloat(each) > 0.01) || animationName !== "none" && animationDuration.split(",").some(each => parseFloat(each) > 0.01);
}).map(e => e.outerHTML.slice(0, 80))"""
# Texts and labels in Latin letters that stand in no element of values, names or English.
ENGLISH = """() => {
  const found = [];
  const plain = text => /[A-Za-z]{3}/.test(text);
  const values = "code, kbd, bdi, pre, textarea, option, time, svg title, [lang=en], .ed, .tx, .node, .zh-free";
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (plain(node.data) && element.checkVisibility() && !element.closest(values)) found.push(node.data.trim());
  }
  for (const element of document.querySelectorAll("[aria-label], [placeholder], [title]"))
    for (const name of ["aria-label", "placeholder", "title"]) {
      const text = element.getAttribute(name);
      if (text && plain(text) && element.checkVisibility() && !element.closest(values)) found.push(text);
    }
  return found;
}"""
# Names of things, which are the same in both languages.
NAMES = re.compile(
    r"\S+\.toml|Asia/Shanghai|\b(Flowgate|Prometheus|token|Redis|Koala|TOML|JSON|HTTP|RESP|Grafana|English|Ctrl|Enter|Esc|Tab|resp|http|grpc|p50|p99|kB|MB|GB|"
    r"console\.sample|flowgate\.toml|redis-cli|curl|admin_token|view_token|IPv6|UTC|[FXYMDH]\d|"
    r"reply|user|act|ip|forum|sample|strict|captcha|count|direct|leak|base|[a-z]+=\S+|koala:\d+)\b",
)


class EveryPage(Journey):
    def busy_server(self):
        """A server on which every page has something to show."""
        server = self.server(FORUM, arguments=["--koala", str(ROOT / "testdata/koala/sample.conf")])
        server.call("/v1/sample", {"for": "10m"})
        server.take(20, act="reply", user="42")
        server.call("/v1/sample", {"for": "0s"})
        server.call("/v1/bans", {"field": "user", "value": "7", "for": "1h", "reason": "刷屏"})
        return server

    def visit(self, page, address):
        """A page with its data."""
        self.go(page, address)
        expect(page.locator(f"main {READY[address]}").first).to_be_visible()

    def test_19_every_text_has_contrast(self):
        server = self.busy_server()
        for scheme in ("light", "dark"):
            page = self.open(server, context=self.context(color_scheme=scheme, reduced_motion="reduce"))
            for address in ADDRESSES:
                self.visit(page, address)
                self.has_contrast(page, f"{address} {scheme}")
                self.assertEqual(page.evaluate(MOVING), [], f"{address}: nothing moves")
            self.go(page, "#/bans")
            page.get_by_role("button", name="Ban…").click()
            expect(page.get_by_role("dialog")).to_be_visible()
            self.has_contrast(page, f"dialog {scheme}")
            page.keyboard.press("Escape")
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            self.has_contrast(page, f"login {scheme}")
        # The login that lies over a page.
        for scheme in ("light", "dark"):
            page = self.open(server, context=self.context(color_scheme=scheme), expected=("401 (Unauthorized)",))
            page.evaluate("sessionStorage.setItem('flowgate.session', JSON.stringify({key: 'fgs1.1.00', until: 1, view: false}))")
            page.reload()
            expect(page.get_by_role("dialog", name="Log in")).to_be_visible()
            found = page.evaluate(CONTRAST)
            # What lies below is behind the scrim, and counted with its own ground.
            self.assertEqual(found["bad"], [], f"login over the page {scheme}")

    def test_19_themes_by_the_switch(self):
        server = self.busy_server()
        page = self.open(server, context=self.context(color_scheme="light"))
        page.get_by_role("button", name=re.compile("theme", re.I)).click()
        page.get_by_role("button", name=re.compile("theme", re.I)).click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        self.visit(page, "#/")
        self.has_contrast(page, "dark by the switch")
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    def test_19_forced_colours(self):
        server = self.busy_server()
        page = self.open(server, context=self.context(forced_colors="active"))
        for address in ADDRESSES:
            self.visit(page, address)
            self.has_contrast(page, f"{address} forced colours")
        # What is chosen is told from what is not, without a colour of the page's own.
        self.visit(page, "#/")
        chosen = page.locator(".seg [aria-pressed=true]").first
        other = page.locator(".seg [aria-pressed=false]").first
        look = "e => { const s = getComputedStyle(e); return [s.backgroundColor, s.color, s.fontWeight, s.outlineStyle, s.borderTopColor, s.textDecorationLine].join() }"
        self.assertNotEqual(chosen.evaluate(look), other.evaluate(look))
        # Marks of the chart keep a colour that differs from the ground.
        bars = page.locator("svg path.bars").first
        self.assertNotEqual(bars.evaluate("e => getComputedStyle(e).fill"), page.evaluate("getComputedStyle(document.body).backgroundColor"))

    def has_contrast(self, page, where):
        found = page.evaluate(CONTRAST)
        self.assertEqual(found["bad"], [], where)
        self.assertGreater(found["seen"], 3, where)

    def test_16_every_control_has_a_name_and_a_role(self):
        server = self.busy_server()
        page = self.open(server)
        tree = page.context.new_cdp_session(page)
        for address in ADDRESSES:
            self.visit(page, address)
            self.is_named(tree, address)
        self.go(page, "#/bans")
        page.get_by_role("button", name="Ban…").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        self.is_named(tree, "dialog")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        self.is_named(tree, "keys")

    def is_named(self, tree, where):
        """Every node that takes the focus has a role and a name in the accessibility tree."""
        nodes = tree.send("Accessibility.getFullAXTree")["nodes"]
        controls = 0
        for node in nodes:
            properties = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
            role = node.get("role", {}).get("value")
            if node.get("ignored") or not properties.get("focusable") or role == "RootWebArea":
                continue
            controls += 1
            name = node.get("name", {}).get("value", "").strip()
            self.assertTrue(name, f"{where}: {role} without a name: {node}")
            self.assertNotIn(role, (None, "generic", "none"), f"{where}: {name}")
        self.assertGreater(controls, 5, where)

    def test_17_no_page_scrolls_sideways(self):
        server = self.busy_server()
        # 1440 x 900 at a zoom of 200 %: half the width, and two pixels for each.
        zoomed = {"viewport": {"width": 720, "height": 450}, "device_scale_factor": 2}
        for size in ({"viewport": SMALL}, zoomed):
            for locale in ("en-US", "zh-CN"):
                page = self.open(server, locale=locale, **size)
                for address in ADDRESSES:
                    self.visit(page, address)
                    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    self.assertLessEqual(wide, 0, f"{address} at {size} {locale}")

    def test_titles_of_rules_are_whole(self):
        server = self.busy_server()
        page = self.open(server)
        self.visit(page, "#/rules")
        for name in page.locator("table.rules td.name .two").all():
            self.assertLessEqual(name.evaluate("e => e.scrollWidth - e.clientWidth"), 0, name.inner_text())

    def test_18_chinese(self):
        server = self.busy_server()
        page = self.open(server, context=self.context(locale="zh-CN"))
        expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
        titles = dict(zip(ADDRESSES, ["概览", "实时", "规则", None, "主体", "封禁", "编辑", None, "存储", "Koala", None]))
        for address in ADDRESSES:
            self.visit(page, address)
            if titles[address]:
                expect(page.get_by_role("heading", level=1)).to_have_text(titles[address])
            left = [text for text in page.evaluate(ENGLISH) if re.search(r"[A-Za-z]{3}", NAMES.sub("", text))]
            self.assertEqual(left, [], f"English on {address}")
        # Times are those of Intl.
        self.visit(page, "#/bans")
        shown = page.locator("tbody time").first
        expect(shown).to_have_text(re.compile(r"^\d\d:\d\d"))
        # Findings that have no Chinese sentence stay English and say so.
        self.visit(page, "#/edit")
        page.locator("textarea").fill(FORUM + '\n[lists]\nvip = { values = ["1"], file = "x" }\n')
        expect(page.locator(".finding [lang=en]").first).to_contain_text("exclude each other")
        # The choice outlasts a reload.
        page.get_by_role("button", name="English").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Editor")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Editor")
        expect(page.locator("html")).to_have_attribute("lang", "en")


if __name__ == "__main__":
    unittest.main()
