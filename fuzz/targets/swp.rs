//! Octets of strangers as one SWP connection: nothing panics, pieces do not matter, and what is read can be written and read again.
#![no_main]

use chancery_swp::a2a::A2aMessage;
use chancery_swp::{Envelope, FramePayload, Lifecycle, Party, Reader, Received, Reject, Speakers, SwpLimits, Timestamps};
use libfuzzer_sys::fuzz_target;

fn read(stream: &[u8], piece: usize, limits: &SwpLimits) -> (Vec<Result<Received, Reject>>, Result<(), Reject>) {
    let mut reader = Reader::new(limits.clone());
    let mut read = Vec::new();
    for octets in stream.chunks(piece) {
        reader.push(octets);
        while let Ok(Some(body)) = reader.next_frame() {
            read.push(reader.read(body, Timestamps::Ignored, 0));
        }
    }
    let end = reader.finish();
    (read, end)
}

fuzz_target!(|stream: &[u8]| {
    let limits = SwpLimits { max_frame_bytes: 4096, ..SwpLimits::default() };
    let whole = read(stream, stream.len().max(1), &limits);
    assert_eq!(read(stream, 3, &limits), whole);

    let mut lifecycle = Lifecycle::new(&limits, Speakers::Anyone);
    for Received { envelope, payload } in whole.0.into_iter().flatten() {
        // Padded numbers are written shorter than they were read, so a frame that was read can always be written.
        let frame = envelope.encode(&limits).expect("what was taken can be sent");
        let again = Envelope::decode(frame.slice(4..), &limits).expect("what was sent can be read");
        assert_eq!(again, envelope);
        if let FramePayload::A2a(message) = payload {
            let again =
                A2aMessage::read(message.msg_type(), message.to_payload(), &limits).expect("what was read can be written");
            assert_eq!(again, message);
            let _ = lifecycle.accept(Party::Peer, &message);
        }
    }
});
