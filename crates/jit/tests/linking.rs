//! Linking: refusals and their errors, references between functions, data and units, and freeing.

mod support;

use brolga_codegen::compiled::{CompiledFunction, RelocKind, RelocTarget, Relocation, Symbol};
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::Abi;
use brolga_ir::func::LineColumn;
use brolga_jit::{CodeMemoryError, CodeMemoryOptions, DataObject, DataRelocation, Jit, LinkError, Unit};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, types};
use support::{TIERS, compile, engine, engines, engines_with, int_function, ints, load, try_load};

fn constant(jit: &Jit, name: &str, value: i64) -> CompiledFunction {
    compile(jit, Tier::Baseline, name, &ints(0, 1), |c| {
        let value = c.int(value);
        c.b.ins().return_(&[value]);
    })
}

/// A function that calls others and adds up their values.
fn sum_of(jit: &Jit, name: &str, callees: &[Symbol]) -> CompiledFunction {
    compile(jit, Tier::Optimised, name, &ints(0, 1), |c| {
        let mut sum = c.int(0);
        for callee in callees {
            let value = match callee {
                Symbol::Function(name) => c.call(name, &ints(0, 1), &[])[0],
                other => c.call_c(other.clone(), &[], Some(Abi::I64), &[])[0],
            };
            sum = c.b.ins().iadd(sum, value);
        }
        c.b.ins().return_(&[sum]);
    })
}

fn function(name: &str) -> Symbol {
    Symbol::Function(name.into())
}

fn foreign(name: &str) -> Symbol {
    Symbol::Foreign { name: name.into(), library: None, weak: false }
}

fn refusal(jit: &Jit, functions: Vec<CompiledFunction>, data: Vec<DataObject>) -> LinkError {
    let error = try_load(jit, functions, data, vec![], &[]).unwrap_err();
    assert_eq!(jit.stats().in_use, 0, "nothing may remain of a refused unit");
    error
}

fn value(unit: &Unit, name: &str) -> i64 {
    unit.func::<(), i64>(name).unwrap().call(()).unwrap()
}

#[test]
fn all_unresolved_symbols_are_listed_with_their_reasons() {
    for jit in engines() {
        let callees = [
            function("missing"),
            foreign("brolga_no_such_c_function"),
            Symbol::Routine("brolga_no_such_routine".into()),
            function("known"),
            foreign("nul\0inside"),
            function("missing"),
        ];
        let functions = vec![sum_of(&jit, "f", &callees), constant(&jit, "known", 1)];
        let LinkError::Unresolved { symbols } = refusal(&jit, functions, vec![]) else {
            panic!("wrong error")
        };
        let names: Vec<String> = symbols.iter().map(|(symbol, _)| symbol.to_string()).collect();
        assert_eq!(
            names,
            [
                "function `missing`",
                "run-time routine `brolga_no_such_routine`",
                "C symbol `brolga_no_such_c_function`",
                "C symbol `nul\0inside`",
            ]
        );
    }
}

