//! Security schemes as 0.3 cards declare them: told apart by `type`, scopes directly under the scheme's name.

use std::collections::BTreeMap;

use chancery_protocol::lenient::null_default;
use chancery_protocol::{
    ApiKeyScheme, AuthorizationCodeFlow, ClientCredentialsFlow, HttpAuthScheme, ImplicitFlow, MutualTlsScheme, OAuth2Scheme,
    OAuthFlows, OpenIdConnectScheme, PasswordFlow, SecurityRequirement, SecurityScheme, StringList,
};
use serde::{Deserialize, Serialize};

/// Scheme names with the scopes each needs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Requirement {
    Plain(BTreeMap<String, Vec<String>>),
    /// As the JSON of the 0.3 proto has it; some REST servers answer so.
    Wrapped(SecurityRequirement),
}

pub(super) fn requirements(model: &[SecurityRequirement]) -> Vec<Requirement> {
    let scopes = |(name, scopes): (&String, &StringList)| (name.clone(), scopes.list.clone());
    model.iter().map(|requirement| Requirement::Plain(requirement.schemes.iter().map(scopes).collect())).collect()
}

pub(super) fn to_model(requirements: Vec<Requirement>) -> Vec<SecurityRequirement> {
    let one = |requirement| match requirement {
        Requirement::Plain(all) => {
            SecurityRequirement { schemes: all.into_iter().map(|(name, list)| (name, StringList { list })).collect() }
        }
        Requirement::Wrapped(requirement) => requirement,
    };
    requirements.into_iter().map(one).collect()
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub(super) enum Scheme {
    #[serde(rename = "apiKey")]
    ApiKey {
        #[serde(rename = "in")]
        location: String,
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "http")]
    Http {
        scheme: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bearer_format: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "oauth2")]
    OAuth2 {
        flows: Box<Flows>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        oauth2_metadata_url: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "openIdConnect")]
    OpenIdConnect {
        open_id_connect_url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
    #[serde(rename = "mutualTLS")]
    MutualTls {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
    },
}

/// Any number of flows side by side; 1.0 has exactly one.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Flows {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authorization_code: Option<AuthorizationCodeFlow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_credentials: Option<ClientCredentialsFlow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    implicit: Option<ImplicitFlow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<PasswordFlow>,
}

impl From<&SecurityScheme> for Scheme {
    fn from(scheme: &SecurityScheme) -> Self {
        match scheme.clone() {
            SecurityScheme::ApiKey(ApiKeyScheme { description, location, name }) => Self::ApiKey { location, name, description },
            SecurityScheme::HttpAuth(HttpAuthScheme { description, scheme, bearer_format }) => {
                Self::Http { scheme, bearer_format, description }
            }
            SecurityScheme::OAuth2(OAuth2Scheme { description, flows, oauth2_metadata_url }) => {
                Self::OAuth2 { flows: Box::new(flows.into()), oauth2_metadata_url, description }
            }
            SecurityScheme::OpenIdConnect(OpenIdConnectScheme { description, open_id_connect_url }) => {
                Self::OpenIdConnect { open_id_connect_url, description }
            }
            SecurityScheme::MutualTls(MutualTlsScheme { description }) => Self::MutualTls { description },
        }
    }
}

impl From<OAuthFlows> for Flows {
    fn from(flows: OAuthFlows) -> Self {
        match flows {
            OAuthFlows::AuthorizationCode(flow) => {
                // 0.3 has no word for it.
                let flow = AuthorizationCodeFlow { pkce_required: false, ..flow };
                Self { authorization_code: Some(flow), ..Self::default() }
            }
            OAuthFlows::ClientCredentials(flow) => Self { client_credentials: Some(flow), ..Self::default() },
            OAuthFlows::Implicit(flow) => Self { implicit: Some(flow), ..Self::default() },
            OAuthFlows::Password(flow) => Self { password: Some(flow), ..Self::default() },
            // 0.3 does not know this flow: what is left says OAuth without saying how.
            OAuthFlows::DeviceCode(_) => Self::default(),
        }
    }
}

impl Scheme {
    /// Nothing for OAuth without a flow: 1.0 cannot say it, and a requirement that names it then fails closed.
    pub(super) fn into_model(self) -> Option<SecurityScheme> {
        Some(match self {
            Self::ApiKey { location, name, description } => SecurityScheme::ApiKey(ApiKeyScheme { description, location, name }),
            Self::Http { scheme, bearer_format, description } => {
                SecurityScheme::HttpAuth(HttpAuthScheme { description, scheme, bearer_format })
            }
            Self::OAuth2 { flows, oauth2_metadata_url, description } => {
                SecurityScheme::OAuth2(OAuth2Scheme { description, flows: flows.first()?, oauth2_metadata_url })
            }
            Self::OpenIdConnect { open_id_connect_url, description } => {
                SecurityScheme::OpenIdConnect(OpenIdConnectScheme { description, open_id_connect_url })
            }
            Self::MutualTls { description } => SecurityScheme::MutualTls(MutualTlsScheme { description }),
        })
    }
}

impl Flows {
    /// Of several flows the one we would rather use.
    fn first(self) -> Option<OAuthFlows> {
        let code = self.authorization_code.map(OAuthFlows::AuthorizationCode);
        let credentials = self.client_credentials.map(OAuthFlows::ClientCredentials);
        let implicit = self.implicit.map(OAuthFlows::Implicit);
        code.or(credentials).or(implicit).or(self.password.map(OAuthFlows::Password))
    }
}

/// The schemes of a card by name, as the card's reader and writer use them.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Schemes(#[serde(deserialize_with = "null_default")] BTreeMap<String, Declared>);

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Declared {
    Tagged(Scheme),
    /// As the JSON of the 0.3 proto has it; some REST servers answer so.
    Wrapped(SecurityScheme),
}

impl Schemes {
    pub(super) fn of(model: &BTreeMap<String, SecurityScheme>) -> Self {
        Self(model.iter().map(|(name, scheme)| (name.clone(), Declared::Tagged(scheme.into()))).collect())
    }

    pub(super) fn into_model(self) -> BTreeMap<String, SecurityScheme> {
        let one = |declared| match declared {
            Declared::Tagged(scheme) => scheme.into_model(),
            Declared::Wrapped(scheme) => Some(scheme),
        };
        self.0.into_iter().filter_map(|(name, declared)| Some((name, one(declared)?))).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
