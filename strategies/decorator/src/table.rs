//! Tables of the host that stay where they are: read through FFI, on the coordinator.
//!
//! As with functions, datafusion-ffi 55 carries the session's options and the host refuses namespaces it does not know,
//! so these tables are planned and read without the options of extensions.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Constraints, Result, internal_datafusion_err};
use datafusion::config::Extensions;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{
    SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext,
};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionConfig;

/// A table of the host.
#[derive(Debug)]
pub struct HostTable(pub Arc<dyn TableProvider>);

#[async_trait]
impl TableProvider for HostTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.0.constraints()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.0.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self
            .0
            .scan(&plain_state(session)?, projection, filters, limit)
            .await?;
        Ok(Arc::new(HostExec(plan)))
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = self
            .0
            .insert_into(&plain_state(session)?, input, op)
            .await?;
        Ok(Arc::new(HostExec(plan)))
    }
}

fn plain(config: &SessionConfig) -> SessionConfig {
    let mut config = config.clone();
    config.options_mut().extensions = Extensions::default();
    config
}

fn plain_state(session: &dyn Session) -> Result<SessionState> {
    let mut state = session
        .as_any()
        .downcast_ref::<SessionState>()
        .cloned()
        .ok_or_else(|| internal_datafusion_err!("the session is not a SessionState"))?;
    *state.config_mut() = plain(session.config());
    // A view that hides its query plans it with what it is given; the distributed planner needs the options left out.
    Ok(SessionStateBuilder::new_from_existing(state)
        .with_query_planner(Arc::new(LocalPlanner))
        .build())
}

#[derive(Debug)]
struct LocalPlanner;

#[async_trait]
impl QueryPlanner for LocalPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        DefaultPhysicalPlanner::default()
            .create_physical_plan(plan, session)
            .await
    }
}

/// A plan of the host, executed without the options of extensions. A leaf: what lies below belongs to the host.
struct HostExec(Arc<dyn ExecutionPlan>);

impl fmt::Debug for HostExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostExec: {}", self.0.name())
    }
}

impl DisplayAs for HostExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostExec: {}", self.0.name())
    }
}

impl ExecutionPlan for HostExec {
    fn name(&self) -> &str {
        "HostExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let context = TaskContext::new(
            context.task_id(),
            context.session_id(),
            plain(context.session_config()),
            context.scalar_functions().clone(),
            context.higher_order_functions().clone(),
            context.aggregate_functions().clone(),
            context.window_functions().clone(),
            context.runtime_env(),
        );
        self.0.execute(partition, Arc::new(context))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.0.metrics()
    }
}
