//! Client certificates, found by their names and their fingerprint.

use chancery_identity::SealKey;
use chancery_identity::credentials::{Authenticator, CallerRecord, Checks, RefusalKind};
use chancery_protocol::IdentityProof;
use rcgen::{CertificateParams, CustomExtension, KeyPair, SanType, date_time_ymd};

use super::{ask, at, callers, headers, now, who};

const YEAR_S: i64 = 365 * 86_400;

fn certificate(names: Vec<SanType>) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2028, 1, 1);
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().to_vec()
}

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

fn authenticator(records: &[(&str, &str)]) -> Authenticator {
    let record = |(name, certificate): &(&str, &str)| {
        let mut record = CallerRecord::new(*name);
        record.certificates.push(certificate.parse().unwrap());
        record
    };
    Authenticator::new(Checks { client_certificates: true, ..Checks::new(callers(records.iter().map(record).collect())) })
}

#[tokio::test]
async fn a_certificate_is_found_by_any_of_its_names_or_its_fingerprint() {
    let der = certificate(vec![dns("other.example"), uri("spiffe://acme/ci"), uri("urn:acme:ci"), dns("CI.Example")]);
    let print: String = SealKey::digest(&der).iter().map(|byte| format!("{byte:02x}")).collect();
    for name in ["spiffe://acme/ci", "uri:urn:acme:ci", "dns:ci.example", &format!("sha256:{print}")] {
        let known = ask(&authenticator(&[("ci", name)]), &headers(&[]), Some(&der), now()).await.unwrap();
        assert_eq!(&*known.caller.name, "ci", "{name}");
        assert_eq!(known.standing.proof, IdentityProof::Certificate);
    }
}

#[tokio::test]
async fn a_certificate_with_other_names_is_refused_also_if_a_wildcard_would_fit() {
    let authenticator = authenticator(&[("ci", "dns:ci.example"), ("spiffe", "spiffe://acme/ci")]);
    for names in [
        vec![],
        vec![dns("example")],
        vec![dns("*.example")],
        vec![dns("ci.example.evil")],
        vec![uri("spiffe://acme/ci/x")],
        vec![uri("spiffe://acme/CI")],
        vec![uri("ci.example")],
        vec![dns("spiffe://acme/ci")],
    ] {
        let der = certificate(names.clone());
        assert_eq!(ask(&authenticator, &headers(&[]), Some(&der), now()).await, Err(RefusalKind::Unknown), "{names:?}");
    }
    assert_eq!(ask(&authenticator, &headers(&[]), None, now()).await, Err(RefusalKind::Missing));
}

#[tokio::test]
async fn a_certificate_whose_names_belong_to_two_callers_is_neithers() {
    let der = certificate(vec![dns("ci.example"), uri("spiffe://acme/ci")]);
    let two = authenticator(&[("ci", "dns:ci.example"), ("spiffe", "spiffe://acme/ci")]);
    assert_eq!(ask(&two, &headers(&[]), Some(&der), now()).await, Err(RefusalKind::Conflict));
    let mut both = CallerRecord::new("ci");
    both.certificates = vec!["dns:ci.example".parse().unwrap(), "spiffe://acme/ci".parse().unwrap()];
    let one = Authenticator::new(Checks::new(callers(vec![both])));
    assert_eq!(who(ask(&one, &headers(&[]), Some(&der), now()).await), Ok("default/ci".to_owned()));
}

#[tokio::test]
async fn a_certificate_is_good_from_its_first_to_its_last_second() {
    let der = certificate(vec![dns("ci.example")]);
    let authenticator = authenticator(&[("ci", "dns:ci.example")]);
    // 2026-01-01 and 2028-01-01 at midnight, UTC.
    let (first, last) = (1_767_225_600, 1_767_225_600 + 2 * YEAR_S);
    for (moment, expected) in [
        (first - 1, Err(RefusalKind::ClockSkew)),
        (first, Ok("default/ci".to_owned())),
        (last, Ok("default/ci".to_owned())),
        (last + 1, Err(RefusalKind::Expired)),
    ] {
        assert_eq!(who(ask(&authenticator, &headers(&[]), Some(&der), at(moment)).await), expected, "{moment}");
    }
}

#[tokio::test]
async fn a_revoked_certificate_is_unknown_with_the_next_call() {
    let der = certificate(vec![dns("ci.example")]);
    let mut record = CallerRecord::new("ci");
    record.certificates.push("dns:ci.example".parse().unwrap());
    let shared = callers(vec![record.clone()]);
    let authenticator = Authenticator::new(Checks::new(shared.clone()));
    assert!(ask(&authenticator, &headers(&[]), Some(&der), now()).await.is_ok());
    record.revoke();
    shared.store(chancery_identity::credentials::Callers::new(vec![record]).unwrap().into());
    assert_eq!(ask(&authenticator, &headers(&[]), Some(&der), now()).await, Err(RefusalKind::Unknown));
}

#[tokio::test]
async fn a_damaged_certificate_is_never_taken_for_the_whole_one() {
    let der = certificate(vec![dns("ci.example")]);
    let authenticator = authenticator(&[("ci", "dns:ci.example")]);
    for end in 0..der.len() {
        assert_eq!(ask(&authenticator, &headers(&[]), Some(&der[..end]), now()).await, Err(RefusalKind::Malformed), "{end}");
    }
    let longer = [&der[..], b"x"].concat();
    assert_eq!(ask(&authenticator, &headers(&[]), Some(&longer), now()).await, Err(RefusalKind::Malformed));

    let mut params = CertificateParams::default();
    // An alternative name extension that is no list of names.
    params.custom_extensions.push(CustomExtension::from_oid_content(&[2, 5, 29, 17], vec![0xff, 0xff]));
    let bad_names = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let refused = ask(&authenticator, &headers(&[]), Some(bad_names.der()), now()).await.unwrap_err();
    assert!(matches!(refused, RefusalKind::Malformed | RefusalKind::Unknown));
}
