//! Reads the text format of Prometheus, strictly.

use std::collections::{BTreeMap, BTreeSet};

/// All samples of a text, by name and labels as they are written.
pub(crate) struct Samples(BTreeMap<String, f64>);

impl Samples {
    /// # Panics
    /// When the text is not as Prometheus wants it.
    pub(crate) fn parse(text: &str) -> Samples {
        assert!(text.ends_with('\n'), "the last line has an end");
        let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
        let (mut name, mut kind) = ("", "");
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                name = help.split_once(' ').expect("a help text").0;
                assert!(families.insert(name), "{name} stands twice");
                kind = "";
            } else if let Some(typed) = line.strip_prefix("# TYPE ") {
                let (of, is) = typed.split_once(' ').unwrap();
                assert_eq!(of, name, "the type follows the help");
                assert!(["counter", "gauge", "histogram"].contains(&is), "{line}");
                assert_eq!(is == "counter", name.ends_with("_total"), "{line}");
                kind = is;
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                let of = sample.split('{').next().unwrap();
                let of = ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|end| of.strip_suffix(end))
                    .filter(|_| kind == "histogram")
                    .unwrap_or(of);
                assert_eq!((of, kind.is_empty()), (name, false), "{line}");
                let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
                assert!(samples.insert(sample.to_owned(), value).is_none(), "{sample} stands twice");
            }
        }
        assert!(!samples.is_empty());
        Samples(samples)
    }

    /// # Panics
    /// When there is no such sample.
    pub(crate) fn get(&self, sample: &str) -> f64 {
        *self.0.get(sample).unwrap_or_else(|| panic!("no {sample} in {:#?}", self.0.keys()))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
