//! The security schemes a card declares.

use std::collections::BTreeMap;

use chancery_protocol::{
    ApiKeyScheme, AuthorizationCodeFlow, ClientCredentialsFlow, DeviceCodeFlow, Error, HttpAuthScheme, ImplicitFlow,
    MutualTlsScheme, OAuth2Scheme, OAuthFlows, OpenIdConnectScheme, PasswordFlow, SecurityRequirement, SecurityScheme,
    StringList,
};

use super::proto::{self, o_auth_flows::Flow, security_scheme::Scheme};
use crate::pb::fields::{Within, optional, or_empty, required};

pub(in crate::pb) fn read_requirement(requirement: proto::SecurityRequirement) -> SecurityRequirement {
    let schemes = requirement.schemes.into_iter().map(|(name, scopes)| (name, StringList { list: scopes.list }));
    SecurityRequirement { schemes: schemes.collect() }
}

pub(in crate::pb) fn write_requirement(requirement: &SecurityRequirement) -> proto::SecurityRequirement {
    let schemes = requirement.schemes.iter();
    let schemes = schemes.map(|(name, scopes)| (name.clone(), proto::StringList { list: scopes.list.clone() }));
    proto::SecurityRequirement { schemes: schemes.collect() }
}

pub(in crate::pb) fn read_schemes(
    schemes: BTreeMap<String, proto::SecurityScheme>,
) -> Result<BTreeMap<String, SecurityScheme>, Error> {
    schemes.into_iter().map(|(name, scheme)| Ok((name.clone(), read_scheme(scheme).within(&name)?))).collect()
}

pub(in crate::pb) fn write_schemes(schemes: &BTreeMap<String, SecurityScheme>) -> BTreeMap<String, proto::SecurityScheme> {
    schemes.iter().map(|(name, scheme)| (name.clone(), write_scheme(scheme))).collect()
}

fn read_scheme(scheme: proto::SecurityScheme) -> Result<SecurityScheme, Error> {
    Ok(match required(scheme.scheme, "scheme")? {
        Scheme::ApiKeySecurityScheme(scheme) => SecurityScheme::ApiKey(ApiKeyScheme {
            description: optional(scheme.description),
            location: scheme.location,
            name: scheme.name,
        }),
        Scheme::HttpAuthSecurityScheme(scheme) => SecurityScheme::HttpAuth(HttpAuthScheme {
            description: optional(scheme.description),
            scheme: scheme.scheme,
            bearer_format: optional(scheme.bearer_format),
        }),
        Scheme::Oauth2SecurityScheme(scheme) => SecurityScheme::OAuth2(OAuth2Scheme {
            description: optional(scheme.description),
            flows: read_flow(required(scheme.flows.and_then(|flows| flows.flow), "flows")?),
            oauth2_metadata_url: optional(scheme.oauth2_metadata_url),
        }),
        Scheme::OpenIdConnectSecurityScheme(scheme) => SecurityScheme::OpenIdConnect(OpenIdConnectScheme {
            description: optional(scheme.description),
            open_id_connect_url: scheme.open_id_connect_url,
        }),
        Scheme::MtlsSecurityScheme(scheme) => {
            SecurityScheme::MutualTls(MutualTlsScheme { description: optional(scheme.description) })
        }
    })
}

