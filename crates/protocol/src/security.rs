//! How an agent wants its callers to prove themselves, as its card declares it.

use std::collections::BTreeMap;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::lenient::{non_empty, null_default};

/// Schemes that must all be satisfied, each with its scopes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecurityRequirement {
    /// The names of the schemes, each with the scopes that it needs.
    #[serde(default, deserialize_with = "null_default")]
    pub schemes: BTreeMap<String, StringList>,
}

/// A list of texts, which 1.0 wraps in an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StringList {
    /// The texts.
    #[serde(default, deserialize_with = "null_default")]
    pub list: Vec<String>,
}

/// A way to authenticate, as a card declares it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum SecurityScheme {
    /// An API key in a header, a cookie or the query.
    #[serde(rename = "apiKeySecurityScheme")]
    ApiKey(ApiKeyScheme),
    /// A scheme of the `Authorization` header.
    #[serde(rename = "httpAuthSecurityScheme")]
    HttpAuth(HttpAuthScheme),
    /// OAuth 2.0.
    #[serde(rename = "oauth2SecurityScheme")]
    OAuth2(OAuth2Scheme),
    /// OpenID Connect.
    #[serde(rename = "openIdConnectSecurityScheme")]
    OpenIdConnect(OpenIdConnectScheme),
    /// A client certificate.
    #[serde(rename = "mtlsSecurityScheme")]
    MutualTls(MutualTlsScheme),
}

impl<'de> Deserialize<'de> for SecurityScheme {
    /// By hand, because a derived enum refuses members it does not know, and cards for two versions have some.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            #[serde(alias = "api_key_security_scheme")]
            api_key_security_scheme: Option<ApiKeyScheme>,
            #[serde(alias = "http_auth_security_scheme")]
            http_auth_security_scheme: Option<HttpAuthScheme>,
            #[serde(alias = "oauth2_security_scheme")]
            oauth2_security_scheme: Option<OAuth2Scheme>,
            #[serde(alias = "open_id_connect_security_scheme")]
            open_id_connect_security_scheme: Option<OpenIdConnectScheme>,
            #[serde(alias = "mtls_security_scheme")]
            mtls_security_scheme: Option<MutualTlsScheme>,
        }

        let members = Members::deserialize(from)?;
        let mut schemes = [
            members.api_key_security_scheme.map(Self::ApiKey),
            members.http_auth_security_scheme.map(Self::HttpAuth),
            members.oauth2_security_scheme.map(Self::OAuth2),
            members.open_id_connect_security_scheme.map(Self::OpenIdConnect),
            members.mtls_security_scheme.map(Self::MutualTls),
        ]
        .into_iter()
        .flatten();
        match (schemes.next(), schemes.next()) {
            (Some(scheme), None) => Ok(scheme),
            _ => Err(de::Error::custom("a security scheme is exactly one of the known kinds")),
        }
    }
}

/// The declaration of an API key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiKeyScheme {
    /// A text about the scheme for people.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `query`, `header` or `cookie`.
    pub location: String,
    /// The name of the header, cookie or parameter.
    pub name: String,
}

/// The declaration of a scheme of the `Authorization` header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpAuthScheme {
    /// A text about the scheme for people.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The name of the scheme, such as `Bearer`.
    pub scheme: String,
    /// The form of bearer tokens, such as `JWT`.
    #[serde(default, alias = "bearer_format", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub bearer_format: Option<String>,
}

/// The declaration of OAuth 2.0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2Scheme {
    /// A text about the scheme for people.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The flow that clients use.
    pub flows: OAuthFlows,
    /// The URL of the authorization server's metadata.
    #[serde(default, alias = "oauth2_metadata_url", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub oauth2_metadata_url: Option<String>,
}

/// The declaration of OpenID Connect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenIdConnectScheme {
    /// A text about the scheme for people.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The URL of the provider's discovery document.
    #[serde(alias = "open_id_connect_url")]
    pub open_id_connect_url: String,
}

/// The declaration of client certificates.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MutualTlsScheme {
    /// A text about the scheme for people.
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Exactly one flow in 1.0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OAuthFlows {
    /// The authorization code flow.
    #[serde(alias = "authorization_code")]
    AuthorizationCode(AuthorizationCodeFlow),
    /// The client credentials flow.
    #[serde(alias = "client_credentials")]
    ClientCredentials(ClientCredentialsFlow),
    /// The device authorization flow.
    #[serde(alias = "device_code")]
    DeviceCode(DeviceCodeFlow),
    /// Deprecated by the specification; still met in older cards.
    Implicit(ImplicitFlow),
    /// Deprecated by the specification; still met in older cards.
    Password(PasswordFlow),
}

macro_rules! flow {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $about:literal])* $field:ident : $alias:literal),* $(,)? } $($pkce:ident)?) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[doc = $about])*
                #[serde(default, alias = $alias, deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
                pub $field: String,
            )*
            /// The URL where clients refresh tokens.
            #[serde(default, alias = "refresh_url", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
            pub refresh_url: Option<String>,
            /// The scopes, each with a text about it.
            #[serde(default, deserialize_with = "null_default")]
            pub scopes: BTreeMap<String, String>,
            $(
                /// Whether clients must use PKCE.
                #[serde(default, alias = "pkce_required", deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
                pub $pkce: bool,
            )?
        }
    };
}

flow!(
    /// The authorization code flow of OAuth 2.0.
    AuthorizationCodeFlow {
        /// The URL where a person grants access.
        authorization_url: "authorization_url",
        /// The URL where clients get tokens.
        token_url: "token_url",
    } pkce_required
);
flow!(
    /// The client credentials flow of OAuth 2.0.
    ClientCredentialsFlow {
        /// The URL where clients get tokens.
        token_url: "token_url",
    }
);
flow!(
    /// The device authorization flow of OAuth 2.0.
    DeviceCodeFlow {
        /// The URL where a device gets its code.
        device_authorization_url: "device_authorization_url",
        /// The URL where clients get tokens.
        token_url: "token_url",
    }
);
flow!(
    /// The implicit flow of OAuth 2.0.
    ImplicitFlow {
        /// The URL where a person grants access.
        authorization_url: "authorization_url",
    }
);
flow!(
    /// The password flow of OAuth 2.0.
    PasswordFlow {
        /// The URL where clients get tokens.
        token_url: "token_url",
    }
);
