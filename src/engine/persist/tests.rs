//! Records that two processes begin at once: what the state holds when one of them writes is what counts, not what it held
//! when it was read.

use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::*;
use crate::core::url::MirrorUrl;

struct Scene {
    folder: TempDir,
    rng: StdRng,
    clock: Clock,
}

impl Scene {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self { folder, rng: StdRng::seed_from_u64(1), clock: Clock::system() }
    }

    fn process(&self) -> Persist {
        Persist::new(StateFile::at(self.folder.path().join("client_state.xml")))
    }

    fn record(&self, id: u64) -> Record {
        let url = MirrorUrl::parse("http://h.example/f").expect("a URL");
        let path = Some(self.folder.path().join("f"));
        Record { path, ..Record::download(XferId(id), "f".into(), &[url]) }
    }

    fn write(&mut self, process: &mut Persist, record: &Record, keep: Keep) -> Met {
        process.mark(record.id, Urgency::Now, self.clock.now().mono);
        let live = |id| (id == record.id).then_some((record, &[][..]));
        let (by_day, nobody) = (History::default(), BTreeSet::new());
        let traffic = Traffic { by_day: &by_day, today: Day(0), is_due: false };
        let said = Said { mode: None, report_to: None };
        let flush = Flush { live: &live, keep, hosts: (Vec::new(), &nobody), traffic, said, rng: &mut self.rng };
        process.flush(flush, &self.clock).expect("written")
    }

    /// The transfers of the state.
    fn ids(&self) -> Vec<XferId> {
        let loaded = self.process().load().expect("readable");
        loaded.document.ids().collect()
    }
}

fn done(record: Record) -> Record {
    Record { status: Status::Done, ..record }
}

#[test]
fn a_record_that_was_taken_out_after_it_was_read_is_not_brought_back() {
    let mut scene = Scene::new();
    let (old, new) = (scene.record(1), scene.record(2));
    let job = crate::engine::admit::job_of(&old).expect("a job");
    let (mut first, mut second) = (scene.process(), scene.process());
    scene.write(&mut first, &old, Keep::Free);
    scene.write(&mut first, &new, Keep::Ours);
    assert_eq!(scene.ids(), [new.id], "the one that is run replaced the one that came to nothing");
    let taken = second.take_over(&job, &mut scene.rng, &scene.clock).expect("written");
    assert!(matches!(taken, Some(Err(LocalFault::InUse { .. }))), "{taken:?}");
    assert_eq!(scene.ids(), [new.id]);

    scene.process().file.commit(|document| document.remove(new.id)).expect("written");
    let taken = second.take_over(&job, &mut scene.rng, &scene.clock).expect("written");
    assert!(taken.is_none() && scene.ids().is_empty(), "{taken:?}");
}

#[test]
fn one_that_came_to_nothing_does_not_replace_what_is_complete() {
    let mut scene = Scene::new();
    let (complete, late) = (done(scene.record(1)), scene.record(2));
    let (mut first, mut second) = (scene.process(), scene.process());
    scene.write(&mut first, &complete, Keep::Free);
    let met = scene.write(&mut second, &late, Keep::Free);
    assert_eq!(met.lost, [(late.id, Loss::Forgotten)]);
    assert_eq!(scene.ids(), [complete.id]);

    let again = done(scene.record(3));
    scene.write(&mut second, &again, Keep::Free);
    assert_eq!(scene.ids(), [again.id], "the later of two complete ones");
}
