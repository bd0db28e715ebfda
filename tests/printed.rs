//! Whatever Julia's printer can print is read, or refused by a name with a place.
//!
//! `brolga_fuzz::printed` makes dumps of each expression head with each form of operand, literal, type and line. A failure shows its seed and the
//! dump. `PRINTED=1000000 cargo test --test printed` makes more of them.

use brolga_fuzz::check::{Reading, check_printed, check_text};
use brolga_fuzz::mutate;
use brolga_fuzz::printed::printed;
use brolga_fuzz::rng::Rng;

/// How many dumps, unless the environment says otherwise.
const COUNT: u64 = 20_000;

#[expect(clippy::disallowed_methods, reason = "how long to search is the caller's choice")]
fn count() -> u64 {
    std::env::var("PRINTED").ok().and_then(|count| count.parse().ok()).unwrap_or(COUNT)
}

#[test]
fn what_julia_prints_is_read_or_refused_by_name() {
    let count = count();
    let (mut accepted, mut failures) = (0, Vec::new());
    for seed in 0..count {
        let dump = printed(&mut Rng::new(seed));
        match check_printed(seed, &dump) {
            Ok(reading) => accepted += u64::from(reading == Reading::Accepted),
            Err(failure) => failures.push(failure),
        }
    }
    let causes: Vec<String> = failures
        .iter()
        .take(200)
        .map(|failure| format!("seed {}: {}", failure.seed, failure.trouble))
        .collect();
    assert!(failures.is_empty(), "{} failures:\n{}\n{}", failures.len(), causes.join("\n"), failures[0]);
    // A generator whose rows mean nothing at all would test the reader's refusals alone.
    assert!(accepted > count / 20, "{accepted} of {count} were accepted");
}

#[test]
fn damaged_dumps_are_read_or_refused() {
    for seed in 0..count() {
        let mut rng = Rng::new(seed ^ 0xda3a_9ed0);
        let dump = printed(&mut rng);
        let damaged = mutate::text(&mut rng, &dump);
        if let Err(failure) = check_text(seed, damaged.as_bytes(), None) {
            panic!("{failure}");
        }
    }
}
