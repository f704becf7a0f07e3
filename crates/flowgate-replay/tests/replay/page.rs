//! The report in a browser: its charts, its texts under the pointer and the focus, and that it fetches nothing.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::Trial;

/// Opens the report within another page, looks at it as a visitor would, and writes down what it saw.
const VISITOR: &str = r##"<!doctype html><meta charset="utf-8">
<iframe src="report.html" width="WIDTH" height="6000"></iframe><script id="seen" type="application/json"></script>
<script>
document.querySelector("iframe").onload = ({ target }) => {
  const page = target.contentDocument, view = target.contentWindow;
  const tip = page.getElementById("tip");
  const shown = () => view.getComputedStyle(tip).visibility === "visible" ? tip.textContent : null;
  const number = (mark, name) => Number(mark.dataset[name]);
  const height = (mark, selector) => mark.querySelector(selector)?.getBBox().height ?? 0;
  const point = (mark) => {
    const at = mark.querySelector(".band").getBoundingClientRect();
    const place = { clientX: at.x + at.width / 2, clientY: at.y + at.height / 2, bubbles: true };
    page.elementFromPoint(place.clientX, place.clientY).dispatchEvent(new view.PointerEvent("pointermove", place));
  };
  const press = (chart, key) => chart.dispatchEvent(new view.KeyboardEvent("keydown", { key, bubbles: true }));
  // Each chart exists for wide and for narrow screens. One of the two is shown.
  const charts = [...page.querySelectorAll("svg[data-chart]")].filter((chart) => chart.getClientRects().length);
  const timeline = charts.find((chart) => chart.dataset.chart === "timeline");
  const bars = [...timeline.querySelectorAll("g[data-tip]")];
  const seen = { title: page.title, h1: page.querySelector("h1").textContent };

  seen.bars = bars.map((bar) => ({
    start: bar.dataset.start, passed: number(bar, "passed"), denied: number(bar, "denied"),
    passedHeight: height(bar, "rect.passed"), deniedHeight: height(bar, "rect.denied"),
  }));
  seen.numbers = Object.fromEntries([...page.querySelectorAll("[data-number]")]
    .map((box) => [box.dataset.number, box.querySelector("span").textContent]));
  seen.curves = charts.filter((chart) => chart.dataset.chart === "what-if").map((chart) => ({
    rule: chart.dataset.rule,
    points: [...chart.querySelectorAll("g[data-tip]")].map((mark) => [
      mark.dataset.count, number(mark, "requests"), number(mark, "subjects"),
    ]),
    requestsLine: chart.querySelector(".requests-line").points.length,
    requestsY: [...chart.querySelector(".requests-line").points].map(({ y }) => y),
    zero: Number(chart.querySelector(".axis").getAttribute("y1")),
    configured: chart.querySelector(".configured")?.dataset.count ?? null,
    spares: chart.querySelector(".spares")?.dataset.count ?? null,
  }));
  seen.subjects = [...page.querySelectorAll('[data-table="hardest-hit"] tbody tr')]
    .map((row) => [row.querySelector(".subject").textContent, number(row, "count")]);
  seen.changed = [...page.querySelectorAll('[data-table="changed"] tbody tr')]
    .map((row) => row.innerText.split(/\s+/).join(" "));

  seen.sections = [...page.querySelectorAll("h2")].map((title) => title.innerText).slice(0, 2);
  seen.legend = [...page.querySelectorAll(".legend .stroke")].map((key) => view.getComputedStyle(key).borderTopStyle);

  seen.tipBefore = shown();
  const busy = bars.find((bar) => number(bar, "denied") > 0);
  point(busy);
  seen.tipByPointer = shown();
  timeline.dispatchEvent(new view.PointerEvent("pointerleave"));
  seen.tipAfter = shown();
  const curve = charts.find((chart) => chart.dataset.chart === "what-if");
  press(curve, "End"); press(curve, "Home"); press(curve, "ArrowRight");
  seen.tipByKey = shown();
  press(curve, "Escape");
  seen.tipEscaped = shown();
  seen.reachable = charts.every((chart) => chart.tabIndex === 0 && chart.getAttribute("aria-label"));

  seen.styled = view.getComputedStyle(page.querySelector("main")).maxWidth;
  seen.background = view.getComputedStyle(page.body).backgroundColor;
  seen.fetched = view.performance.getEntriesByType("resource").map(({ name }) => name);
  seen.elements = ["script", "img", "link", "iframe", "b"].map((name) => page.querySelectorAll(name).length);
  seen.broken = page.querySelectorAll("[src], [href], [onerror], [onload]").length + (view.broken ? 1 : 0);
  seen.cut = charts.flatMap((chart) => {
    const room = chart.getBoundingClientRect();
    const isCut = (text) => {
      const at = text.getBoundingClientRect();
      return at.left < room.left - 1 || at.right > room.right + 1;
    };
    return [...chart.querySelectorAll("text")].filter(isCut).map((text) => text.textContent);
  });
  seen.scrolls = [...page.querySelectorAll("*")].filter((part) => part.scrollWidth > part.clientWidth + 1)
    .filter((part) => part.closest("main") && view.getComputedStyle(part).overflowX === "auto")
    .map((part) => view.getComputedStyle(part).backgroundImage.startsWith("linear-gradient"));
  seen.contrast = (() => {
    const channels = (text) => text.match(/[0-9.]+/g).slice(0, 3).map((value) => value / 255)
      .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const light = (text) => channels(text).reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
    const behind = (part) => {
      for (; part; part = part.parentElement) {
        const color = view.getComputedStyle(part).backgroundColor;
        if (!/, 0(\.\d+)?\)$/.test(color)) return color;
      }
      return "rgb(255, 255, 255)";
    };
    const faint = (part) => {
      const style = view.getComputedStyle(part), own = part.closest("svg") ? style.fill : style.color;
      const [a, b] = [light(own), light(behind(part.closest("svg") ?? part))].sort((x, y) => y - x);
      return (a + 0.05) / (b + 0.05);
    };
    const hasText = (part) => [...part.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const shown = [...page.querySelectorAll("main *")].filter((part) => hasText(part) && part.getClientRects().length);
    return Math.min(...shown.map(faint));
  })();
  seen.overflows = page.documentElement.scrollWidth > view.innerWidth;
  document.getElementById("seen").textContent = JSON.stringify(seen).replaceAll("<", "\\u003c");
};
</script>"##;

