//! Makes the host's logical plan this side's own.
//!
//! The plan arrives with the host's functions: calls through FFI for every batch, and opaque to optimizer rules. Since
//! both libraries are the same DataFusion, a built-in function is better replaced by this side's own of that name. So
//! the plan is encoded once more with a codec that leaves built-ins to the registry and puts everything else aside.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, TableReference, exec_datafusion_err};
use datafusion::datasource::{MemTable, provider_as_source, source_as_provider};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{
    AggregateUDF, Expr, Extension, LogicalPlan, ScalarUDF, TableScan, WindowUDF,
};
use datafusion::physical_plan::collect_partitioned;
use datafusion_ffi::table_provider::ForeignTableProvider;
use datafusion_proto::bytes::{
    logical_plan_from_bytes_with_extension_codec, logical_plan_to_bytes_with_extension_codec,
};
use datafusion_proto::logical_plan::{DefaultLogicalExtensionCodec, LogicalExtensionCodec};

use crate::function::adopt;
use crate::handle::{Aside, decode_number, encode_number};
use crate::table::HostTable;

/// Name of the scan that a table in the host's memory makes. Listing tables, which scan under the same name, have a
/// logical form and never arrive as foreign tables.
const MEMORY_SCAN: &str = "DataSourceExec";

/// `plan` with this side's functions and, for tables in the host's memory, this side's tables over the same buffers.
pub async fn hydrate(
    plan: &LogicalPlan,
    host: &dyn Session,
    host_codec: Arc<dyn LogicalExtensionCodec>,
    state: &SessionState,
) -> Result<LogicalPlan> {
    let plan = adopt_memory_tables(plan, host).await?;
    let codec = Hydration {
        host: host_codec,
        state: state.clone(),
        tables: Aside::default(),
        functions: Functions::default(),
    };
    let bytes = logical_plan_to_bytes_with_extension_codec(&plan, &codec)?;
    let plan =
        logical_plan_from_bytes_with_extension_codec(&bytes, state.task_ctx().as_ref(), &codec)?;
    // The host leaves uncorrelated scalar subqueries to a physical operator that does not distribute; with this
    // side's settings the optimizer turns them into joins.
    if has_scalar_subquery(&plan)? {
        state.optimize(&plan)
    } else {
        Ok(plan)
    }
}

fn has_scalar_subquery(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                found |= matches!(e, Expr::ScalarSubquery(_));
                Ok(if found {
                    TreeNodeRecursion::Stop
                } else {
                    TreeNodeRecursion::Continue
                })
            })
        })?;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}

/// Replaces tables that live in the host's memory. The buffers are shared through Arrow's C interface, not copied;
/// everything lazy or large (datasets, streams, tables of other libraries) stays where it is and is read as it comes.
async fn adopt_memory_tables(plan: &LogicalPlan, host: &dyn Session) -> Result<LogicalPlan> {
    let mut foreign: Vec<Arc<dyn TableProvider>> = vec![];
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(provider) = foreign_provider(scan)
            && !foreign.iter().any(|known| Arc::ptr_eq(known, &provider))
        {
            foreign.push(provider);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut adopted: Vec<(Arc<dyn TableProvider>, Arc<dyn TableProvider>)> = vec![];
    for provider in foreign {
        let scan = provider.scan(host, None, &[], None).await?;
        if scan.name() != MEMORY_SCAN || !scan.children().is_empty() {
            continue;
        }
        let partitions = collect_partitioned(scan, host.task_ctx()).await?;
        adopted.push((
            Arc::clone(&provider),
            Arc::new(MemTable::try_new(provider.schema(), partitions)?),
        ));
    }
    if adopted.is_empty() {
        return Ok(plan.clone());
    }
    let replaced = plan.clone().transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else {
            return Ok(Transformed::no(node));
        };
        let own = foreign_provider(&scan).and_then(|provider| {
            adopted
                .iter()
                .find(|(foreign, _)| Arc::ptr_eq(foreign, &provider))
        });
        Ok(match own {
            Some((_, table)) => {
                scan.source = provider_as_source(Arc::clone(table));
                Transformed::yes(LogicalPlan::TableScan(scan))
            }
            None => Transformed::no(LogicalPlan::TableScan(scan)),
        })
    })?;
    Ok(replaced.data)
}

fn foreign_provider(scan: &TableScan) -> Option<Arc<dyn TableProvider>> {
    source_as_provider(&scan.source)
        .ok()
        .filter(|provider| provider.downcast_ref::<ForeignTableProvider>().is_some())
}

#[derive(Default)]
struct Functions {
    scalar: Aside<ScalarUDF>,
    aggregate: Aside<AggregateUDF>,
    window: Aside<WindowUDF>,
}

/// The codec of one hydration. What it puts aside is dropped with it.
struct Hydration {
    host: Arc<dyn LogicalExtensionCodec>,
    state: SessionState,
    tables: Aside<dyn TableProvider>,
    functions: Functions,
}

