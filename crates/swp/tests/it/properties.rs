//! Properties of reading and writing: what is written is read back, pieces do not matter, and no octets make it panic.

use bytes::Bytes;
use chancery_swp::a2a::{A2aMessage, SwpEventMessage, SwpHandshake, SwpTaskMessage, TaskResult};
use chancery_swp::{
    Envelope, Extension, Extensions, FrameDecoder, FramePayload, FrameReason, Lifecycle, MessageEffect, Party, Profile, Reader,
    Reject, Speakers, SwpLimits, Timestamps, agdisc, obs,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn octets(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

fn extensions() -> impl Strategy<Value = Extensions> {
    let one = (any::<u64>(), octets(12)).prop_map(|(ext_type, value)| Extension { ext_type, value });
    vec(one, 0..4).prop_map(|all| all.into_iter().collect())
}

prop_compose! {
    fn envelope()(
        profile in proptest::sample::select(&Profile::ALL[..]),
        msg_type in 1u64..,
        flags in any::<u64>(),
        ts_unix_ms in any::<u64>(),
        msg_id in vec(any::<u8>(), 8..=64),
        extensions in extensions(),
        payload in octets(200),
    ) -> Envelope {
        Envelope { flags, extensions, ..Envelope::new(profile, msg_type, msg_id.into(), ts_unix_ms, payload) }
    }
}

fn said() -> impl Strategy<Value = String> {
    "\\PC{0,6}[a-z]"
}

fn message() -> impl Strategy<Value = A2aMessage> {
    let task_id = || vec(any::<u8>(), 1..20).prop_map(Bytes::from);
    prop_oneof![
        (said(), vec("\\PC{0,6}", 0..4))
            .prop_map(|(agent_id, capabilities)| A2aMessage::Handshake(SwpHandshake { agent_id, capabilities })),
        (task_id(), said(), octets(50)).prop_map(|(task_id, kind, input)| A2aMessage::Task(SwpTaskMessage {
            task_id,
            kind,
            input
        })),
        (task_id(), said(), octets(50)).prop_map(|(task_id, message, event_payload)| A2aMessage::Event(SwpEventMessage {
            task_id,
            message,
            event_payload
        })),
        (task_id(), any::<bool>(), octets(50), said()).prop_map(|(task_id, ok, output, error_message)| A2aMessage::Result(
            TaskResult { task_id, ok, output, error_message }
        )),
    ]
}

fn card_message() -> impl Strategy<Value = agdisc::AgdiscMessage> {
    use agdisc::{AgdiscMessage, Doc, Failure, GetCard, NotModified};
    prop_oneof![
        (said(), said()).prop_map(|(agent_id, if_none_match)| AgdiscMessage::Get(GetCard { agent_id, if_none_match })),
        (said(), said(), octets(50), said(), any::<u64>()).prop_map(
            |(agent_id, schema_revision, card_payload, etag, max_age_ms)| AgdiscMessage::Doc(Doc {
                agent_id,
                schema_revision,
                card_payload,
                etag,
                max_age_ms
            })
        ),
        (said(), said()).prop_map(|(agent_id, etag)| AgdiscMessage::NotModified(NotModified { agent_id, etag })),
        (said(), said()).prop_map(|(code, message)| AgdiscMessage::Failure(Failure { code, message })),
    ]
}

fn trace_message() -> impl Strategy<Value = obs::ObsMessage> {
    use obs::{GetTraceContext, ObsMessage, TraceContext};
    let context = || {
        (said(), said(), octets(16), octets(16), octets(16)).prop_map(|(traceparent, tracestate, msg_id, task_id, rpc_id)| {
            TraceContext { traceparent, tracestate, msg_id, task_id, rpc_id }
        })
    };
    prop_oneof![
        context().prop_map(ObsMessage::Set),
        context().prop_map(ObsMessage::Doc),
        any::<bool>().prop_map(|include_current| ObsMessage::Get(GetTraceContext { include_current })),
    ]
}

/// All bodies and the refusal that ended them, if one did.
fn frames(decoder: &mut FrameDecoder) -> (Vec<Bytes>, Option<Reject>) {
    let mut bodies = Vec::new();
    loop {
        match decoder.next_frame() {
            Ok(Some(body)) => bodies.push(body),
            Ok(None) => return (bodies, None),
            Err(reject) => return (bodies, Some(reject)),
        }
    }
}

fn in_pieces(stream: &[u8], pieces: &[usize], limits: &SwpLimits) -> (Vec<Bytes>, Option<Reject>, Result<(), Reject>) {
    let mut decoder = FrameDecoder::new(limits);
    let (mut all, mut refusal, mut rest) = (Vec::new(), None, stream);
    let mut lengths = pieces.iter().cycle();
    while !rest.is_empty() {
        let length = lengths.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (piece, after) = rest.split_at(length);
        decoder.push(piece);
        let (bodies, reject) = frames(&mut decoder);
        all.extend(bodies);
        refusal = refusal.or(reject);
        rest = after;
    }
    (all, refusal, decoder.finish())
}

proptest! {
    #[test]
    fn an_envelope_is_read_back_as_it_was_written(envelope in envelope()) {
        let limits = SwpLimits::default();
        let frame = envelope.encode(&limits).expect("is valid");
        let mut decoder = FrameDecoder::new(&limits);
        decoder.push(&frame);
        let body = decoder.next_frame().expect("is a frame").expect("is whole");
        let read = Envelope::decode(body, &limits).expect("is an envelope");
        prop_assert_eq!(&read, &envelope);
        prop_assert_eq!(read.encode(&limits), Ok(frame));
    }

    #[test]
    fn a_message_is_read_back_as_it_was_written(message in message()) {
        let limits = SwpLimits::default();
        let payload = message.to_payload();
        let read = A2aMessage::read(message.msg_type(), payload.clone(), &limits).expect("reads");
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(read.to_payload(), payload);
    }

    #[test]
    fn cards_and_trace_contexts_are_read_back_as_they_were_written(card in card_message(), trace in trace_message()) {
        prop_assert_eq!(agdisc::AgdiscMessage::read(card.msg_type(), card.to_payload()), Ok(card));
        prop_assert_eq!(obs::ObsMessage::read(trace.msg_type(), trace.to_payload()), Ok(trace));
    }

    #[test]
    fn what_is_bytes_in_a_message_lies_where_the_payload_lies(input in vec(any::<u8>(), 1..100)) {
        let task = A2aMessage::Task(SwpTaskMessage { task_id: Bytes::from_static(b"t"), kind: "k".into(), input: input.into() });
        let payload = task.to_payload();
        let Ok(A2aMessage::Task(read)) = A2aMessage::read(2, payload.clone(), &SwpLimits::default()) else { panic!("is a task") };
        prop_assert!(payload.as_ptr_range().contains(&read.input.as_ptr()));
    }

    #[test]
    fn pieces_give_the_same_frames_as_the_whole(
        envelopes in vec(envelope(), 0..5), tail in octets(8), pieces in vec(1usize..40, 1..10), max in 100u32..400,
    ) {
        let limits = SwpLimits { max_frame_bytes: max, ..SwpLimits::default() };
        let mut stream: Vec<u8> = envelopes.iter().flat_map(|e| e.encode(&SwpLimits::default()).expect("is valid")).collect();
        stream.extend(&tail);
        prop_assert_eq!(in_pieces(&stream, &pieces, &limits), in_pieces(&stream, &[stream.len()], &limits));
    }

    #[test]
    fn no_octets_make_the_reader_panic(stream in vec(any::<u8>(), 0..300), pieces in vec(1usize..40, 1..10)) {
        let limits = SwpLimits { max_frame_bytes: 200, ..SwpLimits::default() };
        let _ = in_pieces(&stream, &pieces, &limits);
        // As a body too, because random octets seldom begin with a sensible length.
        let mut reader = Reader::new(limits);
        let _ = reader.read(stream.into(), Timestamps::Checked { now_ms: 1, allow_zero: true }, 0);
    }

    #[test]
    fn no_payload_makes_a_profile_panic(
        profile in proptest::sample::select(&Profile::ALL[..]), msg_type in 0u64..7, payload in octets(100),
    ) {
        let envelope = Envelope::new(profile, msg_type, Bytes::from_static(b"exchange"), 0, payload);
        let _ = FramePayload::read(&envelope, &SwpLimits::default());
    }

    #[test]
    fn an_octet_changed_on_the_way_never_panics(message in message(), at in any::<proptest::sample::Index>(), to in any::<u8>()) {
        let limits = SwpLimits::default();
        let msg_id = Bytes::from_static(b"exchange");
        let envelope = Envelope::new(Profile::A2a, message.msg_type(), msg_id, 1, message.to_payload());
        let mut frame = envelope.encode(&limits).expect("is valid").to_vec();
        let at = at.index(frame.len());
        frame[at] = to;
        let mut reader = Reader::new(limits);
        reader.push(&frame);
        if let Ok(Some(body)) = reader.next_frame() {
            let _ = reader.read(body, Timestamps::Ignored, 0);
        }
        let _ = reader.finish();
    }

    #[test]
    fn a_lifecycle_agrees_with_a_plain_list_of_what_was_said(script in vec((0u8..3, 0u8..3, 0u8..2), 0..60)) {
        let mut lifecycle = Lifecycle::new(&SwpLimits::default(), Speakers::Anyone);
        let mut accepted: Vec<A2aMessage> = Vec::new();
        for (id, what, variant) in script {
            let message = short(id, what, variant);
            let about = |m: &&A2aMessage| m.task_id() == message.task_id();
            let task = accepted.iter().find(|m| about(m) && matches!(m, A2aMessage::Task(_)));
            let result = accepted.iter().find(|m| about(m) && matches!(m, A2aMessage::Result(_)));
            let expected = match (&message, task, result) {
                (A2aMessage::Task(_), None, _) => Ok(MessageEffect::Started),
                (A2aMessage::Task(_), Some(known), _) if *known != message => Err(FrameReason::TaskConflict),
                (A2aMessage::Event(_) | A2aMessage::Result(_), None, _) => Err(FrameReason::UnknownTask),
                (A2aMessage::Event(_), _, Some(_)) => Err(FrameReason::EventAfterResult),
                (A2aMessage::Result(_), _, None) => Ok(MessageEffect::Closed),
                (A2aMessage::Result(_), _, Some(known)) if *known != message => Err(FrameReason::ResultConflict),
                (A2aMessage::Result(_), _, Some(_)) => Ok(MessageEffect::AlreadyClosed),
                (A2aMessage::Event(_), Some(_), None) => {
                    let before = accepted.iter().filter(|m| about(m) && matches!(m, A2aMessage::Event(_))).count();
                    Ok(MessageEffect::Progressed { event: before as u64 + 1 })
                }
                (A2aMessage::Task(_), Some(_), closed) => {
                    let state = if closed.is_some() { chancery_swp::SwpTaskState::Closed } else { chancery_swp::SwpTaskState::Open };
                    Ok(MessageEffect::AlreadyStarted { state })
                }
                (A2aMessage::Handshake(_), ..) => Ok(MessageEffect::Greeted),
            };
            let got = lifecycle.accept(Party::Peer, &message).map_err(|reject| reject.reason());
            prop_assert_eq!(got, expected);
            if got.is_ok() {
                accepted.push(message);
            }
        }
    }
}

fn short(id: u8, what: u8, variant: u8) -> A2aMessage {
    let task_id = Bytes::from(vec![id]);
    let words = format!("words {variant}");
    match what {
        0 => A2aMessage::Task(SwpTaskMessage { task_id, kind: words, input: Bytes::new() }),
        1 => A2aMessage::Event(SwpEventMessage { task_id, message: words, event_payload: Bytes::new() }),
        _ => A2aMessage::Result(TaskResult::failure(task_id, words)),
    }
}

#[test]
fn by_default_frames_payloads_and_extensions_are_taken_up_to_the_protocols_limits() {
    let limits = SwpLimits::default();
    let of = |extension: usize, payload: usize| {
        let value = Bytes::from(vec![b'x'; extension]);
        let extensions = [Extension { ext_type: 16, value }].into_iter().collect();
        let msg_id = Bytes::from_static(b"exchange");
        Envelope { extensions, ..Envelope::new(Profile::Mcp, 1, msg_id, 0, vec![b'p'; payload].into()) }
    };
    let written = |envelope: Envelope| envelope.encode(&limits).map_err(|reject| reject.reason());
    // A type and a length of two octets stand beside the 4,093 of the value.
    assert_eq!(of(4093, 0).extensions.as_block().len(), 4096);
    assert!(written(of(4093, 0)).is_ok());
    assert_eq!(written(of(4094, 0)), Err(FrameReason::ExtensionsTooLarge));

    // Five numbers, the id, three octets of extensions with their length, and the payload's length of four octets.
    let room = 8_388_608 - (5 + 9 + 3 + 4);
    let largest = written(of(0, room)).expect("fits");
    assert_eq!(largest.len(), 4 + 8_388_608);
    let mut reader = Reader::new(limits.clone());
    reader.push(&largest);
    let body = reader.next_frame().expect("is not too large").expect("is whole");
    assert!(reader.read(body, Timestamps::Ignored, 0).is_ok());
    assert_eq!(written(of(0, room + 1)), Err(FrameReason::FrameTooLarge));

    let wide = SwpLimits { max_frame_bytes: u32::MAX, ..limits.clone() };
    assert!(of(0, 8_388_608).encode(&wide).is_ok());
    assert_eq!(of(0, 8_388_609).encode(&wide).map_err(|reject| reject.reason()), Err(FrameReason::PayloadTooLarge));
}
