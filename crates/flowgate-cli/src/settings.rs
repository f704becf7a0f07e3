//! Logs the settings in force: those that differ from the defaults, and at `debug` all of them. Secrets are hidden.

use std::collections::BTreeSet;

use flowgate_engine::config::{Config, LogFormat};

/// Logs the settings. The announcement already shows people the important ones; the rest is logged at `debug`.
pub(crate) fn log(config: &Config) {
    let settings = differing(config).join("; ");
    match config.log.format {
        LogFormat::Human => tracing::debug!(settings, "settings other than the defaults"),
        LogFormat::Json => tracing::info!(settings, "settings other than the defaults"),
    }
    tracing::debug!("the effective configuration\n{}", config.to_toml());
}

/// Every setting that is not the default, as `section.key = value`. Rules and lists are left out.
fn differing(config: &Config) -> Vec<String> {
    let defaults: BTreeSet<(String, String)> = Config::default().settings().into_iter().collect();
    let differing = config.settings().into_iter().filter(|setting| !defaults.contains(setting));
    differing.map(|(name, value)| format!("{name} = {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_told_and_no_secret() {
        let toml = r#"
            [store]
            max_memory = "2GB"
            [auth]
            api_token = "s3cret-token"
            [server]
            idle_timeout = "5m"
            [lists]
            vip = { values = ["7"] }
            [[rule]]
            name = "reply"
            limits = ["5/60s"]
        "#;
        let told = differing(&Config::from_toml(toml).unwrap());
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told.contains(&"store.max_memory = \"2GB\"".to_owned()), "{told:?}");
        assert!(told.iter().any(|setting| setting.starts_with("auth.api_token = ")), "{told:?}");
        assert!(!told.concat().contains("s3cret"));
        assert_eq!(differing(&Config::default()), [""; 0]);
    }
}
