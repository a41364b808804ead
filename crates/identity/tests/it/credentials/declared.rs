//! What a node declares is what it accepts.

use std::sync::Arc;

use chancery_identity::credentials::{
    Authenticator, CallerRecord, Checks, CredentialRefusal, Issuer, Issuers, RefusalKind, SignatureRules, TokenSubject,
};
use chancery_protocol::SecurityScheme;
use serde_json::{Value, json};

use super::test_issuer::{AUD, ISS};
use super::{callers, with_key};

fn declared(authenticator: &Authenticator) -> Value {
    let (schemes, requirements) = authenticator.schemes();
    let names: Vec<_> = requirements.iter().flat_map(|requirement| requirement.schemes.keys()).collect();
    assert_eq!(names, schemes.keys().collect::<Vec<_>>(), "each scheme alone is enough");
    assert!(requirements.iter().all(|requirement| requirement.schemes.len() == 1));
    serde_json::to_value(schemes).unwrap()
}

fn keyless() -> Checks {
    Checks::new(callers(vec![CallerRecord::new("ci")]))
}

#[test]
fn the_schemes_of_a_card_are_those_that_are_configured() {
    let api_key = json!({"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}});
    let bearer = json!({"httpAuthSecurityScheme": {"scheme": "Bearer"}});
    let jwt = json!({"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}});
    let discovery = format!("{ISS}.well-known/openid-configuration");
    let oidc = json!({"openIdConnectSecurityScheme": {"openIdConnectUrl": discovery}});
    let mtls = json!({"mtlsSecurityScheme": {}});
    let corp = Issuers::new(vec![Issuer::new("corp", ISS, AUD)]).unwrap();
    let by_url = Issuer { jwks_url: Some("https://login.example/keys".to_owned()), ..Issuer::new("corp", ISS, AUD) };
    let by_url = Issuers::new(vec![by_url]).unwrap();
    let keys = || Checks::new(callers(vec![with_key("ci", "0123456789abcdef")]));
    for (checks, expected) in [
        (keys(), json!({"apiKey": api_key, "bearer": bearer})),
        // Nobody has a key yet, and nothing else is accepted.
        (keyless(), json!({"apiKey": api_key, "bearer": bearer})),
        (Checks { issuers: corp.clone(), ..keyless() }, json!({"bearer": jwt, "oidc-corp": oidc})),
        (Checks { issuers: by_url, ..keyless() }, json!({"bearer": jwt})),
        (Checks { client_certificates: true, ..keyless() }, json!({"mutualTls": mtls})),
        (
            Checks { issuers: corp, client_certificates: true, ..keys() },
            json!({"apiKey": api_key, "bearer": jwt, "oidc-corp": oidc, "mutualTls": mtls}),
        ),
    ] {
        assert_eq!(declared(&Authenticator::new(checks)), expected);
    }
    assert_eq!(declared(&Authenticator::open()), json!({}));
    let (schemes, _) = Authenticator::new(keys()).schemes();
    assert!(matches!(schemes["apiKey"], SecurityScheme::ApiKey(_)));
}

#[test]
fn a_refusal_challenges_with_what_would_be_accepted() {
    let texts = |authenticator: &Authenticator, kind| {
        let refusal = CredentialRefusal::new(kind, "for the log");
        authenticator.challenges(&refusal).iter().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let keys = Authenticator::new(Checks::new(callers(vec![with_key("ci", "0123456789abcdef")])));
    let api_key = "ApiKey realm=\"chancery\", header=\"X-API-Key\"";
    assert_eq!(texts(&keys, RefusalKind::Missing), ["Bearer realm=\"chancery\"", api_key]);
    let bad = "Bearer realm=\"chancery\", error=\"invalid_token\"";
    assert_eq!(texts(&keys, RefusalKind::Expired), [bad, api_key]);
    let rules = SignatureRules::new(vec!["node.example".parse().unwrap()]).unwrap();
    let signed = Authenticator::new(Checks { signatures: Some(rules), ..keyless() });
    assert_eq!(texts(&signed, RefusalKind::Unknown), [bad, "Signature realm=\"chancery\", alg=\"ed25519\""]);
    for no_help in [RefusalKind::NotAllowed, RefusalKind::Unavailable] {
        assert!(texts(&keys, no_help).is_empty());
    }
    assert!(texts(&Authenticator::open(), RefusalKind::Missing).is_empty());
}

#[test]
fn credentials_that_could_never_be_accepted_are_faults() {
    let mut record = CallerRecord::new("ci");
    record.tokens.push(TokenSubject { issuer: "corp".to_owned(), subject: "x".to_owned() });
    record.certificates.push("dns:ci.example".parse().unwrap());
    record.agent_ids.push("ab".repeat(32).parse().unwrap());
    let shared = callers(vec![record]);
    assert_eq!(Checks::new(Arc::clone(&shared)).faults().len(), 3);
    let whole = Checks {
        issuers: Issuers::new(vec![Issuer::new("corp", ISS, AUD)]).unwrap(),
        client_certificates: true,
        signatures: Some(SignatureRules::new(vec!["node.example".parse().unwrap()]).unwrap()),
        ..Checks::new(shared)
    };
    assert_eq!(whole.faults(), []);
}
