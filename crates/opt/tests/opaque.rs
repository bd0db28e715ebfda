//! The result of `blackbox` is opaque to all passes on low IR, and the operand of `donotdelete` is computed.

use brolga_interp::{Interp, Options as Limits, SimMemory, Val};
use brolga_ir::diag::SourceFile;
use brolga_ir::text::{read, show_func};
use brolga_ir::verify::verify_func;
use brolga_ir::{Context, Level, Module};
use brolga_opt::lower::{self, lower};
use brolga_opt::{Cx, Options, PASSES, Pass, run_passes};

const PROGRAM: &str = "
function f(x::Int64)::Int64
1 ─ %1  = Core.blackbox(7)::Int64
│   %2  = Base.add_int(%1, 1)::Int64
│   %3  = Core.blackbox(Int128(-5))::Int128
│   %4  = Base.trunc_int(Int64, %3)::Int64
│   %5  = Core.blackbox(2.5)::Float64
│   %6  = Base.fptosi(Int64, %5)::Int64
│   %7  = Core.blackbox(true)::Bool
│   %8  = Core.ifelse(%7, %2, %4)::Int64
│   %9  = Base.mul_int(%8, %4)::Int64
│   %10 = Base.add_int(%9, %6)::Int64
│   %11 = Base.mul_int(x, 3)::Int64
│         Core.donotdelete(%11)::Nothing
└──       return %10
end
";

#[test]
fn opaque_values_stay_opaque() {
    let source = SourceFile::new("opaque", PROGRAM).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{found:?}");
    let module = unit.module;
    let (id, func) = module.funcs().next().unwrap();
    let low = lower(&module, func, &lower::Options::default()).unwrap();
    verify_func(&module.cx, &low).unwrap();
    // Twice, because a pass may enable an earlier one.
    let passes: Vec<&'static Pass> = PASSES.iter().copied().filter(|p| p.level.takes(Level::Low)).collect();
    let passes = [&passes[..], &passes[..]].concat();
    let options = Options { verify_each: true, ..Options::default() };
    let (low, _) = run_passes(&module, low, &passes, &options, &mut Cx::default()).unwrap();
    let shown = show_func(&module.cx, &low).to_string();
    // One for each register of at most 64 bits; a wide integer takes two.
    assert_eq!(shown.matches("atomic_load(").count(), 5, "{shown}");
    assert_eq!(shown.matches(" store(").count(), 5, "{shown}");
    assert_eq!(shown.matches("atomic_store(").count(), 1, "{shown}");
    assert!(shown.contains("mul_int(_1, 3)") || shown.contains("mul_int(x, 3)"), "{shown}");
    let mut after: Module = module.clone();
    after[id] = low;
    let mut interp = Interp::new(&after, Limits::default(), Box::new(SimMemory::default()));
    let values = interp.call_low(id, &[Val::Bits { ty: brolga_ir::Type::I64, bits: 1 }]).unwrap();
    assert_eq!(values.iter().map(Val::as_bits).collect::<Vec<_>>(), [Some(u128::from(-38i64 as u64))]);
}
