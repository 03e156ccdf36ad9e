//! Which workers exist right now.
//!
//! The engine asks synchronously, twice per query (when it counts tasks and when it routes them). Callbacks and DNS
//! may be slow or raise, so their answers are kept for a moment; a failing refresh is an error, never an empty list,
//! since an empty cluster would silently turn every query into a local one.

use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::common::{DataFusionError, Result, config_err};
use datafusion_distributed::WorkerResolver;
use parking_lot::Mutex;
use url::Url;

use crate::channel::is_loopback;
use crate::spec::{ClusterSpec, parse_worker_url};

/// A function that names the workers, for example one written in Python.
pub type Callback = Arc<dyn Fn() -> Result<Vec<String>> + Send + Sync>;

enum Source {
    Static(Vec<Url>),
    Callback(Callback),
    Dns(String, String),
}

/// The members of one cluster.
#[derive(Clone)]
pub struct Membership {
    source: Arc<Source>,
    keep: Duration,
    last: Arc<Mutex<Option<(Instant, Vec<Url>)>>>,
}

impl Membership {
    /// Members as `spec` names them, or as `callback` does when there is one.
    pub fn new(spec: &ClusterSpec, callback: Option<Callback>) -> Result<Self> {
        let ways = usize::from(callback.is_some())
            + usize::from(spec.dns.is_some())
            + usize::from(!spec.workers.is_empty());
        if ways != 1 {
            return config_err!(
                "Workers were named in {ways} ways: expected exactly one of a list of URLs, a callable or a DNS name"
            );
        }
        let source = match (callback, &spec.dns) {
            (Some(callback), _) => Source::Callback(callback),
            (None, Some(name)) => {
                let scheme = if spec.tls_ca.is_some() {
                    "https"
                } else {
                    "http"
                };
                parse_worker_url(&format!("{scheme}://{name}"))?;
                Source::Dns(scheme.to_string(), name.clone())
            }
            (None, None) => Source::Static(spec.urls()?),
        };
        Ok(Self {
            source: Arc::new(source),
            keep: Duration::from_secs_f64(spec.refresh_seconds),
            last: Arc::default(),
        })
    }

    /// Whether the members can never change.
    pub fn is_static(&self) -> bool {
        matches!(self.source.as_ref(), Source::Static(_))
    }

    /// Whether every member known now lives on this machine's loopback interface.
    pub fn is_loopback(&self) -> bool {
        self.get_urls()
            .is_ok_and(|urls| urls.iter().all(is_loopback))
    }

    fn ask(&self) -> Result<Vec<Url>> {
        let urls: Vec<Url> = match self.source.as_ref() {
            Source::Static(urls) => urls.clone(),
            Source::Callback(callback) => callback()?
                .iter()
                .map(|url| parse_worker_url(url))
                .collect::<Result<_>>()?,
            Source::Dns(scheme, name) => name
                .to_socket_addrs()
                .map_err(|e| {
                    DataFusionError::Execution(format!(
                        "The workers' DNS name '{name}' does not resolve: {e}"
                    ))
                })?
                .map(|address| parse_worker_url(&format!("{scheme}://{address}")))
                .collect::<Result<_>>()?,
        };
        if urls.is_empty() {
            return Err(DataFusionError::Execution(
                "The cluster has no workers: start at least one and name it, or use a session without workers".into(),
            ));
        }
        Ok(urls)
    }
}

impl WorkerResolver for Membership {
    fn get_urls(&self) -> Result<Vec<Url>> {
        if let Source::Static(urls) = self.source.as_ref() {
            return Ok(urls.clone());
        }
        // The lock is held while asking so that eight threads make one call, not eight.
        let mut last = self.last.lock();
        if let Some((when, urls)) = last.as_ref()
            && when.elapsed() < self.keep
        {
            return Ok(urls.clone());
        }
        let urls = self.ask()?;
        *last = Some((Instant::now(), urls.clone()));
        Ok(urls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn spec(refresh_seconds: f64) -> ClusterSpec {
        ClusterSpec {
            refresh_seconds,
            ..ClusterSpec::default()
        }
    }

    #[test]
    fn a_callback_is_asked_once_per_refresh_and_its_errors_surface() {
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        let callback: Callback = Arc::new(move || match seen.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(vec!["http://127.0.0.1:1".into()]),
            _ => Err(DataFusionError::Execution("registry is down".into())),
        });
        let members = Membership::new(&spec(3600.0), Some(Arc::clone(&callback))).unwrap();
        assert_eq!(members.get_urls().unwrap().len(), 1);
        assert_eq!(members.get_urls().unwrap().len(), 1);
        assert_eq!(calls.load(Ordering::SeqCst), 1);

        let impatient = Membership::new(&spec(1e-9), Some(callback)).unwrap();
        assert!(
            impatient
                .get_urls()
                .unwrap_err()
                .to_string()
                .contains("registry is down")
        );
    }

    #[test]
    fn no_workers_is_an_error_and_so_are_two_sources() {
        let members = Membership::new(&spec(1.0), Some(Arc::new(|| Ok(vec![])))).unwrap();
        assert!(
            members
                .get_urls()
                .unwrap_err()
                .to_string()
                .contains("no workers")
        );
        assert!(Membership::new(&spec(1.0), None).is_err());
        let both = ClusterSpec {
            workers: vec!["http://h:1".into()],
            dns: Some("h:1".into()),
            ..spec(1.0)
        };
        assert!(Membership::new(&both, None).is_err());
    }
}
