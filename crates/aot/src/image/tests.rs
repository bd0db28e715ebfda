//! Images of hand-written code: reading returns what was written, and damage of any kind is an error.

use std::sync::Arc;

use brolga_codegen::compiled::{
    CompiledFunction, FrameMap, MadeBy, NamedType, RelocKind, RelocTarget, Relocation, Symbol,
};
use brolga_codegen::export::{EXPORTS, EXPORTS_CALL, EXPORTS_OPEN};
use brolga_codegen::sig::{Abi, Signature};
use brolga_ir::func::LineColumn;
use brolga_ir::{Arch, Context, Module, Type};
use bytes::Bytes;

use super::header::{self, Expected};
use super::place::place;
use super::{Compiled, Export, Image, ImageError, ImageParts, ImageTarget, Library, PAGE, build, read};

const ABI: u64 = 0x0123_4567_89ab_cdef;

/// `mov rax, [rip + d]`, with the distance at offset 3.
const LOAD: [u8; 7] = [0x48, 0x8b, 0x05, 0, 0, 0, 0];
/// `call d`, with the distance at offset 1.
const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];

/// One function with a load of each symbol, then a call of each callee, and `ret`.
fn function(name: &str, loads: Vec<Symbol>, calls: Vec<(Symbol, RelocKind)>) -> CompiledFunction {
    let (mut code, mut relocs, mut symbols) = (Vec::new(), Vec::new(), Vec::new());
    let mut add = |code: &mut Vec<u8>, bytes: &[u8], at: usize, kind, symbol| {
        let offset = (code.len() + at) as u32;
        let target = RelocTarget::Symbol(symbols.len() as u32);
        symbols.push(symbol);
        relocs.push(Relocation { offset, kind, target, addend: -4 });
        code.extend_from_slice(bytes);
    };
    for symbol in loads {
        add(&mut code, &LOAD, 3, RelocKind::X86GotPcRel4, symbol);
    }
    for (symbol, kind) in calls {
        add(&mut code, &CALL, 1, kind, symbol);
    }
    code.push(0xc3);
    let size = code.len() as u32;
    CompiledFunction {
        name: name.to_owned(),
        code,
        align: 16,
        relocs,
        symbols,
        frame_bytes: 48,
        frame_maps: vec![FrameMap { return_offset: size, words: [-8, -16].into() }],
        lines: vec![(0, LineColumn::new(7, 0).into()), (5, LineColumn::new(9, 40).into())],
        inlined: Vec::new(),
        made_by: MadeBy::Other,
        file: None,
        variables: Vec::new(),
        listing: None,
    }
}

fn imports() -> Vec<Symbol> {
    let named = |name: &str, ty| NamedType { name: name.into(), ty };
    vec![
        Symbol::Routine("brolga_unwind".to_owned()),
        Symbol::Foreign { name: "sin".to_owned(), library: Some("libm".to_owned()), weak: false },
        Symbol::Foreign { name: "nobody".to_owned(), library: None, weak: true },
        Symbol::Interned("a name".to_owned()),
        Symbol::Module("Main.A".to_owned()),
        Symbol::Text(b"no \xff UTF-8".to_vec()),
        Symbol::Global("counter".to_owned()),
        Symbol::Type(named("Int64", Type::INT64)),
        Symbol::Instance(named("Nothing", Type::NOTHING)),
        Symbol::Boxed { ty: named("Int64", Type::INT64), low: u64::MAX - 5, high: 3 << 40 },
        Symbol::Methods,
    ]
}

fn image() -> Vec<u8> {
    let mut loads = imports();
    loads.extend([Symbol::Data("c".to_owned()), Symbol::Function("g".to_owned())]);
    loads.extend(imports());
    let calls = vec![
        (Symbol::Function("g".to_owned()), RelocKind::X86CallPcRel4),
        (Symbol::Routine("brolga_unwind".to_owned()), RelocKind::X86CallPltRel4),
    ];
    let functions = [function("f", loads, calls), function("g", vec![], vec![])];
    built(&functions, &[("c", b"constant bytes")]).unwrap()
}

