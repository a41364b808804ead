//! Who calls: everything a request presents, joined into one known caller or one refusal.

use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_protocol::{AgentId, Caller, CallerStanding, IdentityProof, MayCall, Timestamp};
use http::{HeaderMap, Method};

use super::caller::DEFAULT_TENANT;
use super::presented::{self, SecretHash};
use super::signature::{Authority, NonceBook, SignatureRules, Signatures, SignedRequest};
use super::token::Tokens;
use super::token_memory::VerifiedToken;
use super::{
    AllowAll, CallerFault, Callers, CredentialRefusal, IdentityResolver, Issuers, KeySets, Known, NoKeySets,
    PresentedCredentials, RefusalKind,
};

/// What a node accepts, and from whom.
#[derive(Debug)]
pub struct Checks {
    /// Replaced as a whole when callers are added, rotated or revoked; the next check sees it.
    pub callers: Arc<ArcSwap<Callers>>,
    pub issuers: Issuers,
    pub key_sets: Arc<dyn KeySets>,
    /// How long a token that was verified is accepted without a look at the issuer's keys. 0 verifies it with every call.
    pub tokens_remembered_s: u32,
    /// Left out, signed requests are refused.
    pub signatures: Option<SignatureRules>,
    /// Where used nonces are kept. Left out, this process remembers them, and a restart forgets them.
    pub nonces: Option<Arc<dyn NonceBook>>,
    pub resolver: Arc<dyn IdentityResolver>,
    /// What agents may call that are callers because the resolver names them, without a record.
    pub agents_may_call: MayCall,
    /// Whether the node asks for client certificates.
    pub client_certificates: bool,
}

impl Checks {
    /// API keys of these callers, and nothing else.
    pub fn new(callers: Arc<ArcSwap<Callers>>) -> Self {
        Self {
            callers,
            issuers: Issuers::default(),
            key_sets: Arc::new(NoKeySets),
            tokens_remembered_s: 300,
            signatures: None,
            nonces: None,
            resolver: Arc::new(AllowAll::default()),
            agents_may_call: MayCall::Everything,
            client_certificates: false,
        }
    }

    /// Credentials of callers that can never be accepted as this node is set up: almost certainly mistakes.
    pub fn faults(&self) -> Vec<CallerFault> {
        let mut faults = Vec::new();
        for record in self.callers.load().records() {
            let mut fault = |reason: String| faults.push(CallerFault { name: record.name.clone(), reason });
            for token in &record.tokens {
                if !self.issuers.iter().any(|issuer| issuer.name == token.issuer) {
                    fault(format!("tokens: there is no issuer named {:?}", token.issuer));
                }
            }
            if !record.certificates.is_empty() && !self.client_certificates {
                fault("certificates: this node asks for none".to_owned());
            }
            if !record.agent_ids.is_empty() && self.signatures.is_none() {
                fault("agent_ids: this node accepts no signed requests".to_owned());
            }
        }
        faults
    }
}

/// What a request says, for those checks that cover it.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    pub method: &'a Method,
    /// As it came, nothing decoded.
    pub path_and_query: &'a str,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    /// The one name that a signed request must be addressed to. Without it, any name of the node.
    pub meant_for: Option<&'a Authority>,
}

#[derive(Debug)]
pub struct Authenticator(pub(super) AuthenticationMode);

#[derive(Debug)]
pub(super) enum AuthenticationMode {
    /// Every client is this caller.
    Open(Known),
    Closed(Box<ClosedNode>),
}

#[derive(Debug)]
pub(super) struct ClosedNode {
    pub(super) callers: Arc<ArcSwap<Callers>>,
    pub(super) tokens: Tokens,
    pub(super) signatures: Option<Signatures>,
    resolver: Arc<dyn IdentityResolver>,
    agents_may_call: MayCall,
    pub(super) client_certificates: bool,
}

impl Authenticator {
    /// Requires no credentials: every caller is `default/anonymous`. Presented credentials are not read, not
    /// even to see whether they are well-formed. So no check depends on them.
    pub fn open() -> Self {
        let standing = CallerStanding { proof: IdentityProof::None, ..CallerStanding::default() };
        Self(AuthenticationMode::Open(Known { caller: Caller::new(DEFAULT_TENANT, "anonymous"), standing: Arc::new(standing) }))
    }

