//! A TCP proxy between a store and its database. It cuts connections around a commit, swallows answers, and can take the fence out
//! of the statements that pass.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CutPoint {
    /// The commit does not reach the database.
    BeforeCommit,
    /// The commit is on its way when the connection breaks.
    InCommit,
    /// The database has committed, and its answer is lost.
    AfterCommit,
    /// A statement in the middle of a batch does not reach the database, and nothing after it.
    InBatch,
    /// The commit reaches the database, and no answer comes back, while the connection stays.
    Silence,
}

impl CutPoint {
    pub(crate) const ALL: [Self; 5] = [Self::BeforeCommit, Self::InCommit, Self::AfterCommit, Self::InBatch, Self::Silence];
}

/// A cut that is still to come: at the commit after so many others.
#[derive(Debug, Default)]
struct PlannedCut(Mutex<Option<(CutPoint, usize)>>);

#[derive(Debug)]
struct ProxyState {
    target: u16,
    cut: PlannedCut,
    cuts: AtomicUsize,
    /// New connections are refused, and those that are there end.
    away: watch::Sender<bool>,
    without_fence: AtomicBool,
}

#[derive(Clone, Debug)]
pub(crate) struct FaultyProxy {
    address: SocketAddr,
    state: Arc<ProxyState>,
}

/// What the last message of a batch has in it.
const COMMIT: &[u8] = b"; COMMIT; SELECT batch FROM writers";
/// The answer to a commit.
const COMMITTED: &[u8] = b"COMMIT\0";
/// The code of the message that asks for TLS.
const ASKS_FOR_TLS: [u8; 4] = 80_877_103_u32.to_be_bytes();
/// The condition that makes the fence, and one of the same length that always holds.
const FENCE: &[u8] = b"AND batch = $7 AND NOT closed";
const NO_FENCE: &[u8] = b"AND $7::bigint IS NOT NULL   ";
/// What asks whether the row is closed, and one of the same length that says that it is not.
const ASKS_FOR_CLOSED: &[u8] = b"SELECT batch, closed FROM";
const NEVER_CLOSED: &[u8] = b"SELECT batch, false  FROM";

impl FaultyProxy {
    /// Leads to a port of this machine.
    pub(crate) async fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = Arc::new(ProxyState {
            target,
            cut: PlannedCut::default(),
            cuts: AtomicUsize::new(0),
            away: watch::Sender::new(false),
            without_fence: AtomicBool::new(false),
        });
        let proxy = Self { address: listener.local_addr().unwrap(), state };
        let state = Arc::clone(&proxy.state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !*state.away.borrow() {
                    tokio::spawn(carry(client, Arc::clone(&state)));
                }
            }
        });
        proxy
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Cuts a connection at the commit that comes after so many others.
    pub(crate) fn cut(&self, point: CutPoint, after: usize) {
        *self.state.cut.0.lock().unwrap() = Some((point, after));
    }

    /// How many cuts were made.
    pub(crate) fn cuts(&self) -> usize {
        self.state.cuts.load(Ordering::SeqCst)
    }

    /// Makes the database unreachable, or reachable again.
    pub(crate) fn set_away(&self, away: bool) {
        self.state.away.send_replace(away);
    }

    /// Takes the fence out of every statement that is prepared from now on.
    pub(crate) fn take_fence_out(&self) {
        self.state.without_fence.store(true, Ordering::SeqCst);
    }
}

impl PlannedCut {
    /// Counts a commit. Answers how it is to be cut, if it is.
    fn at_commit(&self) -> Option<CutPoint> {
        let mut plan = self.0.lock().unwrap();
        match &mut *plan {
            Some((point, 0)) => {
                let point = *point;
                *plan = None;
                Some(point)
            }
            Some((_, left)) => {
                *left -= 1;
                None
            }
            None => None,
        }
    }
}

async fn carry(client: TcpStream, state: Arc<ProxyState>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", state.target)).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // What happens to answers from the cut on.
    let (cut, cut_seen) = watch::channel(None);
    let mut away = state.away.subscribe();
    tokio::select! {
        () = requests(from_client, to_server, &state, cut) => {}
        () = answers(from_server, to_client, &state, cut_seen) => {}
        _ = away.wait_for(|away| *away) => {}
    }
}

/// Passes whole messages on, so that a cut is between two of them.
async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &ProxyState, cut: watch::Sender<Option<CutPoint>>) {
    let (mut buffer, mut started) = (Vec::new(), false);
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut chunk).await else { return };
        buffer.extend_from_slice(&chunk[..read]);
        while let Some(length) = message_length(&buffer, started) {
            let mut message: Vec<u8> = buffer.drain(..length).collect();
            // Before it starts a session, a client may ask for TLS, in the same form.
            started |= message.get(4..8) != Some(&ASKS_FOR_TLS);
            if state.without_fence.load(Ordering::SeqCst) {
                for (text, other) in [(FENCE, NO_FENCE), (ASKS_FOR_CLOSED, NEVER_CLOSED)] {
                    if let Some(place) = find(&message, text) {
                        message[place..place + text.len()].copy_from_slice(other);
                    }
                }
            }
            let point = find(&message, COMMIT).and_then(|_| state.cut.at_commit());
            if let Some(point) = point {
                if matches!(point, CutPoint::InCommit | CutPoint::AfterCommit | CutPoint::Silence) {
                    cut.send_replace(Some(point));
                    drop(to.write_all(&message).await);
                }
                if point == CutPoint::AfterCommit {
                    // It is cut when the database has answered.
                    continue;
                }
                state.cuts.fetch_add(1, Ordering::SeqCst);
                if point == CutPoint::Silence {
                    continue;
                }
                return;
            }
            // A batch is sent in one piece: of one that is to be cut in its middle, only the first messages pass.
            let is_cut_here = matches!(*state.cut.0.lock().unwrap(), Some((CutPoint::InBatch, 0)));
            if is_cut_here && find(&buffer, COMMIT).is_some() && message.first() == Some(&b'B') {
                *state.cut.0.lock().unwrap() = None;
                state.cuts.fetch_add(1, Ordering::SeqCst);
                return;
            }
            if to.write_all(&message).await.is_err() {
                return;
            }
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &ProxyState, cut: watch::Receiver<Option<CutPoint>>) {
    let mut chunk = vec![0; 64 * 1024];
    let mut lost = Vec::new();
    loop {
        let Ok(read @ 1..) = from.read(&mut chunk).await else { return };
        let seen = *cut.borrow();
        match seen {
            None => {
                if to.write_all(&chunk[..read]).await.is_err() {
                    return;
                }
            }
            Some(CutPoint::AfterCommit) => {
                lost.extend_from_slice(&chunk[..read]);
                if find(&lost, COMMITTED).is_some() {
                    state.cuts.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
            Some(_) => {}
        }
    }
}

/// The length of the message that a buffer begins with, if all of it is there. The first message has no letter before its length.
fn message_length(buffer: &[u8], started: bool) -> Option<usize> {
    let letter = usize::from(started);
    let length = u32::from_be_bytes(buffer.get(letter..letter + 4)?.try_into().unwrap()) as usize + letter;
    (buffer.len() >= length).then_some(length)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