/// An image that exports two functions to C.
fn library_image() -> Vec<u8> {
    let entry = |name: &str, routine: &str| {
        let symbols = vec![Symbol::Data(EXPORTS.to_owned()), Symbol::Routine(routine.to_owned())];
        function(name, symbols, vec![])
    };
    let exports = ["f", "g"].map(|name| {
        let export = Export { function: format!("{name}(Int64)"), name: name.to_owned() };
        (export, entry(name, EXPORTS_CALL))
    });
    let open = entry("numbers_open", EXPORTS_OPEN);
    let library = Library { open: &open, exports: &exports };
    built_as(&[function("f", vec![Symbol::Methods], vec![])], &[], Some(&library)).unwrap()
}

fn built(functions: &[CompiledFunction], constants: &[(&str, &[u8])]) -> Result<Vec<u8>, ImageError> {
    built_as(functions, constants, None)
}

fn built_as(
    functions: &[CompiledFunction],
    constants: &[(&str, &[u8])],
    library: Option<&Library<'_>>,
) -> Result<Vec<u8>, ImageError> {
    let signature = Signature::new([Abi::I64, Abi::Object, Abi::V128], [Abi::F64]);
    let compiled = |function| Compiled { function, version: 0, signature: Some(&signature) };
    let functions: Vec<_> = functions.iter().map(compiled).collect();
    let constants: Vec<_> = constants.iter().map(|&(name, bytes)| (0, name, bytes)).collect();
    build(&ImageParts {
        arch: Arch::X86_64,
        functions: &functions,
        constants: &constants,
        module: &Module::new(Context::new()),
        needs_heap: true,
        abi: ABI,
        targets: &[target("generic", &[], 0)],
        library,
    })
}

fn opened(bytes: &[u8]) -> Result<Image, ImageError> {
    let cx: Arc<Context> = Context::new();
    let file = super::ImageFile::from(Bytes::copy_from_slice(bytes));
    read(&file, cx, &Expected { arch: Arch::X86_64, abi: ABI, features: &[] })
}

/// The code of an image for aarch64 with a function that has these references, and a function `g`.
fn placed_for_aarch64(
    words: &[u32],
    references: &[(u32, RelocKind, Symbol)],
) -> Result<Vec<u32>, ImageError> {
    let code = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut f = function("f", vec![], vec![]);
    f.code = code(words);
    f.frame_maps.clear();
    for (offset, kind, symbol) in references {
        let target = RelocTarget::Symbol(f.symbols.len() as u32);
        f.symbols.push(symbol.clone());
        f.relocs.push(Relocation { offset: *offset, kind: *kind, target, addend: 0 });
    }
    let mut g = function("g", vec![], vec![]);
    g.code = code(&[RET]);
    g.frame_maps.clear();
    let (module, targets) = (Module::new(Context::new()), [target("generic", &[], 0)]);
    let functions = [&f, &g].map(|function| Compiled { function, version: 0, signature: None });
    let parts = ImageParts {
        arch: Arch::Aarch64,
        functions: &functions,
        constants: &[(0, "c", b"constant")],
        module: &module,
        needs_heap: false,
        abi: ABI,
        targets: &targets,
        library: None,
    };
    let placed = place(&parts)?;
    Ok(placed.code.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect())
}

/// `ret` of aarch64.
const RET: u32 = 0xd65f_03c0;

