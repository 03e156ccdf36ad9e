//! The session in which a worker executes one task.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion_distributed::{
    DistributedConfig, DistributedExt, WorkerQueryContext, WorkerSessionBuilder,
};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;

use super::layer::REMOTE_HEADER;
use crate::channel::Channels;
use crate::functions::{Decoded, Functions};
use crate::settings;
use crate::status::Counters;
use crate::stores::Environments;

/// Builds the sessions of one worker.
#[derive(Clone)]
pub struct WorkerSessions {
    /// Decodes what the engine does not know itself, for example functions written in Python.
    pub(super) codec: Option<Arc<dyn PhysicalExtensionCodec>>,
    pub(super) allow_python_udfs: bool,
    /// Session options of the worker's set-up.
    pub(super) settings: Vec<(String, String)>,
    /// Functions of the worker's set-up.
    pub(super) registered: Decoded,
    pub(super) environments: Arc<Environments>,
    /// How tasks here read from tasks on other workers.
    pub(super) peers: Channels,
    pub(super) counters: Arc<Counters>,
}

#[async_trait]
impl WorkerSessionBuilder for WorkerSessions {
    async fn build_session_state(&self, context: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext {
            mut builder,
            headers,
        } = context;
        if !headers.contains_key(&REMOTE_HEADER) {
            self.counters.tasks_started.fetch_add(1, Ordering::Relaxed);
            self.counters
                .tasks_in_process
                .fetch_add(1, Ordering::Relaxed);
            self.counters.tasks_finished.fetch_add(1, Ordering::Relaxed);
        }
        let base = Arc::clone(builder.runtime_env().get_or_insert_default());
        builder = builder.with_runtime_env(self.environments.get(&headers, &base)?);
        let config = builder.config().get_or_insert_default();
        // The engine has already put its own shuffle batch size in place, when there is one.
        let own_batch_size =
            DistributedConfig::from_config_options(config.options())?.shuffle_batch_size != 0;
        let skip = own_batch_size.then_some("datafusion.execution.batch_size");
        for (key, value) in &self.settings {
            if skip != Some(key.as_str()) {
                config.options_mut().set(key, value)?;
            }
        }
        settings::apply_header(&headers, config, skip)?;
        builder = builder.with_distributed_channel_resolver(self.peers.clone());
        if let Some(codec) = &self.codec {
            builder = builder.with_distributed_user_codec_arc(Arc::clone(codec));
        }
        let mut state = builder.build();
        self.registered.register(&mut state)?;
        Functions::from_headers(&headers)?.register(
            &mut state,
            self.codec.as_ref(),
            self.allow_python_udfs,
        )?;
        Ok(state)
    }
}
