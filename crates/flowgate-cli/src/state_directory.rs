//! The directory in which a server of this user keeps the files that it makes, such as its token.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

/// `$STATE_DIRECTORY` (systemd sets it), else `$XDG_STATE_HOME/flowgate`, else `~/.local/state/flowgate`; `None`: none
/// of them is set.
pub(crate) fn find() -> Option<PathBuf> {
    from_variables(|name| env::var_os(name))
}

fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    // A relative path would depend on the current directory, so it counts as not set. The XDG specification says the
    // same.
    let directory = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let given = variable("STATE_DIRECTORY").and_then(|list| {
        // A unit may have several directories, separated by colons.
        let first = env::split_paths(&list).next()?;
        first.is_absolute().then_some(first)
    });
    given
        .or_else(|| directory("XDG_STATE_HOME").map(|home| home.join("flowgate")))
        .or_else(|| directory("HOME").map(|home| home.join(".local/state/flowgate")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(variables: &[(&str, &str)], expected: Option<&str>) {
        let variable = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
        assert_eq!(from_variables(variable), expected.map(PathBuf::from), "{variables:?}");
    }

    #[test]
    fn the_first_that_is_set_counts() {
        check(&[], None);
        check(&[("HOME", "/home/a")], Some("/home/a/.local/state/flowgate"));
        check(&[("HOME", "/home/a"), ("XDG_STATE_HOME", "/state")], Some("/state/flowgate"));
        let unit = [("HOME", "/home/a"), ("XDG_STATE_HOME", "/state"), ("STATE_DIRECTORY", "/var/lib/flowgate")];
        check(&unit, Some("/var/lib/flowgate"));
        check(&[("STATE_DIRECTORY", "/var/lib/a:/var/lib/b")], Some("/var/lib/a"));
    }

    #[test]
    fn what_is_empty_or_relative_counts_as_not_set() {
        check(&[("STATE_DIRECTORY", ""), ("XDG_STATE_HOME", ""), ("HOME", "")], None);
        let relative = [("STATE_DIRECTORY", "here"), ("XDG_STATE_HOME", "there"), ("HOME", "/home/a")];
        check(&relative, Some("/home/a/.local/state/flowgate"));
    }
}