#[test]
fn references_of_aarch64_reach_functions_constants_and_imports() {
    let (constant, g) = (Symbol::Data("c".to_owned()), Symbol::Function("g".to_owned()));
    let routine = Symbol::Routine("brolga_unwind".to_owned());
    let words = [
        0x9000_0000, // adrp x0, c
        0xf940_0000, // ldr x0, [x0, c]
        0x9000_0001, // adrp x1, the word of the routine
        0xf940_0021, // ldr x1, [x1, the word of the routine]
        0x9400_0000, // bl g
        0x9400_0000, // bl the routine
        0x9000_0002, // adrp x2, g
        0x9100_0042, // add x2, x2, g
        RET,
    ];
    let code = placed_for_aarch64(
        &words,
        &[
            (0, RelocKind::Aarch64AdrGotPage21, constant.clone()),
            (4, RelocKind::Aarch64Ld64GotLo12Nc, constant),
            (8, RelocKind::Aarch64AdrGotPage21, routine.clone()),
            (12, RelocKind::Aarch64Ld64GotLo12Nc, routine.clone()),
            (16, RelocKind::Arm64Call, g.clone()),
            (20, RelocKind::Arm64Call, routine),
            (24, RelocKind::Aarch64AdrPrelPgHi21, g.clone()),
            (28, RelocKind::Aarch64AddAbsLo12Nc, g),
        ],
    )
    .unwrap();
    // `g` is at 64 and is followed by the stub at 72; the word of the routine begins the next page, and the
    // constant follows at 16.
    let expected = [
        0xb000_0000, // adrp x0, .+0x1000
        0x9100_4000, // add x0, x0, #0x10
        0xb000_0001, // adrp x1, .+0x1000
        0xf940_0021, // ldr x1, [x1]
        0x9400_000c, // bl .+48
        0x9400_000d, // bl .+52
        0x9000_0002, // adrp x2, .
        0x9101_0042, // add x2, x2, #64
        RET,
    ];
    assert_eq!(code[..9], expected);
    assert_eq!(code[16], RET);
    // adrp x16, .+0x1000; ldr x16, [x16]; br x16
    assert_eq!(code[18..], [0xb000_0010, 0xf940_0210, 0xd61f_0200]);
}

#[test]
fn references_that_no_loader_fills_in_are_refused() {
    let routine = Symbol::Routine("brolga_unwind".to_owned());
    let refused = |word, kind, symbol| {
        let result = placed_for_aarch64(&[word, RET], &[(0, kind, symbol)]);
        matches!(result, Err(ImageError::Reference { .. }))
    };
    assert!(refused(0x9000_0000, RelocKind::Aarch64AdrPrelPgHi21, routine.clone()));
    assert!(refused(0x9100_0000, RelocKind::Aarch64AddAbsLo12Nc, routine));
    // A load of four bytes cannot become an address computation.
    let own = Symbol::Data("c".to_owned());
    assert!(refused(0xb940_0000, RelocKind::Aarch64Ld64GotLo12Nc, own));
}

#[test]
fn a_written_image_is_read_back() {
    let bytes = image();
    let image = opened(&bytes).unwrap();
    let expected = imports();
    // These types have the same numbers in every context; each symbol has one word.
    assert_eq!(image.imports, expected);
    assert!(image.needs_heap);
    assert!(image.constants.windows(14).any(|bytes| bytes == b"constant bytes"));
    let all = image.functions.all().unwrap();
    let [(true, f), (true, g)] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(image.functions.find("g").unwrap().offset, g.offset);
    assert_eq!(image.functions.find("h"), None);
    assert_eq!(image.functions.names(), ["f", "g"]);
    assert_eq!(image.functions.named("g"), ["g"]);
    assert_eq!((f.name.as_str(), f.offset, f.frame_bytes), ("f", 0, 48));
    assert_eq!(f.lines, [(0, LineColumn::new(7, 0).into()), (5, LineColumn::new(9, 40).into())]);
    assert_eq!(&*f.frame_maps[0].words, [-8, -16]);
    assert_eq!(g.signature, Some(Signature::new([Abi::I64, Abi::Object, Abi::V128], [Abi::F64])));
}

#[test]
fn references_lead_where_they_should() {
    let image = opened(&image()).unwrap();
    let code = all_code(&image);
    let target = |at: usize| {
        let distance = i32::from_le_bytes(*code[at..].first_chunk().unwrap());
        (at as i64 + 4 + i64::from(distance)) as usize
    };
    let count = imports().len();
    for index in 0..count {
        assert_eq!(target(7 * index + 3), image.imports_at + 8 * index);
        // The second load of a symbol reads the same word.
        assert_eq!(target(7 * (index + count + 2) + 3), image.imports_at + 8 * index);
    }
    let g = image.functions.find("g").unwrap().offset as usize;
    // Addresses inside the image are computed, not loaded.
    let (constant, address) = (7 * count, 7 * (count + 1));
    assert_eq!((code[constant + 1], code[address + 1]), (0x8d, 0x8d));
    let at = target(constant + 3) - image.imports_at - 8 * count;
    assert_eq!(&image.constants[at..at + 14], b"constant bytes");
    assert_eq!(target(address + 3), g);
    let calls = 7 * (2 * count + 2);
    assert_eq!(target(calls + 1), g);
    let stub = target(calls + 6);
    assert_eq!(code[stub..stub + 2], [0xff, 0x25]);
    assert_eq!(target(stub + 2), image.imports_at, "the stub jumps through the word of the routine");
}

