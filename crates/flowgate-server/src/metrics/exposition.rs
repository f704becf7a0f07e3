//! The text format of Prometheus: families of samples, each with a help text and a type.

use std::fmt::{Display, Write};

/// Writes families one after the other.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    pub(crate) text: String,
}

/// The samples of one metric.
pub(crate) struct Family<'e> {
    name: &'static str,
    text: &'e mut String,
}

impl Exposition {
    pub(crate) fn counter(&mut self, name: &'static str, help: &'static str) -> Family<'_> {
        self.family(name, help, "counter")
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &'static str) -> Family<'_> {
        self.family(name, help, "gauge")
    }

    pub(crate) fn histogram(&mut self, name: &'static str, help: &'static str) -> Family<'_> {
        self.family(name, help, "histogram")
    }

    fn family(&mut self, name: &'static str, help: &'static str, kind: &str) -> Family<'_> {
        put(&mut self.text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Family { name, text: &mut self.text }
    }
}

impl Family<'_> {
    /// A sample; labels as `[("name", "value")]`.
    pub(crate) fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        self.line("", labels, value)
    }

    /// Writes a sample if there is a value.
    pub(crate) fn sample_if(&mut self, value: Option<impl Display>) {
        if let Some(value) = value {
            self.sample(&[], value);
        }
    }

    /// The samples of a histogram: cumulative counts by bound, and the sum.
    pub(crate) fn distribution(&mut self, labels: &[(&str, &str)], counts: &[(&str, u64)], sum: impl Display) {
        for (bound, count) in counts {
            self.line("_bucket", &[labels, &[("le", bound)]].concat(), count);
        }
        self.line("_sum", labels, sum);
        self.line("_count", labels, counts.last().map_or(0, |(_, count)| *count));
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) -> &mut Self {
        put(self.text, format_args!("{}{suffix}", self.name));
        for (index, (name, value)) in labels.iter().enumerate() {
            put(self.text, format_args!("{}{name}=\"{}\"", if index == 0 { '{' } else { ',' }, EscapedText(value)));
        }
        put(self.text, format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
        self
    }
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(line);
}

/// The value of a label, escaped for double quotes.
struct EscapedText<'a>(&'a str);

impl Display for EscapedText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Nanoseconds as seconds, exactly.
pub(crate) fn seconds(nanos: u64) -> impl Display {
    std::fmt::from_fn(move |f| write!(f, "{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_samples_and_labels() {
        let mut out = Exposition::default();
        out.counter("a_total", "As.").sample(&[], 1).sample(&[("x", "q\"\\\n")], 2);
        out.gauge("b", "Bs.").sample(&[("x", "1"), ("y", "2")], seconds(1_500_000_000));
        out.histogram("c", "Cs.").distribution(&[("p", "z")], &[("1", 3), ("+Inf", 4)], seconds(5));
        assert_eq!(
            out.text,
            "# HELP a_total As.\n# TYPE a_total counter\na_total 1\na_total{x=\"q\\\"\\\\\\n\"} 2\n\
             # HELP b Bs.\n# TYPE b gauge\nb{x=\"1\",y=\"2\"} 1.500000000\n\
             # HELP c Cs.\n# TYPE c histogram\nc_bucket{p=\"z\",le=\"1\"} 3\nc_bucket{p=\"z\",le=\"+Inf\"} 4\n\
             c_sum{p=\"z\"} 0.000000005\nc_count{p=\"z\"} 4\n"
        );
    }
}
