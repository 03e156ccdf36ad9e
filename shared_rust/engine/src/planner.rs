//! From a logical plan to one that workers execute, or to a local one and the reason why.
//!
//! datafusion-distributed's planner does the distributing. Around it we do three things: look at the local plan first
//! ([`guard`]), wrap what it returns so that session settings travel ([`exec`]), and let `EXPLAIN` show the plan that
//! would really run.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Result, internal_datafusion_err, plan_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Explain, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion_distributed::{
    DistributedConfig, SessionStateBuilderExt, WorkerResolver, display_plan_ascii,
};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;

use crate::exec::DistributedQueryExec;
use crate::functions;
use crate::guard::{self, Decision, Without};
use crate::inspect::is_distributed;
use crate::session::Cluster;

type SharedPlanner = Arc<dyn QueryPlanner + Send + Sync>;

/// The planner of every session with a cluster.
#[derive(Debug)]
pub struct EnginePlanner {
    previous: Option<SharedPlanner>,
    codecs: Vec<Arc<dyn PhysicalExtensionCodec>>,
    strict: bool,
}

/// A physical plan and, when it does not run on workers, why.
struct Planned {
    plan: Arc<dyn ExecutionPlan>,
    local_because: Option<String>,
}

impl EnginePlanner {
    /// `previous` makes the local plan that gets distributed, `codecs` encode the user's functions, `strict` refuses
    /// plans that stay local.
    pub fn new(
        previous: Option<SharedPlanner>,
        codecs: Vec<Arc<dyn PhysicalExtensionCodec>>,
        strict: bool,
    ) -> Self {
        Self {
            previous,
            codecs,
            strict,
        }
    }

    async fn local(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match &self.previous {
            Some(previous) => previous.create_physical_plan(logical, session).await,
            None => {
                DefaultPhysicalPlanner::default()
                    .create_physical_plan(logical, session)
                    .await
            }
        }
    }

    async fn plan(&self, logical: &LogicalPlan, session: &dyn Session) -> Result<Planned> {
        let local = self.local(logical, session).await?;
        // A table that is a query of this session (a temporary view) has been planned by now, and runs on workers. What
        // is above it runs here: a distributed plan inside of another one would run once per task.
        if local.exists(|node| Ok(node.is::<DistributedQueryExec>()))? {
            return Ok(Planned {
                plan: local,
                local_because: None,
            });
        }
        let decision = guard::inspect(&local, session.config())?;
        // Workers that cannot be named are an error of the query, not a reason to run it alone.
        let workers = members(session)?;
        let distributed = match &decision {
            Decision::Distribute(without) if *without == Without::default() => {
                distribute(&local, logical, session).await
            }
            Decision::Distribute(without) => {
                distribute(&local, logical, &without_options(session, *without)?).await
            }
            Decision::StayLocal(reason) => {
                return Ok(Planned {
                    plan: local,
                    local_because: Some(reason.clone()),
                });
            }
        };
        let distributed = match distributed {
            Ok(distributed) => distributed,
            // The local plan stands; only its distribution failed.
            Err(error) => {
                return Ok(Planned {
                    plan: local,
                    local_because: Some(format!(
                        "the engine cannot distribute this plan ({error})"
                    )),
                });
            }
        };
        if !is_distributed(&distributed) {
            return Ok(Planned {
                plan: local,
                local_because: Some(one_task(session, workers)?),
            });
        }
        let functions = functions::collect(logical, &self.codecs)?;
        Ok(Planned {
            plan: Arc::new(DistributedQueryExec::new(distributed, functions)),
            local_because: None,
        })
    }