    pub fn new(checks: Checks) -> Self {
        Self(AuthenticationMode::Closed(Box::new(ClosedNode {
            callers: checks.callers,
            tokens: Tokens::new(checks.issuers, checks.key_sets, checks.tokens_remembered_s),
            signatures: checks.signatures.map(|rules| Signatures::new(rules, checks.nonces)),
            resolver: checks.resolver,
            agents_may_call: checks.agents_may_call,
            client_certificates: checks.client_certificates,
        })))
    }

    /// The same, but no signed request that `earlier` has taken is taken again. The two must agree on how long a signature
    /// holds.
    #[must_use]
    pub fn following(mut self, earlier: &Self) -> Self {
        if let (AuthenticationMode::Closed(now), AuthenticationMode::Closed(before)) = (&mut self.0, &earlier.0)
            && let (Some(now), Some(before)) = (&mut now.signatures, &before.signatures)
        {
            now.remember_with(before);
        }
        self
    }

    pub fn is_open(&self) -> bool {
        matches!(self.0, AuthenticationMode::Open(_))
    }

    /// Finds what is presented; refuses what no check could accept. `certificate` is the client's own, in DER, and its
    /// chain has been verified.
    pub fn present(&self, headers: &HeaderMap, certificate: Option<&[u8]>) -> Result<PresentedCredentials, CredentialRefusal> {
        match &self.0 {
            AuthenticationMode::Open(_) => Ok(PresentedCredentials::nothing()),
            AuthenticationMode::Closed(_) => PresentedCredentials::read(headers, certificate),
        }
    }

    /// As much of `check` as needs neither a body nor an issuer: a caller if that settles it, a refusal if anything is
    /// wrong already, `None` if only `check` can tell.
    pub fn check_early(&self, presented: &PresentedCredentials, now: Timestamp) -> Result<Option<Known>, CredentialRefusal> {
        match &self.0 {
            AuthenticationMode::Open(anonymous) => Ok(Some(anonymous.clone())),
            AuthenticationMode::Closed(closed) => closed.check_early(presented, now),
        }
    }

    /// Checks a signed request as far as its head goes, before the body of an unknown client is read; the
    /// body of `head` is ignored. `check` continues from there and must get the same head. Does nothing for
    /// other requests.
    pub fn check_head(
        &self,
        presented: &mut PresentedCredentials,
        head: &RequestFacts<'_>,
        now: Timestamp,
    ) -> Result<(), CredentialRefusal> {
        match &self.0 {
            AuthenticationMode::Closed(closed) if presented.signed => closed.check_head(presented, head, now),
            _ => Ok(()),
        }
    }

    pub async fn check(
        &self,
        presented: &PresentedCredentials,
        request: &RequestFacts<'_>,
        now: Timestamp,
    ) -> Result<Known, CredentialRefusal> {
        match &self.0 {
            AuthenticationMode::Open(anonymous) => Ok(anonymous.clone()),
            AuthenticationMode::Closed(closed) => match closed.check_early(presented, now)? {
                Some(known) => Ok(known),
                None => closed.check(presented, request, now).await,
            },
        }
    }
}

impl ClosedNode {
    fn check_early(&self, presented: &PresentedCredentials, now: Timestamp) -> Result<Option<Known>, CredentialRefusal> {
        if presented.is_nothing() {
            return Err(CredentialRefusal::missing());
        }
        if presented.signed && self.signatures.is_none() {
            return Err(CredentialRefusal::new(RefusalKind::Unknown, "signed requests are not accepted here"));
        }
        let callers = self.callers.load();
        let by_certificate = presented.certificate.as_ref().map(|facts| callers.by_certificate_facts(facts, now)).transpose()?;
        let known = match presented.secret {
            None => None,
            Some(secret) => match callers.by_key_hash(&secret.hash, now) {
                Err(refusal) if may_be_token(&secret, &refusal) => match self.tokens.remembered(&secret.hash, now) {
                    Some(verified) => Some(Tokens::caller(&verified, &callers, now)?),
                    None => return Ok(None),
                },
                known => Some(known?),
            },
        };
        let known = same_caller(known, by_certificate)?;
        Ok(if presented.signed { None } else { known })
    }