#[test]
fn a_malformed_unit_is_refused() {
    for jit in engines() {
        let good = sum_of(&jit, "f", &[function("f")]);
        let fault = |change: &dyn Fn(&mut CompiledFunction)| {
            let mut bad = good.clone();
            change(&mut bad);
            match refusal(&jit, vec![bad], vec![]) {
                LinkError::Malformed { fault, .. } => fault,
                other => panic!("{other}"),
            }
        };
        assert_eq!(fault(&|f| f.code.clear()), "has no code");
        assert_eq!(fault(&|f| f.align = 3), "has an alignment larger than a page");
        assert_eq!(fault(&|f| f.align = 1 << 20), "has an alignment larger than a page");
        assert_eq!(
            fault(&|f| f.relocs[0].offset = f.code.len() as u32 - 7),
            "has a relocation outside of its code"
        );
        assert_eq!(fault(&|f| f.relocs.push(f.relocs[0].clone())), "has two relocations in one place");
        assert_eq!(fault(&|f| f.relocs[0].target = RelocTarget::Symbol(9)), "has a relocation to nothing");
        assert_eq!(fault(&|f| f.relocs[0].addend = i64::MAX), "has an addend beyond all memory");
        let twice = refusal(&jit, vec![good.clone(), good.clone()], vec![]);
        assert!(matches!(twice, LinkError::Duplicate { symbol } if symbol == function("f")));
        let object =
            DataObject { name: "d".into(), bytes: vec![0; 4], align: 1, writable: false, relocs: vec![] };
        let reloc = DataRelocation { offset: 0, symbol: function("f"), addend: 0 };
        let short = DataObject { relocs: vec![reloc], ..object.clone() };
        assert!(matches!(refusal(&jit, vec![good], vec![short]), LinkError::Malformed { .. }));
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn a_relative_call_to_the_host_is_refused_when_it_cannot_reach() {
    for jit in engines() {
        // SAFETY: nothing calls it.
        unsafe { jit.runtime().foreign().define("far", std::ptr::without_provenance(16)) };
        let mut f = constant(&jit, "f", 0);
        f.symbols = vec![foreign("far")];
        let target = RelocTarget::Symbol(0);
        f.relocs = vec![Relocation { offset: 0, kind: RelocKind::X86CallPcRel4, target, addend: -4 }];
        assert!(matches!(refusal(&jit, vec![f], vec![]), LinkError::OutOfReach { .. }));
    }
}

#[test]
fn names_of_all_sorts_are_fine() {
    for jit in engines() {
        for name in ["", "a\0b", "import0", "var\"#f#1\"", "memcpy", "λ"] {
            let unit = load(&jit, vec![constant(&jit, name, 7)], vec![int_function(name, 0)]);
            assert_eq!(value(&unit, name), 7);
        }
    }
}

#[test]
fn a_compiled_function_and_a_c_function_of_one_name_are_two() {
    for jit in engines() {
        let functions =
            vec![constant(&jit, "getpid", -1), sum_of(&jit, "f", &[function("getpid"), foreign("getpid")])];
        let unit = load(&jit, functions, vec![int_function("f", 0)]);
        assert_eq!(value(&unit, "f") as i32, std::process::id() as i32 - 1);
    }
}

#[test]
fn code_reads_and_writes_data_and_data_points_to_code() {
    for tier in TIERS {
        for jit in engines() {
            let table = Symbol::Data("table".into());
            let counter = Symbol::Data("counter".into());
            // Calls through the table's second entry and counts in the counter, which the table's first entry points into.
            let f = compile(&jit, tier, "f", &ints(0, 1), |c| {
                let flags = MemFlagsData::trusted();
                let table = c.address(table.clone());
                let counter = c.b.ins().load(types::I64, flags, table, 0);
                let callee = c.b.ins().load(types::I64, flags, table, 8);
                let signature = c.b.import_signature(ints(0, 1).clif());
                let call = c.b.ins().call_indirect(signature, callee, &[]);
                let value = c.b.inst_results(call)[0];
                let count = c.b.ins().load(types::I64, flags, counter, 0);
                let count = c.b.ins().iadd_imm_s(count, 1);
                c.b.ins().store(flags, count, counter, 0);
                let result = c.b.ins().iadd(value, count);
                c.b.ins().return_(&[result]);
            });
            let data = vec![
                DataObject {
                    name: "table".into(),
                    bytes: vec![0; 16],
                    align: 16,
                    writable: false,
                    relocs: vec![
                        DataRelocation { offset: 0, symbol: counter, addend: 8 },
                        DataRelocation { offset: 8, symbol: function("g"), addend: 0 },
                    ],
                },
                DataObject { name: "empty".into(), bytes: vec![], align: 1, writable: true, relocs: vec![] },
                DataObject {
                    name: "counter".into(),
                    bytes: [1u64.to_le_bytes(), 40u64.to_le_bytes()].concat(),
                    align: 8,
                    writable: true,
                    relocs: vec![],
                },
            ];
            let functions = vec![f, constant(&jit, "g", 1_000)];
            let unit = try_load(&jit, functions, data, vec![int_function("f", 0)], &[]).unwrap();
            assert_eq!((value(&unit, "f"), value(&unit, "f")), (1_041, 1_042));
            assert_eq!(unit.loaded().data("table").unwrap() % 16, 0);
        }
    }
}

#[test]
fn a_unit_keeps_what_it_refers_to() {
    for jit in engines() {
        let below = load(&jit, vec![constant(&jit, "g", 5)], vec![]);
        let f = sum_of(&jit, "f", &[function("g"), function("g")]);
        let visible = std::slice::from_ref(&below);
        let above = try_load(&jit, vec![f], vec![], vec![int_function("f", 0)], visible).unwrap();
        drop(below);
        assert_eq!(value(&above, "f"), 10);
        let runs = jit.stats().runs;
        drop(above);
        assert_eq!(jit.stats().runs, runs - 2);
    }
}

#[test]
fn a_unit_of_another_runtime_is_not_visible() {
    let (here, there) = (engine(), engine());
    let below = load(&there, vec![constant(&there, "g", 5)], vec![]);
    let f = sum_of(&here, "f", &[function("g")]);
    assert!(matches!(try_load(&here, vec![f], vec![], vec![], &[below]), Err(LinkError::Unresolved { .. })));
}

#[test]
fn relative_calls_within_a_unit_work() {
    for jit in engines() {
        let f = compile(&jit, Tier::Optimised, "f", &ints(0, 1), |c| {
            let callee = c.import(function("g"), ints(0, 1).clif(), true);
            let call = c.b.ins().call(callee, &[]);
            let value = c.b.inst_results(call)[0];
            c.b.ins().return_(&[value]);
        });
        assert!(f.relocs.iter().all(|reloc| reloc.kind.is_relative()));
        let unit = load(&jit, vec![f, constant(&jit, "g", 3)], vec![int_function("f", 0)]);
        assert_eq!(value(&unit, "f"), 3);
    }
}

#[test]
fn memory_is_flat_over_many_units_and_full_memory_is_an_error() {
    for jit in engines_with(CodeMemoryOptions { reserve: 64 << 10, ..CodeMemoryOptions::default() }) {
        let f = constant(&jit, "f", 9);
        for _ in 0..500 {
            assert_eq!(value(&load(&jit, vec![f.clone()], vec![int_function("f", 0)]), "f"), 9);
        }
        assert_eq!(jit.stats().runs, 1, "only the trampoline is left");
        let mut units = Vec::new();
        let error = loop {
            match try_load(&jit, vec![f.clone()], vec![], vec![], &[]) {
                Ok(unit) => units.push(unit),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, LinkError::Memory(CodeMemoryError::Full { .. })), "{error}");
        drop(units);
        assert_eq!(jit.stats().runs, 1);
        assert_eq!(jit.stats().lost, 0);
    }
}

#[test]
fn an_address_leads_to_its_function_and_line() {
    for jit in engines() {
        let mut f = sum_of(&jit, "f", &[function("g"), function("g")]);
        f.lines = vec![(0, LineColumn::new(3, 0).into()), (4, LineColumn::new(5, 0).into())];
        let unit = load(&jit, vec![f, constant(&jit, "g", 3)], vec![int_function("f", 0)]);
        let start = unit.loaded().function("f").unwrap();
        let found = jit.symbolize(start + 5).unwrap();
        assert_eq!(
            (found.function.as_str(), found.start, found.offset, found.line),
            ("f", start, 5, Some(5))
        );
        let start = unit.loaded().function("g").unwrap();
        assert_eq!(jit.symbolize(start).unwrap().function, "g");
        assert_eq!(jit.symbolize(start).unwrap().unit, unit.loaded().code().id());
        drop(unit);
        assert_eq!(jit.symbolize(start), None);
    }
}