    /// DataFusion's own `EXPLAIN` with the final physical plan replaced by the distributed one.
    async fn explain(
        &self,
        logical: &LogicalPlan,
        explain: &Explain,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let local = self.local(logical, session).await?;
        let Some(explained) = local.downcast_ref::<ExplainExec>() else {
            return Ok(local);
        };
        let planned = match self.plan(&explain.plan, session).await {
            Ok(planned) => planned,
            // The local EXPLAIN already tells planning errors in its own way.
            Err(_) => return Ok(local),
        };
        let text = match &planned.local_because {
            None => display_plan_ascii(inner(&planned.plan).as_ref(), false),
            Some(reason) => format!("not distributed: {reason}"),
        };
        let mut plans = explained.stringified_plans().to_vec();
        let is_final = |p: &StringifiedPlan| p.plan_type == PlanType::FinalPhysicalPlan;
        match (
            plans.iter_mut().find(|p| is_final(p)),
            &planned.local_because,
        ) {
            (Some(shown), None) => shown.plan = Arc::new(text),
            (Some(shown), Some(_)) => shown.plan = Arc::new(format!("{text}\n{}", shown.plan)),
            (None, _) => plans.push(StringifiedPlan::new(PlanType::FinalPhysicalPlan, text)),
        }
        Ok(Arc::new(ExplainExec::new(
            explained.schema(),
            plans,
            explained.verbose(),
        )))
    }
}

#[async_trait]
impl QueryPlanner for EnginePlanner {
    async fn create_physical_plan(
        &self,
        logical: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(cluster) = session.config().get_extension::<Cluster>() {
            cluster.check_process()?;
        }
        if let LogicalPlan::Explain(explain) = logical {
            return self.explain(logical, explain, session).await;
        }
        let planned = self.plan(logical, session).await?;
        match planned.local_because {
            Some(reason) if self.strict && reads_something(&planned.plan) => {
                plan_err!("This session is strict and the query cannot be distributed: {reason}")
            }
            Some(reason) => {
                log::debug!("planned locally: {reason}");
                Ok(planned.plan)
            }
            None => Ok(planned.plan),
        }
    }
}

/// Number of workers; zero for a session without a cluster.
fn members(session: &dyn Session) -> Result<usize> {
    let cluster = session.config().get_extension::<Cluster>();
    cluster.map_or(Ok(0), |cluster| {
        cluster.members().get_urls().map(|urls| urls.len())
    })
}

/// Why datafusion-distributed left a plan in one piece.
fn one_task(session: &dyn Session, workers: usize) -> Result<String> {
    let most =
        DistributedConfig::from_config_options(session.config().options())?.max_tasks_per_stage;
    Ok(if workers == 1 {
        "the cluster has one worker, and a stage of one task is not worth a journey: add a worker"
            .into()
    } else if most == 1 {
        "distributed.max_tasks_per_stage is 1, and a stage of one task is not worth a journey"
            .into()
    } else {
        "every scan is small enough for one task (distributed.file_scan_config_bytes_per_partition)"
            .into()
    })
}

/// Strictness is about data: `SELECT 1` and DDL have nothing to distribute.
fn reads_something(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.name() == "DataSourceExec" || plan.children().into_iter().any(reads_something)
}

fn inner(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    plan.downcast_ref::<DistributedQueryExec>()
        .map_or(plan, DistributedQueryExec::inner)
}

/// Runs datafusion-distributed's passes over a plan that exists already.
async fn distribute(
    local: &Arc<dyn ExecutionPlan>,
    logical: &LogicalPlan,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    // The passes are private; the only way in is the planner, which first asks the planner before it.
    let mut builder = SessionStateBuilder::new()
        .with_query_planner(Arc::new(Preplanned(guard::with_whole_top(local))))
        .with_distributed_planner();
    let planner = std::mem::take(builder.query_planner())
        .ok_or_else(|| internal_datafusion_err!("no distributed planner"))?;
    planner.create_physical_plan(logical, session).await
}

/// Answers with a plan made earlier.
#[derive(Debug)]
struct Preplanned(Arc<dyn ExecutionPlan>);

#[async_trait]
impl QueryPlanner for Preplanned {
    async fn create_physical_plan(
        &self,
        _: &LogicalPlan,
        _: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::clone(&self.0))
    }
}

fn without_options(session: &dyn Session, without: Without) -> Result<SessionState> {
    let mut state = session
        .as_any()
        .downcast_ref::<SessionState>()
        .cloned()
        .ok_or_else(|| internal_datafusion_err!("the session is not a SessionState"))?;
    let options = DistributedConfig::from_config_options_mut(state.config_mut().options_mut())?;
    options.broadcast_joins &= !without.broadcast;
    options.partial_reduce &= !without.partial_reduce;
    Ok(state)
}
