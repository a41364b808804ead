//! SWP through the guard: the same rules, the same addresses, and frames instead of HTTP.

use std::sync::Arc;

use rustls::ClientConfig;
use url::Url;

use super::connect::reach;
use super::dial::Stream;
use super::{Guard, GuardError, check_url, tls};
use crate::terms::ClientCertificate;

/// An address of SWP as the rules know it, which are about the web: without TLS like http, with it like https. `None` for what is
/// neither.
pub fn as_web(url: &str) -> Option<Url> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "swp" => "http",
        "swps" => "https",
        _ => return None,
    };
    let mut web = Url::parse(&format!("{scheme}://{rest}")).ok()?;
    // The ports that the web has for these are not SWP's.
    if Url::parse(url).ok()?.port().is_none() {
        web.set_port(Some(chancery_wire::swp::PORT)).ok()?;
    }
    Some(web)
}

/// How one SWP peer is reached. Over TLS it is 1.3, and we show who we are if we have something to show.
#[derive(Clone, Debug)]
pub struct SlimWay {
    guard: Guard,
    web: Url,
    tls: Option<Arc<ClientConfig>>,
}

impl SlimWay {
    /// Nothing is dialled yet, but an address that may not be called is refused here.
    pub fn new(guard: &Guard, url: &str, own: Option<&ClientCertificate>) -> Result<Self, GuardError> {
        let web = as_web(url).ok_or_else(|| GuardError::Request("it is no swp or swps URL".to_owned()))?;
        let target = check_url(web.as_str(), guard)?;
        let tls = target.is_tls().then(|| tls::slim(&guard.rules.trust, own)).transpose()?;
        Ok(Self { guard: guard.clone(), web, tls })
    }

    pub async fn open(&self) -> Result<Box<dyn Stream>, GuardError> {
        let target = check_url(self.web.as_str(), &self.guard)?;
        let (stream, _) = reach(&self.guard, &target).await?;
        match &self.tls {
            None => Ok(stream),
            Some(config) => {
                let within = self.guard.config().tls();
                Ok(Box::new(tls::shake_hands(Arc::clone(config), &target, within, stream).await?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_its_host_and_has_swps_port_where_it_names_none() {
        for (url, web) in [
            ("swp://127.0.0.1:7421/echo", Some("http://127.0.0.1:7421/echo")),
            ("swps://a.example", Some("https://a.example:7777/")),
            ("swp://a.example:80", Some("http://a.example/")),
            ("http://a.example", None),
            ("swp:a.example", None),
            ("", None),
        ] {
            assert_eq!(as_web(url).as_ref().map(Url::as_str), web, "{url}");
        }
    }
}
