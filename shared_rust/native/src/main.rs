//! Driver and worker without Python: the floor that the strategies are compared with.

mod driver;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use df_strategies_engine::fingerprint::build_info_json;

/// The allocator of every arm, so that allocators are not what a comparison compares.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Distributed queries without Python: a worker, and a driver that speaks JSON lines.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve tasks until SIGTERM or Ctrl-C. The first line on standard output is JSON with the URL.
    Worker(worker::Arguments),
    /// Read one JSON request per line on standard input, write one JSON answer per line on standard output.
    ServeDriver,
    /// Print what this binary was built from, as JSON.
    BuildInfo,
    /// Print what a worker says of itself, as JSON.
    Status {
        /// For example http://127.0.0.1:50051
        url: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(e) => return fail(&format!("the runtime cannot start: {e}")),
    };
    let outcome = runtime.block_on(async {
        match arguments.command {
            Command::Worker(arguments) => worker::run(arguments).await,
            Command::ServeDriver => driver::serve().await,
            Command::BuildInfo => {
                println!("{}", build_info_json());
                Ok(())
            }
            Command::Status { url } => worker::status(&url).await,
        }
    });
    // Tasks that outlive the drain time must not keep the process.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&e.to_string()),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::FAILURE
}
