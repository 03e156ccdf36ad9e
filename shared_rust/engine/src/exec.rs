//! The root of every distributed plan.
//!
//! datafusion-distributed's own root takes what it sends to the workers from the task context it is executed with.
//! This node puts the session's settings there, and gives a plan a number under which it can be looked up again:
//! through FFI a plan is opaque, but its name is not.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_distributed::{DistributedExt, WorkerResolver};
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::json;

use crate::functions::{FUNCTIONS_HEADER, Functions};
use crate::inspect::{self, Shape};
use crate::session::Cluster;
use crate::stores::STORES_HEADER;
use crate::{local, settings};

/// Name of the node, before its number.
pub const NAME: &str = "DistributedQueryExec";

static NEXT: AtomicU64 = AtomicU64::new(1);
static PLANS: LazyLock<Mutex<HashMap<u64, Weak<Numbered>>>> = LazyLock::new(Mutex::default);

/// A plan and its number; the registry forgets it when the last holder does.
struct Numbered {
    number: u64,
    label: String,
    shape: Shape,
    plan: Arc<dyn ExecutionPlan>,
    functions: Functions,
}

impl Drop for Numbered {
    fn drop(&mut self) {
        PLANS.lock().remove(&self.number);
    }
}

/// See the module's description.
pub struct DistributedQueryExec {
    numbered: Arc<Numbered>,
}

impl DistributedQueryExec {
    /// Wraps a plan that is distributed and uses `functions` besides the built-in ones.
    pub fn new(plan: Arc<dyn ExecutionPlan>, functions: Functions) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let shape = inspect::shape(&plan);
        let label = format!(
            "{NAME}: plan={number}, stages={}, tasks={}",
            shape.stages, shape.tasks
        );
        let numbered = Arc::new(Numbered {
            number,
            label,
            shape,
            plan,
            functions,
        });
        PLANS.lock().insert(number, Arc::downgrade(&numbered));
        Self { numbered }
    }

    /// The plan below.
    pub fn inner(&self) -> &Arc<dyn ExecutionPlan> {
        &self.numbered.plan
    }

    /// `DistributedQueryExec: plan=3, stages=2, tasks=4`: enough to find the plan again with [`find`].
    pub fn label(&self) -> &str {
        &self.numbered.label
    }
}

/// What is known about plan `number`, as JSON, while anybody still holds it.
pub fn find(number: u64) -> Option<String> {
    let numbered = PLANS.lock().get(&number).and_then(Weak::upgrade)?;
    Some(
        json!({
            "distributed": true,
            "plan": number,
            "stages": numbered.shape.stages,
            "tasks": numbered.shape.tasks,
            "text": inspect::text(&numbered.plan),
            "graphviz": inspect::graphviz(&numbered.plan).ok(),
        })
        .to_string(),
    )
}

/// What each operator of plan `number` counted, per stage and task, as JSON, while anybody still holds the plan.
/// Waits for what is still on its way from the workers; `None` if nobody holds it.
pub async fn metrics(number: u64) -> Option<Result<String>> {
    let numbered = PLANS.lock().get(&number).and_then(Weak::upgrade)?;
    Some(inspect::metrics(&numbered.plan).await)
}

/// The number in a [`DistributedQueryExec::label`], wherever it stands in `text`.
pub fn number_in(text: &str) -> Option<u64> {
    let after = text.split_once(NAME)?.1.strip_prefix(": plan=")?;
    after
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// The answer of [`find`] for a plan that is not distributed.
pub fn local_info(text: &str) -> String {
    json!({"distributed": false, "plan": null, "stages": 0, "tasks": 0, "text": text, "graphviz": null}).to_string()
}

/// Plans that are held by anybody now.
pub fn held() -> usize {
    PLANS.lock().len()
}

/// `context` with the session's settings, functions and object stores in the headers of every request to a worker, and
/// with the worker of this process, if the cluster has one.
fn with_headers(context: &TaskContext, functions: &Functions) -> Result<TaskContext> {
    let mut config = context.session_config().clone();
    let mut headers = HeaderMap::new();
    headers.insert(
        &settings::SETTINGS_HEADER,
        settings::to_header(config.options())?,
    );
    if let Some(value) = functions.to_header()? {
        headers.insert(&FUNCTIONS_HEADER, value);
    }
    if let Some(cluster) = config.get_extension::<Cluster>() {
        cluster.check_process()?;
        if let Some(value) = cluster.stores_header() {
            headers.insert(&STORES_HEADER, value.clone());
        }
        if let Some(worker) = local::among(&cluster.members().get_urls()?) {
            config.set_distributed_local_worker_context(worker);
        }
    }
    config.set_distributed_passthrough_headers(headers)?;
    Ok(TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ))
}

impl fmt::Debug for DistributedQueryExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl DisplayAs for DistributedQueryExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl ExecutionPlan for DistributedQueryExec {
    fn name(&self) -> &str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner().properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.inner()]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // What is below is finished. Inside of another plan (a temporary view is one) the rules for that plan come along
        // and would, for one, take away the operator that brings all partitions together.
        Ok(self)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.inner().execute(
            partition,
            Arc::new(with_headers(&context, &self.numbered.functions)?),
        )
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.inner().metrics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_what_other_libraries_print() {
        assert_eq!(
            number_in("FFI_ExecutionPlan: DistributedQueryExec: plan=17, stages=2, tasks=4, x"),
            Some(17)
        );
        assert_eq!(number_in("DistributedQueryExec: plan=x"), None);
        assert_eq!(number_in("SortExec"), None);
    }
}
