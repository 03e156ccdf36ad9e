//! The query planner that the host calls.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{DataFusionError, Result, not_impl_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use datafusion_python_util::get_tokio_runtime;
use df_strategies_engine::{install, settings};

use crate::handle::HandleExec;
use crate::hydrate::hydrate;
use crate::options::SessionOptions;

/// Plans the host's queries on this side.
pub struct HostPlanner {
    pub options: SessionOptions,
    /// One environment for all queries of the session: with a fresh one each query would read every Parquet footer and
    /// listing again, which made a whole TPC-H suite 14 % slower.
    pub runtime: Arc<RuntimeEnv>,
    pub logical_codec: Arc<dyn LogicalExtensionCodec>,
    pub physical_codec: Arc<dyn PhysicalExtensionCodec>,
}

impl std::fmt::Debug for HostPlanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostPlanner")
            .field("cluster", self.options.cluster())
            .finish()
    }
}

impl HostPlanner {
    /// A session of this side with the host's settings.
    fn state(&self, host: &dyn Session) -> Result<SessionState> {
        let cluster = self.options.cluster();
        cluster.check_process()?;
        let mut config = SessionConfig::new();
        for (key, value) in settings::changed(host.config_options()) {
            config.options_mut().set(&key, &value)?;
        }
        let builder = SessionStateBuilder::new()
            .with_config(self.options.describe_in(config)?)
            .with_runtime_env(Arc::clone(&self.runtime))
            .with_default_features();
        Ok(install(builder, vec![Arc::clone(&self.physical_codec)])?.build())
    }

    async fn plan(&self, plan: &LogicalPlan, host: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let remembered = |error: DataFusionError| {
            // The host found every column when it made the plan: one that is missing here got lost on the way.
            if !matches!(error.find_root(), DataFusionError::SchemaError(..)) {
                self.options.remember(&error);
            }
            error
        };
        let state = self.state(host).map_err(remembered)?;
        refuse_changes(plan).map_err(remembered)?;
        let plan = hydrate(plan, host, Arc::clone(&self.logical_codec), &state).await?;
        let physical = state
            .query_planner()
            .create_physical_plan(&plan, &state)
            .await
            .map_err(remembered)?;
        Ok(HandleExec::new(physical, state.task_ctx()))
    }
}

#[async_trait]
impl QueryPlanner for HostPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        host: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        InRuntime(Box::pin(self.plan(plan, host))).await
    }
}

/// A future that finds this library's runtime wherever it is polled. The host polls planning from its own threads, which
/// know another copy of tokio; listing the files of an object store needs timers and tasks of this one.
struct InRuntime<F>(Pin<Box<F>>);

impl<F: Future> Future for InRuntime<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _entered = get_tokio_runtime().handle().enter();
        self.0.as_mut().poll(cx)
    }
}

/// A table of the host changes at the host's side, below which nothing can be distributed from here: such a plan would
/// run on one node, and nobody would see it. The Python layer never sends one.
fn refuse_changes(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Explain(explain) => refuse_changes(&explain.plan),
        LogicalPlan::Analyze(analyze) => refuse_changes(&analyze.input),
        LogicalPlan::Dml(change) => not_impl_err!(
            "{} cannot run through this handle of a distributed session: use the context that distributed(...) or \
             with_extensions(...) returned, and a plain statement instead of EXECUTE",
            change.op.name()
        ),
        _ => Ok(()),
    }
}
