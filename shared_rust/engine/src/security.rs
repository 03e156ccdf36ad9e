//! Who may talk to whom: TLS and a bearer token, on both sides.

use datafusion::common::{Result, config_err};
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

/// What a client presents and expects. All material is PEM text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ClientSecurity {
    /// Bearer token.
    pub token: Option<String>,
    /// Certificate authority of the workers.
    pub ca: Option<String>,
    /// Own certificate.
    pub cert: Option<String>,
    /// Own private key.
    pub key: Option<String>,
    /// Expected name.
    pub domain: Option<String>,
}

impl ClientSecurity {
    /// The TLS set-up, or `None` for plain text.
    pub fn tls(&self) -> Result<Option<ClientTlsConfig>> {
        let Some(ca) = &self.ca else {
            if self.cert.is_some() || self.key.is_some() {
                return config_err!(
                    "A client certificate was given without a certificate authority: give tls_ca as well"
                );
            }
            return Ok(None);
        };
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => tls = tls.identity(Identity::from_pem(cert, key)),
            (None, None) => {}
            _ => {
                return config_err!(
                    "Mutual TLS needs both tls_cert and tls_key, only one of them was given"
                );
            }
        }
        if let Some(domain) = &self.domain {
            tls = tls.domain_name(domain);
        }
        Ok(Some(tls))
    }
}

/// What a worker presents and asks for. All material is PEM text.
#[derive(Debug, Clone, Default)]
pub struct ServerSecurity {
    /// Bearer token that clients must send.
    pub token: Option<String>,
    /// Own certificate.
    pub cert: Option<String>,
    /// Own private key.
    pub key: Option<String>,
    /// Certificate authority of the clients, for mutual TLS.
    pub client_ca: Option<String>,
}

impl ServerSecurity {
    /// The TLS set-up, or `None` for plain text.
    pub fn tls(&self) -> Result<Option<ServerTlsConfig>> {
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let mut tls = ServerTlsConfig::new().identity(Identity::from_pem(cert, key));
                if let Some(ca) = &self.client_ca {
                    tls = tls.client_ca_root(Certificate::from_pem(ca));
                }
                Ok(Some(tls))
            }
            (None, None) if self.client_ca.is_none() => Ok(None),
            _ => config_err!("TLS needs both tls_cert and tls_key; tls_client_ca adds to them"),
        }
    }

    /// Whether a stranger on the network is kept out.
    pub fn is_protected(&self) -> bool {
        self.token.is_some() || self.client_ca.is_some()
    }
}
