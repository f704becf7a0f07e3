//! Which configuration the command line means, and reading it with the process's environment.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::bail;
use flowgate_engine::config::{self, Input, Loaded, Report};

const FILE_NAME: &str = "flowgate.toml";

/// The file to read: the one that was named, else the first that exists of the usual places; `None`: the defaults.
///
/// Named is by the command line or by `FLOWGATE_CONFIG`. The usual places are the current directory, the user's
/// and the system's configuration directory.
pub(crate) fn find(named: Option<PathBuf>) -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = named.or_else(|| variable("FLOWGATE_CONFIG")) {
        return Some(path);
    }
    let user = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|home| home.join(".config")));
    let directories = [user.map(|user| user.join("flowgate")), Some(PathBuf::from("/etc/flowgate"))];
    let beside = std::iter::once(PathBuf::from(FILE_NAME));
    let usual = directories.into_iter().flatten().map(|directory| directory.join(FILE_NAME));
    beside.chain(usual).find(|path| path.is_file())
}

/// Reads the file, or the defaults, with the environment over it.
///
/// # Errors
/// The outer one when the environment itself cannot be read; the inner one has the mistakes in the configuration.
pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Result<Loaded, Report>> {
    Ok(config::load(file.map_or(Input::Defaults, Input::File), environment()?))
}

/// The variables that may be ours. Names and values that are no text belong to others, unless the name is ours.
fn environment() -> anyhow::Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    for (name, value) in env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("FLOWGATE_")) else { continue };
        match value.into_string() {
            Ok(value) => variables.push((name.to_owned(), value)),
            Err(_) => bail!("the environment variable {name} is not UTF-8"),
        }
    }
    Ok(variables)
}
