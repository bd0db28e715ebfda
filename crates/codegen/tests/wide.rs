//! Which loops in lanes are executed in registers of 256 and 512 bits. The results of the code are checked by `tests/vectorize.rs` of the root package.
#![cfg(target_arch = "x86_64")]

use brolga_codegen::isa::{CpuTarget, IsaOptions, TargetIsa};
use brolga_codegen::linkage::CallLinkage;
use brolga_codegen::translate::{TranslateOptions, Translator};
use brolga_ir::diag::SourceFile;
use brolga_ir::{Context, text};
use cranelift_codegen::ir::Function;

/// A loop over `p` and `q` with these rows between its counter and its test.
fn around(rows: &str) -> String {
    format!(
        "low function f(p::ptr, q::ptr, n::i64, k::v128)::()
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #2 => %3)::i64
│   %3 = add_int(%2, 4)::i64
│   %4 = mul_int(%2, 8)::i64
│   %5 = add_ptr(p, %4)::ptr
│   %6 = add_ptr(q, %4)::ptr
{rows}│   %20 = slt_int(%3, n)::i8
└──      goto #3 if not %20 else #2
3 ─      return ()
end
"
    )
}

fn load(row: usize, from: usize, offset: i32) -> String {
    format!("│   %{row} = load(%{from}; offset = {offset}, region = element, align = 8)::v128\n")
}

fn store(value: &str, offset: i32) -> String {
    format!("│        store(%6, {value}; offset = {offset}, region = element, align = 8)\n")
}

/// The bytes of the loops that follow a function, for a processor; `None` if this machine is below it.
fn loops(target: CpuTarget, program: &str) -> Option<Vec<Vec<u8>>> {
    let source = SourceFile::new("f", program).unwrap();
    let (unit, findings) = text::read(&source, &Context::new());
    assert!(!findings.has_errors(), "{program}\n{findings:?}");
    let module = unit.module;
    let (_, func) = module.funcs().next().unwrap();
    let options = IsaOptions { target, verify_clif: true, ..IsaOptions::default() };
    let isa = TargetIsa::new(options).ok()?;
    let mut clif = Function::new();
    let options = TranslateOptions::default();
    let made = Translator::new().translate(&module.cx, func, &isa, options, CallLinkage::FAR, &mut clif);
    let loops = made.unwrap_or_else(|e| panic!("{program}\n{e}")).wide_loops;
    Some(loops.into_iter().map(|code| code.bytes).collect())
}

/// Checks how many loops of a program are wide.
#[track_caller]
fn wide(rows: &str, expected: usize) {
    if let Some(loops) = loops(CpuTarget::X86V3, &around(rows)) {
        assert_eq!(loops.len(), expected, "{rows}");
    }
    assert_eq!(loops(CpuTarget::Generic, &around(rows)), Some(Vec::new()), "no registers of 256 bits");
}

#[test]
fn neighbours_become_one() {
    let both = load(7, 5, 0) + &load(8, 5, 16);
    wide(&(both.clone() + &store("%7", 0) + &store("%8", 16)), 1);
    let sums = "│   %9 = lanes(add_int, i64x2, %7, k)::v128\n│   %10 = lanes(add_int, i64x2, %8, k)::v128\n";
    wide(&(both.clone() + sums + &store("%9", 0) + &store("%10", 16)), 1);
    let constants =
        "│   %9 = lanes(shl_int, i64x2, %7, 3)::v128\n│   %10 = lanes(shl_int, i64x2, %8, 3)::v128\n";
    wide(&(both + constants + &store("%9", 0) + &store("%10", 16)), 1);
}

#[test]
fn what_has_no_neighbour_stays() {
    let both = load(7, 5, 0) + &load(8, 5, 16);
    wide(&(load(7, 5, 0) + &store("%7", 0)), 0);
    wide(&(both.clone() + &store("%8", 0) + &store("%7", 16)), 0);
    wide(&(both.clone() + &store("%7", 0) + &store("%8", 32)), 0);
    let other = "│   %9 = lanes(add_int, i64x2, %7, k)::v128\n│   %10 = lanes(sub_int, i64x2, %8, k)::v128\n";
    wide(&(both.clone() + other + &store("%9", 0) + &store("%10", 16)), 0);
    let counts =
        "│   %9 = lanes(shl_int, i64x2, %7, 3)::v128\n│   %10 = lanes(shl_int, i64x2, %8, 4)::v128\n";
    wide(&(both + counts + &store("%9", 0) + &store("%10", 16)), 0);
}

#[test]
fn accesses_keep_their_order() {
    // A store between the loads, and a load between the stores.
    wide(&(load(7, 5, 0) + &store("%7", 0) + &load(8, 5, 16) + &store("%8", 16)), 0);
    let rows = load(7, 5, 0) + &load(8, 5, 16) + &store("%7", 0) + &load(9, 5, 32) + &store("%8", 16);
    wide(&rows, 0);
}

#[test]
fn operations_that_avx2_lacks_stay() {
    let both = load(7, 5, 0) + &load(8, 5, 16);
    let made = |op: &str| {
        let rows = |n: usize| format!("│   %{} = lanes({op}, %{n}, k)::v128\n", n + 2);
        both.clone() + &rows(7) + &rows(8) + &store("%9", 0) + &store("%10", 16)
    };
    wide(&made("min_float, f64x2"), 0);
    wide(&made("div_float, f64x2"), 1);
    wide(&made("mul_int, i64x2"), 1);
}
