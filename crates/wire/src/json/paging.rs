//! A page of tasks written task by task, for pages that are sent while they are read. 0.3 and 1.0 have the same page.

use std::io::Write as _;

use chancery_protocol::NamedTask;

use crate::codec::Codec;
use crate::json::write::write;

/// Writes the parts of one page in their order: `begin`, a `task` each, `end`.
#[derive(Debug)]
pub struct PageParts {
    codec: &'static dyn Codec,
    include_artifacts: bool,
    begun: bool,
}

impl PageParts {
    pub fn new(codec: &'static dyn Codec, include_artifacts: bool) -> Self {
        Self { codec, include_artifacts, begun: false }
    }

    pub fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"tasks":["#);
    }

    pub fn task(&mut self, out: &mut Vec<u8>, shown: &NamedTask) {
        if std::mem::replace(&mut self.begun, true) {
            out.push(b',');
        }
        self.codec.encode_listed(out, shown, self.include_artifacts);
    }

    pub fn end(&self, out: &mut Vec<u8>, next_page_token: &str, page_size: i32, total_size: i32) {
        out.extend_from_slice(br#"],"nextPageToken":"#);
        write(out, next_page_token);
        // Writing to a Vec cannot fail.
        let _ = write!(out, r#","pageSize":{page_size},"totalSize":{total_size}}}"#);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chancery_protocol::{Artifact, Part, Reply, Task, TaskPage, TaskState, TaskStatus, Version};

    use super::*;
    use crate::json::v0_3::V0_3;
    use crate::json::v0_3::rest::V0_3Rest;
    use crate::json::v0_3::wrapped::V0_3Wrapped;
    use crate::json::v1_0::V1_0;

    fn shown(id: &str) -> NamedTask {
        let task = Task {
            id: id.into(),
            context_id: "c".into(),
            status: TaskStatus { state: TaskState::Working, message: None, timestamp: None, unknown: Default::default() },
            artifacts: vec![Arc::new(Artifact::new("a", vec![Part::text("x")]))],
            history: Vec::new(),
            metadata: None,
            unknown: Default::default(),
        };
        NamedTask { task: Arc::new(task), dialect: Version::V1_0.into(), client_task_id: None }
    }

    #[test]
    fn a_page_in_parts_is_the_page_that_is_written_at_once_in_every_version() {
        for codec in [&V1_0 as &'static dyn Codec, &V0_3, &V0_3Rest, &V0_3Wrapped] {
            for (tasks, include_artifacts) in [(vec![], false), (vec![shown("1")], true), (vec![shown("1"), shown("2")], false)] {
                let mut parts = PageParts::new(codec, include_artifacts);
                let mut written = Vec::new();
                parts.begin(&mut written);
                tasks.iter().for_each(|shown| parts.task(&mut written, shown));
                parts.end(&mut written, "to\"ken", 5, 7);
                let next_page_token = "to\"ken".to_owned();
                let page = TaskPage { tasks, next_page_token, page_size: 5, total_size: 7, include_artifacts };
                let mut whole = Vec::new();
                codec.encode_reply(&mut whole, &Reply::Tasks(page));
                assert_eq!(String::from_utf8(written).unwrap(), String::from_utf8(whole).unwrap(), "{codec:?}");
            }
        }
    }
}
