//! Who calls: everything a request presents, joined into one known caller or one refusal.

use std::sync::Arc;

use arc_swap::ArcSwap;
use chancery_protocol::{AgentId, Caller, MayCall, Proof, Standing, Timestamp};
use http::{HeaderMap, Method};

use super::caller::DEFAULT_TENANT;
use super::presented::{self, Secret};
use super::signature::{Authority, SignatureRules, Signatures};
use super::token::Tokens;
use super::{
    AllowAll, CallerFault, Callers, IdentityResolver, Issuers, KeySets, Known, NoKeySets, Presented, Refusal, RefusalKind,
};

/// What a node accepts, and from whom.
#[derive(Debug)]
pub struct Checks {
    /// Replaced as a whole when callers are added, rotated or revoked; the next check sees it.
    pub callers: Arc<ArcSwap<Callers>>,
    pub issuers: Issuers,
    pub key_sets: Arc<dyn KeySets>,
    /// Left out, signed requests are refused.
    pub signatures: Option<SignatureRules>,
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
            signatures: None,
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
    /// The one name a signed request has to be meant for. Without it, any that the node goes by.
    pub meant_for: Option<&'a Authority>,
}

#[derive(Debug)]
pub struct Authenticator(pub(super) Mode);

#[derive(Debug)]
pub(super) enum Mode {
    /// Everybody is this caller.
    Open(Known),
    Closed(Box<Closed>),
}

#[derive(Debug)]
pub(super) struct Closed {
    pub(super) callers: Arc<ArcSwap<Callers>>,
    pub(super) tokens: Tokens,
    pub(super) signatures: Option<Signatures>,
    resolver: Arc<dyn IdentityResolver>,
    agents_may_call: MayCall,
    pub(super) client_certificates: bool,
}

impl Authenticator {
    /// Asks nobody for anything: every caller is `default/anonymous`. Credentials that come all the same are not read,
    /// not even to see whether they are well-formed, so nothing that is checked depends on them.
    pub fn open() -> Self {
        let standing = Standing { proof: Proof::None, ..Standing::default() };
        Self(Mode::Open(Known { caller: Caller::new(DEFAULT_TENANT, "anonymous"), standing: Arc::new(standing) }))
    }

    pub fn new(checks: Checks) -> Self {
        Self(Mode::Closed(Box::new(Closed {
            callers: checks.callers,
            tokens: Tokens::new(checks.issuers, checks.key_sets),
            signatures: checks.signatures.map(Signatures::new),
            resolver: checks.resolver,
            agents_may_call: checks.agents_may_call,
            client_certificates: checks.client_certificates,
        })))
    }

    /// The same, but no signed request that `earlier` has taken is taken again. The two must agree on how long a signature
    /// holds.
    #[must_use]
    pub fn following(mut self, earlier: &Self) -> Self {
        if let (Mode::Closed(now), Mode::Closed(before)) = (&mut self.0, &earlier.0)
            && let (Some(now), Some(before)) = (&mut now.signatures, &before.signatures)
        {
            now.remember_with(before);
        }
        self
    }

    pub fn is_open(&self) -> bool {
        matches!(self.0, Mode::Open(_))
    }

    /// Finds what is presented; refuses what no check could accept. `certificate` is the client's own, in DER, and its
    /// chain has been verified.
    pub fn present(&self, headers: &HeaderMap, certificate: Option<&[u8]>) -> Result<Presented, Refusal> {
        match &self.0 {
            Mode::Open(_) => Ok(Presented::nothing()),
            Mode::Closed(_) => Presented::read(headers, certificate),
        }
    }

    /// As much of `check` as needs neither a body nor an issuer: a caller if that settles it, a refusal if anything is
    /// wrong already, `None` if only `check` can tell.
    pub fn check_early(&self, presented: &Presented, now: Timestamp) -> Result<Option<Known>, Refusal> {
        match &self.0 {
            Mode::Open(anonymous) => Ok(Some(anonymous.clone())),
            Mode::Closed(closed) => closed.check_early(presented, now),
        }
    }

    /// Checks a signed request as far as its head goes, so that nobody has to read a stranger's body; the body of `head`
    /// is not looked at. `check` goes on from there and must be given the same head. Does nothing for other requests.
    pub fn check_head(&self, presented: &mut Presented, head: &RequestFacts<'_>, now: Timestamp) -> Result<(), Refusal> {
        match &self.0 {
            Mode::Closed(closed) if presented.signed => closed.check_head(presented, head, now),
            _ => Ok(()),
        }
    }

