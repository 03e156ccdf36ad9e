//! The query planner that the host calls.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use df_strategies_engine::{Cluster, install, settings};

use crate::handle::HandleExec;
use crate::hydrate::hydrate;

/// One environment for all queries: with a fresh one each query would read every Parquet footer and listing again,
/// which made a whole TPC-H suite 14 % slower.
static RUNTIME: LazyLock<Arc<RuntimeEnv>> = LazyLock::new(Arc::default);

/// Plans the host's queries on this side.
pub struct HostPlanner {
    pub cluster: Arc<Cluster>,
    pub logical_codec: Arc<dyn LogicalExtensionCodec>,
    pub physical_codec: Arc<dyn PhysicalExtensionCodec>,
}

impl std::fmt::Debug for HostPlanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostPlanner")
            .field("cluster", &self.cluster)
            .finish()
    }
}

impl HostPlanner {
    /// A session of this side with the host's settings.
    fn state(&self, host: &dyn Session) -> Result<SessionState> {
        let mut config = SessionConfig::new();
        for (key, value) in settings::changed(host.config_options()) {
            config.options_mut().set(&key, &value)?;
        }
        let builder = SessionStateBuilder::new()
            .with_config(self.cluster.describe_in(config)?)
            .with_runtime_env(Arc::clone(&RUNTIME))
            .with_default_features();
        Ok(install(builder, vec![Arc::clone(&self.physical_codec)])?.build())
    }
}

#[async_trait]
impl QueryPlanner for HostPlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        host: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let state = self.state(host)?;
        let plan = hydrate(plan, host, Arc::clone(&self.logical_codec), &state).await?;
        let physical = state
            .query_planner()
            .create_physical_plan(&plan, &state)
            .await?;
        Ok(Arc::new(HandleExec::new(physical, state.task_ctx())))
    }
}
