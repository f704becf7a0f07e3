// Texts, numbers, times, TOML, networks and fields: what the pages show is right.

import assert from "node:assert/strict";
import test from "node:test";
import { parseFields, printFields, requestOf, startingFields, valueThatMeets } from "../../../crates/flowgate-server/console/lib/fields.js";
import { formats } from "../../../crates/flowgate-server/console/lib/format.js";
import { bars, recentRate, tick } from "../../../crates/flowgate-server/console/lib/history.js";
import { parseLimit, periods, sampleFor } from "../../../crates/flowgate-server/console/lib/limits.js";
import { holds, isWide, network } from "../../../crates/flowgate-server/console/lib/network.js";
import { clean, cleanCode, cleanLine, cut, unitOfColumn } from "../../../crates/flowgate-server/console/lib/text.js";
import { firstCount, markAt, painted, ruleBlocks, withCount, withKey } from "../../../crates/flowgate-server/console/lib/toml.js";
import { denier } from "../../../crates/flowgate-server/console/lib/verdict.js";

test("characters that mislead are shown, and long texts cut by characters", () => {
  assert.equal(clean("a\u202eb\nc\u0000\u200b"), "a\ufffdb\ufffdc\ufffd\ufffd");
  assert.equal(clean("<b>{{7*7}}"), "<b>{{7*7}}");
  assert.equal(cleanCode("a\n\tb\u202e\r\n"), "a\n\tb\ufffd\ufffd\n");
  assert.equal(cleanLine("its own\n  it is at f.toml:3\r\nfirst:\nx\u202e\n"), "its own; it is at f.toml:3; first: x\ufffd");
  assert.equal(cut("😀😀😀😀", 3), "😀😀…");
  assert.equal(unitOfColumn("😀a", 2), 2);
});

test("numbers and times in both languages", () => {
  const en = formats("en", "UTC");
  assert.deepEqual([en.num(24419), en.rate(31.44), en.rate(812.4), en.rate(0.01), en.percent(3, 1000), en.percent(1, 1e6), en.percent(0, 0)], ["24,419", "31.4", "812", "< 0.1", "0.3 %", "< 0.1 %", "–"]);
  assert.deepEqual([en.milliseconds(210), en.milliseconds(2), en.bytes(61e6), en.bytes(1e9), en.clock(1763283600)], ["0.21", "< 0.01", ["61", "MB"], ["1", "GB"], "09:00"]);
  assert.equal(formats("zh-CN", "Asia/Shanghai").clock(1763283600), "17:00");
  assert.deepEqual([12.11, 59.99, 3452, 0].map(en.countdown), ["12.2 s", "60.0 s", "57 min 32 s", "0 s"]);
  assert.deepEqual([41, 552, 7200, 0.4].map(en.span), ["41 s", "9 min 12 s", "2 h", "0.4 s"]);
  const zh = formats("zh-CN", "Asia/Shanghai");
  assert.deepEqual([zh.countdown(12.11), zh.span(552), zh.span(90_000), zh.countdown(550), zh.percent(3, 1000)], ["12.2 秒", "9 分钟 12 秒", "1 天 1 小时", "9 分钟 10 秒", "0.3%"]);
});

test("bars keep their steps from one answer to the next, and gaps stay gaps", () => {
  const history = (end) => ({ step: 10, end, length: 360 });
  const list = (end) => Array.from({ length: 360 }, (_, i) => ((end - (360 - i) * 10) % 200 === 0 ? 20 : null));
  const [first, second] = [1_000_000, 1_000_010].map((end) => bars(history(end), [["denied", list(end)]], 180));
  assert.equal(first.width, 20);
  const at = first.starts.indexOf(second.starts[5]);
  assert.equal(first.values.get("denied")[at], second.values.get("denied")[5]);
  assert.ok(first.values.get("denied").includes(null) && first.values.get("denied").includes(2));
  assert.equal(recentRate([60, 60, 999], 1, 60), 60);
  // The rule has decided for one of the four seconds that were measured.
  assert.equal(recentRate([null, null, null, null, 60, 999], 1, 60, [null, 0, 0, 0, 60, 999]), 15);
  assert.deepEqual([0.3, 3, 34, 846].map(tick), [0.2, 2, 20, 500]);
});

test("a sample lasts several of the longest periods that it can judge", () => {
  const text = '[[rule]]\nname = "reply"\nwhen = { path = "/a/1m" }\nlimits = ["5/60s", "fixed 100/day tz=Asia/Shanghai"]\n# limits = ["1/5m"]\n[[rule]]\nname = "login"\nlimits = [\n  "bucket 5/2s after=3/4m",\n]\n';
  const found = periods(text, ruleBlocks(text));
  assert.deepEqual(found.map((each) => [each.rule, each.seconds]), [["reply", 60], ["reply", 86_400], ["login", 240]]);
  const { judged, length, beyond } = sampleFor(found, [60, 300, 600]);
  assert.deepEqual([judged.rule, length, beyond.limit], ["login", 600, "fixed 100/day tz=Asia/Shanghai"]);
  assert.equal(sampleFor(found.slice(0, 1), [60, 300, 600]).length, 300);
  assert.deepEqual(sampleFor([], [60, 300, 600]), { judged: null, length: null, beyond: null });
});

test("the sentence names the rule that denies loudly, and only then", () => {
  const quiet = { rule: "api", allowed: 400, denied: 2 };
  assert.equal(denier([quiet]), null);
  assert.equal(denier([quiet, { rule: "login", allowed: 5, denied: 31 }]).rule, "login");
  assert.equal(denier([{ rule: "seldom", allowed: 0, denied: 0.5 }]), null);
});

