//! A worker that Python starts, stops and waits for.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use datafusion::common::Result;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use datafusion_python_util::get_tokio_runtime;
use df_strategies_engine::channel::connect;
use df_strategies_engine::spec::{ClusterSpec, parse_worker_url};
use df_strategies_engine::status::{self, Counters};
use df_strategies_engine::worker::{BoundWorker, Prepared, Setup, WorkerOptions};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::errors::to_py_err;

/// Makes the codec that knows functions written in Python; the flag says whether it may take them apart or unpickle
/// them (by value), or only knows their names.
pub type CodecFactory = fn(Python<'_>, bool) -> PyResult<Arc<dyn PhysicalExtensionCodec>>;

static CODEC: OnceLock<CodecFactory> = OnceLock::new();

pub(crate) fn set_codec(codec: CodecFactory) {
    // A second import in the same process registers the same strategy again.
    let _ = CODEC.set(codec);
}

/// The codec of the registered strategy.
pub(crate) fn python_codec(
    py: Python<'_>,
    by_value: bool,
) -> PyResult<Option<Arc<dyn PhysicalExtensionCodec>>> {
    CODEC.get().map(|factory| factory(py, by_value)).transpose()
}

/// How often a blocked call looks for Ctrl-C.
const SIGNAL_POLL: Duration = Duration::from_millis(50);

type Outcome = Option<std::result::Result<(), String>>;

struct Running {
    url: String,
    port: u16,
    stop: CancellationToken,
    counters: Arc<Counters>,
    ended: watch::Receiver<Outcome>,
}

/// A worker in this process: executes tasks that coordinators send it.
///
/// Args:
///     host: Address to listen on.
///     port: Port to listen on; 0 takes any free one.
///     options: JSON of worker options.
#[pyclass(frozen, module = "df_strategies")]
pub struct Worker {
    host: String,
    port: u16,
    options: WorkerOptions,
    running: Mutex<Option<Running>>,
}

#[pymethods]
impl Worker {
    #[new]
    #[pyo3(signature = (host="127.0.0.1", port=0, *, options="{}"))]
    fn new(host: &str, port: u16, options: &str) -> PyResult<Self> {
        let options = WorkerOptions::from_json(options).map_err(to_py_err)?;
        Ok(Self {
            host: host.to_string(),
            port,
            options,
            running: Mutex::default(),
        })
    }

    /// Takes the port and serves in the background. `setup` is JSON of what to prepare for every task.
    #[pyo3(signature = (setup="{}"))]
    fn start(&self, py: Python<'_>, setup: &str) -> PyResult<()> {
        let setup = Setup::from_json(setup).map_err(to_py_err)?;
        let prepared = match python_codec(py, true)? {
            Some(codec) => setup.prepare(codec.as_ref()).map_err(to_py_err)?,
            None => Prepared::default(),
        };
        let codec = python_codec(py, self.options.allow_python_udfs)?;
        py.detach(|| {
            let mut running = self.running.lock();
            if running.as_ref().is_some_and(Running::is_alive) {
                return Err(PyRuntimeError::new_err(
                    "This worker runs already: stop it before starting it again",
                ));
            }
            let runtime = get_tokio_runtime();
            let bound = runtime
                .block_on(BoundWorker::bind(
                    &self.host,
                    self.port,
                    self.options.clone(),
                    codec,
                    prepared,
                ))
                .map_err(to_py_err)?;
            let (url, port) = (bound.url().to_string(), bound.address().port());
            let (counters, stop) = (bound.counters(), CancellationToken::new());
            let (tell, ended) = watch::channel(None);
            let stopping = stop.clone();
            runtime.spawn(async move {
                let outcome = bound.serve(stopping).await;
                let _ = tell.send(Some(outcome.map_err(|e| e.to_string())));
            });
            *running = Some(Running {
                url: url.trim_end_matches('/').to_string(),
                port,
                stop,
                counters,
                ended,
            });
            Ok(())
        })
    }

    /// Lets running tasks finish, at most for `timeout` seconds, and frees the port.
    #[pyo3(signature = (timeout=10.0))]
    fn stop(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let Some(running) = self.running.lock().take() else {
            return Ok(());
        };
        running.stop.cancel();
        wait_for(py, &running.ended, Some(timeout)).map(|_| ())
    }

    /// Waits until the worker ends; returns False if it still runs after `timeout` seconds.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let ended = self.running.lock().as_ref().map(|r| r.ended.clone());
        match ended {
            Some(ended) => wait_for(py, &ended, timeout),
            None => Ok(true),
        }
    }

    /// Asks the worker to end without waiting for it.
    fn request_stop(&self) {
        if let Some(running) = self.running.lock().as_ref() {
            running.stop.cancel();
        }
    }

    /// URL that sessions use to reach it.
    #[getter]
    fn url(&self) -> PyResult<String> {
        self.with_running(|r| r.url.clone())
    }

    /// Address it was told to listen on.
    #[getter]
    fn host(&self) -> &str {
        &self.host
    }

    /// Port it listens on; before it starts, the port it was asked to take.
    #[getter]
    fn port(&self) -> u16 {
        self.running.lock().as_ref().map_or(self.port, |r| r.port)
    }

    /// Whether it serves now.
    #[getter]
    fn running(&self) -> bool {
        self.running.lock().as_ref().is_some_and(Running::is_alive)
    }

    /// Counters since the start, as JSON.
    fn status(&self) -> PyResult<String> {
        self.with_running(|r| r.counters.to_json())
    }
}

