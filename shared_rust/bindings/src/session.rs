//! Distributing the sessions of datafusion-python's own native classes.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use df_strategies_engine::{Cluster, install};
use pyo3::prelude::*;

use crate::cluster::cluster_from_python;
use crate::errors::to_py_err;
use crate::worker::python_codec;

/// `config` with a cluster in it; a session built from it by [`DistributedSessionBuilder`] runs queries there.
pub fn with_distributed(
    config: &SessionConfig,
    spec: &str,
    resolver: Option<Py<PyAny>>,
) -> PyResult<SessionConfig> {
    let cluster = cluster_from_python(spec, resolver)?;
    cluster.describe_in(config.clone()).map_err(to_py_err)
}

/// Adds the cluster step to the building of a session.
pub trait DistributedSessionBuilder: Sized {
    /// Distributes the session if its configuration says so, and returns it as it is otherwise.
    fn with_distributed_if_configured(self) -> PyResult<Self>;
}

impl DistributedSessionBuilder for SessionStateBuilder {
    fn with_distributed_if_configured(mut self) -> PyResult<Self> {
        let cluster: Option<Arc<Cluster>> = self
            .config()
            .as_ref()
            .and_then(SessionConfig::get_extension);
        let Some(cluster) = cluster else {
            return Ok(self);
        };
        let codecs = Python::attach(|py| python_codec(py, cluster.spec.allow_python_udfs))?;
        install(self, codecs.into_iter().collect()).map_err(to_py_err)
    }
}
