//! What can be told about a plan: is it distributed, in how many stages and tasks, how does it look.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::{
    DistributedExec, NetworkBoundaryExt, display_plan_ascii, display_plan_graphviz,
};
use serde::Serialize;

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
pub fn graphviz(plan: &Arc<dyn ExecutionPlan>) -> datafusion::common::Result<String> {
    display_plan_graphviz(Arc::clone(plan))
}
