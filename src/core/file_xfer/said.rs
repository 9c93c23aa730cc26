//! What servers say of the whole file on the answers of links: their digests of it (Repr-Digest, Digest) vouch for the
//! version as those of the session's own answer do, once bytes of theirs were accepted as that version's.
//!
//! Some servers name the digest of the part that they send. One that names another digest with another range is found out by
//! that, and one that has spoken of a single range is not gone by. Servers that contradict each other are both kept:
//! what the file really is decides between them.

use crate::core::digest::{Algorithm, Expected};
use crate::core::file_xfer::LastWord;
use crate::core::file_xfer::machine::FileXfer;
use crate::core::range::ByteRange;
use crate::core::url::Origin;

/// So many answers of one origin are remembered.
const MAX_SAYINGS: usize = 8;

/// What one answer says of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saying {
    /// Who says it.
    pub origin: Origin,
    /// What the answer brings; `None` for the whole file.
    pub part: Option<ByteRange>,
    /// The digests.
    pub digests: Vec<Expected>,
}

/// What was said beside the session.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    /// What was vouched for before.
    given: Option<Vec<Expected>>,
    sayings: Vec<Saying>,
    /// Algorithms by which servers contradict each other, until that was told.
    disputed: Vec<Algorithm>,
    told: Vec<Algorithm>,
}

/// What an origin's sayings come to.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    /// These are of the whole.
    Firm(Vec<Expected>),
    /// What it says with parts is not about the whole.
    OfParts,
}

impl Said {
    fn add(&mut self, saying: Saying) {
        let of = self.sayings.iter().filter(|known| known.origin == saying.origin).count();
        if of < MAX_SAYINGS && !saying.digests.is_empty() && !self.sayings.contains(&saying) {
            self.sayings.push(saying);
        }
    }

    fn origins(&self) -> Vec<Origin> {
        let mut origins: Vec<Origin> = Vec::new();
        for saying in &self.sayings {
            if !origins.contains(&saying.origin) {
                origins.push(saying.origin.clone());
            }
        }
        origins
    }

    fn with_whole_answers(&self, origin: &Origin) -> Vec<Expected> {
        let whole = self.sayings.iter().filter(|saying| saying.origin == *origin && saying.part.is_none());
        whole.flat_map(|saying| saying.digests.clone()).collect()
    }

    /// What an origin said with a whole answer counts; with parts, what it said of two different ones alike.
    fn word_of(&self, origin: &Origin) -> Word {
        let (whole, parts): (Vec<&Saying>, Vec<&Saying>) =
            self.sayings.iter().filter(|saying| saying.origin == *origin).partition(|saying| saying.part.is_none());
        let all = whole.iter().chain(&parts).copied();
        if parts.iter().any(|part| all.clone().any(|other| differ(&part.digests, &other.digests))) {
            return Word::OfParts;
        }
        let twice = |digest: &Expected| {
            let ranges = parts.iter().filter(|saying| saying.digests.contains(digest)).map(|saying| saying.part);
            ranges.clone().any(|range| ranges.clone().any(|other| other != range))
        };
        let of_parts = parts.iter().flat_map(|saying| &saying.digests).filter(|digest| twice(digest));
        let mut firm: Vec<Expected> = Vec::new();
        for digest in whole.iter().flat_map(|saying| &saying.digests).chain(of_parts) {
            if !firm.contains(digest) {
                firm.push(digest.clone());
            }
        }
        Word::Firm(firm)
    }
}

/// Do they name different values by one algorithm?
pub(super) fn differ(some: &[Expected], others: &[Expected]) -> bool {
    some.iter().any(|a| others.iter().any(|b| a.algorithm == b.algorithm && a.bytes != b.bytes))
}

