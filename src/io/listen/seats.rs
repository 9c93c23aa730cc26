//! Seats: how many connections of a kind there are at a time, and who has to go when one more comes.
//!
//! A new connection is always taken: who sits there and asks nothing keeps nobody out. The one that goes is, of those that have
//! proven no password, the oldest that asks nothing just now, else the oldest; of those that have, the one of which nothing was
//! heard for the longest. So whoever may change something is the last to go, and a question that has come is answered
//! unless as many others have come since.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The seats of one door; clones are one.
#[derive(Clone, Debug)]
pub(super) struct Seats(Arc<Mutex<Taken>>);

#[derive(Debug)]
struct Taken {
    most: usize,
    /// Counts what happens: what happened earlier has the lower number.
    turn: u64,
    seats: BTreeMap<u64, Sitter>,
}

#[derive(Debug)]
struct Sitter {
    standing: Standing,
    /// When that began, by the count of turns.
    since: u64,
    leave: CancellationToken,
}

/// How a connection stands, who goes first coming first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It has proven no password, and has asked nothing, or has its answer.
    Idle,
    /// The same, and it is being answered.
    Asking,
    /// It has proven the password.
    Trusted,
}

/// One seat; it is free when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    number: u64,
    seats: Seats,
    leave: CancellationToken,
}

impl Seats {
    /// So many, at least one, and nobody sits there.
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Taken { most: most.max(1), turn: 0, seats: BTreeMap::new() })))
    }

    /// A seat for a new connection; another one may have to leave its own for that.
    pub(super) fn take(&self) -> Seat {
        let mut taken = self.lock();
        while taken.seats.len() >= taken.most {
            taken.send_away();
        }
        let (number, leave) = (taken.next_turn(), CancellationToken::new());
        taken.seats.insert(number, Sitter { standing: Standing::Idle, since: number, leave: leave.clone() });
        drop(taken);
        Seat { number, seats: self.clone(), leave }
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    const fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    fn send_away(&mut self) {
        let first = self.seats.iter().min_by_key(|(_, sitter)| (sitter.standing, sitter.since)).map(|(n, _)| *n);
        if let Some(sitter) = first.and_then(|number| self.seats.remove(&number)) {
            sitter.leave.cancel();
        }
    }
}

impl Seat {
    /// The connection stands so from now on. One without a password is as old as it is, whatever it asks; one with it is heard
    /// of just now.
    pub(super) fn stands(&self, standing: Standing) {
        let mut taken = self.seats.lock();
        let turn = taken.next_turn();
        if let Some(sitter) = taken.seats.get_mut(&self.number) {
            sitter.standing = standing;
            if standing == Standing::Trusted {
                sitter.since = turn;
            }
        }
    }

    /// Returns when another connection needs the seat.
    pub(super) async fn is_needed(&self) {
        self.leave.cancelled().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.lock().seats.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goes(seats: &[Seat]) -> Vec<usize> {
        seats.iter().enumerate().filter(|(_, seat)| seat.leave.is_cancelled()).map(|(n, _)| n).collect()
    }

    #[test]
    fn the_oldest_that_asks_nothing_goes_first_and_who_has_the_password_last() {
        let room = Seats::new(4);
        let mut seats: Vec<Seat> = (0..4).map(|_| room.take()).collect();
        seats[0].stands(Standing::Trusted);
        seats[1].stands(Standing::Asking);
        seats.push(room.take());
        assert_eq!(goes(&seats), [2]);
        seats.push(room.take());
        assert_eq!(goes(&seats), [2, 3]);
        seats[4].stands(Standing::Asking);
        seats[5].stands(Standing::Asking);
        seats.push(room.take());
        assert_eq!(goes(&seats), [1, 2, 3], "all ask: the oldest of them");
        for n in [4, 5, 6, 0] {
            seats[n].stands(Standing::Trusted);
        }
        seats.push(room.take());
        assert_eq!(goes(&seats), [1, 2, 3, 4], "all are trusted: of whom nothing was heard for the longest");
    }

    #[test]
    fn a_question_makes_nobody_younger() {
        let room = Seats::new(2);
        let mut seats = vec![room.take(), room.take()];
        for standing in [Standing::Asking, Standing::Idle] {
            seats[0].stands(standing);
        }
        seats.push(room.take());
        assert_eq!(goes(&seats), [0]);
    }

    #[test]
    fn a_seat_that_is_left_is_free() {
        let room = Seats::new(1);
        drop(room.take());
        let one = room.take();
        let two = room.take();
        assert!(one.leave.is_cancelled() && !two.leave.is_cancelled());
        drop(one);
        assert_eq!(room.lock().seats.len(), 1, "the one that was sent away had none left to give back");
    }
}
