//! The options `distributed.*` as a session holds them: datafusion-distributed's own, whose refusals say what to do.

use std::any::Any;

use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::common::{DataFusionError, Result, config_datafusion_err};
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion_distributed::DistributedConfig;

/// Stands in the place of a [`DistributedConfig`], and is one to everybody who asks for it by type.
#[derive(Debug, Clone, Default)]
pub struct Options(DistributedConfig);

impl ConfigExtension for Options {
    const PREFIX: &'static str = DistributedConfig::PREFIX;
}

impl ExtensionOptions for Options {
    fn as_any(&self) -> &dyn Any {
        &self.0
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        &mut self.0
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let mut next = self.0.clone();
        next.set(key, value)
            .map_err(|error| refusal(key, value, &self.entries(), &error))?;
        self.0 = next;
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        self.0.entries()
    }
}

fn refusal(
    key: &str,
    value: &str,
    known: &[ConfigEntry],
    error: &DataFusionError,
) -> DataFusionError {
    if known.iter().any(|entry| entry.key == key) {
        return config_datafusion_err!(
            "Option 'distributed.{key}' does not take '{value}': {}",
            error.strip_backtrace()
        );
    }
    let names: Vec<&str> = known.iter().map(|entry| entry.key.as_str()).collect();
    let near = names
        .iter()
        .map(|name| (levenshtein(name, key), *name))
        .min()
        .filter(|(distance, name)| 3 * distance <= name.len())
        .map(|(_, name)| format!(" Did you mean 'distributed.{name}'?"))
        .unwrap_or_default();
    config_datafusion_err!(
        "Option 'distributed.{key}' is unknown.{near} The engine has distributed.{{{}}}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use datafusion::config::ConfigOptions;

    use super::*;

    fn session() -> ConfigOptions {
        let mut options = ConfigOptions::new();
        options.extensions.insert(Options::default());
        options
    }

    #[test]
    fn the_engine_finds_its_own_options_in_them() {
        let mut options = session();
        options.set("distributed.compression", "zstd").unwrap();
        let own = DistributedConfig::from_config_options(&options).unwrap();
        assert_eq!(own.compression, "zstd");
    }

    #[test]
    fn a_misspelt_key_is_refused_with_its_neighbour() {
        let refused = session().set("distributed.compresion", "zstd").unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("Did you mean 'distributed.compression'?"),
            "{refused}"
        );
        let strange = session()
            .set("distributed.xyz", "1")
            .unwrap_err()
            .to_string();
        assert!(!strange.contains("Did you mean"), "{strange}");
        assert!(strange.contains("max_tasks_per_stage"), "{strange}");
    }

    #[test]
    fn a_value_that_is_refused_changes_nothing() {
        let mut options = session();
        let refused = options
            .set("distributed.max_tasks_per_stage", "many")
            .unwrap_err()
            .to_string();
        assert!(refused.contains("'many'"), "{refused}");
        let own = DistributedConfig::from_config_options(&options).unwrap();
        assert_eq!(own.max_tasks_per_stage, 0);
    }
}
