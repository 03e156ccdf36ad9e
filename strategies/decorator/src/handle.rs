//! Things that cross the boundary by reference: the other side only ever sees a number.
//!
//! datafusion-ffi 55 wants every plan and table as protobuf, and some have no such form: a distributed plan is bound
//! to this process's connections, and a table in the host's memory is better left there. Such a thing is put aside
//! under a number, the number travels, and whoever brings it back gets the thing.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};
use df_strategies_engine::exec::DistributedQueryExec;
use parking_lot::Mutex;

/// Things put aside and not yet fetched that are kept at most; more means that somebody encodes without decoding.
const CAPACITY: usize = 1024;

/// Marks our payloads, and tells one process's numbers from another's.
static PROCESS: LazyLock<u64> = LazyLock::new(|| {
    let started = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64);
    started ^ (u64::from(std::process::id()) << 40)
});

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A number as it travels.
pub fn encode_number(number: u64, buffer: &mut Vec<u8>) {
    buffer.extend_from_slice(&PROCESS.to_le_bytes());
    buffer.extend_from_slice(&number.to_le_bytes());
}

/// The number in a payload of this process.
pub fn decode_number(payload: &[u8], what: &str) -> Result<u64> {
    let (process, number) = match payload.len() {
        16 => (payload[..8].try_into(), payload[8..].try_into()),
        _ => {
            return exec_err!(
                "This is not a {what} of a distributed session: {} bytes, expected 16",
                payload.len()
            );
        }
    };
    match (
        process.map(u64::from_le_bytes),
        number.map(u64::from_le_bytes),
    ) {
        (Ok(process), Ok(number)) if process == *PROCESS => Ok(number),
        _ => exec_err!(
            "This {what} of a distributed session belongs to another process: it holds connections and cannot be sent. \
             Send the query (SQL or logical plan) and plan it there"
        ),
    }
}

/// Things put aside until somebody brings their number. The oldest go first when too many wait.
pub struct Aside<T: ?Sized> {
    waiting: Mutex<(HashMap<u64, Arc<T>>, VecDeque<u64>)>,
}

impl<T: ?Sized> Default for Aside<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::new((HashMap::new(), VecDeque::new())),
        }
    }
}

impl<T: ?Sized> Aside<T> {
    pub fn put(&self, thing: Arc<T>) -> u64 {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.put_as(number, thing);
        number
    }

    /// Puts a thing aside that has a number already.
    pub fn put_as(&self, number: u64, thing: Arc<T>) {
        let mut waiting = self.waiting.lock();
        let (things, order) = &mut *waiting;
        things.insert(number, thing);
        order.push_back(number);
        while things.len() > CAPACITY
            && let Some(oldest) = order.pop_front()
        {
            things.remove(&oldest);
        }
    }

    pub fn take(&self, number: u64) -> Option<Arc<T>> {
        let mut waiting = self.waiting.lock();
        let (things, order) = &mut *waiting;
        let thing = things.remove(&number);
        // Numbers are taken in about the order they were put, so this stays short.
        while order
            .front()
            .is_some_and(|oldest| !things.contains_key(oldest))
        {
            order.pop_front();
        }
        thing
    }
}

/// A finished plan of this side, as the host holds it: no children to look into, executed with this side's context.
pub struct HandleExec {
    number: u64,
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    label: String,
    sent: AtomicBool,
}

/// Name of a plan that runs on the coordinator alone, so that nobody takes it for a distributed one.
const LOCAL_NAME: &str = "LocalQueryExec";

/// Every handle that anybody holds.
static HELD: LazyLock<Mutex<HashMap<u64, Weak<HandleExec>>>> = LazyLock::new(Mutex::default);

impl HandleExec {
    pub fn new(plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Arc<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Through FFI the name is all that a plan shows of itself, so it carries the numbers to look the plan up with.
        let what = match plan.downcast_ref::<DistributedQueryExec>() {
            Some(distributed) => distributed.label().to_string(),
            None => format!("{LOCAL_NAME}: {}", plan.name()),
        };
        let handle = Arc::new(Self {
            number,
            plan,
            context,
            label: format!("{what}, {HANDLE}{number}"),
            sent: AtomicBool::new(false),
        });
        HELD.lock().insert(number, Arc::downgrade(&handle));
        handle
    }

    /// The handle in what the host displays of a plan.
    pub fn in_text(text: &str) -> Option<Arc<Self>> {
        find(number_in(text)?)
    }
}

impl Drop for HandleExec {
    fn drop(&mut self) {
        HELD.lock().remove(&self.number);
    }
}

fn find(number: u64) -> Option<Arc<HandleExec>> {
    HELD.lock().get(&number).and_then(Weak::upgrade)
}

/// What stands before a handle's number in its label.
const HANDLE: &str = "handle=";

fn number_in(text: &str) -> Option<u64> {
    let after = text.split_once(HANDLE)?.1;
    after
        .split(|c: char| !c.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

impl fmt::Debug for HandleExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl DisplayAs for HandleExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl ExecutionPlan for HandleExec {
    fn name(&self) -> &str {
        &self.label
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.plan.properties()
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
        _host: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.plan.execute(partition, Arc::clone(&self.context))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.plan.metrics()
    }
}

static WAITING: LazyLock<Aside<HandleExec>> = LazyLock::new(Aside::default);

/// Encodes [`HandleExec`] as a number. A plan that is still held can be decoded again and again.
#[derive(Debug)]
pub struct HandleCodec;

impl PhysicalExtensionCodec for HandleCodec {
    fn try_decode(
        &self,
        payload: &[u8],
        _inputs: &[Arc<dyn ExecutionPlan>],
        _context: &TaskContext,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let number = decode_number(payload, "plan")?;
        match WAITING.take(number).or_else(|| find(number)) {
            Some(plan) => Ok(plan),
            None => {
                exec_err!("This plan of a distributed session is gone: plan the query again")
            }
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        _converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        let any: Arc<dyn std::any::Any + Send + Sync> = node.clone();
        let Ok(plan) = any.downcast::<HandleExec>() else {
            return exec_err!("{} is not a plan of a distributed session", node.name());
        };
        encode_number(plan.number, buffer);
        // Nobody holds a plan between its planning and the first time the host decodes it.
        if !plan.sent.swap(true, Ordering::Relaxed) {
            WAITING.put_as(plan.number, plan);
        }
        Ok(())
    }
}
