//! A connection that asks for the metrics: one request, one answer.

use std::io::Result;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::core::metrics::{Asked, HttpAnswer, Reach, asked};
use crate::io::listen::seats::{Seat, Standing};
use crate::io::listen::{Ask, stream};

/// So long a request may take to come whole.
const WHOLE: Duration = Duration::from_secs(10);

/// Serves it.
pub(super) async fn attend(stream: TcpStream, reach: Reach, asks: &mpsc::Sender<Ask>, seat: &Seat) -> Result<()> {
    let until = Instant::now() + WHOLE;
    let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
    let asked = loop {
        if let Some(asked) = asked(&head, reach) {
            break asked;
        }
        match stream::read(&stream, &mut buffer, until).await? {
            [] => return Ok(()),
            bytes => head.extend_from_slice(bytes),
        }
    };
    seat.stands(Standing::Asking);
    let mut answer = match (asked, metrics(asked, asks).await) {
        (Asked::Nothing(answer), _) => answer.to_bytes(""),
        (_, Some(text)) => HttpAnswer::Ok.to_bytes(&text),
        (_, None) => HttpAnswer::Unavailable.to_bytes(""),
    };
    if asked == Asked::Head {
        let end = memchr::memmem::find(&answer, b"\r\n\r\n").map_or(answer.len(), |end| end + 4);
        answer.truncate(end);
    }
    stream::write(&stream, &answer).await
}

async fn metrics(asked: Asked, asks: &mpsc::Sender<Ask>) -> Option<String> {
    if matches!(asked, Asked::Nothing(_)) {
        return None;
    }
    let (answer, answered) = oneshot::channel();
    asks.send(Ask::Metrics(answer)).await.ok()?;
    answered.await.ok()
}
