//! Object files: what they define, what they leave to the linker, and that a linker accepts them.

use brolga_aot::{ObjectError, ObjectUnit, STRING_TYPE, emit_object};
use brolga_codegen::compile::{CompileOptions, Compiler};
use brolga_codegen::compiled::{CompiledFunction, Symbol};
use brolga_codegen::isa::{IsaOptions, TargetIsa, Tier};
use brolga_codegen::linkage::CallLinkage;
use brolga_codegen::translate::{TranslateOptions, Translator};
use brolga_ir::constant::{Address, Const};
use brolga_ir::func::{CalleeData, ForeignData};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Context, Func, Level, Op, RuntimeFn, Signature, Type};
use cranelift_codegen::ir::Function;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use std::process::Command;

type Constants = Vec<(Symbol, Box<[u8]>)>;

/// A function that refers to one symbol of each kind, and its constant bytes.
fn compiled(isa: &TargetIsa) -> (CompiledFunction, Constants) {
    let cx = Context::new();
    let name = |text: &str| cx.names.intern(text);
    let sig = Signature { params: vec![], results: vec![Type::PTR], vararg: false, ..Signature::default() };
    let mut f = Func::new(name("everything()"), Level::Low, sig);
    let block = f.make_block();
    f.append_block(block);
    let callee =
        f.add_callee(CalleeData::Symbol { symbol: name("other()"), params: [].into(), results: [].into() });
    let foreign = ForeignData {
        name: Some(name("malloc")),
        result: Type::PTR,
        params: [Type::I64].into(),
        variadic_after: None,
    };
    let foreign = f.add_foreign(foreign);
    let number = f.add_data(b"constant bytes");
    let size = f.bits(&cx.types, Type::I64, 64);
    let [text, symbol, bytes] =
        [Address::String(name("a string")), Address::Symbol(name("sym")), Address::Data(number)]
            .map(|address| f.constant(Const::Address(address)));
    let [text, symbol] = [text, symbol].map(|record| {
        let object = f.make_inst(Op::Intrinsic(Intrinsic::Bitcast), &[record], &[], &[Type::TRACKED]);
        f.append_inst(object, block);
        f.result(object).unwrap()
    });
    for (op, args, results) in [
        (Op::CallSymbol(callee), vec![], vec![]),
        (Op::CallRuntime(RuntimeFn::PrintString), vec![text], vec![]),
        (Op::CallRuntime(RuntimeFn::PrintSymbol), vec![symbol], vec![]),
        (Op::CallRuntime(RuntimeFn::PrintPtr), vec![bytes], vec![]),
        (Op::ForeignCall(foreign), vec![size], vec![Type::PTR]),
    ] {
        let inst = f.make_inst(op, &args, &[], &results);
        f.append_inst(inst, block);
    }
    let last = f.last_inst(block).unwrap();
    let result = f.result(last).unwrap();
    let ret = f.make_inst(Op::Return, &[result], &[], &[]);
    f.append_inst(ret, block);

    let mut clif = Function::new();
    let made = Translator::new()
        .translate(&cx, &f, isa, TranslateOptions::default(), CallLinkage::FAR, &mut clif)
        .unwrap();
    let options = CompileOptions { tier: Tier::Optimised, listing: false };
    let code = Compiler::default().compile("everything()", &mut clif, made.symbols, isa, options).unwrap();
    (code, made.data)
}

#[test]
fn definitions_and_open_names() {
    let isa = TargetIsa::position_independent(IsaOptions::default()).unwrap();
    let (code, data) = compiled(&isa);
    let unit = ObjectUnit { name: "unit", functions: &[code], data: &data };
    let bytes = emit_object(&unit, &isa).unwrap();
    assert_eq!(bytes, emit_object(&unit, &isa).unwrap(), "equal input gives equal bytes");

    let file = object::File::parse(&*bytes).unwrap();
    let names = |undefined: bool| {
        let all = file.symbols().filter(|s| s.is_global() && s.is_undefined() == undefined);
        let mut names: Vec<String> = all.map(|s| s.name().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(false), ["everything()"]);
    let open = names(true);
    for wanted in ["other()", "malloc", "brolga.symbol.sym", "brolga_print_string", "brolga_unwind"] {
        assert!(open.iter().any(|n| n == wanted), "{wanted} is missing in {open:?}");
    }
    // The string's record is in the file, after its tag.
    let at = bytes.windows(9).position(|w| w == b"a string\0").unwrap();
    assert_eq!(bytes[at - 16..at], [0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
    let string = file.symbols().find(|symbol| symbol.name() == Ok(STRING_TYPE)).unwrap();
    let tags: Vec<_> = file
        .sections()
        .flat_map(|section| {
            section.relocations().map(move |(offset, found)| (section.file_range(), offset, found))
        })
        .filter(|(.., found)| found.target() == RelocationTarget::Symbol(string.index()))
        .map(|(range, offset, found)| (range.unwrap().0 + offset, found.addend(), found.size()))
        .collect();
    assert_eq!(tags, [(at as u64 - 16, 2, 64)], "the permanent bit of the tag");
}

#[test]
fn the_system_linker_takes_it_as_a_shared_library() {
    let isa = TargetIsa::position_independent(IsaOptions::default()).unwrap();
    let (code, data) = compiled(&isa);
    let bytes = emit_object(&ObjectUnit { name: "unit", functions: &[code], data: &data }, &isa).unwrap();
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (input, output) = (folder.join("unit.o"), folder.join("unit.so"));
    std::fs::write(&input, bytes).unwrap();
    // Text relocations would mean that the code is not position-independent after all.
    let arguments = ["-shared", "-nostdlib", "-Wl,-z,text", "-o"];
    let linked = Command::new("cc").args(arguments).arg(&output).arg(&input).output().unwrap();
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
}

#[test]
fn misuse_is_an_error() {
    let isa = TargetIsa::position_independent(IsaOptions::default()).unwrap();
    let (code, data) = compiled(&isa);
    let twice = [code.clone(), code.clone()];
    let error = emit_object(&ObjectUnit { name: "unit", functions: &twice, data: &data }, &isa).unwrap_err();
    assert_eq!(error, ObjectError::Duplicate { name: "everything()".into() });

    let mut nul = code.clone();
    nul.name = "a\0b".into();
    let error = emit_object(&ObjectUnit { name: "unit", functions: &[nul], data: &data }, &isa).unwrap_err();
    assert!(matches!(error, ObjectError::Name { .. }));

    let mut lost = code;
    lost.symbols.clear();
    let error = emit_object(&ObjectUnit { name: "unit", functions: &[lost], data: &data }, &isa).unwrap_err();
    assert!(matches!(error, ObjectError::Malformed { .. }));
}
