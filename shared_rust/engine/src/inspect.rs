//! What can be told about a plan: is it distributed, in how many stages and tasks, how does it look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::displayable;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};
use datafusion_distributed::{
    DISTRIBUTED_DATAFUSION_TASK_ID_LABEL, DistributedExec, DistributedMetricsFormat,
    NetworkBoundaryExt, display_plan_ascii, display_plan_graphviz,
    rewrite_distributed_plan_with_metrics,
};
use serde::Serialize;

/// How long to wait for metrics that workers have not sent yet. They come right after the last batch; a worker that
/// died in the meantime never sends them.
const METRICS_TIMEOUT: Duration = Duration::from_secs(5);

/// The shape of a distributed plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Stages, the coordinator's own included.
    pub stages: usize,
    /// Tasks that run on workers, over all stages below the coordinator's.
    pub tasks: usize,
}

/// Whether any part of `plan` runs on workers.
pub fn is_distributed(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<DistributedExec>() || plan.children().into_iter().any(is_distributed)
}

/// Counts stages and tasks. With dynamic task counts the shape is known only after execution: one stage, no tasks.
pub fn shape(plan: &Arc<dyn ExecutionPlan>) -> Shape {
    let mut shape = Shape {
        stages: 1,
        tasks: 0,
    };
    count(plan, &mut shape);
    shape
}

fn count(plan: &Arc<dyn ExecutionPlan>, shape: &mut Shape) {
    if let Some(boundary) = plan.as_network_boundary() {
        let stage = boundary.input_stage();
        shape.stages += 1;
        shape.tasks += stage.task_count();
        if let Some(below) = stage.local_plan() {
            count(below, shape);
        }
        return;
    }
    for child in plan.children() {
        count(child, shape);
    }
}

/// The plan as text, stage by stage.
pub fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    display_plan_ascii(plan.as_ref(), false)
}

/// The plan in Graphviz's language.
pub fn graphviz(plan: &Arc<dyn ExecutionPlan>) -> Result<String> {
    display_plan_graphviz(Arc::clone(plan))
}

/// One operator and what it counted.
#[derive(Debug, Serialize)]
pub struct Operator {
    /// Number of the stage; 0 is the coordinator's own.
    pub stage: usize,
    /// Depth below the root of the stage.
    pub depth: usize,
    /// One line, as in EXPLAIN.
    pub operator: String,
    /// Values by task and name, summed over partitions. Times are in nanoseconds, sizes in bytes.
    pub tasks: BTreeMap<u64, BTreeMap<String, usize>>,
}

/// What each operator of an executed plan counted, as a JSON array in the order of EXPLAIN.
pub async fn metrics(plan: &Arc<dyn ExecutionPlan>) -> Result<String> {
    let Some(distributed) = distributed_part(plan) else {
        return exec_err!("This plan does not run on workers");
    };
    let rewriting = rewrite_distributed_plan_with_metrics(
        Arc::clone(distributed),
        DistributedMetricsFormat::PerTask,
    );
    let plan = match tokio::time::timeout(METRICS_TIMEOUT, rewriting).await {
        Ok(Ok(plan)) => plan,
        Ok(Err(_)) => {
            return exec_err!(
                "This plan has no metrics: it was not executed. Collect the DataFrame, and ask its execution_plan() then"
            );
        }
        Err(_) => {
            return exec_err!(
                "Workers did not send their metrics within {} s after the query: did one of them end?",
                METRICS_TIMEOUT.as_secs()
            );
        }
    };
    let mut operators = vec![];
    walk(&plan, 0, 0, &mut operators);
    serde_json::to_string(&operators).map_err(|e| exec_datafusion_err!("metrics: {e}"))
}

/// The topmost part that runs on workers.
fn distributed_part(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if plan.is::<DistributedExec>() {
        return Some(plan);
    }
    plan.children().into_iter().find_map(distributed_part)
}

fn walk(plan: &Arc<dyn ExecutionPlan>, stage: usize, depth: usize, found: &mut Vec<Operator>) {
    found.push(Operator {
        stage,
        depth,
        operator: displayable(plan.as_ref())
            .one_line()
            .to_string()
            .trim_end()
            .to_string(),
        tasks: plan.metrics().map(|set| by_task(&set)).unwrap_or_default(),
    });
    if let Some(boundary) = plan.as_network_boundary() {
        let input = boundary.input_stage();
        if let Some(below) = input.local_plan() {
            walk(below, input.num(), 0, found);
        }
        return;
    }
    for child in plan.children() {
        walk(child, stage, depth + 1, found);
    }
}

fn by_task(set: &MetricsSet) -> BTreeMap<u64, BTreeMap<String, usize>> {
    let mut tasks: BTreeMap<u64, BTreeMap<String, usize>> = BTreeMap::new();
    for metric in set.iter() {
        // A point in time cannot be summed, and a moment without its clock says nothing.
        if matches!(
            metric.value(),
            MetricValue::StartTimestamp(_) | MetricValue::EndTimestamp(_)
        ) {
            continue;
        }
        let task = metric
            .labels()
            .iter()
            .find(|label| label.name() == DISTRIBUTED_DATAFUSION_TASK_ID_LABEL)
            .and_then(|label| label.value().parse().ok())
            .unwrap_or(0);
        let values = tasks.entry(task).or_default();
        *values.entry(metric.value().name().to_string()).or_default() += metric.value().as_usize();
    }
    tasks
}
