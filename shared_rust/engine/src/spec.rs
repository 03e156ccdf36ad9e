//! The cluster as the user describes it, parsed and checked once for all strategies.

use std::collections::BTreeMap;

use datafusion::common::{DataFusionError, Result, config_err};
use serde::Deserialize;
use url::Url;

use crate::security::ClientSecurity;
use crate::stores::Stores;

/// How a session reaches its workers, and what it may ask of them. The Python side sends it as JSON.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSpec {
    /// Worker URLs, for example `http://127.0.0.1:50051`. Empty when a resolver callback or `dns` names them.
    pub workers: Vec<String>,
    /// `host:port` of a DNS name with one address per worker, asked again every [`Self::refresh_seconds`].
    pub dns: Option<String>,
    /// How long an answer of `dns` or of a callback is used, in seconds.
    pub refresh_seconds: f64,
    /// Engine options `distributed.*`.
    pub options: BTreeMap<String, String>,
    /// Bearer token that workers ask for.
    pub token: Option<String>,
    /// PEM text of the certificate authority that signed the workers' certificates; implies TLS.
    pub tls_ca: Option<String>,
    /// PEM text of this client's certificate, for mutual TLS.
    pub tls_cert: Option<String>,
    /// PEM text of this client's private key, for mutual TLS.
    pub tls_key: Option<String>,
    /// Name to expect in the workers' certificates when it differs from the URL's host.
    pub tls_domain: Option<String>,
    /// Seconds to wait for a connection to a worker.
    pub connect_timeout: f64,
    /// Send Python functions by value to the workers, which must allow it too.
    pub allow_python_udfs: bool,
    /// Refuse a query that cannot be distributed instead of running it on the coordinator.
    pub strict: bool,
    /// Refuse workers whose build differs from this one.
    pub expect_fingerprint: bool,
    /// Object stores of the session, open on the coordinator and on the workers.
    pub object_stores: Stores,
}

impl Default for ClusterSpec {
    fn default() -> Self {
        Self {
            workers: vec![],
            dns: None,
            refresh_seconds: 5.0,
            options: BTreeMap::new(),
            token: None,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
            tls_domain: None,
            connect_timeout: 5.0,
            allow_python_udfs: false,
            strict: false,
            expect_fingerprint: true,
            object_stores: Stores::default(),
        }
    }
}

impl ClusterSpec {
    /// Parses JSON; the message names the field that is wrong.
    pub fn from_json(text: &str) -> Result<Self> {
        let spec: Self = serde_json::from_str(text).map_err(|e| {
            DataFusionError::Configuration(format!("The cluster description is not valid: {e}"))
        })?;
        if let Some(key) = spec
            .options
            .keys()
            .find(|key| !key.starts_with("distributed."))
        {
            return config_err!(
                "Option '{key}' is not one of the cluster's: expected a key that starts with 'distributed.'; \
                 set 'datafusion.*' keys on the session configuration"
            );
        }
        for seconds in [spec.refresh_seconds, spec.connect_timeout] {
            if !(seconds.is_finite() && seconds > 0.0) {
                return config_err!(
                    "A time of {seconds} s was given: expected a positive number of seconds"
                );
            }
        }
        spec.urls()?;
        Ok(spec)
    }

    /// The static workers.
    pub fn urls(&self) -> Result<Vec<Url>> {
        self.workers
            .iter()
            .map(|text| parse_worker_url(text))
            .collect()
    }

    /// The credentials part.
    pub fn security(&self) -> ClientSecurity {
        ClientSecurity {
            token: self.token.clone(),
            ca: self.tls_ca.clone(),
            cert: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            domain: self.tls_domain.clone(),
        }
    }
}

/// Parses the URL of a worker; the message says what was given and what a worker URL looks like.
pub fn parse_worker_url(text: &str) -> Result<Url> {
    let hint =
        "expected something like 'http://127.0.0.1:50051' (or https:// for a worker with TLS)";
    let url = Url::parse(text).map_err(|e| {
        DataFusionError::Configuration(format!("Worker URL '{text}' cannot be read ({e}): {hint}"))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return config_err!("Worker URL '{text}' has scheme '{}': {hint}", url.scheme());
    }
    if url.host_str().is_none_or(str::is_empty) {
        return config_err!("Worker URL '{text}' names no host: {hint}");
    }
    if url.port() == Some(0) {
        return config_err!("Worker URL '{text}' has port 0, which no worker listens on: {hint}");
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return config_err!("Worker URL '{text}' has a path, query or fragment: {hint}");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_no_worker_can_have_are_refused_with_a_hint() {
        for bad in [
            "",
            "localhost",
            "ftp://a:1",
            "http://",
            "http://h:0",
            "http://h:99999",
            "http://h:1/x",
            "http://h:1?q",
        ] {
            let message = parse_worker_url(bad).unwrap_err().to_string();
            assert!(
                message.contains("expected something like"),
                "{bad}: {message}"
            );
        }
        assert_eq!(
            parse_worker_url("http://127.0.0.1:5").unwrap().as_str(),
            "http://127.0.0.1:5/"
        );
    }

    #[test]
    fn foreign_options_and_unknown_fields_are_refused() {
        let foreign = r#"{"options": {"datafusion.execution.batch_size": "1"}}"#;
        assert!(
            ClusterSpec::from_json(foreign)
                .unwrap_err()
                .to_string()
                .contains("datafusion.execution.batch_size")
        );
        assert!(
            ClusterSpec::from_json(r#"{"worker": []}"#)
                .unwrap_err()
                .to_string()
                .contains("worker")
        );
    }
}
