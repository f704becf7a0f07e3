//! A what-if curve: the share of requests and of subjects that each count would have denied.

use std::fmt::Write;

use super::html::Text;
use super::scale;
use crate::format::{grouped, percent};
use crate::summary::{Curve, Point};

/// The widths of the chart on a wide and on a narrow screen. Text has the same size on both.
pub(super) const WIDE: f64 = 520.0;
pub(super) const NARROW: f64 = 300.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 12.0;
/// The width of a character of a label, rather too large: fonts differ.
const LABEL_CHAR_WIDTH: f64 = 7.0;
/// The number of counts that are drawn beyond the last one that denies a request.
const ZEROS_DRAWN: usize = 2;
/// Room for two rows of labels above the chart.
const TOP: f64 = 40.0;
const BOTTOM: f64 = 28.0;

/// Whether a count denies a request, so that there is a curve to draw.
pub(super) fn is_drawn(curve: &Curve) -> bool {
    !drawn(curve).is_empty()
}

/// The counts to draw: up to the last one that denies a request, and a few more.
fn drawn(curve: &Curve) -> &[Point] {
    let denying = curve.points.iter().rposition(|point| point.requests > 0);
    let end = denying.map_or(0, |last| (last + 1 + ZEROS_DRAWN).max(curve.spares.map_or(0, |index| index + 1)));
    &curve.points[..end.min(curve.points.len())]
}

/// Draws the chart as SVG of this width.
pub(super) fn svg(out: &mut String, curve: &Curve, width: f64) {
    let points = drawn(curve);
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    let requests: Vec<f64> = points.iter().map(|point| share(point.requests, curve.requests)).collect();
    let subjects: Vec<f64> = points.iter().map(|point| share(point.subjects, curve.subjects)).collect();
    let most = requests.iter().chain(&subjects).copied().fold(0.0, f64::max);
    let ticks = scale::ticks(most, 4.0);
    let top = ticks.last().copied().unwrap_or(1.0);
    let y = |share: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - share / top);
    let xs = positions(points, width);
    let _ = write!(
        out,
        r#"<svg data-chart="what-if" data-rule="{}" data-requests="{}" data-subjects="{}" viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="Share denied at other counts">"#,
        Text(&curve.rule),
        curve.requests,
        curve.subjects,
    );
    for tick in &ticks {
        let class = if *tick == 0.0 { "axis" } else { "grid" };
        let _ = write!(
            out,
            r#"<line class="{class}" x1="{LEFT}" x2="{:.1}" y1="{at:.1}" y2="{at:.1}"/><text x="{:.1}" y="{:.1}" text-anchor="end">{} %</text>"#,
            width - RIGHT,
            LEFT - 8.0,
            y(*tick) + 4.0,
            scale::short(*tick),
            at = y(*tick),
        );
    }
    counts(out, curve, &xs);
    marks(out, curve, &xs, width);
    bands(out, curve, &xs, width);
    line(out, "requests-line", &xs, requests.iter().map(|share| y(*share)));
    line(out, "subjects-line", &xs, subjects.iter().map(|share| y(*share)));
    for (index, x) in xs.iter().enumerate() {
        let (requests, subjects) = (y(requests[index]), y(subjects[index]));
        let _ = write!(
            out,
            r#"<rect class="dot subjects-dot" x="{:.1}" y="{:.1}" width="7" height="7"/><circle class="dot requests-dot" cx="{x:.1}" cy="{requests:.1}" r="3.75"/>"#,
            x - 3.5,
            subjects - 3.5,
        );
    }
    *out += "</svg>";
}

/// The horizontal position of each count, on a logarithmic scale.
fn positions(points: &[Point], width: f64) -> Vec<f64> {
    let logarithm = |point: &Point| (point.millionths as f64).ln();
    let (Some(first), Some(last)) = (points.first().map(logarithm), points.last().map(logarithm)) else {
        return Vec::new();
    };
    let span = (last - first).max(f64::MIN_POSITIVE);
    // The first and the last count keep a distance from the edges.
    let width = width - LEFT - RIGHT - 24.0;
    points.iter().map(|point| LEFT + 12.0 + width * (logarithm(point) - first) / span).collect()
}

