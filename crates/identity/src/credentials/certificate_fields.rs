//! Reads the alternative names and the validity of an X.509 certificate.

use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{Decode as _, Reader as _, SliceReader, Tag, TagNumber, Tagged as _};

/// The object id 2.5.29.17 in DER.
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];

/// One alternative name of a certificate. Names of other kinds are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlternativeName<'a> {
    Dns(&'a str),
    Uri(&'a str),
    Address(&'a [u8]),
    Other,
}

/// The fields of a certificate that this node uses.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CertificateFields<'a> {
    pub names: Vec<AlternativeName<'a>>,
    /// Seconds since 1970.
    pub not_before: i64,
    /// Seconds since 1970.
    pub not_after: i64,
}

impl<'a> CertificateFields<'a> {
    /// Reads one certificate in DER, or returns `None`. The TLS library has verified the signature before.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let [certificate] = elements(bytes)?.try_into().ok()?;
        let [signed, algorithm, signature] = children(certificate)?.try_into().ok()?;
        (algorithm.tag() == Tag::Sequence && signature.tag() == Tag::BitString).then_some(())?;
        let mut fields = children(signed)?.into_iter().peekable();
        fields.next_if(|field| field.tag() == wrapper(0));
        let mut next = |tag: Tag| fields.next().filter(|field| field.tag() == tag);
        let _serial = next(Tag::Integer)?;
        let _algorithm = next(Tag::Sequence)?;
        let _issuer = next(Tag::Sequence)?;
        let [not_before, not_after] = children(next(Tag::Sequence)?)?.try_into().ok()?;
        let _subject = next(Tag::Sequence)?;
        let _public_key = next(Tag::Sequence)?;
        let mut names = None;
        for field in fields.filter(|field| field.tag() == wrapper(3)) {
            let [extensions] = elements(field.value())?.try_into().ok()?;
            for extension in children(extensions)? {
                let parts = children(extension)?;
                let (id, value) = (parts.first()?, parts.last()?);
                if id.tag() != Tag::ObjectIdentifier || id.value() != SUBJECT_ALTERNATIVE_NAME {
                    continue;
                }
                let [list] = elements((value.tag() == Tag::OctetString).then(|| value.value())?)?.try_into().ok()?;
                // RFC 5280 §4.2: a certificate has at most one instance of an extension.
                if names.replace(children(list)?.into_iter().map(alternative_name).collect()).is_some() {
                    return None;
                }
            }
        }
        Some(Self { names: names.unwrap_or_default(), not_before: seconds(not_before)?, not_after: seconds(not_after)? })
    }
}

/// All elements of some DER, without those inside them.
fn elements(bytes: &[u8]) -> Option<Vec<AnyRef<'_>>> {
    let mut reader = SliceReader::new(bytes).ok()?;
    let mut elements = Vec::new();
    while !reader.is_finished() {
        elements.push(AnyRef::decode(&mut reader).ok()?);
    }
    Some(elements)
}

fn children(element: AnyRef<'_>) -> Option<Vec<AnyRef<'_>>> {
    if element.tag() == Tag::Sequence { elements(element.value()) } else { None }
}

fn alternative_name(element: AnyRef<'_>) -> AlternativeName<'_> {
    let text = || std::str::from_utf8(element.value()).ok().filter(|text| text.is_ascii());
    let name = match element.tag() {
        tag if tag == plain(2) => text().map(AlternativeName::Dns),
        tag if tag == plain(6) => text().map(AlternativeName::Uri),
        tag if tag == plain(7) => Some(AlternativeName::Address(element.value())),
        _ => None,
    };
    name.unwrap_or(AlternativeName::Other)
}

const fn plain(number: u32) -> Tag {
    Tag::ContextSpecific { constructed: false, number: TagNumber(number) }
}

const fn wrapper(number: u32) -> Tag {
    Tag::ContextSpecific { constructed: true, number: TagNumber(number) }
}

fn seconds(time: AnyRef<'_>) -> Option<i64> {
    let since_1970 = match time.tag() {
        Tag::UtcTime => time.decode_as::<UtcTime>().ok()?.to_unix_duration(),
        Tag::GeneralizedTime => time.decode_as::<GeneralizedTime>().ok()?.to_unix_duration(),
        _ => return None,
    };
    i64::try_from(since_1970.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use proptest::prelude::*;
    use rcgen::{CertificateParams, CustomExtension, KeyPair, SanType, date_time_ymd};
    use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

    use super::*;

    fn signed(params: &CertificateParams) -> Vec<u8> {
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    /// The same fields, read by another implementation.
    fn expected(bytes: &[u8]) -> CertificateFields<'_> {
        let (_, certificate) = X509Certificate::from_der(bytes).unwrap();
        let listed = certificate.subject_alternative_name().unwrap();
        let names = listed.iter().flat_map(|list| &list.value.general_names).map(|name| match name {
            GeneralName::DNSName(name) => AlternativeName::Dns(name),
            GeneralName::URI(uri) => AlternativeName::Uri(uri),
            GeneralName::IPAddress(address) => AlternativeName::Address(address),
            _ => AlternativeName::Other,
        });
        let validity = certificate.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        CertificateFields { names: names.collect(), not_before, not_after }
    }

    fn name() -> impl Strategy<Value = SanType> {
        prop_oneof![
            "[a-z]{1,9}\\.example".prop_map(|name| SanType::DnsName(name.try_into().unwrap())),
            "spiffe://[a-z]{1,9}/[a-z]{0,200}".prop_map(|uri| SanType::URI(uri.try_into().unwrap())),
            "[a-z]{1,9}@acme\\.example".prop_map(|mail| SanType::Rfc822Name(mail.try_into().unwrap())),
            any::<IpAddr>().prop_map(SanType::IpAddress),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn two_implementations_read_the_same_fields(
            names in prop::collection::vec(name(), 0..9), from in 1970..2049, to in 2050..9999,
            cut in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(),
        ) {
            let mut params = CertificateParams::default();
            params.subject_alt_names = names;
            (params.not_before, params.not_after) = (date_time_ymd(from, 2, 3), date_time_ymd(to, 12, 31));
            let bytes = signed(&params);
            let fields = CertificateFields::read(&bytes);
            prop_assert_eq!(fields, Some(expected(&bytes)));
            prop_assert_eq!(CertificateFields::read(&bytes[..cut.index(bytes.len())]), None);
            let longer = [&bytes[..], &[byte]].concat();
            prop_assert_eq!(CertificateFields::read(&longer), None);
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] = byte;
            let _ = CertificateFields::read(&changed);
        }
    }

    #[test]
    fn a_certificate_with_two_lists_of_names_is_not_read() {
        // One list of one DNS name, `a`.
        let list = || CustomExtension::from_oid_content(&[2, 5, 29, 17], vec![0x30, 3, 0x82, 1, b'a']);
        let mut params = CertificateParams::default();
        params.custom_extensions = vec![list()];
        let once = signed(&params);
        assert_eq!(CertificateFields::read(&once).unwrap().names, [AlternativeName::Dns("a")]);
        params.custom_extensions = vec![list(), list()];
        let twice = signed(&params);
        assert_eq!(CertificateFields::read(&twice), None);
    }
}
