//! What reading costs: a message, a task and an event per version, in nanoseconds each.
#![allow(clippy::print_stdout, reason = "a bench says its numbers")]

use std::hint::black_box;
use std::time::Instant;

use chancery_protocol::Operation;
use chancery_wire::Codec;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;

fn per_call(mut work: impl FnMut()) -> f64 {
    const ROUNDS: usize = 400;
    const CALLS: u32 = 1_000;
    let round = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| work());
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    };
    (0..ROUNDS).map(|_| round(&mut work)).fold(f64::MAX, f64::min)
}

fn main() {
    let send_1 = r#"{"message":{"messageId":"0d7c-11","contextId":"c-1","role":"ROLE_USER","parts":[{"text":"how far is it to the moon?","mediaType":"text/plain"}],"metadata":{"a":1}},"configuration":{"historyLength":3}}"#;
    let send_3 = r#"{"message":{"kind":"message","messageId":"0d7c-11","contextId":"c-1","role":"user","parts":[{"kind":"text","text":"how far is it to the moon?"}],"metadata":{"a":1}},"configuration":{"historyLength":3}}"#;
    let event_1 = r#"{"artifactUpdate":{"taskId":"t-1","contextId":"c-1","artifact":{"artifactId":"a","parts":[{"text":"chunk of text"}]},"append":true}}"#;
    let event_3 = r#"{"kind":"artifact-update","taskId":"t-1","contextId":"c-1","artifact":{"artifactId":"a","parts":[{"kind":"text","text":"chunk of text"}]},"append":true,"lastChunk":false}"#;
    let report = |name: &str, cost: f64| println!("{name:<24}{cost:>9.0} ns");
    report("1.0 send", per_call(|| drop(black_box(V1_0.decode_request(Operation::SendMessage, black_box(send_1)).unwrap()))));
    report("0.3 send", per_call(|| drop(black_box(V0_3.decode_request(Operation::SendMessage, black_box(send_3)).unwrap()))));
    report("1.0 event", per_call(|| drop(black_box(V1_0.decode_event(black_box(event_1)).unwrap()))));
    report("0.3 event", per_call(|| drop(black_box(V0_3.decode_event(black_box(event_3)).unwrap()))));
    let send = V1_0.decode_request(Operation::SendMessage, send_1).unwrap();
    let event = V1_0.decode_event(event_1).unwrap();
    let mut out = Vec::with_capacity(4096);
    report(
        "1.0 send written",
        per_call(|| {
            out.clear();
            V1_0.encode_request(&mut out, black_box(&send)).unwrap();
        }),
    );
    let mut frames = chancery_wire::Frames::bare();
    report(
        "1.0 event written",
        per_call(|| {
            V1_0.encode_event(&mut frames, event.0.as_ref().unwrap(), black_box(&event.1));
            drop(frames.take());
        }),
    );
}