impl std::fmt::Debug for Hydration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hydration")
    }
}

fn gone(what: &str) -> datafusion::common::DataFusionError {
    exec_datafusion_err!("{what} got lost between encoding and decoding a plan")
}

impl LogicalExtensionCodec for Hydration {
    fn try_decode(
        &self,
        payload: &[u8],
        inputs: &[LogicalPlan],
        context: &TaskContext,
    ) -> Result<Extension> {
        self.host.try_decode(payload, inputs, context)
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        self.host.try_encode(node, buffer)
    }

    fn try_decode_table_provider(
        &self,
        payload: &[u8],
        _name: &TableReference,
        _schema: SchemaRef,
        _context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let table = self
            .tables
            .take(decode_number(payload, "table")?)
            .ok_or_else(|| gone("A table"))?;
        let is_hosts = table.downcast_ref::<ForeignTableProvider>().is_some();
        Ok(if is_hosts {
            Arc::new(HostTable(table))
        } else {
            table
        })
    }

    fn try_encode_table_provider(
        &self,
        _name: &TableReference,
        provider: Arc<dyn TableProvider>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        encode_number(self.tables.put(provider), buffer);
        Ok(())
    }

    fn try_decode_file_format(
        &self,
        payload: &[u8],
        context: &TaskContext,
    ) -> Result<Arc<dyn datafusion::datasource::file_format::FileFormatFactory>> {
        DefaultLogicalExtensionCodec {}.try_decode_file_format(payload, context)
    }

    fn try_encode_file_format(
        &self,
        buffer: &mut Vec<u8>,
        node: Arc<dyn datafusion::datasource::file_format::FileFormatFactory>,
    ) -> Result<()> {
        DefaultLogicalExtensionCodec {}.try_encode_file_format(buffer, node)
    }

    fn try_decode_udf(&self, _name: &str, payload: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.functions
            .scalar
            .take(decode_number(payload, "function")?)
            .map(adopt)
            .ok_or_else(|| gone("A function"))
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        // A payload means that the function was written by the user, whatever its name is.
        let mut payload = vec![];
        self.host.try_encode_udf(node, &mut payload)?;
        if !payload.is_empty() || !self.state.scalar_functions().contains_key(node.name()) {
            encode_number(self.functions.scalar.put(Arc::new(node.clone())), buffer);
        }
        Ok(())
    }

    fn try_decode_udaf(&self, _name: &str, payload: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.functions
            .aggregate
            .take(decode_number(payload, "function")?)
            .ok_or_else(|| gone("A function"))
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buffer: &mut Vec<u8>) -> Result<()> {
        let mut payload = vec![];
        self.host.try_encode_udaf(node, &mut payload)?;
        if !payload.is_empty() || !self.state.aggregate_functions().contains_key(node.name()) {
            encode_number(self.functions.aggregate.put(Arc::new(node.clone())), buffer);
        }
        Ok(())
    }

    fn try_decode_udwf(&self, _name: &str, payload: &[u8]) -> Result<Arc<WindowUDF>> {
        self.functions
            .window
            .take(decode_number(payload, "function")?)
            .ok_or_else(|| gone("A function"))
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buffer: &mut Vec<u8>) -> Result<()> {
        let mut payload = vec![];
        self.host.try_encode_udwf(node, &mut payload)?;
        if !payload.is_empty() || !self.state.window_functions().contains_key(node.name()) {
            encode_number(self.functions.window.put(Arc::new(node.clone())), buffer);
        }
        Ok(())
    }
}

static HOST_TABLES: std::sync::LazyLock<Aside<dyn TableProvider>> =
    std::sync::LazyLock::new(Aside::default);

/// The codec that the host gets for tables without a logical form: it only carries a number.
#[derive(Debug)]
pub struct TableCodec;

impl LogicalExtensionCodec for TableCodec {
    fn try_decode(
        &self,
        payload: &[u8],
        inputs: &[LogicalPlan],
        context: &TaskContext,
    ) -> Result<Extension> {
        DefaultLogicalExtensionCodec {}.try_decode(payload, inputs, context)
    }

    fn try_encode(&self, node: &Extension, buffer: &mut Vec<u8>) -> Result<()> {
        DefaultLogicalExtensionCodec {}.try_encode(node, buffer)
    }

    fn try_decode_table_provider(
        &self,
        payload: &[u8],
        _name: &TableReference,
        _schema: SchemaRef,
        _context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        HOST_TABLES
            .take(decode_number(payload, "table")?)
            .ok_or_else(|| {
                exec_datafusion_err!(
                    "This table of a distributed session is gone: build the plan again"
                )
            })
    }

    fn try_encode_table_provider(
        &self,
        _name: &TableReference,
        provider: Arc<dyn TableProvider>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        encode_number(HOST_TABLES.put(provider), buffer);
        Ok(())
    }
}
