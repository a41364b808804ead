//! Artifacts of every kind of part.

use bytes::Bytes;
use chancery_protocol::{Part, PartContent};
use serde_json::json;

use super::directive::Sample;

pub(super) fn parts(sample: Sample) -> Vec<Part> {
    match sample {
        Sample::Text => vec![text()],
        Sample::File => vec![file()],
        Sample::Url => vec![url()],
        Sample::Data => vec![data()],
        Sample::Many => vec![text(), file(), url(), data(), Part::text("and a last word")],
    }
}

fn text() -> Part {
    Part { media_type: Some("text/plain".to_owned()), ..Part::text("a text") }
}

fn file() -> Part {
    Part {
        filename: Some("sample.bin".to_owned()),
        media_type: Some("application/octet-stream".to_owned()),
        ..Part::new(PartContent::Raw(Bytes::from_static(&[0, 1, 2, 0xfd, 0xfe, 0xff])))
    }
}

fn url() -> Part {
    Part {
        filename: Some("sample.png".to_owned()),
        media_type: Some("image/png".to_owned()),
        ..Part::new(PartContent::Url("https://example.org/sample.png".to_owned()))
    }
}

fn data() -> Part {
    Part {
        media_type: Some("application/json".to_owned()),
        ..Part::data(&json!({ "colour": "blue", "sizes": [1, 2.5], "none": null }))
    }
}
