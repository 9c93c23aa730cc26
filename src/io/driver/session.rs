//! One session's loop: file operations, then the move that the machine wants.

use crate::core::digest::Algorithm;
use crate::core::failure::{Failure, LocalFault};
use crate::core::file_xfer::dossier::Dossier;
use crate::core::file_xfer::{
    Ask, Company, End, Event, FileOp, FileXfer, LastWord, MetalinkIs, NamedBy, Next, OVERLAP, Outcome, Place, Plan,
    Proof, Receive, Weight,
};
use crate::core::name::SafeName;
use crate::core::pers_xfer::record::Finished;
use crate::core::range::{ByteRange, Length, Offset};
use crate::core::time::Delay;
use crate::io::driver::content::Content;
use crate::io::driver::described::Description;
use crate::io::driver::fan;
use crate::io::driver::intact::open_store;
use crate::io::driver::vouched::{algorithms, law};
use crate::io::driver::{Closed, Hands, Home, Leg, Orders, Tell, settle_held};
use crate::io::part::{Clobber, PartStore, is_witnessed};
use crate::io::transport::{Body, Hop, WantDigest};

/// A random earlier block is compared too where more than this is held and no strong validator speaks for it.
const PROBE_ABOVE: Length = Length(1 << 20);

/// The body of a redirect or an error is read to its end where it is at most so long, and comes within this time.
const SMALL_BODY: Length = Length(64 << 10);
const BODY_PATIENCE: Delay = Delay::from_millis(200);

/// So many random blocks are looked at for one that tells something.
const PROBE_DRAWS: u64 = 16;

/// A session under way.
pub(super) struct Session {
    pub(super) orders: Orders,
    pub(super) hands: Hands,
    pub(super) tell: Box<dyn Fn(Tell)>,
    pub(super) machine: FileXfer,
    pub(super) store: Option<PartStore>,
    pub(super) open: Option<OpenBody>,
    pub(super) received: Length,
    /// What was received when progress was last told.
    pub(super) told_received: Length,
    pub(super) finished: Option<Finished>,
    pub(super) description: Description,
    /// Every piece that has a digest of its own was compared with it.
    pub(super) pieces_are_right: bool,
    /// How long bodies were read, and how much they brought.
    pub(super) reading: (Delay, Length),
    /// The digest that proved the file, where a server named it.
    pub(super) server_digest: Option<Algorithm>,
    told: Dossier,
}

/// The open answer's body, and how far it has been read.
pub(super) struct OpenBody {
    pub(super) status: u16,
    pub(super) body: Body,
    /// Read but not yet used: what followed a difference or a joint in the same chunk.
    pub(super) pending: Option<bytes::Bytes>,
    /// The machine has been told that the comparison is through.
    pub(super) joined: bool,
    /// What is to be compared with the digest that the answer names for its body.
    pub(super) content: Option<Content>,
}

impl Session {
    /// Makes the machine; the part files have been opened and looked at where their name is known.
    pub(super) fn new(
        mut orders: Orders,
        mut hands: Hands,
        tell: Box<dyn Fn(Tell)>,
        server_digest: Option<Algorithm>,
    ) -> Result<Self, LocalFault> {
        if orders.fan.connections > 1 && orders.fan.per_origin > 1 {
            // The user wants connections, not streams of one.
            hands.client = hands.client.apart();
        }
        let mut store = orders.store.take();
        if let Some(store) = &mut store {
            store.want(&algorithms(&orders.terms, &orders.dossier));
            settle_held(&mut orders.dossier, store);
        }
        let plan = plan(&orders, store.as_mut(), hands.seed)?;
        let told = orders.dossier.clone();
        let machine = FileXfer::new(plan);
        let (open, received, finished) = (None, Length::ZERO, None);
        let reading = (Delay::ZERO, Length::ZERO);
        let told_received = received;
        Ok(Self {
            orders,
            hands,
            tell,
            machine,
            store,
            open,
            received,
            told_received,
            finished,
            description: Description::None,
            pieces_are_right: false,
            reading,
            server_digest,
            told,
        })
    }

