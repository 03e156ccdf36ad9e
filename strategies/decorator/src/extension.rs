//! What Python sees: a bundle for `SessionContext.with_extensions`.

use std::sync::{Arc, OnceLock};

use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::proto::physical_extension_codec::FFI_PhysicalExtensionCodec;
use datafusion_ffi::query_planner::FFI_QueryPlanner;
use datafusion_proto::logical_plan::{DefaultLogicalExtensionCodec, LogicalExtensionCodec};
use datafusion_proto::physical_plan::{DefaultPhysicalExtensionCodec, PhysicalExtensionCodec};
use datafusion_python_util::{
    create_logical_extension_capsule, create_physical_extension_capsule,
    create_query_planner_capsule, ffi_logical_codec_from_pycapsule,
    ffi_physical_codec_from_pycapsule, ffi_task_context_provider_from_pycapsule, get_tokio_runtime,
};
use df_strategies_bindings::{cluster_from_python, to_py_err};
use df_strategies_engine::Cluster;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::function::HostFunctionCodec;
use crate::handle::HandleCodec;
use crate::hydrate::TableCodec;
use crate::options::SessionOptions;
use crate::planner::HostPlanner;

/// Distributed execution as an extension bundle of a stock session.
///
/// Args:
///     spec: JSON description of the cluster.
///     resolver: Callable that names the workers, instead of a list in `spec`.
#[pyclass(frozen, subclass, module = "datafusion_decorator")]
pub struct DistributedExtension {
    pub(crate) cluster: Arc<Cluster>,
}

#[pymethods]
impl DistributedExtension {
    #[new]
    #[pyo3(signature = (spec, resolver=None))]
    fn new(spec: &str, resolver: Option<Py<PyAny>>) -> PyResult<Self> {
        Ok(Self {
            cluster: cluster_from_python(spec, resolver)?,
        })
    }

    fn __datafusion_session_components__<'py>(
        &self,
        py: Python<'py>,
        _ctx: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = PyDict::new(py);
        arguments.set_item("physical_extension_codecs", (Bound::new(py, PlanCodec)?,))?;
        arguments.set_item(
            "logical_extension_codecs",
            (Bound::new(py, HostTableCodec)?,),
        )?;
        py.import("datafusion.extensions")?
            .getattr("SessionExtensionComponents")?
            .call((), Some(&arguments))
    }

    /// The planner of one session, whose options can be changed later on.
    fn planner<'py>(
        &self,
        py: Python<'py>,
        ctx: Bound<'py, PyAny>,
        options: &SessionOptions,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let logical = ffi_logical_codec_from_pycapsule(ctx.clone(), Some(&ctx))?;
        let physical = physical_codec(&ctx, self.cluster.spec.allow_python_udfs)?;
        let logical_codec: Arc<dyn LogicalExtensionCodec> = (&logical).into();
        let planner = HostPlanner {
            options: options.share(),
            runtime: self.cluster.environment().map_err(to_py_err)?,
            logical_codec,
            physical_codec: physical,
        };
        let planner = FFI_QueryPlanner::new(
            Arc::new(planner),
            Some(get_tokio_runtime().handle().clone()),
            ffi_task_context_provider_from_pycapsule(&ctx)?,
            // The host puts its own chains in place of these two once the planner is installed.
            Arc::new(DefaultLogicalExtensionCodec {}),
            Arc::new(DefaultPhysicalExtensionCodec {}),
        );
        create_query_planner_capsule(py, &planner)
    }
}

/// The host's codec for physical plans, which knows functions written in Python.
fn physical_codec(
    ctx: &Bound<'_, PyAny>,
    inlining: bool,
) -> PyResult<Arc<dyn PhysicalExtensionCodec>> {
    let arguments = inlining_argument(ctx.py(), inlining)?;
    let ctx = ctx.call_method("with_python_udf_inlining", (), Some(&arguments))?;
    let codec = ffi_physical_codec_from_pycapsule(ctx.clone(), Some(&ctx))?;
    Ok(Arc::new(HostFunctionCodec((&codec).into())))
}

/// A worker's codec: the stock wheel's own, from a context that lives as long as the process.
pub fn stock_physical_codec(
    py: Python<'_>,
    inlining: bool,
) -> PyResult<Arc<dyn PhysicalExtensionCodec>> {
    static CONTEXTS: [OnceLock<Py<PyAny>>; 2] = [OnceLock::new(), OnceLock::new()];
    let slot = &CONTEXTS[usize::from(inlining)];
    if slot.get().is_none() {
        let ctx = py
            .import("datafusion")?
            .getattr("SessionContext")?
            .call0()?;
        let ctx = ctx.call_method(
            "with_python_udf_inlining",
            (),
            Some(&inlining_argument(py, inlining)?),
        )?;
        let _ = slot.set(ctx.unbind());
    }
    let ctx = slot.get().expect("set above").bind(py);
    let codec = ffi_physical_codec_from_pycapsule(ctx.clone(), Some(ctx))?;
    Ok(Arc::new(HostFunctionCodec((&codec).into())))
}

fn inlining_argument<'py>(py: Python<'py>, inlining: bool) -> PyResult<Bound<'py, PyDict>> {
    let arguments = PyDict::new(py);
    arguments.set_item("enabled", inlining)?;
    Ok(arguments)
}

#[pyclass(frozen)]
struct PlanCodec;

#[pymethods]
impl PlanCodec {
    fn __datafusion_physical_extension_codec__<'py>(
        &self,
        py: Python<'py>,
        ctx: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let provider = ffi_task_context_provider_from_pycapsule(&ctx)?;
        let runtime = Some(get_tokio_runtime().handle().clone());
        create_physical_extension_capsule(
            py,
            &FFI_PhysicalExtensionCodec::new(Arc::new(HandleCodec), runtime, provider),
        )
    }

    #[getter]
    fn __datafusion_codec_id__(&self) -> &'static str {
        "datafusion_decorator.plan.v1"
    }
}

#[pyclass(frozen)]
struct HostTableCodec;

#[pymethods]
impl HostTableCodec {
    fn __datafusion_logical_extension_codec__<'py>(
        &self,
        py: Python<'py>,
        ctx: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let provider = ffi_task_context_provider_from_pycapsule(&ctx)?;
        let runtime = Some(get_tokio_runtime().handle().clone());
        create_logical_extension_capsule(
            py,
            &FFI_LogicalExtensionCodec::new(Arc::new(TableCodec), runtime, provider),
        )
    }

    #[getter]
    fn __datafusion_codec_id__(&self) -> &'static str {
        "datafusion_decorator.table.v1"
    }
}
