//! Connections to workers: one per worker and cluster, shared by all queries, checked when they are made.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest,
    GetWorkerInfoResponse, SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use http::{HeaderMap, HeaderValue, Request, header::AUTHORIZATION};
use parking_lot::Mutex;
use std::collections::HashMap;
use tokio::sync::OnceCell;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::ServiceExt;
use url::Url;

use crate::fingerprint::build_info;
use crate::security::ClientSecurity;
use crate::spec::ClusterSpec;
use crate::status;

/// A worker that does not answer a keepalive ping for this long is given up, so that a stopped or unreachable one
/// fails a query in seconds instead of never.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));

/// HTTP/2 flow-control windows (per stream, per connection), bytes. The default of 64 KiB makes a stream of Arrow
/// batches, which are often megabytes, wait for a window update every few microseconds.
pub(crate) const WINDOWS: (u32, u32) = (8 << 20, 32 << 20);

type Slot = Arc<OnceCell<BoxCloneSyncChannel>>;

/// Connections of one cluster.
#[derive(Clone)]
pub struct Channels {
    security: ClientSecurity,
    connect_timeout: Duration,
    expect_fingerprint: bool,
    has_stores: bool,
    slots: Arc<Mutex<HashMap<Url, Slot>>>,
}

impl Channels {
    /// No connection is made before the first query.
    pub fn new(spec: &ClusterSpec) -> Result<Self> {
        let security = spec.security();
        security.tls()?;
        Ok(Self {
            security,
            connect_timeout: Duration::from_secs_f64(spec.connect_timeout),
            expect_fingerprint: spec.expect_fingerprint,
            has_stores: !spec.object_stores.is_empty(),
            slots: Arc::default(),
        })
    }

    /// The connection to `url`, made now if there is none.
    pub async fn get(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let slot = Arc::clone(self.slots.lock().entry(url.clone()).or_default());
        // A failed attempt leaves the cell empty, so the next query tries again.
        slot.get_or_try_init(|| self.connect(url)).await.cloned()
    }

    async fn connect(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        if self.has_stores && url.scheme() == "http" && !is_loopback(url) {
            return exec_err!(
                "Worker '{url}' would be sent the credentials of this session's object stores in clear text: give the \
                 workers TLS (https), or register the stores on each worker (--init) and not on the session"
            );
        }
        let channel = connect(url, &self.security, self.connect_timeout).await?;
        if self.expect_fingerprint {
            let theirs = status::fetch(channel.clone(), url).await?;
            let ours = &build_info().fingerprint;
            if &theirs.build.fingerprint != ours {
                return exec_err!(
                    "Worker '{url}' runs engine build {} but this session runs {ours}: plans may not mean the same to \
                     both. Start the worker from the same package, or pass expect_fingerprint=False to accept it",
                    theirs.build.fingerprint
                );
            }
        }
        Ok(channel)
    }
}

/// Whether `url` cannot leave this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Connects to a worker without looking at what it is.
pub async fn connect(
    url: &Url,
    security: &ClientSecurity,
    timeout: Duration,
) -> Result<BoxCloneSyncChannel> {
    let mut endpoint = Endpoint::from_shared(url.to_string())
        .map_err(|e| exec_datafusion_err!("Worker URL '{url}' is not usable: {e}"))?
        .connect_timeout(timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE.0)
        .keep_alive_timeout(KEEPALIVE.1)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1);
    let tls = security.tls()?;
    if tls.is_none() && url.scheme() == "https" {
        return exec_err!(
            "Worker '{url}' uses TLS, and nothing says whose certificates to trust: give tls_ca (a worker that must \
             reach other workers: --tls-ca)"
        );
    }
    if let Some(tls) = tls {
        endpoint = endpoint
            .tls_config(tls)
            .map_err(|e| unreachable_worker(url, &e, timeout))?;
    }
    let channel: Channel = endpoint
        .connect()
        .await
        .map_err(|e| unreachable_worker(url, &e, timeout))?;

    let Some(token) = &security.token else {
        return Ok(BoxCloneSyncChannel::new(channel));
    };
    let mut header = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| {
        exec_datafusion_err!("The token has characters that no HTTP header can carry")
    })?;
    header.set_sensitive(true);
    Ok(BoxCloneSyncChannel::new(channel.map_request(
        move |mut request: Request<Body>| {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
            request
        },
    )))
}

fn unreachable_worker(
    url: &Url,
    error: &tonic::transport::Error,
    timeout: Duration,
) -> DataFusionError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    exec_datafusion_err!(
        "Worker '{url}' cannot be reached within {} s: {cause}. Check that it runs, that the URL is right, and that both \
         sides agree on TLS",
        timeout.as_secs_f64()
    )
}

/// Says which worker it was when a connection breaks; the engine's own error names an address at best.
struct Named {
    url: Url,
    inner: Box<dyn WorkerChannel>,
}

/// What the errors of a broken or refused connection have in their text; errors of the query itself pass unchanged.
const BROKEN: [&str; 5] = [
    "transport error",
    "connect error",
    "connection error",
    "h2 protocol error",
    "error reading a body from connection",
];

fn name_worker(url: &Url, error: DataFusionError) -> DataFusionError {
    let text = error.to_string();
    if text.contains(url.as_str()) || !BROKEN.iter().any(|broken| text.contains(broken)) {
        return error;
    }
    error.context(format!(
        "The connection to worker '{url}' broke. Did it end, or is the network down?"
    ))
}

#[async_trait]
impl WorkerChannel for Named {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        set_plan_request: SetPlanRequest,
        c2w_stream: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let url = self.url.clone();
        let answers = self
            .inner
            .coordinator_channel(headers, set_plan_request, c2w_stream, metrics, task_ctx)
            .await
            .map_err(|e| name_worker(&url, e))?;
        Ok(answers.map_err(move |e| name_worker(&url, e)).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let url = self.url.clone();
        let streams = self
            .inner
            .execute_task(headers, request, metrics, task_ctx)
            .await
            .map_err(|e| name_worker(&url, e))?;
        let named = streams.into_iter().map(|stream| {
            let url = url.clone();
            stream.map_err(move |e| name_worker(&url, e)).boxed()
        });
        Ok(named.collect())
    }

    async fn get_worker_info(
        &mut self,
        request: GetWorkerInfoRequest,
    ) -> Result<GetWorkerInfoResponse> {
        let answer = self.inner.get_worker_info(request).await;
        answer.map_err(|e| name_worker(&self.url, e))
    }
}

#[async_trait]
impl ChannelResolver for Channels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        Ok(Box::new(Named {
            url: url.clone(),
            inner: create_worker_client(self.get(url).await?),
        }))
    }
}
