//! Which chains of comparisons become tables of jumps. The results of the code are checked by `tests/objects/ladders.jlir` of the root package.

use brolga_codegen::compile::{CompileOptions, Compiler};
use brolga_codegen::isa::{IsaOptions, TargetIsa, Tier};
use brolga_codegen::linkage::CallLinkage;
use brolga_codegen::translate::{TranslateOptions, Translator};
use brolga_ir::diag::SourceFile;
use brolga_ir::{Context, text};
use cranelift_codegen::ir::Function;

/// A chain of comparisons of a value of a low type with these constants, the last of them after an addition if `is_busy`.
fn chain(ty: &str, cases: &[&str], is_busy: bool, weights: &str) -> String {
    let mut rows = format!("low function f(x::{ty}, z::i64)::i64\n");
    let mut row = 1;
    for (n, case) in cases.iter().enumerate() {
        let block = 2 * n + 1;
        rows += &format!("{block} ─ ");
        if is_busy && n + 1 == cases.len() {
            rows += &format!("%{row} = add_int(z, 1)::i64\n│   ");
            row += 1;
        }
        rows += &format!("%{row} = eq_int(x, {case})::i8\n");
        rows += &format!("└──      goto #{} if not %{row}{weights}\n", block + 2);
        rows += &format!("{} ─      return {n}\n", block + 1);
        row += 1;
    }
    rows += &format!("{} ─      return z\nend\n", 2 * cases.len() + 1);
    rows
}

/// The number of tables in the code of a low function, at both tiers.
fn tables(program: &str) -> (usize, usize) {
    let source = SourceFile::new("f", program).unwrap();
    let (unit, findings) = text::read(&source, &Context::new());
    assert!(!findings.has_errors(), "{program}");
    let module = unit.module;
    let (_, func) = module.funcs().next().unwrap();
    let options = IsaOptions { verify_clif: true, check_regalloc: true, ..IsaOptions::default() };
    let isa = TargetIsa::new(options).unwrap();
    let count = |tier| {
        let mut clif = Function::new();
        let options = TranslateOptions { order_branches: tier == Tier::Optimised, ..Default::default() };
        let made = Translator::new().translate(&module.cx, func, &isa, options, CallLinkage::FAR, &mut clif);
        let made = made.unwrap_or_else(|e| panic!("{program}\n{e}"));
        let tables = clif.display().to_string().matches("br_table").count();
        let options = CompileOptions { tier, listing: false };
        let code = Compiler::default().compile("f", &mut clif, made.symbols, &isa, options);
        assert!(!code.unwrap_or_else(|e| panic!("{program}\n{e}")).code.is_empty());
        tables
    };
    (count(Tier::Baseline), count(Tier::Optimised))
}

#[test]
fn dense_chains_become_tables_where_code_is_optimised() {
    for ty in ["i8", "i16", "i32", "i64"] {
        assert_eq!(tables(&chain(ty, &["0", "1", "2", "3", "4"], false, "")), (0, 1), "{ty}");
        assert_eq!(tables(&chain(ty, &["9", "-2", "40", "7", "0"], false, "")), (0, 0), "{ty}: 43 places");
        assert_eq!(tables(&chain(ty, &["9", "-2", "30", "7", "0"], false, "")), (0, 1), "{ty}: 33 places");
    }
    assert_eq!(tables(&chain("i128", &["0", "1", "2", "3", "4"], false, "")), (0, 0));
}

#[test]
fn other_chains_stay() {
    let dense = ["0", "1", "2", "3", "4"];
    assert_eq!(tables(&chain("i64", &dense[..4], false, "")), (0, 0), "too few");
    assert_eq!(tables(&chain("i64", &["0", "1", "2", "1", "0", "2"], false, "")), (0, 0), "three constants");
    assert_eq!(tables(&chain("i64", &dense, true, "")), (0, 0), "an addition in front of the fifth");
    assert_eq!(tables(&chain("i64", &dense, false, " weights 3:1")), (0, 0), "what mostly holds");
    assert_eq!(tables(&chain("i64", &dense, false, " weights 1:3")), (0, 1), "what mostly does not");
}
