//! The URL others reach this node at.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

use super::plain_faults::high_port;

/// An absolute http or https URL, without a slash at its end, that paths can be added to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicUrl(Url);

impl PublicUrl {
    /// The URL with a path added to it.
    pub fn join(&self, path: &str) -> String {
        format!("{self}{path}")
    }

    /// Returns the URL.
    pub fn url(&self) -> &Url {
        &self.0
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

impl TryFrom<String> for PublicUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let not_a_url = |fault| high_port(&text).unwrap_or_else(|| format!("not a URL: {fault}"));
        let mut url = Url::parse(&text).map_err(not_a_url)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("must begin with http:// or https://, not {}:", url.scheme()));
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
            return Err("must have no user, query or fragment".to_owned());
        }
        // So that one URL in two spellings is one value.
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }
}

impl From<PublicUrl> for String {
    fn from(url: PublicUrl) -> Self {
        url.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_added_with_one_slash() {
        for (text, joined) in [
            ("http://h:1", "http://h:1/agents/a"),
            ("http://h:1/", "http://h:1/agents/a"),
            ("https://h/deep/", "https://h/deep/agents/a"),
        ] {
            let url = PublicUrl::try_from(text.to_owned()).unwrap();
            assert_eq!(url.join("/agents/a"), joined);
            assert_eq!(PublicUrl::try_from(url.to_string()).as_ref(), Ok(&url));
        }
    }

    #[test]
    fn what_paths_cannot_be_added_to_is_refused() {
        for text in ["", "h:1", "/x", "ftp://h", "http://h?x", "http://h#x", "http://u:p@h"] {
            assert!(PublicUrl::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
