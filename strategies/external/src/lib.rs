//! Links datafusion-python as a library, so that one native module holds both its classes and the engine.
//!
//! The classes of this module are a second copy beside those of an installed `datafusion` wheel: the Python layer
//! shipped with it uses these, and objects of the other copy are strangers to it.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use datafusion_python::codec::PythonPhysicalCodec;
use datafusion_python::context::{PyRuntimeEnvBuilder, PySessionConfig, PySessionContext};
use df_strategies_bindings::{DistributedSessionBuilder, with_distributed};
use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    df_strategies_bindings::register(module, physical_codec)?;
    module.add_function(wrap_pyfunction!(distributed_context, module)?)?;
    Ok(())
}

fn physical_codec(_py: Python<'_>, by_value: bool) -> PyResult<Arc<dyn PhysicalExtensionCodec>> {
    Ok(Arc::new(
        PythonPhysicalCodec::default().with_python_udf_inlining(by_value),
    ))
}

/// A native session context that distributes its queries.
///
/// Args:
///     config: Session configuration, or None for the defaults.
///     runtime: Runtime environment, or None for the defaults.
///     spec: JSON description of the cluster.
///     resolver: Callable that names the workers, instead of a list in `spec`.
#[pyfunction]
#[pyo3(signature = (config, runtime, spec, resolver=None))]
fn distributed_context(
    config: Option<PySessionConfig>,
    runtime: Option<PyRuntimeEnvBuilder>,
    spec: &str,
    resolver: Option<Py<PyAny>>,
) -> PyResult<PySessionContext> {
    // The same default that a context without configuration has.
    let config = config.map_or_else(
        || SessionConfig::default().with_information_schema(true),
        |c| c.config,
    );
    let config = with_distributed(&config, spec, resolver)?;
    // The constructor knows what a datafusion-python session needs; its state is the base to build on.
    let context = PySessionContext::new(Some(config.into()), runtime)?;
    let state = SessionStateBuilder::new_from_existing(context.ctx.state())
        .with_distributed_if_configured()?
        .build();
    Ok(SessionContext::new_with_state(state).into())
}