/// The whole text.
fn all_code(image: &Image) -> Vec<u8> {
    let mut code = vec![0; image.imports_at];
    image.code.load_all(&mut |at, bytes| code[at..at + bytes.len()].copy_from_slice(bytes)).unwrap();
    code
}

#[test]
fn a_function_is_loaded_with_what_it_refers_to() {
    let folder = std::env::temp_dir().join(format!("brolga-image-text-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.so");
    let call = |name: &str| vec![(Symbol::Function(name.to_owned()), RelocKind::X86CallPcRel4)];
    let functions = [
        function("f", vec![Symbol::Function("h".to_owned())], call("g")),
        function("g", vec![], call("g")),
        function("alone", vec![], vec![]),
        function("h", vec![], vec![(Symbol::Routine("brolga_unwind".to_owned()), RelocKind::X86CallPltRel4)]),
    ];
    let bytes = built(&functions, &[]).unwrap();
    super::write_file(&path, &bytes).unwrap();
    let open = || {
        let file = super::ImageFile::open(&path).unwrap();
        read(&file, Context::new(), &Expected { arch: Arch::X86_64, abi: ABI, features: &[] }).unwrap()
    };
    let whole = all_code(&open());
    let image = open();
    let row = |name: &str| image.functions.find(name).unwrap().row;
    let load = |name: &str| {
        let mut loaded = Vec::new();
        let done = image.code.load(row(name), &mut |at, bytes| {
            assert_eq!(&whole[at..at + bytes.len()], bytes);
            loaded.push(at);
        });
        done.map(|()| loaded)
    };
    let at = |name: &str| image.functions.find(name).unwrap().offset as usize;
    assert_eq!(load("f").unwrap(), [at("f"), at("g"), at("h")]);
    assert_eq!(load("g").unwrap(), [] as [usize; 0], "it has been loaded");
    // A file that loses its end, or another byte, is an error of what was not loaded.
    let text = whole.len();
    let place = bytes.windows(text).position(|part| part == whole).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[0x90], (place + at("alone")) as u64).unwrap();
    assert!(load("alone").unwrap_err().to_string().contains("does not have the checksum"));
    file.set_len((place + at("alone")) as u64).unwrap();
    assert!(load("alone").unwrap_err().to_string().starts_with("cannot read `"));
    assert_eq!(load("h").unwrap(), [] as [usize; 0]);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    assert!(image() == image());
}

#[test]
fn the_file_is_a_shared_library() {
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
    let bytes = image();
    let file = object::File::parse(&*bytes).unwrap();
    assert_eq!(file.kind(), object::ObjectKind::Dynamic);
    let exports: Vec<_> = file.exports().unwrap();
    assert_eq!(exports[0].name(), b"brolga_image");
    assert_eq!(exports[0].address(), header::AT as u64);
    let text = file.section_by_name(".text").unwrap();
    assert_eq!(text.address() % PAGE as u64, 0);
    let f = file.symbols().find(|symbol| symbol.name() == Ok("f")).unwrap();
    assert_eq!(f.address(), text.address());
    assert!(file.dynamic_relocations().is_none_or(|mut relocations| relocations.next().is_none()));
}

