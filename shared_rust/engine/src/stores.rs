//! Object stores of a session, on the coordinator and on its way to the workers.
//!
//! A plan names files by URL; what it takes to open them (endpoint, credentials) lives in a session's registry, which
//! datafusion-distributed 4.0 does not send. Given as options instead of as a built store, the same description opens
//! the store on every side, and each session keeps its own: a worker makes one environment per description, never
//! shared between two, so that one session's credentials and cached files never serve another.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use datafusion::common::{
    DataFusionError, Result, config_datafusion_err, config_err, exec_datafusion_err,
};
use datafusion::execution::object_store::DefaultObjectStoreRegistry;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use http::{HeaderMap, HeaderName, HeaderValue};
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use object_store::gcp::GoogleConfigKey;
use object_store::{ClientConfigKey, ObjectStore, ObjectStoreScheme, parse_url_opts};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use url::{Position, Url};

/// Header that carries the stores as JSON.
pub static STORES_HEADER: HeaderName = HeaderName::from_static("x-df-strategies-stores");

/// Environments that a worker keeps; more descriptions than this in turn make it build some again.
const KEPT: usize = 64;

/// Stores that are ready for use.
pub type Opened = Vec<(Url, Arc<dyn ObjectStore>)>;

/// Options of each store by the URL of its root, for example `s3://bucket`.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stores(BTreeMap<String, BTreeMap<String, String>>);

impl std::fmt::Debug for Stores {
    /// Without the options, which hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Stores {
    /// Parses JSON, for example `{"s3://bucket": {"region": "eu-west-1"}}`; what is in it shows when it is opened.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text)
            .map_err(|e| config_datafusion_err!("The object stores are not valid: {e}"))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds what is wrong with a URL, an option or their combination.
    pub fn check(&self) -> Result<()> {
        self.open().map(|_| ())
    }

    /// Those of `self`, and those of `other` for URLs that `self` does not have.
    pub fn or(&self, other: &Self) -> Self {
        let mut all = other.0.clone();
        all.extend(self.0.clone());
        Self(all)
    }

    /// The stores themselves, by the URL of their root.
    pub fn open(&self) -> Result<Opened> {
        self.0
            .iter()
            .map(|(url, options)| open(url, options))
            .collect()
    }

    /// An environment with these stores.
    fn environment(&self, base: &RuntimeEnv) -> Result<Arc<RuntimeEnv>> {
        environment(&self.open()?, base)
    }

    /// The header, or nothing when there is nothing to send.
    pub fn to_header(&self) -> Result<Option<HeaderValue>> {
        if self.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_string(self).map_err(|e| DataFusionError::External(e.into()))?;
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            exec_datafusion_err!(
                "An object store has an option with characters beyond printable ASCII, which cannot be sent"
            )
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// Registers stores with `runtime`.
pub fn register(stores: &Opened, runtime: &RuntimeEnv) {
    for (url, store) in stores {
        runtime.register_object_store(url, Arc::clone(store));
    }
}

/// An environment with these stores, the memory of `base`, and caches of its own.
pub fn environment(stores: &Opened, base: &RuntimeEnv) -> Result<Arc<RuntimeEnv>> {
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::clone(&base.memory_pool))
        .with_object_store_registry(Arc::new(DefaultObjectStoreRegistry::new()))
        .build_arc()?;
    register(stores, &runtime);
    Ok(runtime)
}

fn open(text: &str, options: &BTreeMap<String, String>) -> Result<(Url, Arc<dyn ObjectStore>)> {
    let hint = "expected the root of a store, for example 's3://bucket', 'gs://bucket', 'az://container' or \
                'https://host'";
    let url = Url::parse(text).map_err(|e| {
        config_datafusion_err!("Object store '{text}' cannot be read ({e}): {hint}")
    })?;
    let (scheme, path) = ObjectStoreScheme::parse(&url)
        .map_err(|e| config_datafusion_err!("Object store '{text}' is not known ({e}): {hint}"))?;
    if !path.as_ref().is_empty() {
        return config_err!("Object store '{text}' has a path: {hint}");
    }
    let known: fn(&str) -> bool = match scheme {
        ObjectStoreScheme::AmazonS3 => |key| AmazonS3ConfigKey::from_str(key).is_ok(),
        ObjectStoreScheme::GoogleCloudStorage => |key| GoogleConfigKey::from_str(key).is_ok(),
        ObjectStoreScheme::MicrosoftAzure => |key| AzureConfigKey::from_str(key).is_ok(),
        ObjectStoreScheme::Http => |key| ClientConfigKey::from_str(key).is_ok(),
        _ => {
            return config_err!(
                "Object store '{text}' needs no registration or is not supported: {hint}"
            );
        }
    };
    // The parser below drops what it does not know, and a misspelt credential would fail much later.
    if let Some(key) = options.keys().find(|key| !known(key.as_str())) {
        return config_err!(
            "Object store '{text}' has no option '{key}': the names are those of the object_store crate, for example \
             'endpoint', 'region', 'access_key_id', 'secret_access_key', 'allow_http'"
        );
    }
    let (store, _) = parse_url_opts(&url, options)
        .map_err(|e| config_datafusion_err!("Object store '{text}' cannot be opened: {e}"))?;
    let root = Url::parse(&url[..Position::BeforePath]).map_err(|e| {
        config_datafusion_err!("Object store '{text}' cannot be read ({e}): {hint}")
    })?;
    Ok((root, Arc::from(store)))
}

/// The environments of one worker, by the stores that requests bring.
#[derive(Debug, Default)]
pub struct Environments {
    own: Stores,
    first: OnceLock<Arc<RuntimeEnv>>,
    made: Mutex<HashMap<Stores, Arc<RuntimeEnv>>>,
}

impl Environments {
    /// `own` are open to every request.
    pub fn new(own: Stores) -> Self {
        Self {
            own,
            ..Self::default()
        }
    }

