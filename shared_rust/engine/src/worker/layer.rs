//! Around every request: is the caller allowed, and what did the answer weigh.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tonic::body::Body;
use tonic::codegen::Body as HttpBody;
use tower::{Layer, Service};

use crate::status::Counters;

/// One call of this method is one task.
const TASK_METHOD: &str = "CoordinatorChannel";
const STREAM_METHOD: &str = "ExecuteTask";

/// Marks tasks that came through the network and are counted here; the others come from this process.
pub(super) static REMOTE_HEADER: HeaderName = HeaderName::from_static("x-df-strategies-remote");

#[derive(Clone)]
pub(super) struct GateLayer {
    expected: Option<Arc<[u8]>>,
    counters: Arc<Counters>,
}

impl GateLayer {
    pub(super) fn new(token: Option<&str>, counters: Arc<Counters>) -> Self {
        Self {
            expected: token.map(|token| format!("Bearer {token}").into_bytes().into()),
            counters,
        }
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate {
            inner,
            gate: self.clone(),
        }
    }
}

#[derive(Clone)]
pub(super) struct Gate<S> {
    inner: S,
    gate: GateLayer,
}

impl GateLayer {
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(expected) = &self.expected else {
            return true;
        };
        let given = headers
            .get(AUTHORIZATION)
            .map_or(&b""[..], |value| value.as_bytes());
        // Compares all bytes whatever they are, so that the time taken tells nothing about the token.
        given.len() == expected.len()
            && given
                .iter()
                .zip(expected.iter())
                .fold(0, |acc, (a, b)| acc | (a ^ b))
                == 0
    }
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !self.gate.admits(request.headers()) {
            self.gate
                .counters
                .requests_failed
                .fetch_add(1, Ordering::Relaxed);
            let refusal = "this worker asks for a token, and the one sent is missing or wrong";
            return Box::pin(
                async move { Ok(tonic::Status::unauthenticated(refusal).into_http()) },
            );
        }
        let counters = Arc::clone(&self.gate.counters);
        let is_task = request.uri().path().ends_with(TASK_METHOD);
        if is_task {
            request
                .headers_mut()
                .insert(&REMOTE_HEADER, HeaderValue::from_static("1"));
            counters.tasks_started.fetch_add(1, Ordering::Relaxed);
        } else if request.uri().path().ends_with(STREAM_METHOD) {
            counters.streams.fetch_add(1, Ordering::Relaxed);
        }
        // Dropped at the end of the answer, also when the request is cancelled half-way.
        let task = is_task.then(|| TaskGuard(Arc::clone(&counters)));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let response = answer.await?;
            if response
                .headers()
                .get("grpc-status")
                .is_some_and(|status| status != "0")
            {
                counters.requests_failed.fetch_add(1, Ordering::Relaxed);
            }
            Ok(response.map(|body| {
                Body::new(Counted {
                    body,
                    counters,
                    _task: task,
                })
            }))
        })
    }
}

struct TaskGuard(Arc<Counters>);

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.0.tasks_finished.fetch_add(1, Ordering::Relaxed);
    }
}

/// A body that counts the bytes that leave.
struct Counted {
    body: Body,
    counters: Arc<Counters>,
    _task: Option<TaskGuard>,
}

impl HttpBody for Counted {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Self::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            let counter: &AtomicU64 = &self.counters.bytes_out;
            counter.fetch_add(data.len() as u64, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
