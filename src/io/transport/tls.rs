//! TLS: one rustls configuration a process (RFC 8446, TLS 1.2 at least), shared by all clients and lanes.
//!
//! The roots that the system trusts are read when the first certificate is to be judged, so that a plain HTTP download
//! does not pay for them.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme};

use super::settings::{Identity, NetConfigError, NetSettings, Roots, Verify};

/// Neither files nor folders of this system name anybody to trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this system names no certificate authorities to trust; install them, or give a file with --cacert")]
pub(super) struct NoRoots;

const HTTP_1_1: &[u8] = b"http/1.1";

/// The configuration for all connections.
pub(super) fn config(settings: &NetSettings) -> Result<ClientConfig, NetConfigError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let trust = trust(settings, &provider)?;
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| NetConfigError::Tls { detail: e.to_string() })?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Judge { trust, provider }));
    let mut config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let (chain, key) = identity_of(identity)?;
            let bad =
                |e: rustls::Error| NetConfigError::Identity { path: identity.cert.clone(), detail: e.to_string() };
            builder.with_client_auth_cert(chain, key).map_err(bad)?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), HTTP_1_1.to_vec()];
    Ok(config)
}

/// A server that is not offered HTTP/2 speaks HTTP/1.1.
pub(super) fn without_http_2(config: &mut ClientConfig) {
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
}

/// Judges servers' certificates.
#[derive(Debug)]
struct Judge {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Trust {
    Anybody,
    System(OnceLock<Option<rustls_platform_verifier::Verifier>>),
    Listed { verifier: Arc<WebPkiServerVerifier>, exact: Vec<CertificateDer<'static>> },
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.trust {
            Trust::Anybody => Ok(ServerCertVerified::assertion()),
            Trust::System(loaded) => loaded
                .get_or_init(|| rustls_platform_verifier::Verifier::new(Arc::clone(&self.provider)).ok())
                .as_ref()
                .ok_or_else(|| rustls::Error::Other(OtherError(Arc::new(NoRoots))))?
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now),
            Trust::Listed { verifier, exact } => verifier
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .or_else(|e| listed_itself(e, end_entity, exact, server_name)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A server that shows the very certificate that `--cacert` lists: a self-signed one, as `openssl req -x509` makes them.
/// The verifier refuses it for being an authority's, after it has checked the dates; what is left is the name.
fn listed_itself(
    error: rustls::Error,
    shown: &CertificateDer<'_>,
    exact: &[CertificateDer<'static>],
    name: &ServerName<'_>,
) -> Result<ServerCertVerified, rustls::Error> {
    if !is_authority_itself(&error) || !exact.iter().any(|listed| listed == shown) {
        return Err(error);
    }
    rustls::client::verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
    Ok(ServerCertVerified::assertion())
}

/// The only fault is that an authority's own certificate was shown.
pub(super) fn is_authority_itself(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    // The type is that of a crate below rustls which rustls does not export.
    format!("{other:?}").contains("CaUsedAsEndEntity")
}

fn trust(settings: &NetSettings, provider: &Arc<CryptoProvider>) -> Result<Trust, NetConfigError> {
    let Roots::File { path, origin } = &settings.roots else {
        return Ok(match settings.verify {
            Verify::Certificates => Trust::System(OnceLock::new()),
            Verify::Nothing => Trust::Anybody,
        });
    };
    // Read even where nothing is judged: a file that was named and cannot be used is an error.
    let exact = certificates(path, origin)?;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(exact.iter().cloned());
    if store.is_empty() {
        return Err(NetConfigError::Empty { origin, path: path.clone(), wanted: "certificate that can be used" });
    }
    if settings.verify == Verify::Nothing {
        return Ok(Trust::Anybody);
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
        .build()
        .map_err(|e| NetConfigError::Tls { detail: e.to_string() })?;
    Ok(Trust::Listed { verifier, exact })
}

fn identity_of(identity: &Identity) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), NetConfigError> {
    let chain = certificates(&identity.cert, "--cert")?;
    let (path, origin) = identity.key.as_deref().map_or((identity.cert.as_path(), "--cert"), |key| (key, "--key"));
    let wanted = "private key without a passphrase";
    let key = key_in(&read(path, origin)?).ok_or(NetConfigError::Empty { origin, path: path.to_owned(), wanted })?;
    Ok((chain, key))
}

fn certificates(path: &Path, origin: &'static str) -> Result<Vec<CertificateDer<'static>>, NetConfigError> {
    let found = certificates_in(&read(path, origin)?);
    if found.is_empty() {
        return Err(NetConfigError::Empty { origin, path: path.to_owned(), wanted: "certificate" });
    }
    Ok(found)
}

/// The certificates of a PEM file; none where one of them is damaged or empty.
fn certificates_in(text: &[u8]) -> Vec<CertificateDer<'static>> {
    let found = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>().unwrap_or_default();
    if found.iter().any(|certificate| certificate.is_empty()) { Vec::new() } else { found }
}

/// The first private key of a PEM file.
fn key_in(text: &[u8]) -> Option<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_slice(text).ok()
}

fn read(path: &Path, origin: &'static str) -> Result<Vec<u8>, NetConfigError> {
    std::fs::read(path).map_err(|e| NetConfigError::File { origin, path: path.to_owned(), detail: e.to_string() })
}

#[cfg(test)]
mod fuzzed;
