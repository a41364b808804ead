//! The marks this node puts into the traces of the calls it makes: a member of `tracestate` and a span id that name the task.
//!
//! Agents that propagate W3C trace contexts return them without extra work. A mark grants no access: its
//! holder received it with the task, and a call with it is limited and charged there.

use std::sync::Arc;

use chancery_protocol::TaskId;
use uuid::Uuid;

use crate::Seal;

const HANDLE: &str = "trace";
const SPAN: &str = "span";
const NODE: &str = "trace-node";
/// In the place of a handle, for receivers of webhooks: what they begin is no part of the tree they heard of.
const DETACHED: &str = "-";

/// Every node's member has a name that ends so.
const SUFFIX: &str = "@chancery";

/// A token has the members of so many nodes: the last ones that the task came through.
const MOST_IN_TOKEN: usize = 2;

/// The most members, and the most bytes, that every system has to forward. Some drop the whole list above
/// that.
const MOST_MEMBERS: usize = 32;
const MOST_BYTES: usize = 512;

/// The eight hex digits by which nodes in a row tell each other's marks and hop tokens apart.
pub fn node_tag(seal: &dyn Seal) -> String {
    let [a, b, c, d, ..] = seal.mark(NODE, b"");
    format!("{a:02x}{b:02x}{c:02x}{d:02x}")
}

/// Writes and reads the marks of nodes that share one seal.
#[derive(Clone, Debug)]
pub(crate) struct TraceMarks {
    seal: Arc<dyn Seal>,
    /// The name of our member. Nodes in a row each have their own.
    key: Arc<str>,
}

/// What our member of a `tracestate` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberMark {
    Absent,
    Task(TaskId),
    /// It is no handle: another node may have written it from a hop token.
    Token(String),
    /// It comes from a notification.
    Detached,
}

impl TraceMarks {
    pub(crate) fn new(seal: Arc<dyn Seal>) -> Self {
        Self { key: format!("{}{SUFFIX}", node_tag(&*seal)).into(), seal }
    }

    /// The `tracestate` of a notification.
    pub(crate) fn detached(&self) -> String {
        format!("{}={DETACHED}", self.key)
    }

    /// Our member of `tracestate` for a task.
    pub(crate) fn member(&self, task: &TaskId) -> Option<String> {
        let handle = self.seal.seal(HANDLE, Uuid::try_parse(task.as_str()).ok()?.as_bytes());
        Some(format!("{}={handle}", self.key))
    }

    /// The `tracestate` of a call: the node's member first, then the caller's members, then the members for
    /// tokens of other nodes that are not among them. It is limited to the length that every system forwards,
    /// and to the available bytes.
    pub(crate) fn tracestate(
        &self,
        own: Option<&str>,
        brought: Option<&str>,
        of_tokens: &[String],
        room: usize,
    ) -> Option<String> {
        let brought: Vec<&str> = brought.into_iter().flat_map(members).filter(|member| self.own(member).is_none()).collect();
        let key_of = |member: &str| member.split('=').next().map(str::to_owned);
        let is_new = |member: &&str| brought.iter().all(|other| key_of(other) != key_of(member)) && self.own(member).is_none();
        let of_tokens: Vec<&str> = of_tokens.iter().map(String::as_str).filter(is_new).collect();
        let list = list(own, &[brought, of_tokens].concat(), room);
        (!list.is_empty()).then_some(list)
    }

    /// The members of other nodes alone, as a hop token carries them.
    pub(crate) fn node_members(&self, brought: Option<&str>, of_tokens: &[String]) -> Vec<String> {
        let all = self.tracestate(None, brought, of_tokens, MOST_BYTES).unwrap_or_default();
        members(&all).filter(|member| is_of_node(member)).take(MOST_IN_TOKEN).map(str::to_owned).collect()
    }

    /// What came without our own member, as far as every system passes it on.
    pub(crate) fn foreign(&self, tracestate: &Arc<str>) -> Option<Arc<str>> {
        let rest: Vec<&str> = members(tracestate).filter(|member| self.own(member).is_none()).collect();
        let rest = list(None, &rest, MOST_BYTES);
        match rest.len() {
            0 => None,
            all if all == tracestate.len() => Some(Arc::clone(tracestate)),
            _ => Some(rest.into()),
        }
    }

