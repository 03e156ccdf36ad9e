//! Session options on their way to the workers.
//!
//! datafusion-distributed 4.0 ships only its own `distributed.*` options; a worker plans and evaluates everything else
//! with defaults, so `SET datafusion.execution.time_zone` silently changes an answer depending on where an expression
//! runs. We send every option that differs from the default, in one request header.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use datafusion::common::{DataFusionError, Result};
use datafusion::config::ConfigOptions;
use datafusion::prelude::SessionConfig;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::form_urlencoded;

/// Header that carries the options as `key=value` pairs in URL encoding.
pub static SETTINGS_HEADER: HeaderName = HeaderName::from_static("x-df-strategies-settings");

/// Options whose default depends on the machine: always sent, since the worker's default may be another.
const MACHINE_DEPENDENT: [&str; 2] = [
    "datafusion.execution.target_partitions",
    "datafusion.execution.planning_concurrency",
];

static DEFAULTS: LazyLock<BTreeMap<String, Option<String>>> = LazyLock::new(|| {
    ConfigOptions::new()
        .entries()
        .into_iter()
        .map(|e| (e.key, e.value))
        .collect()
});

/// The options of `config` that a worker would not have by itself.
pub fn changed(config: &ConfigOptions) -> Vec<(String, String)> {
    config
        .entries()
        .into_iter()
        .filter(|entry| entry.key.starts_with("datafusion."))
        .filter(|entry| {
            MACHINE_DEPENDENT.contains(&entry.key.as_str())
                || DEFAULTS.get(&entry.key) != Some(&entry.value)
        })
        .filter_map(|entry| Some((entry.key, entry.value?)))
        .collect()
}

/// [`changed`] as a header.
pub fn to_header(config: &ConfigOptions) -> Result<HeaderValue> {
    let text = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(changed(config))
        .finish();
    HeaderValue::from_str(&text)
        .map_err(|e| DataFusionError::Internal(format!("settings header: {e}")))
}

/// Applies the header of a request, if it has one. `skip` names a key that something else already decided.
pub fn apply_header(
    headers: &HeaderMap,
    config: &mut SessionConfig,
    skip: Option<&str>,
) -> Result<()> {
    let Some(value) = headers.get(&SETTINGS_HEADER) else {
        return Ok(());
    };
    for (key, value) in form_urlencoded::parse(value.as_bytes()) {
        if skip != Some(key.as_ref()) {
            config.options_mut().set(&key, &value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_settable_option_survives_the_header() {
        let mut client = SessionConfig::new();
        client
            .options_mut()
            .set("datafusion.execution.time_zone", "+08:00")
            .unwrap();
        client
            .options_mut()
            .set("datafusion.execution.batch_size", "17")
            .unwrap();
        client
            .options_mut()
            .set("datafusion.sql_parser.dialect", "postgres")
            .unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(&SETTINGS_HEADER, to_header(client.options()).unwrap());

        let mut worker = SessionConfig::new();
        apply_header(&headers, &mut worker, None).unwrap();
        let values = |c: &SessionConfig| {
            c.options()
                .entries()
                .into_iter()
                .map(|e| (e.key, e.value))
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(values(&client), values(&worker));

        let mut kept = SessionConfig::new().with_batch_size(99);
        apply_header(&headers, &mut kept, Some("datafusion.execution.batch_size")).unwrap();
        assert_eq!(kept.batch_size(), 99);
    }
}
