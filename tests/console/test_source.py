"""What the source of the console must not hold: ways from text to markup or code, and inline handlers or styles."""

import pathlib
import re
import unittest

CONSOLE = pathlib.Path(__file__).resolve().parent.parent.parent / "crates/flowgate-server/console"
FORBIDDEN = [
    r"innerHTML", r"outerHTML", r"insertAdjacentHTML", r"dangerouslySetInnerHTML", r"document\.write", r"createContextualFragment",
    r"\beval\b", r"new Function", r"setAttribute\(\s*[\"']style",
]
# `onClick=${..}` of a template is a listener; `onclick="..."` would be an inline script.
INLINE = [r"\bon[a-z]+\s*=\s*[\"']", r"<script(?![^>]*\bsrc=)", r"\bstyle\s*=\s*[\"']", r"javascript:"]
MAX_LINES = 500


class Source(unittest.TestCase):
    def files(self, *endings):
        found = [path for path in CONSOLE.rglob("*") if path.suffix in endings and path.parent.name != "vendor"]
        self.assertGreater(len(found), 0)
        return found

    def test_no_way_from_text_to_markup_or_code(self):
        for path in self.files(".js", ".html", ".svg"):
            text = path.read_text()
            for pattern in FORBIDDEN + INLINE:
                self.assertIsNone(re.search(pattern, text), f"{path.name}: {pattern}")

    def test_the_patterns_find_what_they_forbid(self):
        for text in ["x.innerHTML = y", '<a onclick="go()">', "<script>go()</script>", '<p style="color: red">', "new Function('x')", "eval(x)"]:
            self.assertTrue(any(re.search(pattern, text) for pattern in FORBIDDEN + INLINE), text)

    def test_only_tokens_name_colours(self):
        for path in self.files(".css"):
            if path.name == "tokens.css":
                continue
            for line in path.read_text().splitlines():
                if "--denied-fill: light-dark" in line:  # what is aged has its own greys
                    continue
                self.assertIsNone(re.search(r"#[0-9a-f]{3,8}\b(?!\))", line), f"{path.name}: {line}")

    def test_what_the_first_page_imports_is_asked_for_at_once(self):
        """Without the list the browser would find one layer of imports after the other."""
        found, waiting = set(), ["main.js"]
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            found.add(name)
            source = (CONSOLE / name).read_text()
            for path in re.findall(r"""(?:^|;)(?:import|export)\b[^;]*?from\s*["']([^"']+)["']""", source, re.M):
                waiting.append(str((CONSOLE / name).parent.joinpath(path).resolve().relative_to(CONSOLE)))
        listed = re.findall(r'rel="modulepreload" href="/console/([^"]+)"', (CONSOLE / "index.html").read_text())
        self.assertEqual(sorted(listed), sorted(found - {"main.js"}))

    def test_files_are_short(self):
        for path in self.files(".js", ".css"):
            self.assertLess(len(path.read_text().splitlines()), MAX_LINES, path.name)


if __name__ == "__main__":
    unittest.main()
