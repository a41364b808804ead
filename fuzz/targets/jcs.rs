//! Any bytes: reading never panics, and what is read has one canonical form that is its own canonical form.
#![no_main]

use chancery_identity::{jcs, strict_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(value) = strict_json::parse(text) else { return };
    // Whatever the strict reader takes, the usual one takes too, and for the same.
    assert_eq!(serde_json::from_str::<serde_json::Value>(text).ok().as_ref(), Some(&value));
    let once = jcs::canonical(&value).expect("what is read strictly has a canonical form");
    let once = String::from_utf8(once).expect("a canonical form is UTF-8");
    let again = strict_json::parse(&once).expect("a canonical form is read strictly");
    assert_eq!(jcs::canonical(&again).expect("and has a canonical form"), once.as_bytes());
});
