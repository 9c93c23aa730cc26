//! The URL of a database: what it asks for, and how it is shown, which is without its password.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::io::store::StoreError;

/// So long a server may take to be reached, where the URL does not say.
const REACHED: Duration = Duration::from_secs(10);
/// So long what was sent may stay without an answer of the server's system before the connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(30);
/// What the server lists us as, where the URL does not say.
const NAME: &str = "persxfer";
/// What is said to whoever asks for TLS.
const NO_TLS: &str = "persxfer speaks to PostgreSQL without TLS: use a local socket or a private network, or a tunnel \
     (ssh -L, stunnel) with sslmode=disable";

/// The address of a database.
pub(super) fn parse(url: &str) -> Result<Config, StoreError> {
    let refuse = |detail: String| StoreError::Open { place: "postgresql://".to_owned(), detail };
    let mut config: Config = url.parse().map_err(|e: tokio_postgres::Error| refuse(misread(&e)))?;
    // A mode that is not known is a stricter one: verify-ca, verify-full.
    if config.get_ssl_mode() == SslMode::Require {
        return Err(StoreError::Open { place: shown(&config), detail: NO_TLS.to_owned() });
    }
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(StoreError::Open { place: shown(&config), detail: "its URL names no host".to_owned() });
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(REACHED);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config.keepalives_idle(SILENCE);
    if config.get_application_name().is_none() {
        config.application_name(NAME);
    }
    Ok(config)
}

/// Why a URL cannot be read. What stands in it is not repeated: a password that was not quoted may be part of anything.
fn misread(error: &tokio_postgres::Error) -> String {
    let why = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    match why.strip_prefix("invalid value for option ") {
        Some(option) if option.contains("sslmode") => NO_TLS.to_owned(),
        Some(option) => format!("the value of {option} in its URL cannot be"),
        None => {
            "its URL cannot be read; it is like postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and what is no letter \
             or digit in a password is written as %XX"
                .to_owned()
        }
    }
}

/// Where it is, without a password.
pub(super) fn shown(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |n: usize| ports.get(n).or_else(|| ports.first()).copied().unwrap_or(5432);
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let mut folder = None;
    let mut hosts = Vec::new();
    for (n, host) in config.get_hosts().iter().enumerate() {
        match host {
            Host::Tcp(name) => hosts.push(format!("{name}:{}", port(n))),
            Host::Unix(path) => folder = Some(format!("?host={}&port={}", path.display(), port(n))),
        }
    }
    if config.get_hosts().is_empty() {
        hosts.extend(config.get_hostaddrs().iter().enumerate().map(|(n, ip)| format!("{ip}:{}", port(n))));
    }
    format!("postgresql://{user}{}/{database}{}", hosts.join(","), folder.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        parse(url).expect_err("a URL that cannot be").to_string()
    }

    #[test]
    fn a_place_is_shown_without_its_password() {
        let shown = |url: &str| shown(&parse(url).expect("a URL"));
        assert_eq!(shown("postgres://u:secret@h/d"), "postgresql://u@h:5432/d");
        assert_eq!(shown("postgresql://h:7,i:8/d?user=u&password=secret"), "postgresql://u@h:7,i:8/d");
        assert_eq!(
            shown("postgresql:///d?host=/run/postgresql&user=u&port=5433"),
            "postgresql://u@/d?host=/run/postgresql&port=5433"
        );
    }

    #[test]
    fn tls_is_refused_and_not_left_out() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let said = refused(&format!("postgres://u:secret@h/d?sslmode={mode}"));
            assert!(said.contains("without TLS") && !said.contains("secret"), "{said}");
        }
        assert!(parse("postgres://h/d?sslmode=disable").is_ok());
    }

    #[test]
    fn what_cannot_be_read_is_not_repeated() {
        for url in [
            "postgres://u:secret@h:port/d",
            "postgres://h/d?secret",
            "postgres://h/d?secret=1",
            "postgres:///d?password=secret",
        ] {
            let said = refused(url);
            assert!(!said.contains("ret"), "{url}: {said}");
        }
        assert!(refused("postgres://h/d?connect_timeout=never").contains("connect_timeout"));
    }
}
