//! Looks at a plan before it is distributed: would the engine give another answer on workers than on one node?
//!
//! Each rule stands for a whole kind of fault of datafusion-distributed 4.0 with separate workers. A rule never
//! repairs a single query; it keeps the kind on fewer tasks, or on the coordinator, and the reason goes to `EXPLAIN`.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode,
};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{
    BoundedWindowAggExec, WindowAggExec, get_ordered_partition_by_indices,
};
use datafusion::physical_plan::{
    Distribution, ExecutionPlan, ExecutionPlanProperties, Partitioning,
};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{
    DesiredTaskCountEvent, DesiredTaskCountEventResponse, DistributedCodec,
};

use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_extension_codec, physical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::protobuf::PhysicalPlanNode;
use prost::Message;

use crate::functions::built_in_functions;

/// What to do with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is distributed, with the session's options except for these.
    Distribute(Without),
    /// It runs on the coordinator, for this reason.
    StayLocal(String),
}

/// Options of the engine that one plan must do without.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Without {
    /// Joins must not broadcast: a row limit in a build side would be applied once per consumer.
    pub broadcast: bool,
    /// No second aggregation before a shuffle: it expands grouping sets a second time.
    pub partial_reduce: bool,
}

/// Decides from the local plan.
pub fn inspect(plan: &Arc<dyn ExecutionPlan>, config: &SessionConfig) -> Result<Decision> {
    if let Some(reason) = unsendable(plan, config)? {
        return Ok(Decision::StayLocal(reason));
    }
    if let Some(reason) = too_deep(plan, config) {
        return Ok(Decision::StayLocal(reason));
    }
    if plan.exists(|node| Ok(is_window(node)))? && loses_its_order(plan) {
        return Ok(Decision::StayLocal(
            "a window needs an order that follows from an equality below an exchange, which does not travel".into(),
        ));
    }
    Ok(Decision::Distribute(Without {
        broadcast: limits_a_build_side(plan),
        partial_reduce: plan.exists(|node| Ok(has_grouping_sets(node)))?,
    }))
}

/// Rule 5: with `distributed.partial_reduce` the engine puts one more aggregation in front of a shuffle, which expands
/// `ROLLUP`, `CUBE` and `GROUPING SETS` again. Seen as every group several times.
fn has_grouping_sets(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<AggregateExec>()
        .is_some_and(|aggregate| !aggregate.group_expr().is_single())
}

/// Rule 1: a `LIMIT` above the broadcast of a build side picks its rows in every consumer task anew, so different
/// tasks join different rows. Seen as 2550 instead of 2500 rows, now and then.
fn limits_a_build_side(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let build = collects_left(plan).then(|| plan.children()[0]);
    build.is_some_and(has_limit) || plan.children().into_iter().any(limits_a_build_side)
}

fn has_limit(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.fetch().is_some()
        || plan.name().ends_with("LimitExec")
        || plan.children().into_iter().any(has_limit)
}

/// Rule 2: what protobuf drops silently, or cannot say, stays where it is.
fn unsendable(plan: &Arc<dyn ExecutionPlan>, config: &SessionConfig) -> Result<Option<String>> {
    for child in plan.children() {
        if let Some(reason) = unsendable(child, config)? {
            return Ok(Some(reason));
        }
    }
    if matches!(plan.name(), "RecursiveQueryExec" | "WorkTableExec") {
        return Ok(Some(
            "a recursive query keeps its working table in one process".into(),
        ));
    }
    if !plan.children().is_empty() {
        let sent = WIRE_FORM.contains(&plan.name()) || encode(plan, config).is_ok();
        return Ok(
            (!sent).then(|| format!("{} has no form in which it could be sent", plan.name()))
        );
    }
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        return match scan.data_source().downcast_ref::<FileScanConfig>() {
            Some(files) => lossy_reader(files, config),
            // Tables in memory are sent by value; encoding one here only to look at it would copy it.
            None => Ok(None),
        };
    }
    let Ok(bytes) = encode(plan, config) else {
        return Ok(Some(format!("{} exists only in this process", plan.name())));
    };
    let same = decode(&bytes, config).is_ok_and(|arrived| arrived.schema() == plan.schema());
    // A series of which no column is wanted says that it has none, and sends all of them.
    let wordless = plan.name() == "LazyMemoryExec" && plan.schema().fields().is_empty();
    Ok((!same || wordless).then(|| format!("{} arrives with other columns", plan.name())))
}