    /// Runs the machine to its end.
    pub(super) async fn drive(&mut self) -> Leg {
        match self.steps().await {
            Ok(leg) => leg,
            Err(fault) => Leg::End(End::Failed(Failure::Local(fault))),
        }
    }

    async fn steps(&mut self) -> Result<Leg, LocalFault> {
        let mut step = self.machine.start();
        loop {
            for op in step.ops {
                self.apply(op)?;
            }
            if let Next::Receive(plan) = &step.next
                && let Some(failure) = self.ready_to_write(plan.place)?
            {
                return Ok(Leg::End(End::Failed(failure)));
            }
            self.tell_named();
            self.tell_apart();
            let event = match step.next {
                Next::Ask(ask) => self.ask(ask).await,
                Next::Receive(plan) => {
                    if let Some(split) = self.fans_out(plan) {
                        step = self.fan_out(split).await?;
                        continue;
                    }
                    self.give_up_segments(plan)?;
                    self.receive_for(plan).await?
                }
                Next::Finish { place, evidence } => return Ok(Leg::Whole(place, evidence)),
                Next::Unchanged => return Ok(Leg::End(End::Unchanged)),
                Next::Fail(failure) => return Ok(Leg::End(End::Failed(failure))),
            };
            step = self.machine.handle(event);
        }
    }

    /// Tells of mirrors that have another version.
    pub(super) fn tell_apart(&mut self) {
        for apart in self.machine.take_apart() {
            (self.tell)(Tell::Remark(apart.to_string()));
        }
    }

    /// What is read in one piece must not meet segments that are held: where links cannot go round them, they go.
    fn give_up_segments(&mut self, plan: Receive) -> Result<(), LocalFault> {
        // An answer may end where the comparison does, before the file does: it brings nothing, and what follows is asked for next.
        let whole = |end: Offset| self.machine.total().is_some_and(|total| end >= total.as_end());
        let brings = plan.end.is_none_or(|end| plan.at < end || whole(end));
        let appends = plan.place == Place::Part && plan.at >= plan.compare_until && brings;
        match &mut self.store {
            Some(store) if appends && store.segments().iter().len() > 1 => {
                store.cut(Place::Part, store.held(Place::Part))
            }
            _ => Ok(()),
        }
    }

    /// Reads the open body, and takes the time.
    async fn receive_for(&mut self, plan: Receive) -> Result<Event, LocalFault> {
        let (began, before) = (self.hands.clock.now().mono, self.received);
        let event = self.receive(plan).await;
        let took = self.hands.clock.now().mono.since(began);
        self.reading = (self.reading.0.saturating_add(took), self.reading.1 + self.received.saturating_sub(before));
        event
    }

    async fn ask(&mut self, ask: Ask) -> Event {
        self.put_away().await;
        let hop =
            Hop { ask: &ask, typed: &self.orders.url, first_origin: &self.orders.first_origin, want: WantDigest::Yes };
        match self.hands.get(&hop, self.orders.timeouts.first_byte).await {
            Ok((head, body)) => {
                let content = Content::of(&head, self.orders.terms.last_word());
                self.open = Some(OpenBody { status: head.status, body, pending: None, joined: false, content });
                Event::Answer(Box::new(head))
            }
            Err(failure) => Event::Broke(Offset::ZERO, failure),
        }
    }

    /// The answer before is not wanted: the small body of a redirect or an error is read to its end, so that the
    /// connection can serve the next request; any other is dropped, and its connection with it.
    async fn put_away(&mut self) {
        let Some(open) = self.open.take() else { return };
        if open.status >= 300 && open.pending.is_none() {
            open.body.discard(SMALL_BODY, BODY_PATIENCE).await;
        }
    }

    pub(super) fn apply(&mut self, op: FileOp) -> Result<(), LocalFault> {
        let Some(store) = &mut self.store else { return Ok(()) };
        match op {
            FileOp::Cut(place, to) => store.cut(place, to.as_length()),
            FileOp::Fork(at) => store.fork(at.as_length()),
            FileOp::Promote => store.promote(),
            FileOp::DropRival => store.drop_rival(),
        }
    }

