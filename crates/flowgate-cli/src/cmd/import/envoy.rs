//! `flowgate import envoy`: the configuration of envoyproxy/ratelimit.

mod rules;
mod tree;
mod yaml;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use flowgate_engine::config;

use crate::terminal;
use rules::ImportedRules;
use tree::{Domain, composite_twice, shown};
use yaml::{Mistake, Place};

/// The most bytes of a file.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Print the configuration of envoyproxy/ratelimit as TOML
///
/// The rules give descriptors the same limits, served at `listen.grpc`. What rules cannot express becomes a comment,
/// and a warning on standard error.
#[derive(Debug, clap::Args)]
pub(super) struct EnvoyArgs {
    /// The files, one domain each
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Join files of one domain
    #[arg(long)]
    merge: bool,
}

pub(super) fn run(args: &EnvoyArgs) -> anyhow::Result<()> {
    let mut domains: Vec<Domain> = Vec::new();
    let (mut file_of, mut warnings) = (HashMap::new(), Vec::new());
    for file in &args.files {
        let (domain, at) = read(file).map_err(|mistake| in_file(file, &mistake))?;
        if let Some(before) = file_of.insert(domain.name.clone(), file)
            && !args.merge
        {
            let message = format!("the domain {} is in {}, too: --merge joins them", domain.name, before.display());
            return Err(in_file(file, &Mistake::new(at, message)));
        }
        let files = domains.iter().filter(|known| known.name == domain.name).chain([&domain]);
        if let Some(twice) = composite_twice(files.flat_map(|domain| &domain.descriptors)) {
            let message = format!("{} stands twice in the files of the domain {}", shown(twice), domain.name);
            return Err(in_file(file, &Mistake::new(twice.at, message)));
        }
        let mut imported = ImportedRules::new();
        imported.add(&domain);
        warnings.extend(imported.warnings.into_iter().map(|(at, why)| (file, at, why)));
        domains.push(domain);
    }
    let mut imported = ImportedRules::new();
    for domain in rules::merge(domains) {
        imported.add(&domain);
    }
    for (file, at, why) in warnings {
        eprintln!("warning: {}:{at}: {why}", file.display());
    }
    terminal::print(&imported.toml)
}

fn read(file: &Path) -> Result<(Domain, Place), Mistake> {
    let unreadable = |why: String| Mistake::new(Place { line: 1, column: 1 }, why);
    let bytes = config::read_file(file, MAX_FILE_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("the file is not UTF-8".to_owned()))?;
    tree::read(&yaml::read(&text)?)
}

fn in_file(file: &Path, mistake: &Mistake) -> anyhow::Error {
    anyhow::anyhow!("{}:{}: {}", file.display(), mistake.at, mistake.message)
}
