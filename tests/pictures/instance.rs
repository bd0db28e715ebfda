//! The states of a code instance: the variants of `State` in `crates/instances`, and arrows that are verified by executing their transitions.

use brolga_instances::{Added, Beginning, Code, Instances, Parts, Select, State, Tier};

use crate::source;
use crate::svg::{Svg, lines};

/// Parts that hold nothing.
struct Empty;

struct Bytes;

struct Selector;

impl Parts for Empty {
    type Source = ();
    type Interpreter = ();
    type Code = Bytes;
    type Profile = ();
    type Recipe = ();
    type Selector = Selector;
}

impl Code for Bytes {
    fn entry(&self) -> usize {
        64
    }

    fn edges(&self) -> impl Iterator<Item = usize> {
        std::iter::empty()
    }
}

impl Select for Selector {
    fn begin(self, _since: u64) -> Selector {
        self
    }

    fn address(&self) -> usize {
        128
    }

    fn lead(&self, _newer: usize, _older: usize) {}
}

const NAMES: [&str; 4] = ["Lazy", "Interpreted", "Ready", "Closed"];

fn begin(state: &str) -> Beginning<Empty> {
    let state = match state {
        "Lazy" => State::Lazy(()),
        "Interpreted" => State::Interpreted((), ()),
        "Ready" => State::Ready(Bytes),
        _ => State::Closed,
    };
    Beginning { state, profile: (), recipe: None }
}

fn name(state: &State<Empty>) -> &'static str {
    match state {
        State::Lazy(()) => "Lazy",
        State::Interpreted((), ()) => "Interpreted",
        State::Ready(_) => "Ready",
        State::Closed => "Closed",
    }
}

/// The state after code is published for an instance in this state.
fn published(state: &str) -> &'static str {
    let mut instances = Instances::new(begin(state));
    drop(instances.newest().publish(Bytes, Tier::Optimised, 1));
    name(instances.newest().state())
}

/// The state after an instance in this state was replaced, in all worlds, by one that begins so.
fn replaced(state: &str, by: &str) -> &'static str {
    let mut instances = Instances::new(begin(state));
    drop(instances.replace_all(begin(by)));
    name(instances.newest().state())
}

/// The states of the older instance and of the newest one after a redefinition in the next world.
fn redefined(state: &str, by: &str) -> (&'static str, &'static str) {
    let mut instances = Instances::new(begin(state));
    assert!(matches!(instances.add(Selector, 1, begin(by)), Added::Superseded { number: 0, first: 0 }));
    let newest = name(instances.newest().state());
    (name(instances.at(0).state()), newest)
}

/// The variants of the enumeration with their comments.
fn variants() -> Vec<(String, String)> {
    let text = source("crates/instances/src/instance.rs");
    let body = text.split_once("pub enum State<P: Parts> {").unwrap().1.split_once("\n}").unwrap().0;
    let (mut variants, mut comment) = (Vec::new(), String::new());
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match line.strip_prefix("/// ") {
            Some(text) => comment = format!("{comment} {text}").trim().to_owned(),
            None => {
                let name = line.split(['(', ',']).next().unwrap_or("").to_owned();
                variants.push((name, std::mem::take(&mut comment)));
            }
        }
    }
    variants
}

pub(crate) fn picture() -> String {
    let variants = variants();
    assert_eq!(variants.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), NAMES);
    let places = [(20.0, 40.0), (20.0, 190.0), (380.0, 115.0), (640.0, 115.0)];
    let size = (180.0, 74.0);
    let mut svg = Svg::new(840.0, 350.0);
    svg.text(
        "title",
        (20.0, 22.0),
        "One code instance: what calls of a function reach in the worlds in which it is valid",
    );
    for (((name, comment), place), class) in variants.iter().zip(places).zip(["box", "c", "b", "d"]) {
        svg.rect(class, place, size);
        svg.text("title", (place.0 + 10.0, place.1 + 20.0), name);
        for (n, line) in lines(comment, 32).iter().enumerate() {
            svg.text("small", (place.0 + 10.0, place.1 + 37.0 + n as f64 * 14.0), line);
        }
    }
    // Each arrow is drawn if what it says leads there.
    assert_eq!(["Lazy", "Interpreted", "Ready"].map(published), ["Ready"; 3]);
    svg.arrow("M 200 77 L 378 135");
    svg.text("small", (206.0, 128.0), "publish: code is made");
    svg.arrow("M 200 227 L 378 172");
    svg.text("small", (262.0, 226.0), "publish: code is made");
    svg.arrow("M 430 115 C 430 70 510 70 510 113");
    svg.text("small", (424.0, 74.0), "publish: better code");
    assert_eq!(replaced("Ready", "Lazy"), "Lazy");
    svg.arrow("M 400 115 C 380 50 300 50 202 60");
    svg.text("small", (226.0, 42.0), "replaced or discarded: made again when called");
    for state in ["Lazy", "Interpreted", "Ready"] {
        assert_eq!(replaced(state, "Closed"), "Closed");
    }
    svg.arrow("M 560 152 H 638");
    svg.text("small", (572.0, 144.0), "removed");
    assert_eq!(redefined("Ready", "Lazy"), ("Ready", "Lazy"));
    assert_eq!(redefined("Lazy", "Interpreted"), ("Lazy", "Interpreted"));
    svg.rect("box", (20.0, 290.0), (800.0, 44.0));
    svg.text("title", (30.0, 308.0), "Redefinition");
    svg.text(
        "small",
        (130.0, 308.0),
        "adds an instance for the worlds from the next one on. The one before keeps its state, and serves threads in older worlds",
    );
    svg.text(
        "small",
        (130.0, 325.0),
        "until none of them is left; then it is taken out, and its code is freed behind running threads.",
    );
    svg.finish("States of a code instance")
}
