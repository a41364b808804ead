//! A node leaves by itself: what it holds is for the others, at once.

use super::forwarded;
use crate::postgres::columns::DatabaseSession;
use crate::postgres::fault::PostgresFault;
use crate::postgres::writer_state::WriterState;

const LEAVE: &str =
    "UPDATE nodes SET gone = true, lease_until = now() WHERE node = $1 AND life = $2::text::uuid AND successor IS NULL";

/// Turns that were under way can be resumed by any node.
const RELEASE_ALL: &str = "UPDATE tasks SET node = NULL, released = stage = 1 WHERE node = $1";

/// Nodes that this one succeeded and whose tasks it has not taken completely get another successor.
const HAND_BACK: &str = "UPDATE nodes SET successor = NULL WHERE successor = $1
     AND (EXISTS (SELECT 1 FROM tasks WHERE tasks.node = nodes.node)
          OR EXISTS (SELECT 1 FROM writers WHERE writers.node = nodes.node AND NOT closed))";

/// A transaction of its own. Tasks that were made before it are released by it, and none is made after it.
pub(super) async fn leave(state: &mut WriterState) -> Result<(), PostgresFault> {
    state.has_left = true;
    let (session, identity) = (state.session()?, state.identity.clone());
    session.execute(LEAVE, &[&identity.node, &identity.life]).await?;
    session.execute(RELEASE_ALL, &[&identity.node]).await?;
    state.news.add_answers(forwarded::mark_moved(&*session, identity.node, None).await?);
    session.execute(HAND_BACK, &[&identity.node]).await?;
    Ok(())
}