test("TOML is painted, and a finding marks its word", () => {
  const line = 'limit = ["5/60s"] # "x"';
  assert.deepEqual(painted(line, []).map((piece) => piece.kind), ["key", "text", "comment"]);
  assert.deepEqual(markAt(line, 1), [0, 5]);
  assert.equal(painted(line, [{ from: 0, to: 5, severity: "error" }])[0].mark, "error");
  assert.deepEqual(markAt("  x", 99), [2, 3]);
  assert.equal(painted('a = "#"', []).map((piece) => piece.text).join(""), 'a = "#"');
});

const FILE = '[server]\nx = 1\n\n# about a\n[[rule]]\nname   = "a"\nlimits = ["5/60s", "fixed 100/day"]\n\n# about b\n[[rule]]\nname = "b"\nshadow = true\n';

test("a rule is found in its file, and changed there alone", () => {
  assert.deepEqual(ruleBlocks(FILE).map(({ name, from, to }) => [name, from, to]), [["a", 4, 7], ["b", 9, 12]]);
  assert.equal(withCount(FILE, "a", "10"), FILE.replace("5/60s", "10/60s"));
  assert.deepEqual([firstCount(FILE, "a"), firstCount(FILE, "b"), firstCount(FILE, "c")], [5, null, null]);
  assert.equal(withKey(FILE, "a", "shadow", "true"), FILE.replace('"fixed 100/day"]\n', '"fixed 100/day"]\nshadow = true\n'));
  assert.equal(withKey(FILE, "b", "shadow", null), FILE.replace("shadow = true\n", ""));
  assert.equal(withKey(FILE, "none", "shadow", "true"), null);
});

test("a limit is taken apart, with what is free before it", () => {
  const limit = parseLimit("fixed 1/10s tz=Asia/Shanghai after=30/1d");
  assert.deepEqual(limit, { kind: "fixed", count: 1, seconds: 10, burst: null, after: { count: 30, seconds: 86_400 }, zone: "Asia/Shanghai" });
  assert.deepEqual([parseLimit("5/min").seconds, parseLimit("5/min").after, parseLimit("5 a minute"), parseLimit("5/min after=x")], [60, null, null, null]);
});

test("networks: their width, and what they hold", () => {
  assert.equal(network("203.0.0.0/14").addresses, 262144);
  assert.ok(isWide(network("203.0.0.0/14")) && !isWide(network("203.0.0.0/16")) && isWide(network("2001::/31")) && !isWide(network("2001:db8::/32")));
  assert.ok(holds(network("10.0.0.0/8"), network("10.1.2.3")) && !holds(network("10.0.0.0/8"), network("11.1.2.3")));
  for (const wrong of ["x", "1.2.3", "1.2.3.256", "1.2.3.4/33", "::1::", "1::/129"]) assert.equal(network(wrong), null, wrong);
});

test("fields are read from pairs and from JSON, and printed so that they are read again", () => {
  assert.deepEqual(parseFields('act=reply user="a \\"b" ip=::1'), [["act", "reply"], ["user", 'a "b'], ["ip", "::1"]]);
  assert.deepEqual(parseFields('{"fields":{"act":"reply","n":5}}'), [["act", "reply"], ["n", "5"]]);
  assert.equal(parseFields("no pairs here"), null);
  const pairs = [["a", 'x "y" \\'], ["b", ""]];
  assert.deepEqual(parseFields(printFields(pairs)), pairs);
});

test("a condition gives a value that meets it, or none", () => {
  const met = [[["reply", "post"], "reply"], [["reply"], "reply"], [["!x", "@office", "a, b"], "a, b"], [["/login"], "/login"], [["10.1.2.3"], "10.1.2.3"], [['{ eq = "*" }'], "*"], [["a@b.example"], "a@b.example"]];
  for (const [is, value] of met) assert.equal(valueThatMeets(is), value, is);
  for (const is of [["*"], ["!*"], ["!new"], ["/api/**"], ["@office"], ["~^a"], ["> 100"], ["1..100"], ["10.0.0.0/8"], ["2001:db8::/32"], ["10.0.0.1..10.0.0.9"], ["*", "@office"]]) assert.equal(valueThatMeets(is), null, is);
});

test("a request of a subject is one that was denied, else one that meets the rule", () => {
  const when = [{ field: "act", is: ["reply", "post"] }, { field: "user", is: ["*"] }, { field: "path", is: ["/api/**"] }, { field: "captcha", is: ["!*"] }];
  const subject = [["user", "7"]];
  assert.deepEqual(requestOf(subject, when, []), [["act", "reply"], ["path", ""], ["user", "7"]]);
  const denial = (seq, user, fields, cut = false) => ({ seq, cut, subject: { user }, fields });
  const denials = [denial(1, "7", { act: "reply" }), denial(3, "7", { act: "post", path: "/api/x" }), denial(4, "8", { act: "reply" }), denial(5, "7", { act: "cut" }, true)];
  assert.deepEqual(requestOf(subject, when, denials), [["act", "post"], ["path", "/api/x"], ["user", "7"]]);
  // A denial has neither headers nor queries; their fields are wanted all the same.
  const robots = [...when, { field: "header.user-agent", is: ["~bot"] }, { field: "query.page", is: ["!*"] }];
  assert.deepEqual(requestOf(subject, robots, denials), [["header.user-agent", ""], ["act", "post"], ["path", "/api/x"], ["user", "7"]]);
});

test("the fields to fill in begin with what most rules count by", () => {
  const rule = (by, ...fields) => ({ by, when: fields.map((field) => ({ field, is: ["*"] })) });
  assert.deepEqual(startingFields([rule([], "act", "level"), rule(["ip"], "act"), rule(["user"], "act", "user"), rule(["user"], "user")]), ["user", "ip", "act", "level"]);
  assert.deepEqual(startingFields([]), ["user"]);
});
