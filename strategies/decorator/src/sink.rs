//! A distributed query as a table that the host can read, so that the host's own sinks write what workers compute.
//!
//! A plan with a sink cannot come to this side: datafusion-ffi 55 has no form for file formats. So the query comes here
//! alone, and the sink stays with the host, above a table whose scan is the distributed plan. Batches stream through.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::pyarrow::FromPyArrow;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, exec_datafusion_err, exec_err, internal_datafusion_err};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use datafusion_python_util::{ffi_logical_codec_from_pycapsule, get_tokio_runtime};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::handle::HandleExec;

/// A query of a distributed session as a table of another session of the host.
///
/// Args:
///     plan: Callable that plans the query and returns the host's execution plan; called once per scan, because a
///         distributed plan runs once.
///     schema: Schema of the query's result, as a pyarrow schema.
#[pyclass(frozen, module = "datafusion_decorator")]
pub struct QueryTable {
    plan: Arc<Py<PyAny>>,
    schema: SchemaRef,
}

#[pymethods]
impl QueryTable {
    #[new]
    fn new(plan: Py<PyAny>, schema: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            plan: Arc::new(plan),
            schema: Arc::new(Schema::from_pyarrow_bound(schema)?),
        })
    }

    fn __datafusion_table_provider__<'py>(
        &self,
        py: Python<'py>,
        session: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let codec = ffi_logical_codec_from_pycapsule(session.clone(), Some(&session))?;
        let table = QueryProvider {
            plan: Arc::clone(&self.plan),
            schema: Arc::clone(&self.schema),
        };
        let runtime = Some(get_tokio_runtime().handle().clone());
        let provider =
            FFI_TableProvider::new_with_ffi_codec(Arc::new(table), false, runtime, codec);
        PyCapsule::new_with_value(py, provider, cr"datafusion_table_provider")
    }
}

struct QueryProvider {
    plan: Arc<Py<PyAny>>,
    schema: SchemaRef,
}

impl fmt::Debug for QueryProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueryProvider")
    }
}

#[async_trait]
impl TableProvider for QueryProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let callable = Arc::clone(&self.plan);
        // The host plans by blocking on its runtime, which no thread that drives a runtime may do.
        let plan = get_tokio_runtime()
            .spawn_blocking(move || Python::attach(|py| distributed_plan(py, &callable)))
            .await
            .map_err(|e| internal_datafusion_err!("planning a query to write: {e}"))??;
        match projection {
            Some(columns) if !columns.iter().copied().eq(0..self.schema.fields().len()) => {
                let schema = plan.schema();
                let kept = columns.iter().map(|&index| {
                    let name = schema.field(index).name();
                    (Arc::new(Column::new(name, index)) as _, name.clone())
                });
                let kept: Vec<_> = kept.collect();
                Ok(Arc::new(ProjectionExec::try_new(kept, plan)?))
            }
            _ => Ok(plan),
        }
    }
}

/// The plan of this side behind what the host planned.
fn distributed_plan(py: Python<'_>, callable: &Py<PyAny>) -> Result<Arc<dyn ExecutionPlan>> {
    let planned = callable.call0(py).map_err(|e| planning_failed(py, &e))?;
    let line: String = planned
        .call_method0(py, "display")
        .and_then(|text| text.extract(py))
        .map_err(|e| planning_failed(py, &e))?;
    match HandleExec::in_text(&line) {
        Some(handle) => Ok(handle),
        None => exec_err!(
            "This query cannot be written by a distributed session, because another extension planned it ({line}): name \
             the distributed extension last in with_extensions()"
        ),
    }
}

fn planning_failed(py: Python<'_>, error: &PyErr) -> datafusion::common::DataFusionError {
    exec_datafusion_err!("{}", error.value(py))
}