impl FileXfer {
    /// Bytes of a link were accepted, and its answers said this of the whole.
    pub fn said_beside(&mut self, sayings: Vec<Saying>) {
        if self.plan.digest == LastWord::Digest || sayings.is_empty() {
            return;
        }
        if self.said.given.is_none() {
            self.said.given = Some(self.dossier.part.vouched.clone());
            let own = self.open.as_ref().map(|open| Saying {
                origin: open.origin.clone(),
                part: (!open.whole).then(|| ByteRange::new(open.first, open.first)),
                digests: open.head.vouched(),
            });
            own.into_iter().for_each(|saying| self.said.add(saying));
        }
        sayings.into_iter().for_each(|saying| self.said.add(saying));
        self.weigh_what_was_said();
    }

    /// An origin was found to have another file: what it said is nothing to this one.
    pub fn unsaid(&mut self, origin: &Origin) {
        let before = self.said.sayings.len();
        self.said.sayings.retain(|saying| saying.origin != *origin);
        if self.said.sayings.len() < before {
            self.weigh_what_was_said();
        }
    }

    /// The algorithms by which servers contradict each other, as far as that was not told yet.
    pub fn take_disputed(&mut self) -> Vec<Algorithm> {
        let news = std::mem::take(&mut self.said.disputed);
        self.said.told.extend(&news);
        news
    }

    fn weigh_what_was_said(&mut self) {
        let own = self.open.as_ref().filter(|open| !open.whole).map(|open| (open.origin.clone(), open.head.vouched()));
        let mut vouched = self.said.given.clone().unwrap_or_default();
        for origin in self.said.origins() {
            let mut word = self.said.word_of(&origin);
            if self.notes(&origin).part_digests_lie {
                word = Word::OfParts;
            }
            let digests = match word {
                Word::Firm(digests) => digests,
                Word::OfParts => {
                    self.note(&origin, |notes| notes.part_digests_lie = true);
                    if let Some((_, digests)) = own.as_ref().filter(|(own, _)| *own == origin) {
                        vouched.retain(|digest| !digests.contains(digest));
                    }
                    self.said.with_whole_answers(&origin)
                }
            };
            let fresh: Vec<Expected> = digests.into_iter().filter(|d| !vouched.contains(d)).collect();
            vouched.extend(fresh);
        }
        for digest in &vouched {
            let (by, told) = (digest.algorithm, [&self.said.told[..], &self.said.disputed].concat());
            if differ(std::slice::from_ref(digest), &vouched) && !told.contains(&by) {
                self.said.disputed.push(by);
            }
        }
        self.dossier.part.vouched = vouched;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::range::Offset;

    fn saying(origin: &str, part: Option<u64>, digest: u8) -> Saying {
        let digests = vec![Expected::from_bytes(Algorithm::Sha256, vec![digest; 32]).expect("a digest")];
        let part = part.map(|at| ByteRange::new(Offset(at), Offset(at + 10)));
        Saying { origin: Origin::parse(origin).expect("an origin"), part, digests }
    }

    fn word(sayings: &[Saying]) -> Word {
        let mut said = Said::default();
        sayings.iter().cloned().for_each(|saying| said.add(saying));
        said.word_of(&sayings[0].origin)
    }

    #[test]
    fn one_range_is_not_enough_two_alike_are_and_a_whole_answer_is() {
        let (first, second) = (saying("http://a/", Some(0), 1), saying("http://a/", Some(50), 1));
        let firm = Word::Firm(first.digests.clone());
        assert_eq!(word(std::slice::from_ref(&first)), Word::Firm(vec![]));
        assert_eq!(word(&[first.clone(), first.clone()]), Word::Firm(vec![]));
        assert_eq!(word(&[first.clone(), saying("http://b/", Some(50), 1)]), Word::Firm(vec![]));
        assert_eq!(word(&[first.clone(), second]), firm);
        assert_eq!(word(&[saying("http://a/", None, 1), first]), firm);
    }

    #[test]
    fn who_says_otherwise_of_another_part_speaks_of_parts() {
        let (first, second) = (saying("http://a/", Some(0), 1), saying("http://a/", Some(50), 2));
        assert_eq!(word(&[first, second.clone()]), Word::OfParts);
        assert_eq!(word(&[saying("http://a/", None, 1), second]), Word::OfParts);
    }
}
