//! One request and the head of its answer, as every connection of a session makes it: the user's fields where they may go,
//! and both heads told to the log.

use crate::core::failure::Failure;
use crate::core::file_xfer::{AnswerHead, Carry};
use crate::core::time::Delay;
use crate::io::driver::{Hands, trace};
use crate::io::transport::{Answer, Body, Hop};

impl Hands {
    /// Sends a request, and reads the head of what comes back; the body waits.
    ///
    /// # Errors
    /// As [`crate::io::transport::Client::get`].
    pub(super) async fn get(&self, hop: &Hop<'_>, first_byte: Delay) -> Result<(AnswerHead, Body), Failure> {
        let headers = self.credentials.headers(hop, &self.user_agent, self.clock.now().wall);
        trace::request(&hop.ask.url, &headers);
        let answer = match hop.ask.carry {
            // A server named it.
            Carry::Never => self.client.for_file_of(hop.first_origin).get(&hop.ask.url, headers, first_byte).await?,
            _ => self.client.get(&hop.ask.url, headers, first_byte).await?,
        };
        let Answer { status, framing, headers, body, .. } = answer;
        trace::answer(status, &headers);
        Ok((AnswerHead::read(status, framing, &headers, self.clock.now().wall), body))
    }
}
