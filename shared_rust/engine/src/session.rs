//! A session that plans distributed queries.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, exec_err};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use datafusion_distributed::{DistributedConfig, DistributedExt, SessionStateBuilderExt};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use http::HeaderValue;

use crate::channel::Channels;
use crate::guard;
use crate::membership::{Callback, Membership};
use crate::options::Options;
use crate::planner::EnginePlanner;
use crate::spec::ClusterSpec;
use crate::stores::{self, Opened};

/// A cluster as sessions hold it: one object per description, so that contexts made from the same configuration
/// share connections.
pub struct Cluster {
    /// As the user described it.
    pub spec: ClusterSpec,
    members: Membership,
    channels: Channels,
    process: u32,
    stores: Opened,
    stores_header: Option<HeaderValue>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("workers", &self.spec.workers)
            .field("dns", &self.spec.dns)
            .finish()
    }
}

impl Cluster {
    /// Checks the description; connects to nothing.
    pub fn new(spec: ClusterSpec, callback: Option<Callback>) -> Result<Arc<Self>> {
        let cluster = Self {
            members: Membership::new(&spec, callback)?,
            channels: Channels::new(&spec)?,
            process: std::process::id(),
            stores: spec.object_stores.open()?,
            stores_header: spec.object_stores.to_header()?,
            spec,
        };
        // An option that the engine does not know is found here, where the user can see which call was wrong.
        cluster.options(SessionConfig::new())?;
        Ok(Arc::new(cluster))
    }

    /// The members.
    pub fn members(&self) -> &Membership {
        &self.members
    }

    /// An environment for one session, with the cluster's object stores. It is the session's own: listings are kept for
    /// as long as it lives, and a session made later must see files that were written meanwhile.
    pub fn environment(&self) -> Result<Arc<RuntimeEnv>> {
        stores::environment(&self.stores, &RuntimeEnv::default())
    }

    /// The header that brings the cluster's object stores to a worker; nothing when it has none.
    pub fn stores_header(&self) -> Option<&HeaderValue> {
        self.stores_header.as_ref()
    }

    /// Refuses a process that was forked from the one that made this cluster: the threads that serve its connections
    /// did not come along, and a query would wait for them for ever.
    pub fn check_process(&self) -> Result<()> {
        let here = std::process::id();
        if here == self.process {
            return Ok(());
        }
        exec_err!(
            "This distributed session was made in process {} and is used in process {here}, which was forked from it: \
             threads and connections do not survive a fork. Make a session in the process that uses it, or start \
             processes with the 'spawn' or 'forkserver' method",
            self.process
        )
    }

    /// `config`, such that a session built from it by [`install`] uses this cluster, and `SET distributed.*` works.
    pub fn describe_in(self: &Arc<Self>, config: SessionConfig) -> Result<SessionConfig> {
        Ok(self.options(config)?.with_extension(Arc::clone(self)))
    }

    fn options(&self, mut config: SessionConfig) -> Result<SessionConfig> {
        if config
            .options()
            .extensions
            .get::<DistributedConfig>()
            .is_none()
        {
            config.set_distributed_option_extension(Options::default());
            // Compressing what never leaves the machine costs about a tenth of a query and saves nothing.
            if self.members.is_static() && self.members.is_loopback() {
                config
                    .options_mut()
                    .set("distributed.compression", "none")?;
            }
        }
        for (key, value) in &self.spec.options {
            config.options_mut().set(key, value)?;
        }
        Ok(config)
    }
}

/// Makes the session under construction distribute its queries, if its configuration describes a cluster; otherwise
/// returns it untouched, so that such a session plans exactly as without this crate.
///
/// `codecs` encode what the engine does not know itself, for example functions written in Python.
pub fn install(
    mut builder: SessionStateBuilder,
    codecs: Vec<Arc<dyn PhysicalExtensionCodec>>,
) -> Result<SessionStateBuilder> {
    let cluster = builder
        .config()
        .as_ref()
        .and_then(SessionConfig::get_extension::<Cluster>);
    let Some(cluster) = cluster else {
        return Ok(builder);
    };

    if !cluster.stores.is_empty() {
        stores::register(
            &cluster.stores,
            builder.runtime_env().get_or_insert_default(),
        );
    }
    let previous = std::mem::take(builder.query_planner());
    let mut builder = builder
        .with_distributed_worker_resolver(cluster.members.clone())
        .with_distributed_channel_resolver(cluster.channels.clone())
        .with_distributed_planner()
        .with_distributed_desired_task_count_handler(guard::keeps_in_one_task);
    for codec in &codecs {
        builder = builder.with_distributed_user_codec_arc(Arc::clone(codec));
    }
    Ok(builder.with_query_planner(Arc::new(EnginePlanner::new(
        previous,
        codecs,
        cluster.spec.strict,
    ))))
}

/// [`install`] for a session that is built already; one without a cluster is returned as it is.
pub fn install_state(
    state: SessionState,
    codecs: Vec<Arc<dyn PhysicalExtensionCodec>>,
) -> Result<SessionState> {
    if state.config().get_extension::<Cluster>().is_none() {
        return Ok(state);
    }
    Ok(install(SessionStateBuilder::new_from_existing(state), codecs)?.build())
}
