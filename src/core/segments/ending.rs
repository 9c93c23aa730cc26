//! What the end of a link means for its seat, its origin, and the other links.

use crate::core::file_xfer::dossier::Ranges;
use crate::core::machine::Cx;
use crate::core::range::Length;
use crate::core::segments::link::{Example, Link, Phase};
use crate::core::segments::roster::Yield;
use crate::core::segments::{Action, Cuts, Ending, LinkId, Reach, Segments};
use crate::core::time::Mono;

/// A link that ends with less than this before its time makes the next one wait longer.
const MEAGRE: Length = Length(16 << 10);
/// A link that brought so much is an example of its origin's speed, however short it was open.
const TELLING: Length = Length(256 << 10);

impl Segments {
    pub(super) fn ended(&mut self, id: LinkId, ending: Ending, cx: &mut Cx<'_, Action>) {
        let Some(at) = self.links.iter().position(|link| link.id == id) else { return };
        let link = self.links.remove(at);
        self.measure(&link, cx.now.mono);
        if link.due.is_some() {
            // The others get as long again.
            self.pace.begin_anew(cx.now.mono);
        }
        let reuse = if link.phase == Phase::Stopping {
            self.note(&link, ending, cx);
            None
        } else {
            self.judge(&link, ending, cx)
        };
        self.plan(reuse, cx);
    }

    /// Remembers how fast it was.
    fn measure(&mut self, link: &Link, now: Mono) {
        let told = link.meter.is_grown(now) || link.gained >= TELLING;
        let rate = link.meter.rate(now);
        if link.example == Example::Fair && told && rate >= 1.0 {
            self.roster.of_mut(link.seat).measure(rate, link.meter.age(now));
        }
    }

    /// The same for all that are open, when nothing more is expected of them.
    pub(super) fn measure_all(&mut self, now: Mono) {
        for at in 0..self.links.len() {
            self.measure(&self.links[at].clone(), now);
            self.links[at].example = Example::Odd;
        }
    }

    /// What an ending says of the mirror, whoever brought it about.
    fn note(&mut self, link: &Link, ending: Ending, cx: &mut Cx<'_, Action>) {
        match ending {
            Ending::Refused { retry_after: Some(wait) } => {
                self.roster.of_mut(link.seat).close_until(cx.now.mono + wait);
            }
            Ending::RangesIgnored => self.roster.of_mut(link.seat).ranges = Ranges::Broken,
            Ending::Odd => {
                self.roster.drop_out(link.seat);
                self.stop_links_of(link.seat, cx.out);
            }
            Ending::Served | Ending::Cut | Ending::Stopped | Ending::Refused { retry_after: None } => {}
        }
    }

    /// What an ending says of the way to the mirror; the seat, if its connection is fit for more.
    fn judge(&mut self, link: &Link, ending: Ending, cx: &mut Cx<'_, Action>) -> Option<usize> {
        self.note(link, ending, cx);
        match (ending, link.reach) {
            (Ending::Served, Reach::Ranged) if link.rest() == 0.0 || link.gained >= MEAGRE => Some(link.seat),
            (Ending::Cut, _) if self.rules.cuts == Cuts::Final => {
                self.roster.drop_out(link.seat);
                None
            }
            (Ending::Served | Ending::Cut, _) => {
                self.broken_off(link, cx);
                None
            }
            (Ending::Refused { .. }, _) | (Ending::RangesIgnored, Reach::Through) => {
                self.fruitless(link, cx);
                None
            }
            (Ending::RangesIgnored, Reach::Ranged) | (Ending::Odd | Ending::Stopped, _) => None,
        }
    }

    fn broken_off(&mut self, link: &Link, cx: &mut Cx<'_, Action>) {
        match link.gained {
            Length::ZERO => self.fruitless(link, cx),
            gained => {
                let yielded = if gained >= MEAGRE { Yield::Fair } else { Yield::Meagre };
                self.roster.breathe(link.seat, yielded, cx.now.mono, cx.rng);
            }
        }
    }

    /// Nothing came of it: too much beside the others of its origin, or a failure.
    fn fruitless(&mut self, link: &Link, cx: &mut Cx<'_, Action>) {
        let now = cx.now.mono;
        let flowing = self.links_of(link.seat).any(|other| other.flows(now));
        let others = self.links_of(link.seat).count();
        if flowing {
            self.roster.of_mut(link.seat).step_down(others);
            self.roster.breathe(link.seat, Yield::Fair, now, cx.rng);
        } else {
            self.roster.failed(link.seat, link.asked, now, cx.rng);
        }
    }
}
