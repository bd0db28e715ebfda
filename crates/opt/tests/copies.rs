//! Copies, fills, stores and loads of memory in random order: the passes on memory do not change their results.
//!
//! ```text
//! a, b, c: stack slots of 32 bytes, all of them filled at first; p: an address that may point to any of them
//! a line or a branch of stores, loads, mem_copy, memset at places that overlap, or touch, or do not
//! what was loaded and a digest of all slots are returned
//! ```
//!
//! One of the slots may leave the function for a call, and then every access to it names raw memory.

use std::fmt::Write as _;

use brolga_interp::{Interp, Options as Limits, SimMemory, Val};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::read;
use brolga_ir::{Context, Module};
use brolga_opt::{Cx, Options, parse_passes, run_passes};

/// A generator of numbers that is the same everywhere (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

struct Text {
    rows: String,
    next: u32,
    leaves: bool,
    loaded: Vec<u32>,
}

const SLOTS: [&str; 3] = ["a", "b", "c"];

impl Text {
    fn row(&mut self, text: &str) {
        let _ = writeln!(self.rows, "│ {text}");
    }

    fn value(&mut self, text: &str) -> u32 {
        self.next += 1;
        let n = self.next;
        self.row(&format!("%{n} = {text}"));
        n
    }

    fn region(&self, slot: u64) -> &'static str {
        if slot == 2 && self.leaves { "raw" } else { "slot" }
    }

    /// An address in a slot.
    fn address(&mut self, slot: u64, at: u64) -> u32 {
        if at == 0 { slot as u32 + 1 } else { self.value(&format!("add_ptr(%{}, {at})::ptr", slot + 1)) }
    }

    fn memset(&mut self, at: u32, byte: u64, size: u64) {
        self.value(&format!(
            "$(Expr(:foreigncall, :(:memset), ptr, svec(ptr, i32, i64), 0, :(:ccall), :(%{at}), {byte}, {size}))::ptr"
        ));
    }

    fn some(&mut self, random: &mut Random) {
        let (slot, at) = (random.below(3), [0, 0, 4, 8, 16][random.below(5) as usize]);
        let region = self.region(slot);
        match random.below(9) {
            0..3 => {
                let (ty, value) =
                    [("i64", "x"), ("i32", "y"), ("i64", "7"), ("i64", "x")][random.below(4) as usize];
                let value = if value == "7" { "7" } else { value };
                let address = self.address(slot, at);
                let _ = ty;
                self.row(&format!("store(%{address}, {value}; offset = 0, region = {region}, align = 1)"));
            }
            3..5 => {
                let ty = ["i64", "i32", "i8", "f64"][random.below(4) as usize];
                let address = self.address(slot, at);
                let value =
                    self.value(&format!("load(%{address}; offset = 0, region = {region}, align = 1)::{ty}"));
                let value = match ty {
                    "i64" => value,
                    "f64" => self.value(&format!("bitcast(i64, %{value})::i64")),
                    _ => self.value(&format!("zext_int(i64, %{value})::i64")),
                };
                self.loaded.push(value);
            }
            5..8 => {
                let mut other = random.below(3);
                let (from, size) =
                    ([0, 0, 4, 8][random.below(4) as usize], [8, 16, 16, 12, 24][random.below(5) as usize]);
                let at = if at + size > 32 { 0 } else { at };
                let from = if from + size > 32 { 0 } else { from };
                if other == slot && at.abs_diff(from) < size {
                    other = (slot + 1) % 3;
                }
                let (to, from) = (self.address(slot, at), self.address(other, from));
                self.row(&format!("mem_copy(%{to}, %{from}, {size})"));
            }
            _ => {
                let address = self.address(slot, at);
                if self.leaves && slot == 2 {
                    self.memset(address, random.below(3), [4, 8, 16][random.below(3) as usize]);
                }
            }
        }
    }
}

