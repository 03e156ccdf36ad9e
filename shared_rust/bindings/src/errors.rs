//! Engine errors as the Python exceptions a caller would expect.

use datafusion::common::DataFusionError;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Configuration and planning mistakes are `ValueError`, the operating system's are `OSError`, the rest `RuntimeError`.
pub fn to_py_err(error: DataFusionError) -> PyErr {
    match error {
        DataFusionError::Configuration(message) | DataFusionError::Plan(message) => {
            PyValueError::new_err(message)
        }
        DataFusionError::Execution(message) => PyRuntimeError::new_err(message),
        DataFusionError::IoError(e) => PyOSError::new_err(e.to_string()),
        DataFusionError::Context(_, inner) => to_py_err(*inner),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}
