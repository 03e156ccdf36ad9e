//! Functions of the user on their way to the workers.
//!
//! A plan names its functions, and a worker knows the built-in ones. datafusion-distributed 4.0 has a place for more in
//! its codecs, but asks its own codec first, whose default answer is "by name"; a user's codec is never asked. So we
//! send definitions beside the plan, in a request header, and a worker registers them before it decodes the plan.
//!
//! Definitions travel only when both sides said so: the session encodes them only if its codec is allowed to, and the
//! worker decodes them only if its is. A name without a definition must be registered on the worker already.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::expr::WindowFunctionDefinition;
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan, ScalarUDF, WindowUDF};
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use datafusion_proto::protobuf::LogicalExprNode;
use datafusion_proto::protobuf::logical_expr_node::ExprType;
use datafusion_proto::protobuf::window_expr_node::WindowFunction;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message;

/// Header that carries the functions.
pub static FUNCTIONS_HEADER: HeaderName = HeaderName::from_static("x-df-strategies-functions");

/// Largest header we send, bytes: every request of a query repeats it. Code is kilobytes; data belongs in tables.
pub const MAX_HEADER: usize = 1 << 20;

const SCALAR: u32 = 0;
const AGGREGATE: u32 = 1;
const WINDOW: u32 = 2;

/// The functions of one query that are not built in.
#[derive(Clone, PartialEq, Message)]
pub struct Functions {
    /// In the order of their names.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Function>,
}

/// One function.
#[derive(Clone, PartialEq, Message)]
pub struct Function {
    /// Scalar, aggregate or window.
    #[prost(uint32, tag = "1")]
    pub kind: u32,
    /// Name in the plan.
    #[prost(string, tag = "2")]
    pub name: String,
    /// What the codec made of it; empty when it may only be found by name.
    #[prost(bytes = "vec", tag = "3")]
    pub definition: Vec<u8>,
}

/// The functions in `plan` that differ from what a fresh session has.
pub fn collect(
    plan: &LogicalPlan,
    codecs: &[Arc<dyn PhysicalExtensionCodec>],
) -> Result<Functions> {
    let mut found: BTreeMap<(u32, String), Vec<u8>> = BTreeMap::new();
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some((kind, name, definition)) = examine(expr, codecs)? {
                    found.insert((kind, name), definition);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let entries = found
        .into_iter()
        .map(|((kind, name), definition)| Function {
            kind,
            name,
            definition,
        })
        .collect();
    Ok(Functions { entries })
}

/// What a user's function is encoded as; nothing for expressions that are none.
fn examine(
    expr: &Expr,
    codecs: &[Arc<dyn PhysicalExtensionCodec>],
) -> Result<Option<(u32, String, Vec<u8>)>> {
    let built_in = &*BUILT_IN;
    let mut definition = vec![];
    let (kind, name) = match expr {
        Expr::ScalarFunction(call) => {
            if built_in
                .scalar_functions()
                .get(call.name())
                .is_some_and(|own| own.as_ref() == call.func.as_ref())
            {
                return Ok(None);
            }
            for codec in codecs {
                codec.try_encode_udf(&call.func, &mut definition)?;
            }
            (SCALAR, call.name().to_string())
        }
        Expr::AggregateFunction(call) => {
            if built_in
                .aggregate_functions()
                .get(call.func.name())
                .is_some_and(|own| own.as_ref() == call.func.as_ref())
            {
                return Ok(None);
            }
            for codec in codecs {
                codec.try_encode_udaf(&call.func, &mut definition)?;
            }
            (AGGREGATE, call.func.name().to_string())
        }
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(func) => {
                if built_in
                    .aggregate_functions()
                    .get(func.name())
                    .is_some_and(|own| own.as_ref() == func.as_ref())
                {
                    return Ok(None);
                }
                for codec in codecs {
                    codec.try_encode_udaf(func, &mut definition)?;
                }
                (AGGREGATE, func.name().to_string())
            }
            WindowFunctionDefinition::WindowUDF(func) => {
                if built_in
                    .window_functions()
                    .get(func.name())
                    .is_some_and(|own| own.as_ref() == func.as_ref())
                {
                    return Ok(None);
                }
                for codec in codecs {
                    codec.try_encode_udwf(func, &mut definition)?;
                }
                (WINDOW, func.name().to_string())
            }
        },
        _ => return Ok(None),
    };
    Ok(Some((kind, name, definition)))
}

