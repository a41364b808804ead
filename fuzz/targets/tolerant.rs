//! Any bytes as an agent's answer: reading never panics, and what the strict reader of the claimed version takes is read the same.
#![no_main]

use chancery_protocol::{Operation, Version};
use chancery_wire::json::original::Original;
use chancery_wire::json::v0_3::V0_3;
use chancery_wire::json::v1_0::V1_0;
use chancery_wire::tolerant::{self, ClaimedForm};
use chancery_wire::{Codec, JsonLimits, scan};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = scan(bytes, &JsonLimits::default()) else { return };
    for version in [Version::V1_0, Version::V0_3, Version::Original] {
        for is_rest in [false, true] {
            let claimed = ClaimedForm { version, is_rest, is_strict: false };
            if let Err(fault) = tolerant::event(claimed, text) {
                assert!(fault.shape.len() <= 512);
            }
            for operation in Operation::ALL {
                let _ = tolerant::reply(claimed, operation, text);
            }
        }
        let codec: &dyn Codec = match version {
            Version::V1_0 => &V1_0,
            Version::V0_3 => &V0_3,
            Version::Original => &Original,
        };
        // A strict reader is the measure as long as its reading is certain: no other version has a word in it.
        if let (Ok(strict), Ok(Some(read))) = (codec.decode_event(text), tolerant::event(version, text))
            && read.leniencies.is_empty()
        {
            assert_eq!(read.value, strict);
        }
    }
    let _ = tolerant::card(text);
    let _ = tolerant::envelope(text, "\"1\"");
});