#[test]
fn a_library_has_entries_and_finds_its_exports() {
    use object::{Object as _, ObjectSymbol as _};
    let bytes = library_image();
    let read = opened(&bytes).unwrap();
    let names: Vec<_> = read.exports.iter().map(|export| (&*export.function, &*export.name)).collect();
    assert_eq!(names, [("f(Int64)", "f"), ("g(Int64)", "g")]);
    let file = object::File::parse(&*bytes).unwrap();
    let exported: Vec<_> = file.exports().unwrap().iter().map(|symbol| symbol.name().to_vec()).collect();
    assert_eq!(exported, [&b"brolga_image"[..], b"f", b"g", b"numbers_open"]);
    let relocations: Vec<_> = file.dynamic_relocations().unwrap().collect();
    assert_eq!(relocations.len(), 2);
    // The targets of an entry's loads: its exports, and the word of the routine.
    let target = |at: usize| {
        let distance = i32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        (at as i64 + 4 + i64::from(distance)) as usize
    };
    for (name, word) in [("f", 0), ("g", 0), ("numbers_open", 1)] {
        let symbol = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
        let entry = symbol.address() as usize;
        assert_eq!(bytes[entry + 1], 0x8d, "the address of the exports is computed");
        let exports = target(entry + 3);
        let wide = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        assert_eq!(
            (wide(exports), wide(exports + 8), wide(exports + 16)),
            (0, (exports - header::AT) as u64, 2)
        );
        assert_eq!(target(entry + 10) as u64, relocations[word].0);
    }
    let twice = function("f", vec![], vec![]);
    let export = Export { function: "f".to_owned(), name: "f".to_owned() };
    let error = |exports: &[(Export, CompiledFunction)]| {
        let library = Library { open: &twice, exports };
        built_as(&[function("f", vec![], vec![])], &[], Some(&library)).unwrap_err().to_string()
    };
    assert_eq!(error(&[(export.clone(), twice.clone())]), "`f` is exported twice");
    let other = function("g", vec![Symbol::Methods], vec![]);
    let export = Export { name: "g".to_owned(), ..export };
    assert_eq!(error(&[(export, other)]), "`g` refers to more than an entry for C does");
}

#[test]
fn symbols_that_an_image_cannot_hold_are_refused_by_name() {
    let error = |symbol, kind| {
        let loads = vec![];
        built(&[function("f", loads, vec![(symbol, kind)])], &[]).unwrap_err().to_string()
    };
    let slot = error(Symbol::IndirectCell("g".to_owned()), RelocKind::X86CallPltRel4);
    assert_eq!(slot, "`f` refers to the cell of function `g`, which an image cannot hold");
    let near = error(Symbol::Methods, RelocKind::X86PcRel4);
    assert_eq!(near, "`f` refers to something by X86PcRel4, which an image cannot hold");
    let missing = error(Symbol::Function("h".to_owned()), RelocKind::X86CallPcRel4);
    assert_eq!(missing, "`f` refers to function `h`, which an image cannot hold");
    let twice = built(&[function("f", vec![], vec![]), function("f", vec![], vec![])], &[]);
    assert_eq!(twice.unwrap_err().to_string(), "`f` is defined twice");
    let nul = built(&[function("f\0", vec![], vec![])], &[]).unwrap_err().to_string();
    assert!(nul.contains("NUL byte"), "{nul}");
}

#[test]
fn files_that_are_not_images_are_refused_with_a_reason() {
    let whole = image();
    let message = |bytes: &[u8]| opened(bytes).unwrap_err().to_string();
    assert!(message(b"").contains("not an ELF file"));
    assert!(message(b"\x7fELF").contains("ends before the header"));
    assert!(message(&[b"\x7fELF".as_slice(), &[0; 1000]].concat()).contains("no header of an image"));
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[header::AT + at] ^= byte;
        super::seal(&mut bytes);
        opened(&bytes).unwrap_err()
    };
    assert!(matches!(with(8, 2), ImageError::Version { found: 7, known: 5 }));
    assert!(matches!(with(24, 1), ImageError::Abi { known: ABI, .. }));
    assert!(matches!(with(32, 1), ImageError::Machine { .. }));
}

fn target(name: &str, features: &[&str], base: usize) -> ImageTarget {
    let features = features.iter().map(|&feature| feature.to_owned()).collect();
    ImageTarget { name: name.to_owned(), features, base }
}

