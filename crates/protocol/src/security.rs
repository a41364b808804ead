//! How an agent wants its callers to prove themselves, as its card declares it.

use std::collections::BTreeMap;

use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use crate::lenient::{non_empty, null_default};

/// Schemes that must all be satisfied, each with its scopes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecurityRequirement {
    #[serde(default, deserialize_with = "null_default")]
    pub schemes: BTreeMap<String, StringList>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StringList {
    #[serde(default, deserialize_with = "null_default")]
    pub list: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum SecurityScheme {
    #[serde(rename = "apiKeySecurityScheme")]
    ApiKey(ApiKeyScheme),
    #[serde(rename = "httpAuthSecurityScheme")]
    HttpAuth(HttpAuthScheme),
    #[serde(rename = "oauth2SecurityScheme")]
    OAuth2(OAuth2Scheme),
    #[serde(rename = "openIdConnectSecurityScheme")]
    OpenIdConnect(OpenIdConnectScheme),
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiKeyScheme {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `query`, `header` or `cookie`.
    pub location: String,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpAuthScheme {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub scheme: String,
    #[serde(default, alias = "bearer_format", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub bearer_format: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OAuth2Scheme {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub flows: OAuthFlows,
    #[serde(default, alias = "oauth2_metadata_url", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub oauth2_metadata_url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenIdConnectScheme {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(alias = "open_id_connect_url")]
    pub open_id_connect_url: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MutualTlsScheme {
    #[serde(default, deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Exactly one flow in 1.0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OAuthFlows {
    #[serde(alias = "authorization_code")]
    AuthorizationCode(AuthorizationCodeFlow),
    #[serde(alias = "client_credentials")]
    ClientCredentials(ClientCredentialsFlow),
    #[serde(alias = "device_code")]
    DeviceCode(DeviceCodeFlow),
    /// Deprecated by the specification; still met in older cards.
    Implicit(ImplicitFlow),
    /// Deprecated by the specification; still met in older cards.
    Password(PasswordFlow),
}

macro_rules! flow {
    ($name:ident { $($field:ident : $alias:literal),* $(,)? } $($pkce:ident)?) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                #[serde(default, alias = $alias, deserialize_with = "null_default", skip_serializing_if = "String::is_empty")]
                pub $field: String,
            )*
            #[serde(default, alias = "refresh_url", deserialize_with = "non_empty", skip_serializing_if = "Option::is_none")]
            pub refresh_url: Option<String>,
            #[serde(default, deserialize_with = "null_default")]
            pub scopes: BTreeMap<String, String>,
            $(
                #[serde(default, alias = "pkce_required", deserialize_with = "null_default", skip_serializing_if = "std::ops::Not::not")]
                pub $pkce: bool,
            )?
        }
    };
}

flow!(AuthorizationCodeFlow { authorization_url: "authorization_url", token_url: "token_url" } pkce_required);
flow!(ClientCredentialsFlow { token_url: "token_url" });
flow!(DeviceCodeFlow { device_authorization_url: "device_authorization_url", token_url: "token_url" });
flow!(ImplicitFlow { authorization_url: "authorization_url" });
flow!(PasswordFlow { token_url: "token_url" });
