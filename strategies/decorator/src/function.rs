//! Scalar functions of the host, called from this side.
//!
//! A call through datafusion-ffi 55 carries the session's options, and the other library refuses namespaces it does
//! not know: `distributed.*` would make every call fail. The options of extensions are left out of such calls.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::config::{ConfigOptions, Extensions};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, WindowUDF,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::{PhysicalExtensionCodec, PhysicalProtoConverterExtension};

#[derive(Debug)]
struct HostFunction(Arc<ScalarUDF>);

impl PartialEq for HostFunction {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for HostFunction {}

impl Hash for HostFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// `function` of the host, such that it can be called with this side's options.
pub fn adopt(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(HostFunction(function)))
}

/// What [`adopt`] was given.
fn original(function: &ScalarUDF) -> &ScalarUDF {
    function
        .inner()
        .downcast_ref::<HostFunction>()
        .map_or(function, |adopted| adopted.0.as_ref())
}

impl ScalarUDFImpl for HostFunction {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.0.inner().return_type(arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.0.inner().coerce_types(arguments)
    }

    fn short_circuits(&self) -> bool {
        self.0.short_circuits()
    }

    fn invoke_with_args(&self, mut arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut options = ConfigOptions::clone(&arguments.config_options);
        options.extensions = Extensions::default();
        arguments.config_options = Arc::new(options);
        self.0.invoke_with_args(arguments)
    }
}

/// The host's codec for functions, seen from this side: adopts what it decodes, and hands back what it adopted.
#[derive(Debug)]
pub struct HostFunctionCodec(pub Arc<dyn PhysicalExtensionCodec>);

impl PhysicalExtensionCodec for HostFunctionCodec {
    fn try_decode(
        &self,
        payload: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.try_decode(payload, inputs, context, converter)
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buffer: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        self.0.try_encode(node, buffer, converter)
    }

    fn try_decode_udf(&self, name: &str, payload: &[u8]) -> Result<Arc<ScalarUDF>> {
        self.0.try_decode_udf(name, payload).map(adopt)
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode_udf(original(function), buffer)
    }

    fn try_decode_udaf(&self, name: &str, payload: &[u8]) -> Result<Arc<AggregateUDF>> {
        self.0.try_decode_udaf(name, payload)
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode_udaf(function, buffer)
    }

    fn try_decode_udwf(&self, name: &str, payload: &[u8]) -> Result<Arc<WindowUDF>> {
        self.0.try_decode_udwf(name, payload)
    }

    fn try_encode_udwf(&self, function: &WindowUDF, buffer: &mut Vec<u8>) -> Result<()> {
        self.0.try_encode_udwf(function, buffer)
    }
}