/// The labels of the counts below the chart, as many as fit.
fn counts(out: &mut String, curve: &Curve, xs: &[f64]) {
    let room = |text: &str| LABEL_CHAR_WIDTH * text.len() as f64 + 12.0;
    let configured = curve.configured;
    let mut taken: Vec<(f64, f64)> = Vec::new();
    // The configured count is placed first, so that its label always fits.
    for index in std::iter::once(configured).chain((0..xs.len()).filter(|index| *index != configured)) {
        let (Some(&x), Some(point)) = (xs.get(index), curve.points.get(index)) else { continue };
        let half = room(&point.count) / 2.0;
        let span = (x - half, x + half);
        if taken.iter().any(|other| span.0 < other.1 && other.0 < span.1) {
            continue;
        }
        taken.push(span);
        let _ = write!(out, r#"<text x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#, HEIGHT - 8.0, point.count);
    }
}

/// Marks the configured count and the one that spares 99.9 % of the subjects.
fn marks(out: &mut String, curve: &Curve, xs: &[f64], width: f64) {
    let mut mark = |index: usize, row: f64, class: &str, words: &str| {
        let Some(point) = curve.points.get(index) else { return };
        let Some(&x) = xs.get(index) else {
            // This count denies nothing and is not drawn, so an arrow points to it.
            let (x, count) = (width - RIGHT, &point.count);
            let _ = write!(
                out,
                r#"<text class="{class}-label" x="{x:.1}" y="{row:.1}" text-anchor="end">{words} {count} →</text>"#
            );
            return;
        };
        // A label that would leave the chart is moved inwards.
        let half = LABEL_CHAR_WIDTH * (words.len() + 1 + point.count.len()) as f64 / 2.0;
        let middle = x.max(half + 2.0).min(width - half - 2.0);
        let _ = write!(
            out,
            r#"<line class="{class}" data-count="{count}" x1="{x:.1}" x2="{x:.1}" y1="{:.1}" y2="{:.1}"/><text class="{class}-label" x="{middle:.1}" y="{:.1}" text-anchor="middle">{words} {count}</text>"#,
            row + 5.0,
            HEIGHT - BOTTOM,
            row,
            count = point.count,
        );
    };
    match curve.spares {
        Some(index) if index == curve.configured => mark(index, 30.0, "spares", "configured, spares 99.9 %:"),
        spares => {
            mark(curve.configured, 30.0, "configured", "configured:");
            if let Some(index) = spares {
                mark(index, 13.0, "spares", "spares 99.9 %:");
            }
        }
    }
}

/// A strip around each count that shows its numbers under the pointer.
fn bands(out: &mut String, curve: &Curve, xs: &[f64], width: f64) {
    for (index, (x, point)) in xs.iter().zip(&curve.points).enumerate() {
        let left = if index == 0 { LEFT } else { (xs[index - 1] + x) / 2.0 };
        let right = xs.get(index + 1).map_or(width - RIGHT, |next| (x + next) / 2.0);
        let tip = format!(
            "{}\n{} of requests, {} of {}\n{} of subjects, {} of {}",
            point.limit,
            percent(point.requests, curve.requests),
            grouped(point.requests),
            grouped(curve.requests),
            percent(point.subjects, curve.subjects),
            grouped(point.subjects),
            grouped(curve.subjects),
        );
        let _ = write!(
            out,
            r#"<g data-count="{}" data-requests="{}" data-subjects="{}" data-tip="{tip}"><title>{tip}</title><rect class="band" x="{left:.1}" y="{TOP}" width="{:.1}" height="{:.1}"/></g>"#,
            point.count,
            point.requests,
            point.subjects,
            right - left,
            HEIGHT - TOP - BOTTOM,
            tip = Text(&tip),
        );
    }
}

fn line(out: &mut String, class: &str, xs: &[f64], ys: impl Iterator<Item = f64>) {
    let _ = write!(out, r#"<polyline class="{class}" points=""#);
    for (x, y) in xs.iter().zip(ys) {
        let _ = write!(out, "{x:.1},{y:.1} ");
    }
    *out += r#""/>"#;
}
