//! Tests of lanes.

use std::cell::Cell;
use std::sync::mpsc::channel;

use super::*;

fn lanes(count: usize) -> Lanes<Cell<u32>> {
    Lanes::new(NonZeroUsize::new(count).unwrap(), || Cell::new(0))
}

#[test]
fn a_task_runs_on_a_thread_of_its_own_with_what_the_lane_owns() {
    let lanes = lanes(1);
    let (tell, told) = channel();
    for _ in 0..3 {
        let tell = tell.clone();
        let task = lanes.spawn(move |local| async move {
            // An Rc across an await: such a task cannot change threads.
            local.set(local.get() + 1);
            tokio::task::yield_now().await;
            tell.send((local.get(), thread::current().id())).unwrap();
        });
        assert_eq!(task.unwrap().wait(), TaskEnd::Done);
    }
    let seen: Vec<_> = told.try_iter().collect();
    assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(seen.iter().all(|s| s.1 == seen[0].1 && s.1 != thread::current().id()));
    assert_eq!(lanes.shutdown(Delay::from_secs(5)), Shutdown::Clean);
}

#[test]
fn tasks_spread_over_the_lanes_and_an_idle_lane_is_used_again() {
    let lanes = lanes(3);
    let (tell, told) = channel();
    let open = Arc::new(Notify::new());
    let mut tasks = Vec::new();
    for _ in 0..6 {
        let (tell, open) = (tell.clone(), Arc::clone(&open));
        let task = lanes.spawn(move |_| async move {
            tell.send(thread::current().id()).unwrap();
            open.notified().await;
        });
        tasks.push(task.unwrap());
    }
    let mut threads: Vec<_> = (0..6).map(|_| told.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
    assert_eq!(lanes.running(), 6);
    threads.sort_by_key(|id| format!("{id:?}"));
    threads.dedup();
    assert_eq!(threads.len(), 3);
    (0..6).for_each(|_| open.notify_one());
    assert!(tasks.into_iter().all(|task| task.wait() == TaskEnd::Done));
    assert_eq!(lanes.running(), 0);

    let (tell, told) = channel();
    lanes.spawn(move |_| async move { tell.send(thread::current().id()).unwrap() }).unwrap().wait();
    assert!(threads.contains(&told.recv().unwrap()));
}

#[test]
fn a_panic_is_told_and_the_lane_goes_on() {
    let lanes = lanes(1);
    let task = lanes.spawn(|_| async { panic!("broken {}", 7) }).unwrap();
    assert_eq!(task.wait(), TaskEnd::Panicked("broken 7".into()));
    let in_make = lanes.spawn(|_| -> std::future::Ready<()> { panic!("at once") }).unwrap();
    assert_eq!(in_make.wait(), TaskEnd::Panicked("at once".into()));
    assert_eq!(lanes.spawn(|_| async {}).unwrap().wait(), TaskEnd::Done);
    assert_eq!(lanes.running(), 0);
}

#[test]
fn a_shutdown_waits_for_tasks_that_end_and_drops_those_that_do_not() {
    let quick = lanes(2);
    let task = quick.spawn(|_| tokio::time::sleep(Duration::from_millis(50))).unwrap();
    assert_eq!(quick.shutdown(Delay::from_secs(10)), Shutdown::Clean);
    assert_eq!(task.wait(), TaskEnd::Done);

    let stuck = lanes(2);
    let tasks: Vec<_> = (0..3).map(|_| stuck.spawn(|_| std::future::pending()).unwrap()).collect();
    assert_eq!(stuck.shutdown(Delay::from_millis(50)), Shutdown::Late(3));
    assert!(tasks.into_iter().all(|task| task.wait() == TaskEnd::Dropped));
}

#[test]
fn a_thread_that_does_not_come_back_is_left_behind() {
    let lanes = lanes(1);
    let (running, ran) = channel();
    let blocked = move |_| async move {
        running.send(()).unwrap();
        thread::sleep(Duration::from_secs(20));
    };
    lanes.spawn(blocked).unwrap();
    ran.recv().unwrap();
    let clock = Clock::system();
    let begun = clock.now().mono;
    assert_eq!(lanes.shutdown(Delay::from_millis(50)), Shutdown::Late(1));
    assert!(clock.now().mono.since(begun) < Delay::from_secs(15), "it does not wait for the thread");
}

#[tokio::test]
async fn the_end_of_a_task_can_be_awaited() {
    let lanes = lanes(1);
    let made = lanes.spawn(|_| async {}).unwrap();
    assert_eq!(made.await, TaskEnd::Done);
}