static BUILT_IN: std::sync::LazyLock<SessionState> =
    std::sync::LazyLock::new(|| SessionStateBuilder::new().with_default_features().build());

/// A context with the built-in functions and nothing else.
pub fn built_in_functions() -> &'static TaskContext {
    static CONTEXT: std::sync::LazyLock<Arc<TaskContext>> =
        std::sync::LazyLock::new(|| BUILT_IN.task_ctx());
    &CONTEXT
}

impl Functions {
    /// The header, or nothing when there is nothing to send.
    pub fn to_header(&self) -> Result<Option<HeaderValue>> {
        if self.entries.is_empty() {
            return Ok(None);
        }
        let text = BASE64_STANDARD.encode(self.encode_to_vec());
        if text.len() > MAX_HEADER {
            let names: Vec<&str> = self.entries.iter().map(|f| f.name.as_str()).collect();
            return exec_err!(
                "The functions {} take {} bytes with what they captured, and {MAX_HEADER} can be sent: capture less, \
                 put data into a table, or register the functions on the workers",
                names.join(", "),
                text.len()
            );
        }
        HeaderValue::from_str(&text)
            .map(Some)
            .map_err(|e| DataFusionError::Internal(format!("functions header: {e}")))
    }

    /// The functions that a request brings.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self> {
        let Some(value) = headers.get(&FUNCTIONS_HEADER) else {
            return Ok(Self::default());
        };
        let bytes = BASE64_STANDARD.decode(value.as_bytes()).map_err(|e| {
            exec_datafusion_err!("The functions of the request cannot be read: {e}")
        })?;
        Self::decode(bytes.as_slice())
            .map_err(|e| exec_datafusion_err!("The functions of the request cannot be read: {e}"))
    }

    /// The functions that `calls` call: expressions in protobuf, base64.
    pub fn from_calls(calls: &[String]) -> Result<Self> {
        let entries = calls
            .iter()
            .map(|call| called(call))
            .collect::<Result<_>>()?;
        Ok(Self { entries })
    }

    /// The functions themselves, to be registered in many sessions. They must come from this process's own user.
    pub fn resolve(&self, codec: &dyn PhysicalExtensionCodec) -> Result<Decoded> {
        let mut decoded = Decoded::default();
        for Function {
            kind,
            name,
            definition,
        } in &self.entries
        {
            if definition.is_empty() {
                return exec_err!(
                    "The function '{name}' cannot be registered on the worker: expected one written in Python"
                );
            }
            match *kind {
                SCALAR => decoded.scalar.push(codec.try_decode_udf(name, definition)?),
                AGGREGATE => decoded
                    .aggregate
                    .push(codec.try_decode_udaf(name, definition)?),
                _ => decoded
                    .window
                    .push(codec.try_decode_udwf(name, definition)?),
            }
        }
        Ok(decoded)
    }

    /// Registers the functions in a worker's session. `allowed` says whether definitions may be decoded.
    pub fn register(
        &self,
        state: &mut SessionState,
        codec: Option<&Arc<dyn PhysicalExtensionCodec>>,
        allowed: bool,
    ) -> Result<()> {
        let (code, names): (Vec<_>, Vec<_>) = self
            .entries
            .iter()
            .cloned()
            .partition(|function| !function.definition.is_empty());
        for Function { kind, name, .. } in &names {
            let known = match *kind {
                SCALAR => state.scalar_functions().contains_key(name),
                AGGREGATE => state.aggregate_functions().contains_key(name),
                _ => state.window_functions().contains_key(name),
            };
            if !known {
                return exec_err!(
                    "The worker does not know the function '{name}'. Let the session send it (allow_python_udfs) to \
                     workers that accept it (--allow-python-udfs), or register it on every worker (--init)"
                );
            }
        }
        let Some(first) = code.first() else {
            return Ok(());
        };
        let Some(codec) = codec.filter(|_| allowed) else {
            return exec_err!(
                "The worker was sent the function '{}' as code and does not accept code: start it with \
                 --allow-python-udfs if everybody who can reach it may run code in it",
                first.name
            );
        };
        Self { entries: code }
            .resolve(codec.as_ref())?
            .register(state)
    }
}