    /// The environment for a request; `base` itself when neither the worker nor the request has stores.
    pub fn get(&self, headers: &HeaderMap, base: &Arc<RuntimeEnv>) -> Result<Arc<RuntimeEnv>> {
        let Some(value) = headers.get(&STORES_HEADER) else {
            if self.own.is_empty() {
                return Ok(Arc::clone(base));
            }
            if let Some(runtime) = self.first.get() {
                return Ok(Arc::clone(runtime));
            }
            let runtime = self.own.environment(base)?;
            return Ok(Arc::clone(self.first.get_or_init(|| runtime)));
        };
        let stores = Stores::from_json(value.as_bytes())?.or(&self.own);
        let mut made = self.made.lock();
        if let Some(runtime) = made.get(&stores) {
            return Ok(Arc::clone(runtime));
        }
        let runtime = stores.environment(base)?;
        if made.len() >= KEPT {
            made.clear();
        }
        made.insert(stores, Arc::clone(&runtime));
        Ok(runtime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUCKET: &str =
        r#"{"s3://b": {"region": "eu-west-1", "access_key_id": "A", "secret_access_key": "S"}}"#;

    #[test]
    fn what_cannot_be_opened_is_refused_with_its_name() {
        for (bad, named) in [
            (r#"{"nonsense": {}}"#, "nonsense"),
            (r#"{"ftp://b": {}}"#, "ftp://b"),
            (r#"{"s3://b/path": {}}"#, "has a path"),
            (r#"{"file:///tmp": {}}"#, "file:///tmp"),
            (r#"{"s3://b": {"acess_key": "x"}}"#, "acess_key"),
        ] {
            let stores = Stores::from_json(bad.as_bytes());
            let message = stores.and_then(|s| s.check()).unwrap_err().to_string();
            assert!(message.contains(named), "{bad}: {message}");
        }
    }

    #[test]
    fn each_description_has_an_environment_of_its_own() {
        let base: Arc<RuntimeEnv> = Arc::default();
        let environments = Environments::default();
        let headers = |json: &str| {
            let mut headers = HeaderMap::new();
            let value = Stores::from_json(json.as_bytes())
                .unwrap()
                .to_header()
                .unwrap();
            headers.insert(&STORES_HEADER, value.unwrap());
            headers
        };
        let one = environments.get(&headers(BUCKET), &base).unwrap();
        let again = environments.get(&headers(BUCKET), &base).unwrap();
        let other = environments
            .get(&headers(&BUCKET.replace("\"S\"", "\"T\"")), &base)
            .unwrap();
        assert!(Arc::ptr_eq(&one, &again));
        assert!(!Arc::ptr_eq(&one, &other));
        let url = Url::parse("s3://b/x").unwrap();
        assert!(one.object_store(&url).is_ok());
        assert!(base.object_store(&url).is_err());
        let none = environments.get(&HeaderMap::new(), &base).unwrap();
        assert!(Arc::ptr_eq(&none, &base));
    }
}
