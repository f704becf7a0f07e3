//! Requests over time: all requests in the upper chart, the denied ones on their own scale in the lower chart.

use std::fmt::Write;

use super::html::Text;
use super::scale;
use crate::format::{clock, grouped, length, percent};
use crate::summary::{Outcome, Period};
use flowgate::Span;

/// The layout on a wide and on a narrow screen. Text has the same size on both.
pub(super) const WIDE: Layout = Layout { width: 1000.0, times: 8 };
pub(super) const NARROW: Layout = Layout { width: 310.0, times: 4 };

const LEFT: f64 = 46.0;
const TOP: f64 = 8.0;
/// The heights of the two charts, and the top of the lower one.
const ALL_HEIGHT: f64 = 170.0;
const DENIED_TOP: f64 = 214.0;
const DENIED_HEIGHT: f64 = 64.0;
const HEIGHT: f64 = 304.0;

/// The size of the chart.
pub(super) struct Layout {
    width: f64,
    /// The times on the axis are fewer than this number.
    times: u64,
}

/// The chart as SVG.
pub(super) fn svg(out: &mut String, outcome: &Outcome, layout: &Layout) {
    let chart_width = layout.width;
    let periods = &outcome.timeline;
    let most = |count: fn(&Period) -> u64| periods.iter().map(count).max().unwrap_or(0) as f64;
    let all = Scale::new(most(|period| period.passed + period.denied), TOP, ALL_HEIGHT);
    let denied = Scale::new(most(|period| period.denied), DENIED_TOP, DENIED_HEIGHT);
    let step = (chart_width - LEFT) / periods.len().max(1) as f64;
    let _ = write!(
        out,
        r#"<svg data-chart="timeline" viewBox="0 0 {chart_width} {HEIGHT}" role="img" aria-label="Requests over time: {} passed, {} denied">"#,
        grouped(outcome.passed),
        grouped(outcome.denied),
    );
    all.grid(out, 4.0, chart_width);
    denied.grid(out, 2.0, chart_width);
    let _ = write!(out, r#"<text x="{LEFT}" y="{}">denied</text>"#, DENIED_TOP - 7.0);
    let width = Span::from_secs(outcome.period_seconds);
    for (index, period) in periods.iter().enumerate() {
        bar(out, period, width, LEFT + index as f64 * step, step, &all, &denied);
    }
    axis(out, outcome, step, layout);
    *out += "</svg>";
}

fn bar(out: &mut String, period: &Period, width: Span, x: f64, step: f64, all: &Scale, denied: &Scale) {
    let Period { start, passed, denied: refused } = period;
    let requests = passed + refused;
    let start = clock(start);
    let tip = format!(
        "{start} UTC, {}\n{} requests\n{} denied, {}",
        length(width),
        grouped(requests),
        grouped(*refused),
        percent(*refused, requests)
    );
    let _ = write!(
        out,
        r#"<g data-start="{start}" data-passed="{passed}" data-denied="{refused}" data-tip="{tip}"><title>{tip}</title>"#,
        tip = Text(&tip)
    );
    let _ = write!(
        out,
        r#"<rect class="band" x="{x:.2}" y="{TOP}" width="{step:.2}" height="{:.2}"/>"#,
        DENIED_TOP + DENIED_HEIGHT - TOP
    );
    // Wide bars get a gap of one unit.
    let gap = if step > 4.0 { 1.0 } else { 0.0 };
    let (x, step) = (x + gap / 2.0, step - gap);
    all.bar(out, "passed", x, step, *refused as f64, *passed as f64);
    all.bar(out, "denied", x, step, 0.0, *refused as f64);
    denied.bar(out, "denied", x, step, 0.0, *refused as f64);
    *out += "</g>";
}

fn axis(out: &mut String, outcome: &Outcome, step: f64, layout: &Layout) {
    let bottom = DENIED_TOP + DENIED_HEIGHT;
    let Some(first) = outcome.timeline.first().and_then(|period| seconds(&period.start)) else { return };
    let width = outcome.period_seconds.max(1);
    let last = first + width * outcome.timeline.len() as u64;
    for (at, label) in scale::times(first, last, layout.times) {
        let x = LEFT + (at - first) as f64 / width as f64 * step;
        // A label at the edge would be cut off.
        if x > layout.width - 24.0 {
            continue;
        }
        let _ = write!(
            out,
            r#"<line class="axis" x1="{x:.1}" x2="{x:.1}" y1="{bottom}" y2="{}"/><text x="{x:.1}" y="{}" text-anchor="middle">{label}</text>"#,
            bottom + 5.0,
            bottom + 19.0,
        );
    }
}

fn seconds(instant: &str) -> Option<u64> {
    crate::timestamp::from_rfc3339(instant.as_bytes()).map(|time| time.as_nanos() / 1_000_000_000)
}

/// The scale of a chart: counts to heights.
struct Scale {
    most: f64,
    top: f64,
    height: f64,
}

impl Scale {
    fn new(most: f64, top: f64, height: f64) -> Scale {
        Scale { most, top, height }
    }

    fn grid(&self, out: &mut String, number: f64, width: f64) {
        for tick in scale::ticks(self.most, number) {
            // A count of requests is a whole number.
            if tick.fract() > 0.0 || tick > self.most.max(1.0) * 1.001 {
                continue;
            }
            let y = self.top + self.height * (1.0 - tick / self.most.max(1.0));
            let class = if tick == 0.0 { "axis" } else { "grid" };
            let _ = write!(
                out,
                r#"<line class="{class}" x1="{LEFT}" x2="{width}" y1="{y:.1}" y2="{y:.1}"/><text x="{}" y="{:.1}" text-anchor="end">{}</text>"#,
                LEFT - 8.0,
                y + 4.0,
                scale::short(tick),
            );
        }
    }

    fn bar(&self, out: &mut String, class: &str, x: f64, width: f64, from: f64, count: f64) {
        if count <= 0.0 {
            return;
        }
        let height = self.height * count / self.most;
        // A count above zero is at least one unit high.
        let shown = height.max(1.0);
        let y = self.top + self.height * (1.0 - from / self.most) - shown;
        let _ = write!(out, r#"<rect class="{class}" x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{shown:.2}"/>"#);
    }
}
