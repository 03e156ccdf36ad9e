//! The server side: a worker that executes the tasks coordinators send it.
//!
//! Loopback and closed by default: a worker executes plans from whoever reaches it, so an address others can reach
//! needs a token or mutual TLS, or an explicit `insecure`.

mod layer;
mod sessions;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use datafusion::common::{DataFusionError, Result, config_datafusion_err, exec_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion_distributed::Worker;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use url::Url;

use crate::channel::{Channels, WINDOWS};
use crate::fingerprint::build_info;
use crate::functions::{Decoded, Functions, MAX_HEADER};
use crate::local::Listed;
use crate::security::ServerSecurity;
use crate::spec::ClusterSpec;
use crate::status::{Counters, StatusService};
use crate::stores::{Environments, Stores};
use layer::GateLayer;
use sessions::WorkerSessions;

/// How a worker serves. The Python side sends it as JSON.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerOptions {
    /// Bearer token that clients must send.
    pub token: Option<String>,
    /// PEM text of the worker's certificate; implies TLS.
    pub tls_cert: Option<String>,
    /// PEM text of the worker's private key.
    pub tls_key: Option<String>,
    /// PEM text of the authority that signed the clients' certificates; implies mutual TLS.
    pub tls_client_ca: Option<String>,
    /// PEM text of the authority that signed the other workers' certificates; `tls_client_ca` by default.
    pub tls_ca: Option<String>,
    /// Listen beyond loopback without a token or mutual TLS.
    pub insecure: bool,
    /// Unpickle Python functions that clients send. Whoever reaches the worker can then run any code in it.
    pub allow_python_udfs: bool,
    /// Upper bound for the memory that queries may hold, bytes; no bound by default.
    pub memory_limit: Option<usize>,
    /// Seconds that a stopping worker lets running tasks finish.
    pub drain_timeout: f64,
    /// Seconds a single request may take; no bound by default.
    pub request_timeout: Option<f64>,
    /// Largest message accepted, bytes.
    pub max_message_bytes: Option<usize>,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            token: None,
            tls_cert: None,
            tls_key: None,
            tls_client_ca: None,
            tls_ca: None,
            insecure: false,
            allow_python_udfs: false,
            memory_limit: None,
            drain_timeout: 10.0,
            request_timeout: None,
            max_message_bytes: None,
        }
    }
}

impl WorkerOptions {
    /// Parses JSON; the message names the field that is wrong.
    pub fn from_json(text: &str) -> Result<Self> {
        let options: Self = serde_json::from_str(text)
            .map_err(|e| config_datafusion_err!("The worker's options are not valid: {e}"))?;
        options.security().tls()?;
        for seconds in [Some(options.drain_timeout), options.request_timeout]
            .into_iter()
            .flatten()
        {
            if !(seconds.is_finite() && seconds >= 0.0) {
                return Err(config_datafusion_err!(
                    "A time of {seconds} s was given: expected zero or more seconds"
                ));
            }
        }
        Ok(options)
    }

    fn security(&self) -> ServerSecurity {
        ServerSecurity {
            token: self.token.clone(),
            cert: self.tls_cert.clone(),
            key: self.tls_key.clone(),
            client_ca: self.tls_client_ca.clone(),
        }
    }

    /// How this worker reaches others: stages of one query stream to each other. It presents what it has itself, since
    /// workers of one cluster share a token and an authority.
    fn peers(&self) -> Result<Channels> {
        let ca = self.tls_ca.clone().or_else(|| self.tls_client_ca.clone());
        let own = |text: &Option<String>| ca.as_ref().and(text.clone());
        Channels::new(&ClusterSpec {
            token: self.token.clone(),
            tls_cert: own(&self.tls_cert),
            tls_key: own(&self.tls_key),
            tls_ca: ca,
            ..ClusterSpec::default()
        })
    }

    fn runtime(&self) -> Result<Arc<RuntimeEnv>> {
        let mut builder = RuntimeEnvBuilder::new();
        if let Some(bytes) = self.memory_limit {
            builder = builder.with_memory_limit(bytes, 1.0);
        }
        builder.build_arc()
    }
}

/// What a worker's set-up function prepared for every task.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Setup {
    /// Session options, by full key; what a request brings goes before.
    pub settings: BTreeMap<String, String>,
    /// Object stores open to every request.
    pub object_stores: Stores,
    /// Expressions in protobuf, base64, each a call of one function to register.
    pub functions: Vec<String>,
}

impl Setup {
    /// Parses JSON; the message names what is wrong.
    pub fn from_json(text: &str) -> Result<Self> {
        let setup: Self = serde_json::from_str(text)
            .map_err(|e| config_datafusion_err!("The worker's set-up is not valid: {e}"))?;
        setup.object_stores.check()?;
        let mut options = ConfigOptions::new();
        for (key, value) in &setup.settings {
            options.set(key, value).map_err(|e| {
                config_datafusion_err!("Setting '{key}' of the worker's set-up: {e}")
            })?;
        }
        Ok(setup)
    }

