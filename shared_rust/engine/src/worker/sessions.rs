//! The session in which a worker executes one task.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion_distributed::{
    DistributedConfig, DistributedExt, WorkerQueryContext, WorkerSessionBuilder,
};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;

use crate::functions::Functions;
use crate::settings;

/// Builds the sessions of one worker.
#[derive(Clone)]
pub struct WorkerSessions {
    /// Decodes what the engine does not know itself, for example functions written in Python.
    pub(super) codec: Option<Arc<dyn PhysicalExtensionCodec>>,
    pub(super) allow_python_udfs: bool,
}

#[async_trait]
impl WorkerSessionBuilder for WorkerSessions {
    async fn build_session_state(&self, context: WorkerQueryContext) -> Result<SessionState> {
        let WorkerQueryContext {
            mut builder,
            headers,
        } = context;
        let config = builder.config().get_or_insert_default();
        // The engine has already put its own shuffle batch size in place, when there is one.
        let own_batch_size =
            DistributedConfig::from_config_options(config.options())?.shuffle_batch_size != 0;
        settings::apply_header(
            &headers,
            config,
            own_batch_size.then_some("datafusion.execution.batch_size"),
        )?;
        if let Some(codec) = &self.codec {
            builder = builder.with_distributed_user_codec_arc(Arc::clone(codec));
        }
        let mut state = builder.build();
        Functions::from_headers(&headers)?.register(
            &mut state,
            self.codec.as_ref(),
            self.allow_python_udfs,
        )?;
        Ok(state)
    }
}
