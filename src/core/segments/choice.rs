//! Who is asked next: the seats that may be, in order of preference, and how many links they may have.

use crate::core::file_xfer::dossier::Ranges;
use crate::core::segments::link::Phase;
use crate::core::segments::work::{Crowd, Job};
use crate::core::segments::{Reach, Segments};
use crate::core::time::Mono;

impl Segments {
    /// The next link to open: the best seat that has something to do, as one of all that may be opened now. Where
    /// their shares would be too small, as if it were the only one.
    pub(super) fn next_job(&self, reuse: Option<usize>, now: Mono) -> Option<(usize, Job)> {
        let seats = self.candidates(reuse, now);
        let places = self.places(&seats);
        let best = |crowd: Crowd| seats.iter().find_map(|seat| Some((*seat, self.job_for(*seat, crowd, now)?)));
        match places[..] {
            [] => None,
            [_] => best(Crowd::Alone),
            [..] => {
                let rate = places.iter().map(|seat| self.expected_rate(*seat, now)).sum();
                best(Crowd::Of(rate)).or_else(|| best(Crowd::Alone))
            }
        }
    }

    /// The seats at which links may be opened, each as often as it may.
    pub(super) fn places(&self, seats: &[usize]) -> Vec<usize> {
        let free = self.rules.connections.saturating_sub(self.links.len());
        let is_first = |seat: &&usize| {
            seats.iter().find(|first| self.roster.origin(**first) == self.roster.origin(**seat)) == Some(*seat)
        };
        let each = seats.iter().filter(is_first).flat_map(|seat| std::iter::repeat_n(*seat, self.free_at(*seat)));
        each.take(free).collect()
    }

    /// The best seat without a link that would be asked if there were a place.
    pub(super) fn challenger(&self, now: Mono) -> Option<usize> {
        let is_settling = self.links.iter().any(|link| link.phase == Phase::Stopping);
        if self.links.len() < self.rules.connections || is_settling {
            return None;
        }
        self.candidates(None, now).into_iter().find(|seat| self.links_of(*seat).next().is_none())
    }

    /// How many links more the origin of a seat may have. One that has answered with the whole file, and may yet answer
    /// ranges, is asked for one to find out.
    fn free_at(&self, seat: usize) -> usize {
        let origin = self.roster.of(seat);
        let is_doubtful =
            origin.ranges == Ranges::Unknown && self.links_of(seat).any(|link| link.reach == Reach::Through);
        let allowed = if is_doubtful { self.rules.per_origin.min(2) } else { self.rules.per_origin };
        origin.bears(allowed).saturating_sub(self.links_of(seat).count())
    }

    /// The seats that may be asked now for a range, best first.
    pub(super) fn candidates(&self, reuse: Option<usize>, now: Mono) -> Vec<usize> {
        let reused = |seat: usize| reuse == Some(seat) && self.roster.may_be_reused(seat, now);
        let ready = |seat: usize| reused(seat) || self.roster.ready_at(seat).is_some_and(|at| at <= now);
        let mut seats: Vec<usize> = (0..self.roster.len())
            .filter(|seat| ready(*seat) && self.free_at(*seat) > 0)
            .filter(|seat| self.roster.is_ranged(*seat) && !self.roster.is_outdone(*seat, now))
            .collect();
        seats.sort_by_cached_key(|seat| if reused(*seat) { (0, 0, 0) } else { self.rank(*seat, now) });
        seats
    }

    /// Less is better: origins without a link first; of these, once something is under way, first
    /// those of which nothing is known, so that they get their chance; then by what each link would bring.
    pub(super) fn rank(&self, seat: usize, now: Mono) -> (u8, u8, u64) {
        let links = self.links_of(seat).count();
        let begun = !self.links.is_empty() || self.roster.has_measured();
        let chance = links == 0 && begun && !self.is_rated(seat, now);
        let each = self.expected_rate(seat, now) / (1 + links) as f64;
        // A float-to-integer cast saturates.
        (if links == 0 { 1 } else { 2 }, u8::from(!chance), u64::MAX - each as u64)
    }
}