    /// Decodes the functions with `codec`. They come from this process's own user, so it may be one that unpickles,
    /// whatever callers may send.
    pub fn prepare(self, codec: &dyn PhysicalExtensionCodec) -> Result<Prepared> {
        Ok(Prepared {
            functions: Functions::from_calls(&self.functions)?.resolve(codec)?,
            settings: self.settings.into_iter().collect(),
            object_stores: self.object_stores,
        })
    }
}

/// A [`Setup`] that is ready for use.
#[derive(Debug, Default)]
pub struct Prepared {
    settings: Vec<(String, String)>,
    object_stores: Stores,
    functions: Decoded,
}

/// Decodes what the engine does not know itself.
type Codec = Option<Arc<dyn PhysicalExtensionCodec>>;

/// A worker that has its port and does not serve yet.
pub struct BoundWorker {
    listener: TcpListener,
    address: SocketAddr,
    options: WorkerOptions,
    counters: Arc<Counters>,
    sessions: WorkerSessions,
}

impl BoundWorker {
    /// Takes `host:port`; port 0 means any free one. Must run inside a tokio runtime.
    pub async fn bind(
        host: &str,
        port: u16,
        options: WorkerOptions,
        codec: Codec,
        prepared: Prepared,
    ) -> Result<Self> {
        let ip = resolve(host, port).await?;
        if !ip.ip().is_loopback() && !options.insecure && !options.security().is_protected() {
            return Err(config_datafusion_err!(
                "Refusing to listen on {host}: anybody who reaches that address could run queries here. Give a token or \
                 tls_client_ca, listen on 127.0.0.1, or say insecure explicitly"
            ));
        }
        let listener = TcpListener::bind(ip).await.map_err(|e| {
            DataFusionError::IoError(std::io::Error::new(
                e.kind(),
                format!("cannot listen on {ip}: {e}"),
            ))
        })?;
        let address = listener.local_addr()?;
        let counters: Arc<Counters> = Arc::default();
        let sessions = WorkerSessions {
            registered: prepared.functions,
            codec,
            allow_python_udfs: options.allow_python_udfs,
            settings: prepared.settings,
            environments: Arc::new(Environments::new(prepared.object_stores)),
            peers: options.peers()?,
            counters: Arc::clone(&counters),
        };
        Ok(Self {
            listener,
            address,
            sessions,
            counters,
            options,
        })
    }

    /// The address it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL clients use.
    pub fn url(&self) -> Url {
        let scheme = if self.options.tls_cert.is_some() {
            "https"
        } else {
            "http"
        };
        Url::parse(&format!("{scheme}://{}", self.address)).expect("an address makes a URL")
    }

    /// Counters that live as long as anybody looks at them.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.counters)
    }

    /// Serves until `stop` is cancelled, then lets running tasks finish for the drain time and ends.
    pub async fn serve(self, stop: CancellationToken) -> Result<()> {
        let (security, url) = (self.options.security(), self.url());
        let limit = self.options.max_message_bytes.unwrap_or(usize::MAX);
        let worker = Worker::from_session_builder(self.sessions)
            .with_version(build_info().fingerprint.clone())
            .with_runtime_env(self.options.runtime()?);
        let _listed = Listed::new(url, worker.clone());
        let worker = worker.into_worker_server().max_decoding_message_size(limit);
        let mut server = Server::builder()
            .tcp_nodelay(true)
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1)
            .http2_max_header_list_size(Some(2 * MAX_HEADER as u32))
            .http2_keepalive_interval(Some(Duration::from_secs(10)));
        if let Some(seconds) = self.options.request_timeout {
            server = server.timeout(Duration::from_secs_f64(seconds));
        }
        if let Some(tls) = security.tls()? {
            server = server
                .tls_config(tls)
                .map_err(|e| config_datafusion_err!("TLS set-up failed: {e}"))?;
        }
        let serving = server
            .layer(GateLayer::new(
                security.token.as_deref(),
                Arc::clone(&self.counters),
            ))
            .add_service(worker)
            .add_service(StatusService(Arc::clone(&self.counters)))
            .serve_with_incoming_shutdown(
                TcpIncoming::from(self.listener).with_nodelay(Some(true)),
                stop.clone().cancelled_owned(),
            );
        tokio::pin!(serving);
        let ended = tokio::select! {
            result = &mut serving => Some(result),
            () = async {
                stop.cancelled().await;
                tokio::time::sleep(Duration::from_secs_f64(self.options.drain_timeout)).await;
            } => None,
        };
        match ended {
            Some(result) => {
                result.map_err(|e| exec_datafusion_err!("the worker stopped serving: {e}"))
            }
            None => {
                log::warn!(
                    "worker {}: tasks still ran after the drain time and were ended",
                    self.address
                );
                Ok(())
            }
        }
    }
}

async fn resolve(host: &str, port: u16) -> Result<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let mut found = tokio::net::lookup_host((host, port))
        .await
        .map_err(|e| config_datafusion_err!("Host '{host}' to listen on does not resolve: {e}"))?;
    found
        .next()
        .ok_or_else(|| config_datafusion_err!("Host '{host}' to listen on has no address"))
}