    pub(crate) fn read(&self, tracestate: &str) -> MemberMark {
        match members(tracestate).find_map(|member| self.own(member)) {
            None => MemberMark::Absent,
            Some(DETACHED) => MemberMark::Detached,
            Some(handle) => self.opened(handle).map_or_else(|| MemberMark::Token(handle.to_owned()), MemberMark::Task),
        }
    }

    fn opened(&self, handle: &str) -> Option<TaskId> {
        let bytes: [u8; 16] = self.seal.open(HANDLE, handle)?.try_into().ok()?;
        let mut buffer = Uuid::encode_buffer();
        let text: &str = Uuid::from_bytes(bytes).hyphenated().encode_lower(&mut buffer);
        Some(TaskId::from(text))
    }

    /// The span id of all calls for a task.
    pub(crate) fn span(&self, task: &TaskId) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.seal.mark(SPAN, task.as_str().as_bytes());
        // A span id of zeros is none.
        u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1)
    }

    /// The value of a member, if it is ours.
    fn own<'a>(&self, member: &'a str) -> Option<&'a str> {
        member.strip_prefix(&*self.key)?.strip_prefix('=')
    }
}

/// Our own member, and as many of the others as fit, in their order. Members of nodes go before those of other systems, because they
/// stop loops; of either kind the last ones are left out.
fn list(own: Option<&str>, others: &[&str], room: usize) -> String {
    let mut left = room.min(MOST_BYTES).saturating_sub(own.map_or(0, str::len));
    let mut kept = vec![false; others.len()];
    let mut count = usize::from(own.is_some());
    for of_nodes in [true, false] {
        for (place, member) in others.iter().enumerate().filter(|(_, member)| is_of_node(member) == of_nodes) {
            let bytes = member.len() + usize::from(count > 0);
            if count == MOST_MEMBERS || bytes > left {
                break;
            }
            (kept[place], left, count) = (true, left - bytes, count + 1);
        }
    }
    let others = others.iter().zip(kept).filter(|(_, kept)| *kept).map(|(member, _)| *member);
    own.into_iter().chain(others).collect::<Vec<_>>().join(",")
}

fn is_of_node(member: &str) -> bool {
    member.split('=').next().is_some_and(|key| key.ends_with(SUFFIX))
}

