//! No code: this crate only names dependencies.
//!
//! Cargo unifies features over the packages selected for one build. pyo3 lies below DataFusion (arrow's `pyarrow`
//! feature), so two selections with different features of anything near the bottom would each compile the whole
//! engine. Every member depends on this crate, which asks for the union, so every selection is the same one.
