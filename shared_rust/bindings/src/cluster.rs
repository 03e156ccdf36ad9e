//! A cluster from what Python gives: a JSON description and perhaps a callable that names the workers.

use std::sync::Arc;

use datafusion::common::{DataFusionError, exec_datafusion_err};
use df_strategies_engine::membership::Callback;
use df_strategies_engine::{Cluster, ClusterSpec};
use pyo3::prelude::*;

use crate::errors::to_py_err;

/// Builds the cluster; `resolver` is called without arguments, from engine threads, and returns a list of URLs.
pub fn cluster_from_python(spec: &str, resolver: Option<Py<PyAny>>) -> PyResult<Arc<Cluster>> {
    let spec = ClusterSpec::from_json(spec).map_err(to_py_err)?;
    Cluster::new(spec, resolver.map(callback)).map_err(to_py_err)
}

fn callback(resolver: Py<PyAny>) -> Callback {
    Arc::new(move || {
        Python::attach(|py| {
            let answer = resolver.call0(py).map_err(|e| failed(&e.to_string()))?;
            answer.extract::<Vec<String>>(py).map_err(|_| {
                failed(&format!(
                    "it returned {answer}, expected a list of URLs as str"
                ))
            })
        })
    })
}

fn failed(what: &str) -> DataFusionError {
    exec_datafusion_err!("The callable that names the workers failed: {what}")
}