fn program(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut text = Text { rows: String::new(), next: 0, leaves: random.below(2) == 0, loaded: Vec::new() };
    for slot in 0..3 {
        text.value(&format!("slot_addr({slot}; size = 32, align = 8)::ptr"));
    }
    for slot in 0..3 {
        let region = text.region(slot);
        for word in 0..4 {
            let value = if word == 1 { "x".to_owned() } else { format!("{}", slot * 1000 + word * 77) };
            text.row(&format!(
                "store(%{}, {value}; offset = {}, region = {region}, align = 1)",
                slot + 1,
                word * 8
            ));
        }
    }
    for _ in 0..random.below(12) {
        text.some(&mut random);
    }
    let kept = text.loaded.len();
    if random.below(2) == 0 {
        let test = text.value("slt_int(x, 3)::i8");
        let _ =
            writeln!(text.rows, "└── goto #3 if not %{test}\n2 ─ %{} = add_int(x, 1)::i64", text.next + 1);
        text.next += 1;
        for _ in 0..random.below(6) {
            text.some(&mut random);
        }
        let _ = writeln!(text.rows, "└── goto #3\n3 ─ %{} = add_int(x, 2)::i64", text.next + 1);
        text.next += 1;
        // A value that was loaded on one edge only is not available after the join.
        text.loaded.truncate(kept);
    }
    for _ in 0..random.below(8) {
        text.some(&mut random);
    }
    let mut digest = text.value("add_int(x, 0)::i64");
    for value in text.loaded.clone() {
        let scaled = text.value(&format!("mul_int(%{digest}, 31)::i64"));
        digest = text.value(&format!("add_int(%{scaled}, %{value})::i64"));
    }
    for slot in 0..SLOTS.len() as u64 {
        let region = text.region(slot);
        for word in 0..4 {
            let value = text.value(&format!(
                "load(%{}; offset = {}, region = {region}, align = 1)::i64",
                slot + 1,
                word * 8
            ));
            let scaled = text.value(&format!("mul_int(%{digest}, 31)::i64"));
            digest = text.value(&format!("add_int(%{scaled}, %{value})::i64"));
        }
    }
    format!(
        "low function f(x::i64, y::i32)::i64\n1 ─ %0 = add_int(x, 5)::i64\n{}└── return %{digest}\nend\n",
        text.rows
    )
}

fn call(module: &Module, x: i64) -> String {
    let mut interp = Interp::new(module, Limits::default(), Box::new(SimMemory::default()));
    let (id, _) = module.funcs().next().unwrap();
    let args = [
        Val::Bits { ty: brolga_ir::Type::I64, bits: u128::from(x.cast_unsigned()) },
        Val::Bits { ty: brolga_ir::Type::I32, bits: 0x8765_4321 },
    ];
    match interp.call_low(id, &args) {
        Ok(values) => format!("{:?}", values.iter().map(Val::as_bits).collect::<Vec<_>>()),
        Err(other) => format!("{other:?}"),
    }
}

#[test]
fn memory_keeps_what_was_written() {
    let options = Options { verify_each: true, ..Options::default() };
    let mut rewrites = 0;
    for seed in 1..3000 {
        let text = program(seed);
        let source = SourceFile::new("copies", &text).unwrap();
        let (unit, found) = read(&source, &Context::new());
        assert!(!found.has_errors(), "{found:?}\n{text}");
        let before = unit.module;
        for passes in ["memcpy-forward", "gvn,memcpy-forward,gvn,dse,dce"] {
            let list = parse_passes(passes).unwrap();
            let (id, func) = before.funcs().next().unwrap();
            let done = run_passes(&before, func.clone(), &list, &options, &mut Cx::default());
            let (func, report) = done.unwrap_or_else(|error| panic!("{error}\n{text}"));
            rewrites += report.rewrites();
            let mut after = before.clone();
            after[id] = func;
            for x in [1, -5] {
                let (expected, found) = (call(&before, x), call(&after, x));
                assert!(expected.starts_with('['), "{expected}\n{text}");
                assert_eq!(expected, found, "{passes}, x = {x}, seed {seed}\n{text}");
            }
        }
    }
    assert!(rewrites > 10_000, "{rewrites} rewrites");
}