    /// Before the first byte of an answer: the file has a name and a place, room is there, and what was learned is told.
    /// A failure where there is no room for what the server tells, and others may tell otherwise.
    fn ready_to_write(&mut self, place: Place) -> Result<Option<Failure>, LocalFault> {
        if self.store.is_none() {
            self.name_and_open()?;
        }
        self.learn();
        let total = self.machine.total();
        if let (Some(store), Some(total)) = (&mut self.store, total) {
            match store.reserve(place, total) {
                Err(fault @ (LocalFault::DiskFull { .. } | LocalFault::FileTooLarge { .. }))
                    if self.orders.company == Company::Others && store.held(place) == Length::ZERO =>
                {
                    return Ok(Some(Failure::NoRoom(fault)));
                }
                other => other?,
            }
        }
        self.heed_what_is_said();
        Ok(None)
    }

    pub(super) fn name_and_open(&mut self) -> Result<(), LocalFault> {
        let path = match &self.orders.home {
            Home::File(path) => path.clone(),
            Home::Folder(folder) => {
                let disposition = self.machine.head().and_then(|h| h.disposition.as_deref());
                let named = disposition.and_then(SafeName::from_disposition);
                folder.join(named.unwrap_or_else(|| SafeName::from_url(&self.orders.url)).as_str())
            }
        };
        let taken = path.symlink_metadata().is_ok() && !is_witnessed(&path);
        if self.orders.terms.clobber == Clobber::Refuse && taken {
            let why = "exists and was not written by this transfer; --overwrite replaces it".to_owned();
            return Err(LocalFault::NotOurs { path: path.display().to_string(), why });
        }
        let mut dossier = Dossier::default();
        self.store = Some(open_store(&path, &mut dossier, &self.orders, &*self.tell)?);
        self.orders.home = Home::File(path.clone());
        (self.tell)(Tell::Named(path));
        Ok(())
    }

    /// Tells what a resume needs, where it differs from what was told last; how much is held is not part of that.
    pub(super) fn learn(&mut self) {
        let mut now = self.machine.dossier().clone();
        if let Some(store) = &self.store {
            note_inodes(&mut now, store);
            settle_held(&mut now, store);
        }
        if !same_facts(&now, &self.told) {
            self.told = now.clone();
            (self.tell)(Tell::Learned(Box::new(now)));
        }
    }

    /// Writes out what is gathered, and hands everything back.
    pub(super) fn close(mut self, end: End) -> Closed {
        self.take_description();
        let mut end = end;
        let mut dossier = self.machine.dossier().clone();
        if let Some(store) = self.store.as_mut().filter(|_| self.finished.is_none()) {
            if let Err(fault) = settle_all(store, &dossier) {
                end = End::Failed(Failure::Local(fault));
            }
            note_inodes(&mut dossier, store);
            settle_held(&mut dossier, store);
            store.leave();
        }
        let origin = self.machine.origin().cloned();
        let outcome = Outcome { dossier, origin, end };
        let store = self.store.filter(|_| self.finished.is_none());
        let rate = rate_of(self.reading);
        Closed { outcome, finished: self.finished, store, received: self.received, rate }
    }
}

/// Less says nothing of what a connection can bring.
const WORTH_A_WORD: Length = Length(1 << 20);

fn rate_of((time, bytes): (Delay, Length)) -> Option<u64> {
    let per_second = u128::from(bytes.0) * 1_000_000 / u128::from(time.as_micros().max(1));
    (bytes >= WORTH_A_WORD).then(|| u64::try_from(per_second).unwrap_or(u64::MAX))
}

fn settle_all(store: &mut PartStore, dossier: &Dossier) -> Result<(), LocalFault> {
    let part = store.settle(Place::Part);
    if dossier.rival.is_some() {
        store.settle(Place::Rival)?;
    }
    part.map(|_| ())
}