/// `f` for three targets, and `g`, which calls it, for two.
fn versions(targets: &[ImageTarget]) -> Vec<u8> {
    let g = || function("g", vec![], vec![(Symbol::Function("f".to_owned()), RelocKind::X86CallPcRel4)]);
    let all = [
        function("f", vec![], vec![]),
        g(),
        function("f", vec![], vec![]),
        g(),
        function("f", vec![], vec![]),
    ];
    let versions = [0, 0, 1, 1, 2];
    let compiled = |(function, version)| Compiled { function, version, signature: None };
    let functions: Vec<_> = all.iter().zip(versions).map(compiled).collect();
    let module = Module::new(Context::new());
    let parts = ImageParts {
        arch: Arch::X86_64,
        functions: &functions,
        constants: &[],
        module: &module,
        needs_heap: false,
        abi: ABI,
        targets,
        library: None,
    };
    build(&parts).unwrap()
}

#[test]
fn the_best_version_is_chosen_and_calls_its_own() {
    let v3 = ["has_avx2", "has_fma"];
    let v4 = ["has_avx2", "has_avx512f", "has_fma"];
    for base in [0, 1] {
        let bytes = versions(&[target("generic", &[], 0), target("v3", &v3, 0), target("v4", &v4, base)]);
        let open = |features: &[&str]| {
            let features: Vec<String> = features.iter().map(|&feature| feature.to_owned()).collect();
            read(
                &super::ImageFile::from(bytes.clone()),
                Context::new(),
                &Expected { arch: Arch::X86_64, abi: ABI, features: &features },
            )
            .unwrap()
        };
        // Functions are 32 bytes apart: f, g, f, g, f.
        for (features, name, f, g) in [
            (&[][..], "generic", 0, 32),
            (&["has_fma"][..], "generic", 0, 32),
            (&v3[..], "v3", 64, 96),
            (&v4[..], "v4", 128, if base == 1 { 96 } else { 32 }),
        ] {
            let image = open(features);
            let of = |name: &str| {
                let all = image.functions.all().unwrap();
                let chosen = all.iter().filter(|(is_chosen, function)| *is_chosen && function.name == name);
                let offsets: Vec<u32> = chosen.map(|(_, function)| function.offset).collect();
                let found = image.functions.find(name).unwrap();
                assert_eq!(offsets, [found.offset]);
                found.offset
            };
            assert_eq!((image.target.as_str(), of("f"), of("g")), (name, f, g), "base {base}");
        }
        let code = all_code(&open(&[]));
        let callee = |g: usize| {
            let distance = i32::from_le_bytes(*code[g + 1..].first_chunk().unwrap());
            (g as i64 + 5 + i64::from(distance)) as usize
        };
        assert_eq!((callee(32), callee(96)), (0, 64), "each calls the version of its target");
    }
}

#[test]
fn an_image_without_a_fitting_target_says_what_is_missing() {
    let bytes = versions(&[
        target("x86-64-v3", &["has_avx2", "has_fma"], 0),
        target("x86-64-v4", &["has_avx2", "has_avx512f"], 0),
        target("wings", &["has_wings"], 0),
    ]);
    let features = ["has_fma".to_owned()];
    let error = read(
        &bytes.clone().into(),
        Context::new(),
        &Expected { arch: Arch::X86_64, abi: ABI, features: &features },
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no target of the image fits this processor: `x86-64-v3` needs avx2; `x86-64-v4` needs avx2, avx512f; `wings` needs wings"
    );
}

#[test]
fn targets_that_make_no_sense_are_refused() {
    use super::versions::{read, write};
    assert!(write(&[target("a", &[], 1)]).is_err());
    assert!(write(&[target("a", &[], 0), target("b", &[], 1)]).is_err());
    assert!(write(&[target("a\tb", &[], 0)]).is_err());
    for text in ["", "1\ta\t\n", "0\ta\n", "x\ta\t\n", "0\ta\t\tb\n", "0\ta\t\n1\tb\t\n"] {
        assert_eq!(read(text.as_bytes()), None, "{text:?}");
    }
    assert!(read(b"0\t\xff\t\n").is_none());
    let targets = [target("a", &[], 0), target("b", &["x", "y"], 0)];
    assert_eq!(read(write(&targets).unwrap().as_bytes()).unwrap(), targets);
}

