//! Decides how a message is put to an agent: as a stream, as one blocking call, or as one call that returns at once.

use chancery_core::ReplyMode;

use super::settings::StreamMode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallMode {
    /// The node requests a stream of events from the agent.
    Stream,
    /// The node requests one answer from the agent, at the end of its work.
    Blocking,
    /// The node requests an answer at once, and polls the agent from then on.
    Immediate,
}

/// What is known of an agent's ways to answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerHabits {
    /// Its card says that it streams.
    pub(super) streams: bool,
    /// Its binding has nothing but streams.
    pub(super) only_streams: bool,
    /// The operator's word.
    pub(super) setting: StreamMode,
    /// What was learnt: `true` for a stream, `false` for one answer.
    pub(super) prefers_streams: Option<bool>,
}

/// A caller's mode is the agent's mode: most frameworks are better at one answer than at a stream, and a
/// stream cuts one answer into token-sized chunks. The operator's setting and the learnt facts have
/// precedence.
pub(super) fn call_mode(reply: ReplyMode, agent: AnswerHabits) -> CallMode {
    let AnswerHabits { streams, only_streams, setting, prefers_streams } = agent;
    if only_streams || setting == StreamMode::Always {
        return CallMode::Stream;
    }
    let may_stream = streams && setting != StreamMode::Never;
    let one_answer_is_worse = may_stream && prefers_streams == Some(true);
    match reply {
        ReplyMode::Stream if may_stream && prefers_streams != Some(false) => CallMode::Stream,
        // Polling shows the caller's stream what happens meanwhile.
        ReplyMode::Stream => CallMode::Immediate,
        _ if one_answer_is_worse => CallMode::Stream,
        ReplyMode::Blocking => CallMode::Blocking,
        ReplyMode::Immediate => CallMode::Immediate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: AnswerHabits =
        AnswerHabits { streams: true, only_streams: false, setting: StreamMode::Auto, prefers_streams: None };

    #[test]
    fn law_1_1_1_unary_in_unary_out() {
        assert_eq!(call_mode(ReplyMode::Blocking, PLAIN), CallMode::Blocking);
        assert_eq!(call_mode(ReplyMode::Stream, PLAIN), CallMode::Stream);
        assert_eq!(call_mode(ReplyMode::Immediate, PLAIN), CallMode::Immediate);
        let silent = AnswerHabits { streams: false, ..PLAIN };
        assert_eq!(call_mode(ReplyMode::Stream, silent), CallMode::Immediate);
    }

    #[test]
    fn what_was_learnt_goes_before_what_the_caller_wants() {
        let worse_at_streams = AnswerHabits { prefers_streams: Some(false), ..PLAIN };
        assert_eq!(call_mode(ReplyMode::Stream, worse_at_streams), CallMode::Immediate);
        assert_eq!(call_mode(ReplyMode::Blocking, worse_at_streams), CallMode::Blocking);
        let worse_at_answers = AnswerHabits { prefers_streams: Some(true), ..PLAIN };
        assert_eq!(call_mode(ReplyMode::Blocking, worse_at_answers), CallMode::Stream);
        assert_eq!(call_mode(ReplyMode::Immediate, worse_at_answers), CallMode::Stream);
    }

    #[test]
    fn the_operators_word_goes_before_both() {
        for prefers_streams in [None, Some(true), Some(false)] {
            let never = AnswerHabits { setting: StreamMode::Never, prefers_streams, ..PLAIN };
            assert_eq!(call_mode(ReplyMode::Stream, never), CallMode::Immediate);
            assert_eq!(call_mode(ReplyMode::Blocking, never), CallMode::Blocking);
            let always = AnswerHabits { setting: StreamMode::Always, prefers_streams, streams: false, ..PLAIN };
            assert_eq!(call_mode(ReplyMode::Blocking, always), CallMode::Stream);
            let slim = AnswerHabits { only_streams: true, ..never };
            assert_eq!(call_mode(ReplyMode::Blocking, slim), CallMode::Stream);
        }
    }
}