    pub async fn check(&self, presented: &Presented, request: &RequestFacts<'_>, now: Timestamp) -> Result<Known, Refusal> {
        match &self.0 {
            Mode::Open(anonymous) => Ok(anonymous.clone()),
            Mode::Closed(closed) => match closed.check_early(presented, now)? {
                Some(known) => Ok(known),
                None => closed.check(presented, request, now).await,
            },
        }
    }
}

impl Closed {
    fn check_early(&self, presented: &Presented, now: Timestamp) -> Result<Option<Known>, Refusal> {
        if presented.is_nothing() {
            return Err(Refusal::missing());
        }
        if presented.signed && self.signatures.is_none() {
            return Err(Refusal::new(RefusalKind::Unknown, "signed requests are not accepted here"));
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

    fn check_head(&self, presented: &mut Presented, head: &RequestFacts<'_>, now: Timestamp) -> Result<(), Refusal> {
        self.check_early(presented, now)?;
        if let Some(signatures) = &self.signatures {
            let signed = signatures.verify_head(head, now)?;
            self.by_agent_id(&self.callers.load(), &signed.agent_id)?;
            presented.signature = Some(signed);
        }
        Ok(())
    }

    async fn check(&self, presented: &Presented, request: &RequestFacts<'_>, now: Timestamp) -> Result<Known, Refusal> {
        let is_no_key = |secret: &Secret| {
            self.callers.load().by_key_hash(&secret.hash, now).is_err_and(|refusal| may_be_token(secret, &refusal))
        };
        let token = match presented.secret.filter(is_no_key) {
            None => None,
            Some(secret) => match self.tokens.remembered(&secret.hash, now) {
                None => {
                    let text = presented::bearer(request.headers)?.ok_or_else(Refusal::missing)?;
                    Some(self.tokens.verify(&secret.hash, text, now).await?)
                }
                verified => verified,
            },
        };
        // Only now, after the last wait: whoever was revoked meanwhile is not found.
        let callers = self.callers.load();
        let mut known = match (presented.secret, token) {
            (None, _) => None,
            (Some(_), Some(verified)) => Some(Tokens::caller(&verified, &callers, now)?),
            (Some(secret), None) => Some(callers.by_key_hash(&secret.hash, now)?),
        };
        if let Some(facts) = &presented.certificate {
            known = same_caller(known, Some(callers.by_certificate_facts(facts, now)?))?;
        }
        if let (true, Some(signatures)) = (presented.signed, &self.signatures) {
            let verified;
            let signed = match &presented.signature {
                Some(signed) => signed,
                None => {
                    verified = signatures.verify_head(request, now)?;
                    &verified
                }
            };
            signed.check_body(request.body)?;
            known = same_caller(known, Some(self.by_agent_id(&callers, &signed.agent_id)?))?;
            // Last, so that only what is accepted takes room among the remembered.
            signatures.use_once(signed, now)?;
        }
        known.ok_or_else(Refusal::missing)
    }

    fn by_agent_id(&self, callers: &Callers, agent_id: &AgentId) -> Result<Known, Refusal> {
        if !self.resolver.allows(agent_id) {
            return Err(Refusal::new(RefusalKind::NotAllowed, format!("agent {agent_id} is not on the list")));
        }
        if let Some(known) = callers.by_agent_id(agent_id) {
            return Ok(known);
        }
        if !self.resolver.names(agent_id) {
            return Err(Refusal::new(RefusalKind::Unknown, format!("no caller is agent {agent_id}")));
        }
        let standing = Standing {
            proof: Proof::Signature,
            agent_id: Some(agent_id.clone()),
            agent: None,
            may_call: self.agents_may_call.clone(),
        };
        Ok(Known { caller: Caller::new(DEFAULT_TENANT, agent_id.as_str()), standing: Arc::new(standing) })
    }
}

/// Of two proofs of one caller the second, which is the stronger one where this is called.
fn same_caller(first: Option<Known>, second: Option<Known>) -> Result<Option<Known>, Refusal> {
    match (first, second) {
        (Some(first), Some(second)) if first.caller != second.caller => {
            Err(Refusal::new(RefusalKind::Conflict, "two credentials of different callers"))
        }
        (first, second) => Ok(second.or(first)),
    }
}

/// Whether what no caller has as a key is worth a look as a token.
fn may_be_token(secret: &Secret, refusal: &Refusal) -> bool {
    secret.token_shaped && refusal.kind == RefusalKind::Unknown
}
