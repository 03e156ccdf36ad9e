//! Attaches distributed execution to the stock `datafusion` wheel.
//!
//! The wheel and this extension are two native libraries, each with its own DataFusion. They meet in PyCapsules: the
//! host sends its optimized logical plan as protobuf ([`planner`]), this side plans it with its own rules and
//! functions ([`hydrate`]), and hands back a plan that only this process can execute, behind a number ([`handle`]).
//! What writes stays with the host, above such a plan ([`sink`]).

mod extension;
mod function;
mod handle;
mod hydrate;
mod options;
mod planner;
mod sink;
mod statement;
mod table;

use pyo3::prelude::*;

/// The allocator of every arm, so that allocators are not what a comparison compares.
#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    df_strategies_bindings::register(module, extension::stock_physical_codec)?;
    module.add_class::<extension::DistributedExtension>()?;
    module.add_class::<options::SessionOptions>()?;
    module.add_class::<sink::QueryTable>()?;
    module.add_function(wrap_pyfunction!(statement::option_statement, module)?)?;
    module.add_function(wrap_pyfunction!(statement::sink_statement, module)?)?;
    module.add("DATAFUSION_MAJOR", datafusion_ffi::version())?;
    Ok(())
}
