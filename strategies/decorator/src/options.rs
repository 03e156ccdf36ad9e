//! What `SET distributed.*` changed in one session.
//!
//! The host knows no such namespace, and an existing session cannot be given one, so the Python layer brings these
//! statements here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::prelude::SessionConfig;
use df_strategies_bindings::to_py_err;
use df_strategies_engine::Cluster;
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::extension::DistributedExtension;

type Changed = Arc<Mutex<BTreeMap<String, String>>>;

/// Refusals that a session remembers: as many queries may fail between one's planning and the question about it.
const REMEMBERED: usize = 256;

/// Options of the distributed planner in one session: those of its cluster, and what was set since.
#[pyclass(frozen, module = "datafusion_decorator")]
pub struct SessionOptions {
    cluster: Arc<Cluster>,
    changed: Changed,
    refusals: Arc<Mutex<VecDeque<String>>>,
}

#[pymethods]
impl SessionOptions {
    #[new]
    fn new(extension: &DistributedExtension) -> Self {
        Self {
            cluster: Arc::clone(&extension.cluster),
            changed: Changed::default(),
            refusals: Arc::default(),
        }
    }

    /// Sets an option for later queries. Raises ValueError for a value that it does not take.
    fn set(&self, key: String, value: String) -> PyResult<()> {
        let mut changed = self.changed.lock();
        let mut next = changed.clone();
        next.insert(key, value);
        describe(&self.cluster, SessionConfig::new(), &next).map_err(to_py_err)?;
        *changed = next;
        Ok(())
    }

    /// Returns an option to what the cluster's description says.
    fn reset(&self, key: &str) {
        self.changed.lock().remove(key);
    }

    /// Whether a query must not run where it cannot be distributed.
    #[getter]
    fn strict(&self) -> bool {
        self.cluster.spec.strict
    }

    /// Whether `message`, an error of the host, tells of a query that arrived here whole and was refused. Otherwise it
    /// failed on its way: its plan has no form in which it could leave the host.
    fn refused(&self, message: &str) -> bool {
        let refusals = self.refusals.lock();
        refusals.iter().any(|refusal| message.contains(refusal))
    }

    /// The value of an option; None of an unknown one.
    fn get(&self, key: &str) -> PyResult<Option<String>> {
        let config = self.describe_in(SessionConfig::new()).map_err(to_py_err)?;
        // DataFusion lists the options of extensions without their namespace.
        let name = key.strip_prefix("distributed.").unwrap_or(key);
        let mut entries = config.options().entries().into_iter();
        Ok(entries
            .find(|entry| entry.key == name)
            .map(|entry| entry.value.unwrap_or_default()))
    }
}

impl SessionOptions {
    /// `config` with the cluster and the options as they are now.
    pub fn describe_in(&self, config: SessionConfig) -> Result<SessionConfig> {
        describe(&self.cluster, config, &self.changed.lock())
    }

    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    pub fn share(&self) -> Self {
        Self {
            cluster: Arc::clone(&self.cluster),
            changed: Arc::clone(&self.changed),
            refusals: Arc::clone(&self.refusals),
        }
    }

    /// Remembers why this side did not plan a query that had arrived whole.
    pub fn remember(&self, refusal: &DataFusionError) {
        let mut refusals = self.refusals.lock();
        if refusals.len() == REMEMBERED {
            refusals.pop_front();
        }
        refusals.push_back(refusal.strip_backtrace());
    }
}

fn describe(
    cluster: &Arc<Cluster>,
    config: SessionConfig,
    changed: &BTreeMap<String, String>,
) -> Result<SessionConfig> {
    let mut config = cluster.describe_in(config)?;
    for (key, value) in changed {
        config.options_mut().set(key, value)?;
    }
    Ok(config)
}
