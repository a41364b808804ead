//! Certificates made when a test runs: an authority, and those it signs.

use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair, SanType, date_time_ymd};

/// Somebody who signs certificates.
pub(crate) struct Signer {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its private key, in PEM.
pub(crate) struct Signed {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) der: Vec<u8>,
}

impl Signed {
    /// Both in one text, as clients like it.
    pub(crate) fn both(&self) -> String {
        format!("{}{}", self.certificate, self.key)
    }
}

impl Signer {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn pem(&self) -> String {
        self.certificate.pem()
    }

    fn sign(&self, params: &CertificateParams) -> Signed {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Signed { certificate: certificate.pem(), key: key.serialize_pem(), der: certificate.der().to_vec() }
    }

    /// For a node on the loopback.
    pub(crate) fn node(&self) -> Signed {
        self.sign(&CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).expect("names"))
    }

    pub(crate) fn named(&self, names: &[&str]) -> Signed {
        self.sign(&CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).expect("names"))
    }

    pub(crate) fn caller(&self, uri: &str) -> Signed {
        self.sign(&Self::of_caller(uri))
    }

    /// One whose time is over.
    pub(crate) fn former_caller(&self, uri: &str) -> Signed {
        let mut params = Self::of_caller(uri);
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
        self.sign(&params)
    }

    fn of_caller(uri: &str) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::URI(uri.try_into().expect("ASCII"))];
        params
    }
}