    fn check_head(
        &self,
        presented: &mut PresentedCredentials,
        head: &RequestFacts<'_>,
        now: Timestamp,
    ) -> Result<(), CredentialRefusal> {
        self.check_early(presented, now)?;
        if let Some(signatures) = &self.signatures {
            let signed = signatures.verify_head(head, now)?;
            self.by_agent_id(&self.callers.load(), &signed.agent_id)?;
            presented.signature = Some(signed);
        }
        Ok(())
    }

    async fn check(
        &self,
        presented: &PresentedCredentials,
        request: &RequestFacts<'_>,
        now: Timestamp,
    ) -> Result<Known, CredentialRefusal> {
        let is_no_key = |secret: &SecretHash| {
            self.callers.load().by_key_hash(&secret.hash, now).is_err_and(|refusal| may_be_token(secret, &refusal))
        };
        let token = match presented.secret.filter(is_no_key) {
            None => None,
            Some(secret) => match self.tokens.remembered(&secret.hash, now) {
                None => {
                    let text = presented::bearer(request.headers)?.ok_or_else(CredentialRefusal::missing)?;
                    Some(self.tokens.verify(&secret.hash, text, now).await?)
                }
                verified => verified,
            },
        };
        let Some(signatures) = self.signatures.as_ref().filter(|_| presented.signed) else {
            return self.known(presented, token.as_ref(), None, now);
        };
        let verified;
        let signed = match &presented.signature {
            Some(signed) => signed,
            None => {
                verified = signatures.verify_head(request, now)?;
                &verified
            }
        };
        signed.check_body(request.body)?;
        // Only what is accepted takes room among the remembered.
        self.known(presented, token.as_ref(), Some(signed), now)?;
        signatures.use_once(signed, now).await?;
        self.known(presented, token.as_ref(), Some(signed), now)
    }

    /// Looked up after each wait: a caller that was revoked meanwhile is not found.
    fn known(
        &self,
        presented: &PresentedCredentials,
        token: Option<&Arc<VerifiedToken>>,
        signed: Option<&SignedRequest>,
        now: Timestamp,
    ) -> Result<Known, CredentialRefusal> {
        let callers = self.callers.load();
        let mut known = match (presented.secret, token) {
            (None, _) => None,
            (Some(_), Some(verified)) => Some(Tokens::caller(verified, &callers, now)?),
            (Some(secret), None) => Some(callers.by_key_hash(&secret.hash, now)?),
        };
        if let Some(facts) = &presented.certificate {
            known = same_caller(known, Some(callers.by_certificate_facts(facts, now)?))?;
        }
        if let Some(signed) = signed {
            known = same_caller(known, Some(self.by_agent_id(&callers, &signed.agent_id)?))?;
        }
        known.ok_or_else(CredentialRefusal::missing)
    }

    fn by_agent_id(&self, callers: &Callers, agent_id: &AgentId) -> Result<Known, CredentialRefusal> {
        if !self.resolver.allows(agent_id) {
            return Err(CredentialRefusal::new(RefusalKind::NotAllowed, format!("agent {agent_id} is not on the list")));
        }
        if let Some(known) = callers.by_agent_id(agent_id) {
            return Ok(known);
        }
        if !self.resolver.names(agent_id) {
            return Err(CredentialRefusal::new(RefusalKind::Unknown, format!("no caller is agent {agent_id}")));
        }
        let standing = CallerStanding {
            proof: IdentityProof::Signature,
            agent_id: Some(agent_id.clone()),
            agent: None,
            may_call: self.agents_may_call.clone(),
            unlisted: false,
        };
        Ok(Known { caller: Caller::new(DEFAULT_TENANT, agent_id.as_str()), standing: Arc::new(standing) })
    }
}

/// Of two proofs of one caller the second, which is the stronger one where this is called.
fn same_caller(first: Option<Known>, second: Option<Known>) -> Result<Option<Known>, CredentialRefusal> {
    match (first, second) {
        (Some(first), Some(second)) if first.caller != second.caller => {
            Err(CredentialRefusal::new(RefusalKind::Conflict, "two credentials of different callers"))
        }
        (first, second) => Ok(second.or(first)),
    }
}

/// Whether what no caller has as a key is worth a look as a token.
fn may_be_token(secret: &SecretHash, refusal: &CredentialRefusal) -> bool {
    secret.token_shaped && refusal.kind == RefusalKind::Unknown
}
