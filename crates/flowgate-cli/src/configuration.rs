//! Finds the configuration that the command line means, and reads it with the process's environment.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::bail;
use flowgate_engine::config::{Flag, Input, LoadedConfig, Options, Purpose, Report};
use flowgate_koala::{KoalaFile, load_config};

const FILE_NAME: &str = "flowgate.toml";

/// The file to read: the one that was named, else the first that exists of the usual places; `None`: the defaults.
///
/// The command line or `FLOWGATE_CONFIG` names a file. The usual places are the current directory, the user's and the
/// system's configuration directory.
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

/// Reads the file, or the defaults, with the environment over it, to serve by it.
///
/// # Errors
/// The mistakes in the configuration.
pub(crate) fn load(file: Option<&Path>, environment: &Environment) -> Result<LoadedConfig, Report> {
    load_input(file.map_or(Input::Defaults, Input::File), environment, Purpose::Serve)
}

/// Like [`load`], for a command that does not serve: certificates may be on another machine.
///
/// # Errors
/// The mistakes in the configuration.
pub(crate) fn study(file: Option<&Path>, environment: &Environment) -> Result<LoadedConfig, Report> {
    load_input(file.map_or(Input::Defaults, Input::File), environment, Purpose::Study)
}

/// Reads any input, with the environment over it.
///
/// # Errors
/// The mistakes in the configuration.
pub(crate) fn load_input(
    input: Input<'_>,
    environment: &Environment,
    purpose: Purpose,
) -> Result<LoadedConfig, Report> {
    let variables = environment.variables.iter().map(|(name, value)| (name.clone(), value.clone()));
    load_config(input, variables, Options { flags: &environment.flags, purpose, ..Options::default() })
}

/// Refuses a rule file of another system, and names the commands that serve it and make a configuration of it.
///
/// # Errors
/// If the file is one.
pub(crate) fn refuse_foreign(path: &Path) -> anyhow::Result<()> {
    if KoalaFile::is_at(path) {
        let file = path.display();
        bail!(
            "{file} is a file of Koala: `flowgate serve --koala {file}` serves its rules, `flowgate import koala {file}` \
             makes a configuration of them"
        );
    }
    Ok(())
}

/// The process's variables that begin with `FLOWGATE_`, and the options of the command line, which come before them.
/// Not `Debug`: some values are secrets.
#[derive(Clone)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
    flags: Vec<Flag>,
}

impl Environment {
    /// The variables of the process.
    ///
    /// # Errors
    /// If a value of ours is not UTF-8. A variable whose name is not UTF-8 is not ours.
    pub(crate) fn of_process() -> anyhow::Result<Environment> {
        let mut variables = BTreeMap::new();
        for (name, value) in env::vars_os() {
            let Some(name) = name.to_str().filter(|name| name.starts_with("FLOWGATE_")) else { continue };
            let Ok(value) = value.into_string() else {
                bail!("the environment variable {name} is not UTF-8");
            };
            variables.insert(name.to_owned(), value);
        }
        Ok(Environment { variables, flags: Vec::new() })
    }

    /// The value of a variable.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Adds an option of the command line.
    pub(crate) fn set(&mut self, flag: Flag) {
        self.flags.push(flag);
    }
}