fn plan(orders: &Orders, store: Option<&mut PartStore>, seed: u64) -> Result<Plan, LocalFault> {
    let (mut proof, mut probe, mut until) = (Proof::default(), None, None);
    if let Some(store) = store {
        until = fan::own_share(orders, store);
        (proof.part, proof.weight) = proof_start(store, Place::Part)?;
        if orders.dossier.rival.is_some() {
            (proof.rival, proof.weight) = proof_start(store, Place::Rival)?;
        }
        probe = probe_block(orders, store, proof, seed)?;
    }
    let name = match &orders.home {
        Home::File(path) => path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
        Home::Folder(_) => String::new(),
    };
    Ok(Plan {
        url: orders.url.clone(),
        named_by: if orders.named_with.is_some() { NamedBy::Server } else { NamedBy::User },
        first_origin: orders.first_origin.clone(),
        dossier: orders.dossier.clone(),
        proof,
        probe: probe.map(|(block, _)| block),
        probe_weight: probe.map_or(Weight::Constant, |(_, weight)| weight),
        digest: if orders.terms.digests.is_empty() { LastWord::Joints } else { LastWord::Digest },
        judge: orders.terms.last_word(),
        law: law(&orders.terms),
        company: orders.company,
        freshness: orders.freshness,
        revalidate: orders.revalidate.clone(),
        until,
        stored_codings: crate::core::file_xfer::codings_of_name(&name),
        max_filesize: orders.max_filesize,
        expected: orders.expected,
        metalink: MetalinkIs::of_names(&[SafeName::from_url(&orders.url).as_str(), &name]),
    })
}

/// Where the comparison starts: at the last block held that is not all one byte, if there is one.
fn proof_start(store: &mut PartStore, place: Place) -> Result<(Offset, Weight), LocalFault> {
    let held = store.held(place).as_end();
    Ok(match store.nearest_informative(place, held, OVERLAP)? {
        Some(block) => (block.start, Weight::Informative),
        None => (held.back(OVERLAP), Weight::Constant),
    })
}

/// One random block before the tail, where nothing stronger than the comparison speaks for what is held. Of some draws the
/// first that tells something is taken; one that tells nothing still shows where the files differ.
fn probe_block(
    orders: &Orders,
    store: &mut PartStore,
    proof: Proof,
    seed: u64,
) -> Result<Option<(ByteRange, Weight)>, LocalFault> {
    let draft = &orders.dossier.part;
    let origin = orders.url.origin();
    let vouched = draft.validators.iter().any(|(o, v)| *o == origin && v.has_strong());
    if draft.held < PROBE_ABOVE || vouched || orders.dossier.rival.is_some() || !orders.terms.digests.is_empty() {
        return Ok(None);
    }
    let blocks = proof.part.0 / OVERLAP.0;
    let mut drawn = None;
    for n in 0..PROBE_DRAWS {
        // The odd factor is that of Fibonacci hashing: draws from one seed lie far apart.
        let draw = seed.wrapping_add(n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let start = Offset(draw.checked_rem(blocks).unwrap_or(0) * OVERLAP.0);
        let block = ByteRange::new(start, start + OVERLAP);
        if store.informative(Place::Part, block)? {
            return Ok(Some((block, Weight::Informative)));
        }
        drawn.get_or_insert((block, Weight::Constant));
    }
    Ok(drawn)
}

fn note_inodes(dossier: &mut Dossier, store: &PartStore) {
    dossier.part.inode = store.inode(Place::Part);
    if let Some(rival) = &mut dossier.rival {
        rival.inode = store.inode(Place::Rival);
    }
}

fn same_facts(a: &Dossier, b: &Dossier) -> bool {
    let facts = |d: &Dossier| {
        let mut d = d.clone();
        (d.part.held, d.part.beyond) = (Length::ZERO, Length::ZERO);
        if let Some(rival) = &mut d.rival {
            rival.held = Length::ZERO;
        }
        d
    };
    facts(a) == facts(b)
}