/// Operators with a wire form of their own, so that plans of these alone need not be encoded to know that they can be.
/// Any other one is tried out: without a form the engine would let every worker wait for a plan that never comes.
const WIRE_FORM: [&str; 25] = [
    "AggregateExec",
    "AnalyzeExec",
    "BoundedWindowAggExec",
    "CoalesceBatchesExec",
    "CoalescePartitionsExec",
    "CooperativeExec",
    "CrossJoinExec",
    // A sink is the root of its plan, and so in the stage that stays here.
    "DataSinkExec",
    "ExplainExec",
    "FilterExec",
    "GlobalLimitExec",
    "HashJoinExec",
    "InterleaveExec",
    "LocalLimitExec",
    "NestedLoopJoinExec",
    "ProjectionExec",
    "RepartitionExec",
    "SortExec",
    "SortExec(TopK)",
    "SortMergeJoinExec",
    "SortPreservingMergeExec",
    "SymmetricHashJoinExec",
    "UnionExec",
    "UnnestExec",
    "WindowAggExec",
];

/// Rule 6: behind an exchange a plan knows the columns of its input and no longer that two of them are equal. A window
/// whose rows are in order only because of that (sorted by one side of a join, partitioned by the other) fails on the
/// worker. Seen as "Expects PARTITION BY expression to be ordered".
fn loses_its_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    as_received(plan).is_none()
}

/// `plan` as the workers' side of its exchanges sees it; nothing if a window cannot run so.
fn as_received(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let inputs = plan
        .children()
        .into_iter()
        .map(as_received)
        .collect::<Option<Vec<_>>>()?;
    if plan.is::<RepartitionExec>() && is_exchange(plan) {
        let partitions = plan.output_partitioning().partition_count();
        let received = EmptyExec::new(plan.schema()).with_partitions(partitions);
        return Some(Arc::new(received));
    }
    if inputs.is_empty() {
        return Some(Arc::clone(plan));
    }
    let received = Arc::clone(plan).with_new_children(inputs);
    if !is_window(plan) {
        // An operator that asks its inputs for more than a stand-in has is no window, and stays as it is.
        return Some(received.unwrap_or_else(|_| Arc::clone(plan)));
    }
    let received = received.ok()?;
    if let Some(window) = received.downcast_ref::<BoundedWindowAggExec>() {
        window.partition_by_sort_keys().ok()?;
    }
    if let Some(window) = received.downcast_ref::<WindowAggExec>() {
        let keys = window.window_expr().first()?.partition_by();
        let ordered = get_ordered_partition_by_indices(keys, window.input()).ok()?;
        (ordered.len() == keys.len()).then_some(())?;
    }
    Some(received)
}

fn is_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>()
}

/// Rule 4: an operator that needs all rows in one place, or all rows of a key, gets them from an exchange below it. Over
/// a scan of a single partition there is none, because one partition satisfies every requirement; and the engine, which
/// splits a scan over tasks wherever no operator of its stage says otherwise, then runs the operator once per task on a
/// part of the rows. Seen as `LIMIT 7` that gives 14 rows, and as row numbers that start anew. The same holds for a
/// limit inside the scan itself. Such an operator keeps its stage in one task.
pub fn keeps_in_one_task(
    event: DesiredTaskCountEvent<'_>,
) -> Option<Result<DesiredTaskCountEventResponse>> {
    needs_one_task(event.plan).then(|| Ok(DesiredTaskCountEventResponse::maximum(1)))
}

