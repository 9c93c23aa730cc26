//! Ranges: answers to a range request that are another range, call themselves one, or are in another form.

use std::ops::Range;
use std::sync::Arc;

use rand::RngExt;
use rand::rngs::StdRng;

use super::lies::{Lie, Turn};
use crate::support::Reply;

impl Turn<'_> {
    pub(super) fn other_range(&mut self, lie: Lie) -> Reply {
        let size = self.data().len();
        let Some(asked) = self.range() else { return self.whole() };
        let label = |r: &Range<usize>| format!("bytes {}-{}/{size}", r.start, r.end - 1);
        let at = |rng: &mut StdRng, r: Range<usize>| if r.is_empty() { r.start } else { rng.random_range(r) };
        match lie {
            Lie::Earlier => {
                let range = at(&mut self.rng, 0..asked.start)..asked.end;
                self.partial(range.clone(), &label(&range))
            }
            Lie::Sooner => {
                let range = asked.start..at(&mut self.rng, asked.start + 1..asked.end);
                self.partial(range.clone(), &label(&range))
            }
            Lie::Later => {
                let range = at(&mut self.rng, asked.start + 1..size).min(size - 1)..size;
                self.partial(range.clone(), &label(&range))
            }
            Lie::LengthOfAnother => {
                let part = asked.start..at(&mut self.rng, asked.clone()).max(asked.start + 1);
                self.partial(part, &label(&asked))
            }
            // The right label for bytes from elsewhere in the file.
            _ => {
                let from = at(&mut self.rng, 0..size - asked.len() + 1);
                self.partial(from..from + asked.len(), &label(&asked))
            }
        }
    }

    pub(super) fn other_label(&mut self, lie: Lie) -> Reply {
        let size = self.data().len();
        let Some(asked) = self.range() else { return self.whole() };
        let (first, last) = (asked.start, asked.end - 1);
        match lie {
            Lie::NoContentRange => self.partial(asked, "x").instead("Content-Range", None),
            Lie::OddContentRange => {
                let odd = [
                    "bytes".to_owned(),
                    format!("bytes {last}-{first}/{size}"),
                    format!("items {first}-{last}/{size}"),
                    format!("bytes={first}-{last}/{size}"),
                    format!("bytes {first}-{last}/{last}"),
                    format!("bytes -{first}-{last}/{size}"),
                    format!("bytes {}-{}/{}", u64::MAX - 1, u64::MAX, u64::MAX),
                ];
                let odd = odd[self.rng.random_range(0..odd.len())].clone();
                self.partial(asked, &odd)
            }
            Lie::TwoContentRanges => {
                let reply = self.partial(asked, &format!("bytes {first}-{last}/{size}"));
                reply.header("Content-Range", &format!("bytes 0-{}/{size}", last - first))
            }
            // The same range of a file that is longer, or of one that ends here.
            _ if self.rng.random_bool(0.5) || first == last => {
                let total = size + self.rng.random_range(1..9_000);
                self.partial(asked, &format!("bytes {first}-{last}/{total}"))
            }
            _ => {
                let end = self.rng.random_range(first + 1..=last);
                self.partial(first..end, &format!("bytes {first}-{}/{end}", end - 1))
            }
        }
    }

    pub(super) fn odd_range(&mut self, lie: Lie) -> Reply {
        let size = self.data().len();
        let asked = self.range();
        match (lie, asked) {
            (Lie::StarTotal, Some(r)) => {
                let r = if self.rng.random_bool(0.5) { r.start..r.start + r.len().div_ceil(2) } else { r };
                self.partial(r.clone(), &format!("bytes {}-{}/*", r.start, r.end - 1))
            }
            (Lie::Multipart, Some(r)) => {
                let mut body =
                    format!("--X\r\nContent-Range: bytes {}-{}/{size}\r\n\r\n", r.start, r.end - 1).into_bytes();
                body.extend_from_slice(&self.data()[r.clone()]);
                body.extend_from_slice(b"\r\n--X--\r\n");
                let (n, body) = (body.len(), Arc::new(body));
                let reply = self.partial(r.clone(), &format!("bytes {}-{}/{size}", r.start, r.end - 1));
                reply.instead("Content-Type", Some("multipart/byteranges; boundary=X")).body(&body, 0..n)
            }
            (Lie::Unasked206, None) => self.partial(0..size, &format!("bytes 0-{}/{size}", size - 1)),
            (Lie::PartOf200, Some(r)) if r.start > 0 => {
                let label = format!("bytes {}-{}/{size}", r.start, r.end - 1);
                self.partial(r, &label).with_status(200)
            }
            _ => self.right(),
        }
    }
}