/// Opens the report in a browser, and returns what the visitor saw.
fn visit(directory: &Path, scheme: &str, width: u32) -> Value {
    let visitor = directory.join("visitor.html");
    std::fs::write(&visitor, VISITOR.replace("WIDTH", &width.to_string())).unwrap();
    let output = Command::new("timeout")
        .args(["120", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--no-first-run", "--disable-background-networking", "--enable-logging=stderr"])
        .args(["--allow-file-access-from-files", "--virtual-time-budget=5000", "--window-size=1200,6200", "--dump-dom"])
        .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("file://{}", visitor.display()))
        .output()
        .expect("chromium is missing: scripts/test installs it");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let said: Vec<&str> = log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert_eq!(said, [""; 0], "the console");
    let seen = dom.split("<script id=\"seen\" type=\"application/json\">").nth(1);
    let seen = seen.and_then(|rest| rest.split("</script>").next()).unwrap_or_default();
    serde_json::from_str(seen).unwrap_or_else(|error| panic!("{error}: {seen}\n{dom}\n{log}"))
}

const HOSTILE: &str = r#"</script><img src=x onerror="broken=1"><b>&amp;"#;

/// Ten minutes of an access log, in which one agent, with a hostile name, asks too often in the third.
fn log() -> String {
    let mut log = String::new();
    let mut add = |minute: u32, agent: &str| {
        let agent = agent.replace('"', "\\\"");
        log +=
            &format!("1.2.3.4 - - [17/May/2015:10:{minute:02}:30 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"{agent}\"\n");
    };
    for minute in 0..10 {
        add(minute, "calm");
        for _ in 0..if minute == 3 { 9 } else { 1 } {
            add(minute, HOSTILE);
        }
    }
    log
}

#[test]
fn the_report_in_a_browser() {
    let policy = "rule = [{ name = 'agents', by = ['ua'], limits = ['4/min'], title = '<b>' }]";
    let next_policy = "rule = [{ name = 'agents', by = ['ua'], limits = ['2/min'] }]";
    let log = log();
    let summary = Trial::new(policy, log.as_bytes()).compare(next_policy).what_if().summary();
    let page = flowgate_replay::report::page(&summary);
    let summary = serde_json::to_value(summary).unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("report.html"), &page).unwrap();
    assert!(!page.contains(HOSTILE) && page.contains("&lt;/script&gt;&lt;img src=x"), "escaped");
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing to go to");

    let seen = visit(directory.path(), "1", 1100);
    assert_eq!(seen["title"], "Replay: flowgate.toml");
    assert_eq!(seen["h1"], "17.9 % of 28 requests would have been denied, 25.0 % under next.toml");
    let numbers = &seen["numbers"];
    assert_eq!(
        (&numbers["requests"], &numbers["passed"], &numbers["denied"]),
        (&json!("28"), &json!("23"), &json!("5"))
    );
    assert_eq!((&numbers["newly-denied"], &numbers["newly-passed"]), (&json!("2"), &json!("0")));
    assert_eq!(seen["sections"], json!(["Under next.toml instead", "Over time"]));
    assert_eq!(seen["legend"], json!(["solid", "dashed"]), "as the curves are");
    assert!(page.contains("</code>; 1 subject</p>"));
    check_bars(&seen, &summary);
    check_curve(&seen["curves"][0], &summary["what_if"]["curves"][0]);
    assert_eq!(seen["subjects"], json!([[HOSTILE, 5]]), "the text itself");
    assert_eq!(seen["changed"], json!([format!("{HOSTILE} agents 2")]));

    assert_eq!(
        (&seen["tipBefore"], &seen["tipAfter"], &seen["tipEscaped"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(seen["tipByPointer"], "2015-05-17 10:03:30 UTC, 5 s\n10 requests\n5 denied, 50.0 %");
    assert_eq!(seen["tipByKey"], "sliding 2/1m\n25.0 % of requests, 7 of 28\n50.0 % of subjects, 1 of 2");
    assert_eq!(seen["reachable"], true);

    assert_eq!(seen["styled"], "1040px", "the style is admitted by its hash");
    assert_eq!(seen["background"], "rgb(247, 247, 245)");
    assert_eq!(seen["fetched"], json!([]));
    assert_eq!(seen["elements"], json!([1, 0, 0, 0, 3]));
    assert_eq!((&seen["broken"], &seen["overflows"]), (&json!(0), &json!(false)));

    let dark = visit(directory.path(), "0", 1100);
    assert_eq!(dark["background"], "rgb(18, 19, 22)");
    assert_eq!(dark["bars"], seen["bars"]);

    let narrow = visit(directory.path(), "1", 360);
    assert_eq!(narrow["bars"], seen["bars"], "the charts of a phone have the same numbers");
    assert_eq!(narrow["curves"][0]["points"], seen["curves"][0]["points"]);
    for seen in [&seen, &dark, &narrow] {
        assert_eq!((&seen["cut"], &seen["overflows"]), (&json!([]), &json!(false)), "labels are whole");
        assert!(seen["contrast"].as_f64().unwrap() >= 4.5, "{}", seen["contrast"]);
    }
    assert_eq!(seen["scrolls"], json!([]));
    let signs = narrow["scrolls"].as_array().unwrap();
    assert!(signs.iter().all(|sign| *sign == true), "a table that goes on sideways has a shadow there: {signs:?}");
}

/// Checks that every bar has its numbers and a height in proportion to them.
fn check_bars(seen: &Value, summary: &Value) {
    let (bars, periods) = (seen["bars"].as_array().unwrap(), summary["timeline"].as_array().unwrap());
    assert_eq!(bars.len(), periods.len());
    let most = periods.iter().map(|period| period["passed"].as_f64().unwrap() + period["denied"].as_f64().unwrap());
    let most = most.fold(0.0, f64::max);
    for (bar, period) in bars.iter().zip(periods) {
        let start = period["start"].as_str().unwrap().replace('T', " ").replace('Z', "");
        assert_eq!(
            (&bar["start"], &bar["passed"], &bar["denied"]),
            (&json!(start), &period["passed"], &period["denied"])
        );
        for (count, height) in [("passed", "passedHeight"), ("denied", "deniedHeight")] {
            let (count, height) = (bar[count].as_f64().unwrap(), bar[height].as_f64().unwrap());
            assert!((height - 170.0 * count / most).abs() < 0.1, "{bar}");
        }
    }
}

/// Checks that the curve has the numbers of the summary, and that its lines have the right heights.
fn check_curve(curve: &Value, expected: &Value) {
    let points = expected["points"].as_array().unwrap();
    // Two counts that deny nothing are drawn, and no more.
    let points = &points[..points.iter().rposition(|point| point["requests"] != 0).unwrap() + 3];
    assert_eq!(points.len(), 7);
    let shown: Vec<Value> =
        points.iter().map(|point| json!([point["count"], point["requests"], point["subjects"]])).collect();
    assert_eq!(curve["points"], json!(shown));
    assert_eq!(curve["requestsLine"], points.len());
    let count = |index: &Value| index.as_u64().map(|index| points[index as usize]["count"].clone()).unwrap_or_default();
    assert_eq!(
        (&curve["configured"], &curve["spares"]),
        (&count(&expected["configured"]), &count(&expected["spares"]))
    );
    assert_eq!((&curve["configured"], &curve["spares"]), (&json!("4"), &json!("9")), "nine at once are spared by nine");
    let (ys, zero) = (curve["requestsY"].as_array().unwrap(), curve["zero"].as_f64().unwrap());
    let height = |index: usize| zero - ys[index].as_f64().unwrap();
    let requests = |index: usize| points[index]["requests"].as_f64().unwrap();
    for index in 0..points.len() {
        let proportion = height(0) * requests(index) / requests(0);
        assert!((height(index) - proportion).abs() < 0.2, "{index}: {} {proportion}", height(index));
    }
}