/// Functions that are ready to be registered.
#[derive(Debug, Clone, Default)]
pub struct Decoded {
    scalar: Vec<Arc<ScalarUDF>>,
    aggregate: Vec<Arc<AggregateUDF>>,
    window: Vec<Arc<WindowUDF>>,
}

impl Decoded {
    /// Registers them in `state`.
    pub fn register(&self, state: &mut SessionState) -> Result<()> {
        for function in &self.scalar {
            state.register_udf(Arc::clone(function))?;
        }
        for function in &self.aggregate {
            state.register_udaf(Arc::clone(function))?;
        }
        for function in &self.window {
            state.register_udwf(Arc::clone(function))?;
        }
        Ok(())
    }
}

fn called(call: &str) -> Result<Function> {
    let unreadable = |e: &dyn std::fmt::Display| {
        exec_datafusion_err!("A function to register on the worker cannot be read: {e}")
    };
    let bytes = BASE64_STANDARD.decode(call).map_err(|e| unreadable(&e))?;
    let node = LogicalExprNode::decode(bytes.as_slice()).map_err(|e| unreadable(&e))?;
    let (kind, name, definition) = match node.expr_type {
        Some(ExprType::ScalarUdfExpr(e)) => (SCALAR, e.fun_name, e.fun_definition),
        Some(ExprType::AggregateUdfExpr(e)) => (AGGREGATE, e.fun_name, e.fun_definition),
        Some(ExprType::WindowExpr(e)) => match e.window_function {
            Some(WindowFunction::Udwf(name)) => (WINDOW, name, e.fun_definition),
            Some(WindowFunction::Udaf(name)) => (AGGREGATE, name, e.fun_definition),
            None => return Err(unreadable(&"it names no function")),
        },
        _ => return Err(unreadable(&"it is not the call of a function")),
    };
    Ok(Function {
        kind,
        name,
        definition: definition.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_functions_are_not_collected_and_a_header_survives() {
        let functions = Functions {
            entries: vec![Function {
                kind: SCALAR,
                name: "dbl".into(),
                definition: vec![0, 255, 7],
            }],
        };
        let mut headers = HeaderMap::new();
        headers.insert(&FUNCTIONS_HEADER, functions.to_header().unwrap().unwrap());
        assert_eq!(Functions::from_headers(&headers).unwrap(), functions);
        assert!(Functions::default().to_header().unwrap().is_none());
    }

    #[test]
    fn an_unknown_name_and_unwanted_code_are_refused() {
        let mut state = SessionStateBuilder::new().with_default_features().build();
        let by_name = Functions {
            entries: vec![Function {
                kind: SCALAR,
                name: "dbl".into(),
                definition: vec![],
            }],
        };
        assert!(
            by_name
                .register(&mut state, None, false)
                .unwrap_err()
                .to_string()
                .contains("--init")
        );
        let code = Functions {
            entries: vec![Function {
                kind: WINDOW,
                name: "w".into(),
                definition: vec![1],
            }],
        };
        assert!(
            code.register(&mut state, None, false)
                .unwrap_err()
                .to_string()
                .contains("--allow-python-udfs")
        );
    }
}