fn needs_one_task(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if is_exchange(plan) {
        return false;
    }
    let single = plan.output_partitioning().partition_count() == 1;
    if plan.fetch().is_some() && single && reaches_a_leaf(plan) {
        return true;
    }
    let required = plan.input_distribution_requirements();
    let collected = collects_left(plan);
    plan.children().into_iter().enumerate().any(|(i, child)| {
        let whole = matches!(
            required.child_distribution(i),
            Some(Distribution::SinglePartition | Distribution::HashPartitioned(_))
        );
        // The build side of such a join is broadcast; the engine sees to that itself.
        whole && !(collected && i == 0) && reaches_a_leaf(child)
    })
}

/// Whether rows get from a leaf to `plan` inside one stage, so that its tasks see parts of them.
fn reaches_a_leaf(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if is_exchange(plan) {
        return false;
    }
    let children = plan.children();
    let skipped = usize::from(collects_left(plan));
    children.is_empty() || children.into_iter().skip(skipped).any(reaches_a_leaf)
}

/// Where the engine puts a boundary between two stages.
fn is_exchange(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan
            .downcast_ref::<RepartitionExec>()
            .is_some_and(|r| matches!(r.partitioning(), Partitioning::Hash(_, _)))
}

/// Whether it is a join that gathers its first input whole and gives it to every task.
fn collects_left(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CrossJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan
            .downcast_ref::<HashJoinExec>()
            .is_some_and(|join| *join.partition_mode() == PartitionMode::CollectLeft)
}

/// The same plan, such that its topmost stage, which runs once on the coordinator, is not counted as several tasks: that
/// happens when a scan of one partition is part of it. A limit without a number passes everything on and asks for
/// one task, see [`keeps_in_one_task`].
pub fn with_whole_top(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if let Some(analyze) = plan.downcast_ref::<AnalyzeExec>() {
        let whole = with_whole_top(analyze.input());
        return Arc::clone(plan)
            .with_new_children(vec![whole])
            .unwrap_or_else(|_| Arc::clone(plan));
    }
    let single = plan.output_partitioning().partition_count() == 1;
    if single && !plan.children().is_empty() && reaches_a_leaf(plan) && !needs_one_task(plan) {
        return Arc::new(GlobalLimitExec::new(Arc::clone(plan), 0, None));
    }
    Arc::clone(plan)
}

/// A file scan survives if sending an empty one like it gives an equal one back.
fn lossy_reader(files: &FileScanConfig, config: &SessionConfig) -> Result<Option<String>> {
    if let Some(column) = files.file_source().table_schema().virtual_columns().first() {
        return Ok(Some(format!(
            "the column '{}' is made by the reader, and its wire format does not carry it",
            column.name()
        )));
    }
    if config.options().execution.split_file_groups_by_statistics
        && !files.output_ordering.is_empty()
    {
        return Ok(Some(
            "files that were put in order by their statistics cannot be divided evenly over tasks"
                .into(),
        ));
    }
    let kind = files.file_source().file_type().to_string();
    // The engine splits files over tasks without asking.
    if !files.file_source().supports_repartitioning() {
        return Ok(Some(format!(
            "a file of this {kind} table can only be read as a whole"
        )));
    }
    if kind == "parquet" {
        return Ok(None);
    }
    let reason = |what: &str| {
        Some(format!(
            "{what} of a {kind} table cannot be sent to workers"
        ))
    };
    let empty = FileScanConfigBuilder::from(files.clone())
        .with_file_groups(vec![])
        .build();
    if files.file_compression_type != FileCompressionType::UNCOMPRESSED {
        return Ok(reason("the compression"));
    }
    let plan: Arc<dyn ExecutionPlan> = DataSourceExec::from_data_source(empty);
    let Ok(bytes) = encode(&plan, config) else {
        return Ok(reason("the reader's options"));
    };
    if !matches!(kind.as_str(), "csv" | "json") {
        return Ok(None);
    }
    // A function of the user in the scan's projection: only a worker that was sent it can read this.
    let Ok(returned) = decode(&bytes, config) else {
        return Ok(reason("an expression in the scan"));
    };
    Ok(if reader_options(&plan) == reader_options(&returned) {
        None
    } else {
        reason("some of the reader's options")
    })
}

