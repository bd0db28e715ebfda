//! The maps that the collector reads: objects of a program word by word, by their layouts, and the frame of a function at each of its calls, by its code.

use brolga::heap::{DEFAULT_ABI, TAG_BYTES};
use brolga::observe::emit;
use brolga::opt::{Cx, Options};
use brolga::options::Roots;
use brolga::unstable::Stages;
use brolga::{OptLevel, Program};

use crate::source;
use crate::svg::Svg;

const EXAMPLE: &str = "examples/binary_trees.jlir";

/// An object with every kind of field.
const OBJECT: &str = "struct Point
    x::Float64
    y::Float64
end
mutable struct Mark
    name::String
    at::Point
    weight::Union{Int32, Float32}
    next::Any
end
function f(mark::Mark)::Nothing
1 ─      return nothing
end
";

const FIELDS: [&str; 4] = ["name::String", "at::Point", "weight::Union{Int32, Float32}", "next::Any"];

const WORD: (f64, f64) = (104.0, 30.0);

fn object(svg: &mut Svg) {
    let program = Program::read("object.jlir", OBJECT.as_bytes()).unwrap();
    let (_, func) = program.module().funcs().next().unwrap();
    let layout = program.context().types.layout(func.sig.params.last().unwrap().ty).unwrap().clone();
    svg.text("title", (20.0, 24.0), "An object: its type says which words refer to others");
    let words = layout.size / 8;
    let left = |offset: i64| 30.0 + (offset + TAG_BYTES as i64) as f64 / 8.0 * WORD.0;
    svg.rect("c", (left(-(TAG_BYTES as i64)), 44.0), WORD);
    svg.centred("mono", (left(-(TAG_BYTES as i64)) + WORD.0 / 2.0, 63.0), "tag");
    svg.centred("small", (left(-(TAG_BYTES as i64)) + WORD.0 / 2.0, 98.0), "type and bits");
    for word in 0..words {
        let is_pointer = layout.pointers.contains(&(word * 8));
        let x = left(i64::from(word) * 8);
        svg.rect(if is_pointer { "b" } else { "box" }, (x, 44.0), WORD);
        svg.centred("mono", (x + WORD.0 / 2.0, 63.0), if is_pointer { "reference" } else { "bits" });
        svg.text("small", (x, 40.0), &format!("+{}", word * 8));
    }
    assert_eq!(layout.fields.len(), FIELDS.len());
    for (at, (field, name)) in layout.fields.iter().zip(FIELDS).enumerate() {
        let (from, to) = (left(field.offset.into()), left(i64::from(field.offset + field.size)));
        svg.arrow(&format!("M {} 84 H {}", to - 4.0, from + 4.0));
        // Neighbours stand on different lines.
        let below = 98.0 + (at % 2) as f64 * 14.0;
        svg.text("small", (from + 4.0, below), name);
    }
}

fn frame(svg: &mut Svg) {
    let program = Program::read(EXAMPLE, source(EXAMPLE).as_bytes()).unwrap();
    let module = program.module();
    let (id, _) = module.funcs().find(|(_, func)| func.symbol(&module.cx) == "make(Int64)").unwrap();
    let options = Options::default();
    let stages = Stages::new(module, OptLevel::O0, &options, Cx::default()).with_roots(Roots::Maps);
    let placed = stages.on_heap(&DEFAULT_ABI).placed(id).unwrap();
    let code = emit::generate(module, [&placed], OptLevel::O0).unwrap();
    let function = code.functions().next().unwrap();
    let mut words: Vec<i32> = function.frame_maps.iter().flat_map(|map| map.words.iter().copied()).collect();
    words.sort_unstable();
    words.dedup();
    svg.text("title", (20.0, 150.0), "A frame: each call has a map of the words that hold references");
    svg.text(
        "small",
        (510.0, 150.0),
        &format!("make(Int64) of {EXAMPLE} at -O0: {} bytes", function.frame_bytes),
    );
    for (at, word) in words.iter().enumerate() {
        svg.centred("mono", (260.0 + at as f64 * WORD.0, 176.0), &format!("fp{word:+}"));
    }
    for (row, map) in function.frame_maps.iter().enumerate() {
        let y = 186.0 + row as f64 * 30.0;
        svg.text("mono", (30.0, y + 18.0), &format!("returns to +{:#x}", map.return_offset));
        for (at, word) in words.iter().enumerate() {
            let is_held = map.words.contains(word);
            svg.rect(if is_held { "b" } else { "box" }, (214.0 + at as f64 * WORD.0, y), (92.0, 24.0));
            svg.centred(
                "small",
                (260.0 + at as f64 * WORD.0, y + 16.0),
                if is_held { "reference" } else { "–" },
            );
        }
    }
}

pub(crate) fn picture() -> String {
    let mut svg = Svg::new(880.0, 256.0);
    object(&mut svg);
    frame(&mut svg);
    svg.finish("Maps of the heap and of a frame")
}
