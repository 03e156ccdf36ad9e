//! The PyO3 pieces that every strategy registers in its own extension module: worker, status, plan look-up, cluster.
//!
//! Nothing here knows how a strategy reaches a session; that is all a strategy has to add.

mod cluster;
mod errors;
mod session;
mod worker;

use datafusion_python_util::get_tokio_runtime;
use df_strategies_engine::{exec, fingerprint};
use pyo3::prelude::*;

pub use cluster::cluster_from_python;
pub use errors::to_py_err;
pub use session::{DistributedSessionBuilder, with_distributed};
pub use worker::{CodecFactory, Worker};

/// Adds the shared classes and functions to `module`. Workers started from it decode Python functions with `codec`.
pub fn register(module: &Bound<'_, PyModule>, codec: CodecFactory) -> PyResult<()> {
    worker::set_codec(codec);
    module.add_class::<Worker>()?;
    module.add_function(wrap_pyfunction!(worker::worker_status, module)?)?;
    module.add_function(wrap_pyfunction!(build_info, module)?)?;
    module.add_function(wrap_pyfunction!(plan_info, module)?)?;
    module.add_function(wrap_pyfunction!(plan_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(plans_held, module)?)?;
    module.add_function(wrap_pyfunction!(check_cluster, module)?)?;
    Ok(())
}

/// What this extension module was built from, as JSON.
#[pyfunction]
fn build_info() -> String {
    fingerprint::build_info_json()
}

/// Stages, tasks and text of a plan, as JSON. `plan` is anything with `display()` and `display_indent()`.
///
/// A distributed plan says its number in its name, which is all that an opaque plan behind FFI shows of itself; so the
/// same call serves plans of this library and of another.
#[pyfunction]
fn plan_info(plan: &Bound<'_, PyAny>) -> PyResult<String> {
    // All lines: below a sink of the host, the distributed plan is not the first.
    let text: String = plan.call_method0("display_indent")?.extract()?;
    let info = exec::number_in(&text).and_then(exec::find);
    Ok(info.unwrap_or_else(|| exec::local_info(&text)))
}

/// What each operator of an executed plan counted, as JSON; None for a plan that is not distributed.
#[pyfunction]
fn plan_metrics(py: Python<'_>, plan: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let text: String = plan.call_method0("display_indent")?.extract()?;
    let Some(number) = exec::number_in(&text) else {
        return Ok(None);
    };
    let metrics = py.detach(|| get_tokio_runtime().block_on(exec::metrics(number)));
    metrics.transpose().map_err(to_py_err)
}

/// Number of distributed plans that are held by anybody in this process.
#[pyfunction]
fn plans_held() -> usize {
    exec::held()
}

/// Checks a cluster description without connecting; raises ValueError with what is wrong.
#[pyfunction]
#[pyo3(signature = (spec, resolver=None))]
fn check_cluster(spec: &str, resolver: Option<Py<PyAny>>) -> PyResult<()> {
    cluster_from_python(spec, resolver).map(|_| ())
}