/// Splitmix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// Flips bits, truncates, and overwrites: without an updated checksum each is an error. With one, the tables
/// themselves must reveal the damage, or else their meaning changes; nothing panics.
fn damage(count: usize, seed: u64) {
    let several = versions(&[target("a", &[], 0), target("b", &["x"], 0), target("c", &["x", "y"], 1)]);
    let kinds = [image(), library_image(), several];
    let mut rng = Rng(seed);
    for turn in 0..count {
        let whole = &kinds[rng.below(3)];
        let (mut bytes, end) = (whole.clone(), sealed(whole));
        // The reader uses only the sealed part.
        let inside = |rng: &mut Rng| header::AT + rng.below(end - header::AT);
        match turn % 4 {
            0 => bytes.truncate(rng.below(end)),
            1 => {
                let at = inside(&mut rng);
                bytes[at] ^= 1 << rng.below(8);
            }
            2 => {
                // In the header and the tables, where most errors are possible.
                let at = header::AT + rng.below(2 * header::BYTES);
                let value = [0, 1, 0x7f, 0xff][rng.below(4)];
                if bytes[at] == value {
                    continue;
                }
                bytes[at] = value;
            }
            _ => {
                for _ in 0..1 + rng.below(4) {
                    let at = inside(&mut rng);
                    bytes[at] = bytes[at].wrapping_add(1 + rng.below(255) as u8);
                }
                if bytes == *whole {
                    continue;
                }
            }
        }
        assert!(opened(&bytes).is_err(), "turn {turn} of seed {seed} was not noticed");
        super::seal(&mut bytes);
        // Reading anything later must not panic either.
        if let Ok(image) = opened(&bytes) {
            let _ = (image.module.module(), image.functions.all(), image.functions.ids().count());
            for function in 0..4 {
                let _error_or_code = image.code.load(function, &mut |_, _| ());
            }
            for name in image.functions.names() {
                let found = image.functions.find(&name).and_then(|found| found.id);
                let _ = found.map(|id| image.module.declaration(id));
            }
        }
    }
}

#[test]
fn damage_is_an_error() {
    damage(4_000, 1);
}

#[test]
#[ignore = "takes minutes; run with --ignored"]
fn damage_is_an_error_a_hundred_thousand_times() {
    damage(100_000, 2);
}

/// The end of the sealed part of an image.
fn sealed(image: &[u8]) -> usize {
    let field = image[header::AT + 16..header::AT + 24].try_into().unwrap();
    u64::from_le_bytes(field) as usize
}

#[test]
fn symbols_and_sections_are_for_tools_alone() {
    for whole in [image(), library_image()] {
        let end = sealed(&whole);
        let mut stripped = whole[..end].to_vec();
        // No section headers, and no names of sections.
        stripped[40..48].fill(0);
        stripped[60..64].fill(0);
        let (before, after) = (opened(&whole).unwrap(), opened(&stripped).unwrap());
        assert_eq!(after.functions.all(), before.functions.all());
        assert_eq!(after.exports, before.exports);
        use object::{Object as _, ObjectSegment as _};
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*whole).unwrap();
        let loaded = file.segments().map(|segment| segment.file_range());
        assert_eq!(loaded.map(|(at, length)| at + length).max(), Some(end as u64));
        assert!(opened(&whole[..end - 1]).is_err());
    }
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let folder = std::env::temp_dir().join(format!("brolga-image-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.so");
    super::write_file(&path, b"old").unwrap();
    super::write_file(&path, &image()).unwrap();
    assert!(super::read_file(&path).unwrap() == image());
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["a.so"], "nothing is left beside it");
    let error = super::write_file(&folder.join("none/a.so"), b"new").unwrap_err();
    assert!(error.to_string().starts_with("cannot write `"), "{error}");
    assert!(super::read_file(&folder).unwrap_err().to_string().contains("regular file"));
    std::fs::remove_dir_all(&folder).unwrap();
}