fn write_scheme(scheme: &SecurityScheme) -> proto::SecurityScheme {
    let scheme = match scheme {
        SecurityScheme::ApiKey(scheme) => Scheme::ApiKeySecurityScheme(proto::ApiKeySecurityScheme {
            description: or_empty(scheme.description.as_ref()),
            location: scheme.location.clone(),
            name: scheme.name.clone(),
        }),
        SecurityScheme::HttpAuth(scheme) => Scheme::HttpAuthSecurityScheme(proto::HttpAuthSecurityScheme {
            description: or_empty(scheme.description.as_ref()),
            scheme: scheme.scheme.clone(),
            bearer_format: or_empty(scheme.bearer_format.as_ref()),
        }),
        SecurityScheme::OAuth2(scheme) => Scheme::Oauth2SecurityScheme(proto::OAuth2SecurityScheme {
            description: or_empty(scheme.description.as_ref()),
            flows: Some(proto::OAuthFlows { flow: Some(write_flow(&scheme.flows)) }),
            oauth2_metadata_url: or_empty(scheme.oauth2_metadata_url.as_ref()),
        }),
        SecurityScheme::OpenIdConnect(scheme) => Scheme::OpenIdConnectSecurityScheme(proto::OpenIdConnectSecurityScheme {
            description: or_empty(scheme.description.as_ref()),
            open_id_connect_url: scheme.open_id_connect_url.clone(),
        }),
        SecurityScheme::MutualTls(scheme) => {
            Scheme::MtlsSecurityScheme(proto::MutualTlsSecurityScheme { description: or_empty(scheme.description.as_ref()) })
        }
    };
    proto::SecurityScheme { scheme: Some(scheme) }
}

fn read_flow(flow: Flow) -> OAuthFlows {
    match flow {
        Flow::AuthorizationCode(flow) => OAuthFlows::AuthorizationCode(AuthorizationCodeFlow {
            authorization_url: flow.authorization_url,
            token_url: flow.token_url,
            refresh_url: optional(flow.refresh_url),
            scopes: flow.scopes,
            pkce_required: flow.pkce_required,
        }),
        Flow::ClientCredentials(flow) => OAuthFlows::ClientCredentials(ClientCredentialsFlow {
            token_url: flow.token_url,
            refresh_url: optional(flow.refresh_url),
            scopes: flow.scopes,
        }),
        Flow::DeviceCode(flow) => OAuthFlows::DeviceCode(DeviceCodeFlow {
            device_authorization_url: flow.device_authorization_url,
            token_url: flow.token_url,
            refresh_url: optional(flow.refresh_url),
            scopes: flow.scopes,
        }),
        Flow::Implicit(flow) => OAuthFlows::Implicit(ImplicitFlow {
            authorization_url: flow.authorization_url,
            refresh_url: optional(flow.refresh_url),
            scopes: flow.scopes,
        }),
        Flow::Password(flow) => OAuthFlows::Password(PasswordFlow {
            token_url: flow.token_url,
            refresh_url: optional(flow.refresh_url),
            scopes: flow.scopes,
        }),
    }
}

fn write_flow(flows: &OAuthFlows) -> Flow {
    match flows {
        OAuthFlows::AuthorizationCode(flow) => Flow::AuthorizationCode(proto::AuthorizationCodeOAuthFlow {
            authorization_url: flow.authorization_url.clone(),
            token_url: flow.token_url.clone(),
            refresh_url: or_empty(flow.refresh_url.as_ref()),
            scopes: flow.scopes.clone(),
            pkce_required: flow.pkce_required,
        }),
        OAuthFlows::ClientCredentials(flow) => Flow::ClientCredentials(proto::ClientCredentialsOAuthFlow {
            token_url: flow.token_url.clone(),
            refresh_url: or_empty(flow.refresh_url.as_ref()),
            scopes: flow.scopes.clone(),
        }),
        OAuthFlows::DeviceCode(flow) => Flow::DeviceCode(proto::DeviceCodeOAuthFlow {
            device_authorization_url: flow.device_authorization_url.clone(),
            token_url: flow.token_url.clone(),
            refresh_url: or_empty(flow.refresh_url.as_ref()),
            scopes: flow.scopes.clone(),
        }),
        OAuthFlows::Implicit(flow) => Flow::Implicit(proto::ImplicitOAuthFlow {
            authorization_url: flow.authorization_url.clone(),
            refresh_url: or_empty(flow.refresh_url.as_ref()),
            scopes: flow.scopes.clone(),
        }),
        OAuthFlows::Password(flow) => Flow::Password(proto::PasswordOAuthFlow {
            token_url: flow.token_url.clone(),
            refresh_url: or_empty(flow.refresh_url.as_ref()),
            scopes: flow.scopes.clone(),
        }),
    }
}
