//! A page of tasks as it is sent: written task by task, each read from the store when the caller has taken those before it.

use std::sync::Arc;

use bytes::Bytes;
use chancery_core::{AnswerPermit, PageEnd, PageReader};
use chancery_wire::Codec;
use chancery_wire::json::paging::PageParts;
use http::{HeaderValue, StatusCode};

use crate::response::{self, DoorResponse};
use crate::sse::EventBody;
use crate::unwritten::UnwrittenBuffers;

/// Tasks are written until they are this many bytes; then they are sent before the next is read.
const PIECE_BYTES: usize = 64 * 1024;

struct PageWriter {
    page: Box<PageReader>,
    parts: PageParts,
    /// What stands around the page.
    before: Vec<u8>,
    after: Vec<u8>,
    over: bool,
}

/// Answers with a page. A small one is one piece, as every other answer is.
pub(crate) async fn answer(
    page: Box<PageReader>,
    codec: &'static dyn Codec,
    content_type: HeaderValue,
    before: Vec<u8>,
    after: Vec<u8>,
) -> DoorResponse {
    let parts = PageParts::new(codec, page.includes_artifacts());
    let mut writer = PageWriter { page, parts, before, after, over: false };
    let mut first = std::mem::take(&mut writer.before);
    writer.parts.begin(&mut first);
    writer.write(&mut first).await;
    let permit = writer.page.take_permit();
    if writer.over {
        return match permit {
            Some(permit) => response::large(content_type, first, permit),
            None => response::whole(StatusCode::OK, content_type, first),
        };
    }
    let unwritten = Arc::<UnwrittenBuffers>::default();
    let first = counted(&unwritten, first, permit);
    let counting = Arc::clone(&unwritten);
    let pieces = futures::stream::unfold((Some(first), writer), move |(first, mut writer)| {
        let unwritten = Arc::clone(&counting);
        async move {
            if let Some(first) = first {
                return Some((first, (None, writer)));
            }
            if writer.over {
                return None;
            }
            let mut piece = Vec::new();
            writer.write(&mut piece).await;
            let permit = writer.page.take_permit();
            Some((counted(&unwritten, piece, permit), (None, writer)))
        }
    });
    response::in_pieces(content_type, EventBody::counted(pieces, unwritten))
}

impl PageWriter {
    /// Writes tasks until there are enough bytes, or the end of the page.
    async fn write(&mut self, out: &mut Vec<u8>) {
        while out.len() < PIECE_BYTES {
            match self.page.next().await {
                Some(shown) => self.parts.task(out, &shown),
                None => {
                    let PageEnd { next_page_token, page_size, total_size } = self.page.end();
                    self.parts.end(out, &next_page_token, page_size, total_size);
                    out.append(&mut self.after);
                    self.over = true;
                    return;
                }
            }
        }
    }
}

fn counted(unwritten: &Arc<UnwrittenBuffers>, bytes: Vec<u8>, permit: Option<AnswerPermit>) -> Bytes {
    let permit = permit.map(|mut permit| {
        permit.set(bytes.len() as u64);
        Arc::new(permit)
    });
    unwritten.count(bytes, permit)
}