impl Worker {
    fn with_running<T>(&self, read: impl FnOnce(&Running) -> T) -> PyResult<T> {
        let running = self.running.lock();
        running.as_ref().map(read).ok_or_else(|| {
            PyRuntimeError::new_err("This worker is not running: call start() first")
        })
    }
}

impl Running {
    fn is_alive(&self) -> bool {
        self.ended.borrow().is_none()
    }
}

/// Waits for the end in slices, so that Ctrl-C gets through.
fn wait_for(
    py: Python<'_>,
    ended: &watch::Receiver<Outcome>,
    timeout: Option<f64>,
) -> PyResult<bool> {
    let deadline = match timeout {
        Some(seconds) if !(seconds.is_finite() && seconds >= 0.0) => {
            return Err(PyValueError::new_err(format!(
                "A timeout of {seconds} s was given: expected zero or more"
            )));
        }
        Some(seconds) => Some(Instant::now() + Duration::from_secs_f64(seconds)),
        None => None,
    };
    loop {
        if let Some(outcome) = ended.borrow().clone() {
            return outcome.map(|()| true).map_err(PyRuntimeError::new_err);
        }
        let slice = match deadline {
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(false);
                }
                left.min(SIGNAL_POLL)
            }
            None => SIGNAL_POLL,
        };
        let mut ended = ended.clone();
        py.detach(|| {
            get_tokio_runtime().block_on(async {
                let _ = tokio::time::timeout(slice, ended.changed()).await;
            });
        });
        py.check_signals()?;
    }
}

/// Asks the worker at `url` for its build and counters; returns JSON.
///
/// Args:
///     url: URL of the worker.
///     options: JSON of cluster options; only the credentials and `connect_timeout` are used.
#[pyfunction]
#[pyo3(signature = (url, options="{}"))]
pub fn worker_status(py: Python<'_>, url: &str, options: &str) -> PyResult<String> {
    let spec = ClusterSpec::from_json(options).map_err(to_py_err)?;
    let parsed = parse_worker_url(url).map_err(to_py_err)?;
    let timeout = Duration::from_secs_f64(spec.connect_timeout);
    py.detach(|| {
        get_tokio_runtime().block_on(async {
            let ask = async {
                let channel = connect(&parsed, &spec.security(), timeout).await?;
                status::fetch(channel, &parsed).await
            };
            let answer: Result<status::Status> = match tokio::time::timeout(timeout, ask).await {
                Ok(answer) => answer,
                Err(_) => {
                    return Err(PyRuntimeError::new_err(format!(
                        "Worker '{url}' did not answer within {} s",
                        spec.connect_timeout
                    )));
                }
            };
            answer.map(|status| status.json).map_err(to_py_err)
        })
    })
}
