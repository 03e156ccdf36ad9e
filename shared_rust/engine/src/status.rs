//! What a worker says of itself over the wire: build, counters, age.
//!
//! A query counts as distributed only because workers counted its tasks. The service is one unary gRPC call on the
//! worker's own port whose answer is a JSON text, so that a field can be added without generated code on either side.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use datafusion::common::{Result, exec_datafusion_err};
use datafusion_distributed::grpc::BoxCloneSyncChannel;
use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use serde::Deserialize;
use serde_json::json;
use tonic::body::Body;
use tonic::server::{NamedService, UnaryService};
use tonic_prost::ProstCodec;
use url::Url;

use crate::fingerprint::build_info;

const PATH: &str = "/df_strategies.Status/Get";

/// The only message of the service.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Text {
    /// Empty in a request; JSON in an answer.
    #[prost(string, tag = "1")]
    pub json: String,
}

/// Counters of one worker since it started. A task is one fragment of one query that a coordinator sent here.
#[derive(Debug)]
pub struct Counters {
    started: Instant,
    /// Tasks received.
    pub tasks_started: AtomicU64,
    /// Of those, tasks of a coordinator in the same process. The engine does not tell when one ends, so they count as
    /// finished from the start.
    pub tasks_in_process: AtomicU64,
    /// Tasks whose coordinator has closed the channel.
    pub tasks_finished: AtomicU64,
    /// Requests answered with an error.
    pub requests_failed: AtomicU64,
    /// Requests for the output of a task.
    pub streams: AtomicU64,
    /// Bytes of answers, after compression.
    pub bytes_out: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            tasks_started: AtomicU64::default(),
            tasks_in_process: AtomicU64::default(),
            tasks_finished: AtomicU64::default(),
            requests_failed: AtomicU64::default(),
            streams: AtomicU64::default(),
            bytes_out: AtomicU64::default(),
        }
    }
}

impl Counters {
    /// The answer of the status call.
    pub fn to_json(&self) -> String {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (started, finished) = (get(&self.tasks_started), get(&self.tasks_finished));
        json!({
            "pid": std::process::id(),
            "build": build_info(),
            "uptime_s": self.started.elapsed().as_secs_f64(),
            "tasks_started": started,
            "tasks_in_process": get(&self.tasks_in_process),
            "tasks_finished": finished,
            "tasks_running": started.saturating_sub(finished),
            "requests_failed": get(&self.requests_failed),
            "streams": get(&self.streams),
            "bytes_out": get(&self.bytes_out),
        })
        .to_string()
    }
}

/// The server side.
#[derive(Debug, Clone)]
pub struct StatusService(pub Arc<Counters>);

impl NamedService for StatusService {
    const NAME: &'static str = "df_strategies.Status";
}

impl UnaryService<Text> for StatusService {
    type Response = Text;
    type Future = BoxFuture<'static, Result<tonic::Response<Text>, tonic::Status>>;

    fn call(&mut self, _request: tonic::Request<Text>) -> Self::Future {
        let json = self.0.to_json();
        Box::pin(async move { Ok(tonic::Response::new(Text { json })) })
    }
}

impl tower::Service<http::Request<Body>> for StatusService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if request.uri().path() != PATH {
                return Ok(tonic::Status::unimplemented("unknown method").into_http());
            }
            let codec = ProstCodec::<Text, Text>::default();
            Ok(tonic::server::Grpc::new(codec)
                .unary(service, request)
                .await)
        })
    }
}

/// The part of a status answer that the engine itself reads.
#[derive(Debug, Clone, Deserialize)]
pub struct Status {
    /// The worker's build.
    pub build: RemoteBuild,
    /// The whole answer.
    #[serde(skip)]
    pub json: String,
}

/// The part of a remote build that the engine itself reads.
#[derive(Debug, Clone, Deserialize)]
pub struct RemoteBuild {
    /// See [`crate::fingerprint::BuildInfo::fingerprint`].
    pub fingerprint: String,
}

/// Asks the worker at the other end of `channel`.
pub async fn fetch(channel: BoxCloneSyncChannel, url: &Url) -> Result<Status> {
    let mut client = tonic::client::Grpc::new(channel);
    let failed =
        |what: &str| exec_datafusion_err!("Worker '{url}' did not tell its status: {what}");
    client.ready().await.map_err(|e| failed(&e.to_string()))?;
    let answer = client
        .unary(
            tonic::Request::new(Text::default()),
            PathAndQuery::from_static(PATH),
            ProstCodec::<Text, Text>::default(),
        )
        .await
        .map_err(|status| match status.code() {
            tonic::Code::Unimplemented => {
                failed("it is not a worker of this engine (the status call is unknown to it)")
            }
            tonic::Code::Unauthenticated => failed(status.message()),
            _ => failed(&format!("{}: {}", status.code(), status.message())),
        })?;
    let json = answer.into_inner().json;
    let mut status: Status = serde_json::from_str(&json).map_err(|e| failed(&e.to_string()))?;
    status.json = json;
    Ok(status)
}
