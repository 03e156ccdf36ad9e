//! The worker command and the status command.

use std::time::Duration;

use clap::Args;
use datafusion::common::{Result, config_datafusion_err, exec_datafusion_err};
use df_strategies_engine::channel::connect;
use df_strategies_engine::fingerprint::build_info;
use df_strategies_engine::security::ClientSecurity;
use df_strategies_engine::spec::parse_worker_url;
use df_strategies_engine::status;
use df_strategies_engine::worker::{BoundWorker, Prepared, WorkerOptions};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long `status` waits.
const STATUS_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct Arguments {
    /// Address and port to listen on; port 0 takes any free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "HOST:PORT")]
    listen: String,
    /// JSON of worker options, for example '{"memory_limit": 1000000000}'.
    #[arg(long, default_value = "{}", value_name = "JSON")]
    options: String,
}

pub async fn run(arguments: Arguments) -> Result<()> {
    let (host, port) = arguments
        .listen
        .rsplit_once(':')
        .and_then(|(host, port)| Some((host.trim_matches(['[', ']']), port.parse::<u16>().ok()?)))
        .ok_or_else(|| {
            config_datafusion_err!(
                "--listen {}: expected host:port, port 0 to 65535",
                arguments.listen
            )
        })?;
    let options = WorkerOptions::from_json(&arguments.options)?;
    let worker = BoundWorker::bind(host, port, options, None, Prepared::default()).await?;
    let url = worker.url().to_string();
    let ready = json!({
        "url": url.trim_end_matches('/'),
        "pid": std::process::id(),
        "fingerprint": build_info().fingerprint,
    });
    println!("{ready}");

    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let stopping = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        stopping.cancel();
    });
    worker.serve(stop).await
}

pub async fn status(url: &str) -> Result<()> {
    let parsed = parse_worker_url(url)?;
    let ask = async {
        let channel = connect(&parsed, &ClientSecurity::default(), STATUS_TIMEOUT).await?;
        status::fetch(channel, &parsed).await
    };
    let answer = tokio::time::timeout(STATUS_TIMEOUT, ask)
        .await
        .map_err(|_| {
            exec_datafusion_err!(
                "Worker '{url}' did not answer within {} s",
                STATUS_TIMEOUT.as_secs()
            )
        })??;
    println!("{}", answer.json);
    Ok(())
}
