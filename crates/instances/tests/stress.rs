//! Many threads read, one replaces and frees: no read finds freed memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga_instances::Reclaimer;

#[test]
fn threads_never_see_what_was_freed() {
    const CELLS: usize = 64;
    const ROUNDS: usize = if cfg!(miri) { 300 } else { 20_000 };
    let alive: Arc<Vec<AtomicUsize>> = Arc::new((0..CELLS).map(|_| AtomicUsize::new(1)).collect());
    let slot = Arc::new(AtomicUsize::new(0));
    let reclaimer = Reclaimer::<usize>::new();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let (alive, slot, thread) = (alive.clone(), slot.clone(), reclaimer.participant());
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let pin = thread.pin();
                    let at = slot.load(Ordering::Acquire);
                    assert_eq!(alive[at].load(Ordering::Relaxed), 1, "freed under a reader");
                    drop(pin);
                }
            });
        }
        let mut spare: Vec<usize> = (1..CELLS).collect();
        let mut freed = 0;
        for _ in 0..ROUNDS {
            let Some(next) = spare.pop() else {
                for at in reclaimer.collect() {
                    alive[at].store(0, Ordering::Relaxed);
                    freed += 1;
                    spare.push(at);
                }
                continue;
            };
            alive[next].store(1, Ordering::Relaxed);
            let old = slot.swap(next, Ordering::Release);
            reclaimer.retire(old);
        }
        assert!(freed > 0);
    });
}