/// The options of a CSV reader as their `Debug` form, which is the only public view of all of them. A JSON reader shows
/// none; its one option, an array instead of lines, makes a worker fail to parse rather than answer wrongly.
fn reader_options(plan: &Arc<dyn ExecutionPlan>) -> String {
    let text = plan
        .downcast_ref::<DataSourceExec>()
        .and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>())
        .and_then(|files| {
            files
                .file_source()
                .downcast_ref::<CsvSource>()
                .map(|csv| format!("{csv:?}"))
        })
        .unwrap_or_default();
    normalise(&text)
}

/// `None` and the explicit default mean the same to a reader; options that only writers look at do not matter.
fn normalise(text: &str) -> String {
    const WRITER_ONLY: [&str; 9] = [
        "quote_style",
        "ignore_leading_whitespace",
        "ignore_trailing_whitespace",
        "compression_level",
        "date_format",
        "datetime_format",
        "timestamp_format",
        "timestamp_tz_format",
        "time_format",
    ];
    const INFERENCE_ONLY: [&str; 3] = ["schema_infer_max_rec", "null_value", "has_header"];
    let options = text.split_once("CsvOptions {").map_or("", |(_, rest)| {
        rest.split_once('}').map_or(rest, |(o, _)| o)
    });
    let kept: Vec<&str> = options
        .split(", ")
        .map(str::trim)
        .filter(|field| {
            let name = field.split(':').next().unwrap_or_default();
            !WRITER_ONLY.contains(&name) && !INFERENCE_ONLY.contains(&name)
        })
        .filter(|field| {
            !field.ends_with("None")
                && !field.ends_with("Some(false)")
                && !field.ends_with("double_quote: Some(true)")
        })
        .collect();
    kept.join(", ")
}

fn encode(plan: &Arc<dyn ExecutionPlan>, config: &SessionConfig) -> Result<Vec<u8>> {
    let codec = DistributedCodec::new_combined_with_user(config);
    physical_plan_to_bytes_with_extension_codec(Arc::clone(plan), &codec)
        .map(|bytes| bytes.to_vec())
}

fn decode(bytes: &[u8], config: &SessionConfig) -> Result<Arc<dyn ExecutionPlan>> {
    let codec = DistributedCodec::new_combined_with_user(config);
    physical_plan_from_bytes_with_extension_codec(bytes, built_in_functions(), &codec)
}

/// Depth from which a plan is tried out: protobuf decoding stops at 100 nested messages, and a plan node with its
/// expressions takes two or more.
const SUSPICIOUS_DEPTH: usize = 30;

/// Rule 3: what is nested deeper than protobuf decodes would fail on the worker. The whole local plan is tried, since a
/// stage of it is no deeper; plans of ordinary depth are not encoded for this.
fn too_deep(plan: &Arc<dyn ExecutionPlan>, config: &SessionConfig) -> Option<String> {
    if depth(plan) < SUSPICIOUS_DEPTH {
        return None;
    }
    let decodes =
        encode(plan, config).is_ok_and(|bytes| PhysicalPlanNode::decode(bytes.as_slice()).is_ok());
    (!decodes).then(|| "the plan is nested deeper than its wire format can carry".into())
}

fn depth(plan: &Arc<dyn ExecutionPlan>) -> usize {
    1 + plan.children().into_iter().map(depth).max().unwrap_or(0)
}
