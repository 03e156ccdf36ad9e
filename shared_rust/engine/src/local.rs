//! Workers in this very process.
//!
//! A coordinator that is also a worker needs no network to reach itself: datafusion-distributed hands a task to a
//! worker of the same process as it is, without encoding plan or data. Every running worker is listed here by its URL;
//! a query whose members include one uses it directly.

use std::collections::HashMap;
use std::sync::LazyLock;

use datafusion_distributed::{LocalWorkerContext, Worker};
use parking_lot::Mutex;
use url::Url;

static RUNNING: LazyLock<Mutex<HashMap<Url, Worker>>> = LazyLock::new(Mutex::default);

/// Lists a worker until the guard is dropped.
pub struct Listed(Url);

impl Listed {
    /// `url` is what sessions know the worker by.
    pub fn new(url: Url, worker: Worker) -> Self {
        RUNNING.lock().insert(url.clone(), worker);
        Self(url)
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        RUNNING.lock().remove(&self.0);
    }
}

/// The first of `members` that runs in this process. The engine knows one local worker per query; further ones are
/// reached through loopback.
pub fn among(members: &[Url]) -> Option<LocalWorkerContext> {
    let running = RUNNING.lock();
    members
        .iter()
        .find_map(|url| Some(running.get(url)?.to_local_worker_context(url.clone())))
}
