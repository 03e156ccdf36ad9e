//! The harness' child protocol, spoken without Python.
//!
//! The same operations with the same meaning as the Python child: parse and plan, execute, count rows, and write the
//! answer outside the timed part.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{DataFrame, ParquetReadOptions, SessionConfig, SessionContext};
use df_strategies_engine::channel::connect;
use df_strategies_engine::exec::DistributedQueryExec;
use df_strategies_engine::fingerprint::build_info;
use df_strategies_engine::inspect;
use df_strategies_engine::spec::parse_worker_url;
use df_strategies_engine::{Cluster, ClusterSpec, install, status};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Request {
    Hello,
    Open {
        #[serde(default)]
        config: BTreeMap<String, String>,
        #[serde(default)]
        workers: Vec<String>,
        #[serde(default)]
        tables: BTreeMap<String, String>,
    },
    Query {
        statements: Vec<String>,
        #[serde(default)]
        result_statement: Option<usize>,
        #[serde(default)]
        cleanup: Vec<String>,
        #[serde(default)]
        result: Option<String>,
    },
    Explain {
        statements: Vec<String>,
        #[serde(default)]
        result_statement: Option<usize>,
        #[serde(default)]
        cleanup: Vec<String>,
    },
    Close,
}

#[derive(Default)]
struct Driver {
    context: Option<SessionContext>,
    workers: Vec<String>,
}

/// Answers requests until `close` or the end of the input.
pub async fn serve() -> Result<()> {
    let started = Instant::now();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    let mut driver = Driver::default();
    while let Some(line) = lines.next_line().await? {
        let (answer, last) = match serde_json::from_str::<Request>(&line) {
            Ok(Request::Close) => (Ok(json!({})), true),
            Ok(request) => (driver.answer(request, started).await, false),
            Err(e) => (
                Err(exec_datafusion_err!("the request cannot be read: {e}")),
                false,
            ),
        };
        let answer = match answer {
            Ok(mut value) => {
                value["ok"] = json!(true);
                value
            }
            Err(e) => {
                json!({"ok": false, "error": {"type": kind(&e), "message": e.to_string(), "traceback": ""}})
            }
        };
        out.write_all(format!("{answer}\n").as_bytes()).await?;
        out.flush().await?;
        if last {
            break;
        }
    }
    Ok(())
}

fn kind(error: &DataFusionError) -> &'static str {
    match error {
        DataFusionError::ResourcesExhausted(_) => "ResourcesExhausted",
        DataFusionError::Plan(_) | DataFusionError::SchemaError(..) => "PlanError",
        DataFusionError::Configuration(_) => "ConfigurationError",
        _ => "DataFusionError",
    }
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

impl Driver {
    async fn answer(&mut self, request: Request, started: Instant) -> Result<Value> {
        match request {
            Request::Hello => Ok(json!({
                "python": null,
                "versions": {"datafusion": datafusion::DATAFUSION_VERSION},
                "build": build_info(),
                "startup_ms": ms(started),
            })),
            Request::Open {
                config,
                workers,
                tables,
            } => self.open(&config, workers, &tables).await,
            Request::Query {
                statements,
                result_statement,
                cleanup,
                result,
            } => {
                let parts = Parts::new(&statements, result_statement, &cleanup)?;
                let before = self.tasks().await?;
                let answer = self.query(&parts, result.as_deref()).await;
                let cleaned = self.run_all(&parts.cleanup).await;
                // The error of the query is the one that matters.
                let mut answer = answer?;
                cleaned?;
                answer["remote_tasks"] = match (before, self.tasks().await?) {
                    (Some(before), Some(after)) => json!(after - before),
                    _ => Value::Null,
                };
                Ok(answer)
            }
            Request::Explain {
                statements,
                result_statement,
                cleanup,
            } => {
                let parts = Parts::new(&statements, result_statement, &cleanup)?;
                let answer = self.explain(&parts).await;
                let cleaned = self.run_all(&parts.cleanup).await;
                let answer = answer?;
                cleaned?;
                Ok(answer)
            }
            Request::Close => Ok(json!({})),
        }
    }

    fn context(&self) -> Result<&SessionContext> {
        self.context
            .as_ref()
            .ok_or_else(|| exec_datafusion_err!("no session is open: send 'open' first"))
    }

