//! The phrases that documents may not use, each with the words to write instead.

/// A phrase nobody searches for, and what to write in its place.
#[derive(Debug)]
pub(super) struct RefusedPhrase {
    /// Lower case, whole words, one space between them.
    pub phrase: &'static str,
    pub instead: &'static str,
}

const fn refuse(phrase: &'static str, instead: &'static str) -> RefusedPhrase {
    RefusedPhrase { phrase, instead }
}

const NAME_IT: &str = "name the subject: the caller, the client, the agent, the operator, the reader";
const DELIVER: &str = "say what arrives: receives, is notified, gets the answer, reads in the config";
const ACTOR: &str = "name the actor: no other caller, another caller, every caller, any client";
const GIVE: &str = "name the flag, key or file and what it does: sets, has, contains, names, reports, give --flag";
const AUTHENTICATE: &str = "authenticate, accept, admit, reject";

/// The phrases that documents, printed texts and comments may not use. A longer phrase stands before a shorter one that it contains.
pub(super) const REFUSED: &[RefusedPhrase] = &[
    refuse("whoever", NAME_IT),
    refuse("whomever", NAME_IT),
    refuse("those who", NAME_IT),
    refuse("those whose", NAME_IT),
    refuse("that which", NAME_IT),
    refuse("one that waits", NAME_IT),
    refuse("is none", "does not exist, there is no"),
    refuse("are none", "do not exist, there are no"),
    refuse("what was said", "the message, the event, the answer"),
    refuse("what is said", "the message, the event, the answer"),
    refuse("is told", DELIVER),
    refuse("are told", DELIVER),
    refuse("was told", DELIVER),
    refuse("were told", DELIVER),
    refuse("be told", DELIVER),
    refuse("unless told", DELIVER),
    refuse("nobody else", ACTOR),
    refuse("somebody else", ACTOR),
    refuse("someone else", ACTOR),
    refuse("nobody", ACTOR),
    refuse("somebody", ACTOR),
    refuse("everybody", ACTOR),
    refuse("anybody", ACTOR),
    refuse("stranger", "a client without credentials, a third party, untrusted input"),
    refuse("strangers", "clients without credentials, third parties, untrusted input"),
    refuse("whatever", "any, every, regardless of"),
    refuse("turned away", AUTHENTICATE),
    refuse("turn away", AUTHENTICATE),
    refuse("let in", AUTHENTICATE),
    refuse("gets in", AUTHENTICATE),
    refuse("get in", AUTHENTICATE),
    refuse("is asked", "receives the request, is evaluated, is queried"),
    refuse("are asked", "receive the request, are evaluated, are queried"),
    refuse("put away", "offload, store"),
    refuse("taken over", "applied, copied, accepted"),
    refuse("takes over", "applies, copies, accepts"),
    refuse("goes by", "uses, depends on"),
    refuse("go by", "use, depend on"),
    refuse("hangs on", "depends on"),
    refuse("becomes of", "what happens to"),
    refuse("became of", "what happened to"),
    refuse("hears of", "learns, receives"),
    refuse("to the letter", "exactly"),
    refuse("for good", "permanently"),
    refuse("the other end", "the receiver, the peer"),
    refuse("by word of", "because of, according to"),
    refuse("stands in front of", "is a gateway for, forwards to"),
    refuse("in the hands of", "owned by"),
    refuse("looked over", "checked"),
    refuse("agents elsewhere", "remote agents"),
    refuse("agent elsewhere", "remote agent"),
    refuse("elsewhere", "remote, on another host, on another node"),
    refuse("anew", "again"),
    refuse("passed on", "forwarded"),
    refuse("passes on", "forwards"),
    refuse("pass on", "forward"),
    refuse("for ever", "without end, permanently"),
    refuse("hangs up", "disconnects"),
    refuse("has the rest", "name what is there"),
    refuse("have the rest", "name what is there"),
];

/// The phrases that documents and printed texts may not use, and comments may.
pub(super) const REFUSED_IN_PRINT: &[RefusedPhrase] = &[
    refuse("unless you say", GIVE),
    refuse("you say", GIVE),
    refuse("or say", GIVE),
    refuse("to say", GIVE),
    refuse("say so", GIVE),
    refuse("says so", GIVE),
    refuse("say another", GIVE),
    refuse("says another", GIVE),
    refuse("says otherwise", GIVE),
    refuse("says nothing", GIVE),
    refuse("say nothing", GIVE),
    refuse("say which", GIVE),
    refuse("says which", GIVE),
    refuse("says what", GIVE),
    refuse("says who", GIVE),
    refuse("say who", GIVE),
    refuse("says where", GIVE),
    refuse("file says", GIVE),
    refuse("config says", GIVE),
    refuse("flag says", GIVE),
    refuse("card says", GIVE),
    refuse("operator says", GIVE),
    refuse("it says", GIVE),
    refuse("does not say", GIVE),
    refuse("what is there", "name the things: the stored tasks, the files in the folder"),
    refuse("comes to", "is, results in, reaches"),
    refuse("came to", "was, resulted in, reached"),
    refuse("come to", "be, result in, reach"),
    refuse("stand in front of", "be a gateway for, forward to"),
    refuse("given up", "name the actor and what it stops: the node stops retrying, becomes a dead letter"),
    refuse("taken up", "name the actor: the node resumes, accepts, reads"),
    refuse("lets in", AUTHENTICATE),
    refuse("let it in", AUTHENTICATE),
    refuse("let them in", AUTHENTICATE),
    refuse("let through", AUTHENTICATE),
    refuse("to its end", "until it has completed, until the stream has ended"),
    refuse("no one", ACTOR),
    refuse("yet to come", "later, new, future"),
];
