//! A connection of GUI RPC: many requests, one after the other, until the other end has enough or does not behave.

use std::io::{Error, Result};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::core::rpc::{Framer, Guard, Reply, Request, Verdict};
use crate::io::entropy::system_rng;
use crate::io::listen::seats::{Seat, Standing};
use crate::io::listen::{Ask, stream};

/// So long nothing may be asked.
const IDLE: Duration = Duration::from_secs(300);
/// So long a request may take to come whole.
const WHOLE: Duration = Duration::from_secs(30);

/// Serves it to its end.
pub(super) async fn attend(stream: TcpStream, password: &str, asks: &mpsc::Sender<Ask>, seat: &Seat) -> Result<()> {
    let (mut guard, mut framer) = (Guard::new(password, nonce()?), Framer::default());
    let mut buffer = [0; 4096];
    let mut began: Option<Instant> = None;
    loop {
        while let Some(frame) = framer.next_request().map_err(Error::other)? {
            began = None;
            seat.stands(if guard.has_proven() { Standing::Trusted } else { Standing::Asking });
            let request = Request::parse(&frame);
            let reply = match guard.admit(&request) {
                Verdict::Answer(reply) => Some(reply),
                Verdict::Pass => ask(request, asks).await,
                Verdict::Close => None,
            };
            let Some(reply) = reply else { return Ok(()) };
            stream::write(&stream, &reply.to_bytes()).await?;
            seat.stands(if guard.has_proven() { Standing::Trusted } else { Standing::Idle });
        }
        let now = Instant::now();
        let until = if framer.is_within() { *began.get_or_insert(now) + WHOLE } else { now + IDLE };
        match stream::read(&stream, &mut buffer, until).await? {
            [] => return Ok(()),
            bytes => framer.push(bytes),
        }
    }
}

/// What the loop says; nothing where it is about to end.
async fn ask(request: Request, asks: &mpsc::Sender<Ask>) -> Option<Reply> {
    let (answer, answered) = oneshot::channel();
    asks.send(Ask::Rpc(request, answer)).await.ok()?;
    answered.await.ok()
}

fn nonce() -> Result<String> {
    let mut rng = system_rng().map_err(Error::other)?;
    Ok(hex::encode(rand::RngExt::random::<[u8; 16]>(&mut rng)))
}