    async fn open(
        &mut self,
        config: &BTreeMap<String, String>,
        workers: Vec<String>,
        tables: &BTreeMap<String, String>,
    ) -> Result<Value> {
        let started = Instant::now();
        let mut session = SessionConfig::new().with_information_schema(true);
        let (distributed, plain): (BTreeMap<_, _>, BTreeMap<_, _>) = config
            .clone()
            .into_iter()
            .partition(|(key, _)| key.starts_with("distributed."));
        for (key, value) in &plain {
            session.options_mut().set(key, value)?;
        }
        if !workers.is_empty() {
            let spec = ClusterSpec {
                workers: workers.clone(),
                options: distributed,
                ..ClusterSpec::default()
            };
            session = Cluster::new(spec, None)?.describe_in(session)?;
        }
        let builder = SessionStateBuilder::new()
            .with_config(session)
            .with_default_features();
        let context = SessionContext::new_with_state(install(builder, vec![])?.build());
        let context_ms = ms(started);

        let registering = Instant::now();
        for (name, path) in tables {
            context
                .register_parquet(name, path, ParquetReadOptions::default())
                .await?;
        }
        let register_ms = ms(registering);
        let config: BTreeMap<String, Option<String>> = context
            .state()
            .config_options()
            .entries()
            .into_iter()
            .map(|e| (e.key, e.value))
            .collect();
        self.context = Some(context);
        self.workers = workers;
        Ok(json!({"context_ms": context_ms, "register_ms": register_ms, "config": config}))
    }

    /// Tasks that all workers have received so far; none without workers.
    async fn tasks(&self) -> Result<Option<u64>> {
        if self.workers.is_empty() {
            return Ok(None);
        }
        let mut sum = 0;
        for worker in &self.workers {
            let url = parse_worker_url(worker)?;
            let spec = ClusterSpec::default();
            let timeout = std::time::Duration::from_secs_f64(spec.connect_timeout);
            let answer =
                status::fetch(connect(&url, &spec.security(), timeout).await?, &url).await?;
            let counters: Value = serde_json::from_str(&answer.json)
                .map_err(|e| exec_datafusion_err!("status of {worker}: {e}"))?;
            sum += counters["tasks_started"].as_u64().unwrap_or_default();
        }
        Ok(Some(sum))
    }

    async fn query(&self, parts: &Parts, result: Option<&str>) -> Result<Value> {
        let context = self.context()?;
        let started = Instant::now();
        self.run_all(&parts.setup).await?;
        let frame = context.sql(&parts.main).await?;
        let planning_ms = ms(started);
        let schema = SchemaRef::new(frame.schema().as_arrow().clone());
        let batches = frame.collect().await?;
        let elapsed_ms = ms(started);
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        if let Some(path) = result {
            write_ipc(Path::new(path), schema, &batches)?;
        }
        Ok(json!({
            "elapsed_ms": elapsed_ms,
            "planning_ms": planning_ms,
            "execution_ms": elapsed_ms - planning_ms,
            "rows": rows,
            "result": result,
        }))
    }

    async fn explain(&self, parts: &Parts) -> Result<Value> {
        self.run_all(&parts.setup).await?;
        let frame: DataFrame = self.context()?.sql(&parts.main).await?;
        let plan = frame.create_physical_plan().await?;
        let inner = plan
            .downcast_ref::<DistributedQueryExec>()
            .map(DistributedQueryExec::inner);
        let shape = inner.map(inspect::shape);
        Ok(json!({
            "text": inspect::text(inner.unwrap_or(&plan)),
            "stages": shape.map_or(0, |s| s.stages),
            "tasks": shape.map_or(0, |s| s.tasks),
        }))
    }

    async fn run_all(&self, statements: &[String]) -> Result<()> {
        for statement in statements {
            self.context()?.sql(statement).await?.collect().await?;
        }
        Ok(())
    }
}

/// Set-up statements, the one whose rows are the answer, and clean-up statements, as the Python child splits them.
struct Parts {
    setup: Vec<String>,
    main: String,
    cleanup: Vec<String>,
}

impl Parts {
    fn new(statements: &[String], chosen: Option<usize>, cleanup: &[String]) -> Result<Self> {
        let reads = |text: &String| {
            let word: String = text
                .trim_start_matches(|c: char| c.is_whitespace() || c == '(')
                .chars()
                .take_while(char::is_ascii_alphabetic)
                .collect();
            [
                "select", "with", "values", "table", "show", "explain", "describe",
            ]
            .contains(&word.to_lowercase().as_str())
        };
        let chosen = chosen
            .or_else(|| statements.iter().rposition(reads))
            .filter(|i| *i < statements.len());
        let Some(chosen) = chosen else {
            return Err(exec_datafusion_err!(
                "none of the {} statements gives rows",
                statements.len()
            ));
        };
        let mut after = statements[chosen + 1..].to_vec();
        after.extend_from_slice(cleanup);
        Ok(Self {
            setup: statements[..chosen].to_vec(),
            main: statements[chosen].clone(),
            cleanup: after,
        })
    }
}

fn write_ipc(path: &Path, schema: SchemaRef, batches: &[RecordBatch]) -> Result<()> {
    // The batches know their real schema (nullability, view types) better than the logical plan does.
    let schema = batches.first().map_or(schema, RecordBatch::schema);
    let mut writer = FileWriter::try_new(File::create(path)?, &schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    Ok(())
}