fn members(tracestate: &str) -> impl Iterator<Item = &str> {
    tracestate.split(',').map(str::trim).filter(|member| !member.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::fresh_id;
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};

    /// Not secret, but another for each number.
    #[derive(Debug)]
    struct Numbered(u64);

    impl Seal for Numbered {
        fn seal(&self, purpose: &str, content: &[u8]) -> String {
            let hex: String = content.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}.{}", self.mark(purpose, content)[0])
        }

        fn open(&self, purpose: &str, token: &str) -> Option<Vec<u8>> {
            let (hex, mark) = token.split_once('.')?;
            let bytes: Option<Vec<u8>> =
                hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
            bytes.filter(|bytes| self.mark(purpose, bytes)[0].to_string() == mark)
        }

        fn mark(&self, purpose: &str, content: &[u8]) -> [u8; 32] {
            let mut hasher = DefaultHasher::new();
            (self.0, purpose, content).hash(&mut hasher);
            hasher.finish().to_be_bytes().repeat(4).try_into().unwrap()
        }

        fn digest(&self, _: &[u8]) -> [u8; 32] {
            [0; 32]
        }
    }

    fn marks(node: u64) -> TraceMarks {
        TraceMarks::new(Arc::new(Numbered(node)))
    }

    fn written(marks: &TraceMarks, task: &TaskId, brought: Option<&str>) -> String {
        marks.tracestate(marks.member(task).as_deref(), brought, &[], MOST_BYTES).unwrap()
    }

    fn task() -> TaskId {
        TaskId::from(&*fresh_id())
    }

    #[test]
    fn a_handle_comes_back_out_of_any_place_in_the_list_and_only_at_its_own_node() {
        let (here, there, task) = (marks(1), marks(2), task());
        let state = written(&here, &task, Some("a=1, b=2"));
        assert!(state.ends_with(",a=1,b=2"), "{state}");
        assert_eq!(here.read(&state), MemberMark::Task(task.clone()));
        assert_eq!(there.read(&state), MemberMark::Absent);
        let (own, _) = state.split_once(',').unwrap();
        let many: String = (0..32).map(|number| format!("m{number}=1,")).collect();
        assert_eq!(here.read(&format!("{many}{own}")), MemberMark::Task(task.clone()), "the 33rd member");
        // Two nodes in a row and back around: each finds its own, and takes only that off.
        let second = written(&there, &self::task(), Some(&state));
        assert_eq!(here.read(&second), MemberMark::Task(task));
        let rest = there.foreign(&second.into()).unwrap();
        assert_eq!(*rest, *state);
        assert_eq!(here.foreign(&rest).as_deref(), Some("a=1,b=2"));
        assert_eq!(here.foreign(&own.into()), None);
    }

    #[test]
    fn a_forged_handle_names_no_task_and_a_notification_says_that_it_is_none() {
        let (here, task) = (marks(1), task());
        let state = written(&here, &task, None);
        let (key, handle) = state.split_once('=').unwrap();
        for forged in ["", "x", &handle.chars().rev().collect::<String>(), &handle[2..], &format!("{handle}0")] {
            // It may be a hop token's; whoever knows those has to say so.
            assert_eq!(here.read(&format!("{key}={forged}")), MemberMark::Token(forged.to_owned()), "{forged}");
        }
        assert_eq!(here.read(&here.detached()), MemberMark::Detached);
        assert_eq!(here.member(&TaskId::new("no uuid")), None);
    }

    #[test]
    fn what_every_system_passes_on_is_what_is_sent() {
        let (here, task) = (marks(1), task());
        let many: Vec<String> = (0..40).map(|number| format!("m{number}=1")).collect();
        let state = written(&here, &task, Some(&many.join(",")));
        assert_eq!(state.split(',').count(), MOST_MEMBERS);
        let long = format!("a={},b={},c=1", "x".repeat(200), "y".repeat(260));
        let state = written(&here, &task, Some(&long));
        assert!(state.len() <= MOST_BYTES && state.contains(",a=x") && !state.contains("b="), "{state}");
    }

    #[test]
    fn members_of_nodes_go_before_those_of_other_systems_and_six_nodes_fit() {
        let nodes: Vec<TraceMarks> = (0..12).map(marks).collect();
        let mut state = format!("a={}", "x".repeat(180));
        for node in &nodes {
            state = written(node, &task(), Some(&state));
            assert!(state.len() <= MOST_BYTES, "{state}");
            assert!(state.starts_with(&*node.key), "its own member is first: {state}");
        }
        let known = nodes.iter().filter(|node| matches!(node.read(&state), MemberMark::Task(_))).count();
        assert!(!state.contains("a=x") && known >= 6, "{known}: {state}");
        assert_eq!(nodes[0].read(&state), MemberMark::Absent, "the first that was written is the first to go: {state}");
    }

    #[test]
    fn the_token_of_another_node_goes_on_as_its_member_unless_that_came_too() {
        let (here, there, of_here, of_there) = (marks(1), marks(2), task(), task());
        let (own, other) = (here.member(&of_here).unwrap(), there.member(&of_there).unwrap());
        let state =
            |brought: Option<&str>| here.tracestate(Some(&own), brought, &[other.clone(), own.clone()], MOST_BYTES).unwrap();
        assert_eq!(state(None), format!("{own},{other}"));
        let newer = there.member(&task()).unwrap();
        assert_eq!(state(Some(&newer)), format!("{own},{newer}"));
        assert_eq!(there.read(&state(Some("a=1"))), MemberMark::Task(of_there));
        assert_eq!(here.tracestate(Some(&own), Some("a=1"), std::slice::from_ref(&other), own.len() + 3).unwrap(), own);
        assert_eq!(here.tracestate(None, None, &[], MOST_BYTES), None);
    }

    #[test]
    fn a_task_has_one_span_id_at_one_node() {
        let task = task();
        assert_eq!(marks(1).span(&task), marks(1).span(&task));
        assert_ne!(marks(1).span(&task), marks(2).span(&task));
        assert_ne!(marks(1).span(&task), marks(1).span(&self::task()));
    }
}
