//! The routines that compiled code calls, by name.
//!
//! Two lists declare them: `RuntimeFn` of `ir` (throwing and printing, as low IR names them) and
//! `routines.rs` of `codegen` (calls made by code generation itself). Their single implementation is here, as
//! `extern "C"` functions; tests compare this list with both. A routine of `RuntimeFn` takes the thread
//! before the parameters in the list.
//!
//! A throwing routine leaves the exception in the thread and returns; the code that called it continues to
//! `brolga_unwind`, so that no jump crosses a Rust frame. Narrow integers are passed in 32 bits and truncated here, because
//! C conventions differ in whether caller or callee extends them.
//!
//! The table entry of a routine that may collect, throw or make calls begins with a few instructions that
//! record where compiled code was left, so that its frames can be walked from there (`frames.rs`). Arithmetic
//! does without them, as does the end of a region in which collections do not wait for the thread: a
//! collection may be reading the words.
//!
//! Generated code guarantees the references in the signatures: the thread is the running one, symbols and
//! strings are addresses of the runtime's permanent records.

mod callback;
mod heap;
mod libcalls;
mod objects;
mod poll;
mod unwind;

use brolga_ir::base_fn::Thrown;
use brolga_ir::show::{Shown, printed};

use crate::foreign::ForeignError;
use crate::pending::{Detail, ExceptionKind};
use crate::records::{StringRef, SymbolRef};
use crate::thread::{Thread, ThreadLayout};

use self::callback::brolga_callback;
use self::heap::*;
use self::libcalls::*;
use self::objects::*;
use self::poll::{brolga_safepoint, brolga_safepoint_status};
use self::unwind::brolga_unwind;

extern "C" fn brolga_throw_stack_overflow(thread: &Thread) {
    thread.throw(ExceptionKind::StackOverflowError, Detail::None);
}

extern "C" fn brolga_throw_divide(thread: &Thread) {
    thread.throw(ExceptionKind::DivideError, Detail::None);
}

extern "C" fn brolga_throw_bounds(thread: &Thread, index: i64) {
    thread.throw(ExceptionKind::BoundsError, Detail::Index(index));
}

extern "C" fn brolga_throw_operands(
    thread: &Thread,
    code: u64,
    symbol: SymbolRef,
    low: u64,
    high: u64,
    second_low: u64,
    second_high: u64,
) {
    let wide = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
    let bits = [wide(low, high), wide(second_low, second_high)];
    // Compiled code passes only known functions; an exception of the wrong kind would reveal a mistake.
    let (kind, detail) = match u32::try_from(code).ok().and_then(Thrown::unpack) {
        Some(thrown) => (ExceptionKind::of_base(thrown.function), Detail::Operands(thrown, symbol, bits)),
        None => (ExceptionKind::ErrorException, Detail::None),
    };
    thread.throw(kind, detail);
}

extern "C" fn brolga_throw_undef_var(thread: &Thread, variable: SymbolRef) {
    thread.throw(ExceptionKind::UndefVarError, Detail::Name(variable));
}

extern "C" fn brolga_foreign_symbol(thread: &Thread, symbol: SymbolRef) -> usize {
    found_symbol(thread, thread.runtime().map(|runtime| runtime.foreign().resolve(&symbol.name(), None)))
}

extern "C" fn brolga_given_symbol(thread: &Thread, symbol: SymbolRef) -> usize {
    found_symbol(thread, thread.runtime().map(|runtime| runtime.foreign().given(&symbol.name())))
}

/// The address, or an exception that explains why there is none.
fn found_symbol(thread: &Thread, found: Option<Result<usize, ForeignError>>) -> usize {
    match found {
        Some(Ok(address)) => return address,
        Some(Err(error)) => thread.throw_constant_refusal(&error.to_string()),
        None => thread.throw(ExceptionKind::CompileError, Detail::None),
    }
    0
}

extern "C" fn brolga_throw_undef_ref(thread: &Thread) {
    thread.throw(ExceptionKind::UndefRefError, Detail::None);
}

extern "C" fn brolga_rethrow(thread: &Thread) {
    thread.rethrow();
}

extern "C" fn brolga_pop_exception(thread: &Thread, depth: u64) {
    thread.pop_exceptions(usize::try_from(depth).unwrap_or(usize::MAX));
}

fn print(thread: &Thread, value: Shown<'_>) {
    thread.print(&printed(value));
}

extern "C" fn brolga_print_int(thread: &Thread, value: i64) {
    print(thread, Shown::Signed(value.into()));
}

extern "C" fn brolga_print_uint(thread: &Thread, value: u64, bits: u32) {
    // The value may be sign-extended from its width.
    let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
    print(thread, Shown::Unsigned { bits: 64, value: value.into() });
}

extern "C" fn brolga_print_int128(thread: &Thread, low: u64, high: u64, signed: u32) {
    let value = u128::from(high) << 64 | u128::from(low);
    let shown = match signed {
        0 => Shown::Unsigned { bits: 128, value },
        _ => Shown::Signed(value.cast_signed()),
    };
    print(thread, shown);
}

extern "C" fn brolga_print_float(thread: &Thread, value: u64, bits: u32) {
    let shown = match bits {
        16 => Shown::F16(value as u16),
        32 => Shown::F32(f32::from_bits(value as u32)),
        _ => Shown::F64(f64::from_bits(value)),
    };
    print(thread, shown);
}

extern "C" fn brolga_print_bool(thread: &Thread, value: u32) {
    print(thread, Shown::Bool(value as u8 != 0));
}

extern "C" fn brolga_print_char(thread: &Thread, bits: u32) {
    print(thread, Shown::Char(bits));
}

extern "C" fn brolga_print_string(thread: &Thread, text: StringRef) {
    print(thread, Shown::Str(text.bytes()));
}

extern "C" fn brolga_print_symbol(thread: &Thread, symbol: SymbolRef) {
    print(thread, Shown::Symbol(&symbol.name()));
}

extern "C" fn brolga_print_nothing(thread: &Thread) {
    print(thread, Shown::Str(b"nothing"));
}

extern "C" fn brolga_print_ptr(thread: &Thread, address: u64) {
    print(thread, Shown::Str(format!("Ptr @{address:#018x}").as_bytes()));
}

/// The routine, after a few instructions that record where compiled code was left, for walks of the stack
/// (`frames.rs`). The thread is the first argument. The registers that change are free at a call.
#[cfg(all(target_arch = "x86_64", not(windows)))]
macro_rules! noting_exit {
    ($name:ident) => {{
        #[unsafe(naked)]
        extern "C" fn noting_exit() {
            std::arch::naked_asm!(
                "mov rax, [rsp]",
                "mov [rdi + {exit_fp}], rbp",
                "mov [rdi + {exit_pc}], rax",
                "jmp {routine}",
                exit_fp = const ThreadLayout::EXIT_FP,
                exit_pc = const ThreadLayout::EXIT_PC,
                routine = sym $name,
            )
        }
        noting_exit as *const () as usize
    }};
}

/// As above.
#[cfg(target_arch = "aarch64")]
macro_rules! noting_exit {
    ($name:ident) => {{
        #[unsafe(naked)]
        extern "C" fn noting_exit() {
            std::arch::naked_asm!(
                "str x29, [x0, #{exit_fp}]",
                "str x30, [x0, #{exit_pc}]",
                "b {routine}",
                exit_fp = const ThreadLayout::EXIT_FP,
                exit_pc = const ThreadLayout::EXIT_PC,
                routine = sym $name,
            )
        }
        noting_exit as *const () as usize
    }};
}

/// Continues at the address in the thread's word that stubs use, and sets the number of floats expected by a
/// variadic C function to the maximum: the number of float registers. Everything else stays as the caller
/// left it. The pinned register holds the thread.
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[unsafe(naked)]
extern "C" fn brolga_call_variadic() {
    std::arch::naked_asm!(
        "mov r11, [r15 + {lazy}]",
        "mov eax, 8",
        "jmp r11",
        lazy = const ThreadLayout::LAZY,
    )
}

/// Other processors pass floats to variadic functions like to any other, so nothing calls this.
#[cfg(not(all(target_arch = "x86_64", not(windows))))]
extern "C" fn brolga_call_variadic() {}

macro_rules! named {
    (noting_exit { $($noting:ident,)* } plain { $($plain:ident,)* }) => {
        /// Names and addresses, sorted by name.
        pub(crate) fn sorted_table() -> Vec<(&'static str, usize)> {
            let mut table = vec![
                $((stringify!($noting), noting_exit!($noting)),)*
                $((stringify!($plain), $plain as *const () as usize),)*
                ("brolga_memcpy", libc::memcpy as *const () as usize),
                ("brolga_memmove", libc::memmove as *const () as usize),
                ("brolga_memset", libc::memset as *const () as usize),
                ("brolga_memcmp", libc::memcmp as *const () as usize),
            ];
            table.sort_unstable();
            table
        }
    };
}

named! {
    noting_exit {
        brolga_throw_stack_overflow,
        brolga_throw_divide,
        brolga_throw_bounds,
        brolga_throw_operands,
        brolga_throw_error,
        brolga_throw_argument,
        brolga_throw_undef_var,
        brolga_throw_undef_ref,
        brolga_rethrow,
        brolga_safepoint_status,
        brolga_foreign_symbol,
        brolga_given_symbol,
        brolga_print_int,
        brolga_print_uint,
        brolga_print_int128,
        brolga_print_float,
        brolga_print_bool,
        brolga_print_char,
        brolga_print_string,
        brolga_print_symbol,
        brolga_print_nothing,
        brolga_print_ptr,
        brolga_gc_alloc,
        brolga_gc_memory,
        brolga_gc_string,
        brolga_array_grow_end,
        brolga_array_del_end,
        brolga_array_del_beg,
        brolga_gc_box_int,
        brolga_get_field,
        brolga_gc_weak_ref,
        brolga_gc_write,
        brolga_gc_write_at,
        brolga_gc_leave,
        brolga_throw,
        brolga_apply,
        brolga_apply_latest,
        brolga_apply_builtin,
        brolga_apply_iterate,
        brolga_tuple,
        brolga_julia_call,
        brolga_static_parameter,
        brolga_static_defined,
        brolga_carried_exception,
        brolga_refuel,
        brolga_current_exception,
        brolga_throw_type_assert,
        brolga_throw_bounds_of,
        brolga_throw_bounds_in,
        brolga_isa,
        brolga_subtype,
        brolga_egal,
        brolga_tuple_length,
        brolga_tuple_element,
        brolga_object_id,
        brolga_print_any,
    }
    plain {
        brolga_callback,
        brolga_call_variadic,
        brolga_unwind,
        brolga_gc_enter,
        brolga_thread_cell,
        brolga_pop_exception,
        brolga_safepoint,
        brolga_i128_div,
        brolga_i128_rem,
        brolga_u128_div,
        brolga_u128_rem,
        brolga_i128_to_f32,
        brolga_i128_to_f64,
        brolga_u128_to_f32,
        brolga_u128_to_f64,
        brolga_f64_to_i128,
        brolga_f64_to_u128,
        brolga_f16_to_f32,
        brolga_f32_to_f16,
        brolga_f64_to_f16,
        brolga_fma_f32,
        brolga_fma_f64,
        brolga_ceil_f32,
        brolga_ceil_f64,
        brolga_floor_f32,
        brolga_floor_f64,
        brolga_trunc_f32,
        brolga_trunc_f64,
        brolga_nearest_f32,
        brolga_nearest_f64,
        brolga_rem_f32,
        brolga_rem_f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::{Runtime, RuntimeOptions};
    use crate::output::Output;
    use crate::thread::with_attached;
    use brolga_ir::{Context, RuntimeFn};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    #[test]
    fn every_entry_point_of_low_ir_has_an_implementation() {
        let runtime = Runtime::new(RuntimeOptions::default());
        // Among these, code reads the depth as a word.
        for entry in RuntimeFn::ALL.iter().filter(|&&entry| entry != RuntimeFn::ExceptionDepth) {
            assert!(runtime.routine(entry.symbol()).is_some(), "{entry}");
        }
        assert_eq!(runtime.routine("brolga_none"), None);
    }

    /// Writes only when allowed to.
    struct Waits {
        begun: Sender<()>,
        goes_on: Receiver<()>,
        in_time: Arc<AtomicU32>,
    }

    impl std::io::Write for Waits {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.begun.send(()).map_err(std::io::Error::other)?;
            // With a time limit, so that a collection that waits for this thread is detected rather than
            // waited for.
            let came = self.goes_on.recv_timeout(Duration::from_secs(20)).is_ok();
            self.in_time.fetch_add(came.into(), Ordering::Relaxed);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn collections_go_on_while_a_writer_waits() {
        let ((begun, has_begun), (go_on, goes_on), in_time) = (channel(), channel(), Arc::default());
        let writer = Waits { begun, goes_on, in_time: Arc::clone(&in_time) };
        let output = Output::Writer(Box::new(writer));
        let runtime = Runtime::new(RuntimeOptions { output, ..RuntimeOptions::default() });
        let collect = |times: usize| {
            for _ in 0..times {
                has_begun.recv().unwrap();
                runtime.enter(|scope| scope.collect()).unwrap();
                go_on.send(()).unwrap();
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(|| {
                with_attached(&runtime, |thread| {
                    let _entry = thread.enter_heap(&runtime).unwrap();
                    brolga_print_int(thread, 1);
                })
                .unwrap();
                let cx = Context::new();
                let print = cx.types.base_function("println");
                let print = runtime.heap().type_object(&cx, print).unwrap();
                runtime
                    .enter(|scope| {
                        let (print, one) = (scope.instance(&print).unwrap(), scope.int(1).unwrap());
                        assert!(runtime.call(scope, print, &[one]).is_ok());
                    })
                    .unwrap();
            });
            collect(2);
        });
        assert_eq!(in_time.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn printing_shows_what_julia_prints() {
        let runtime = Runtime::new(RuntimeOptions { output: Output::Capture, ..RuntimeOptions::default() });
        with_attached(&runtime, |thread| {
            brolga_print_int(thread, -5);
            brolga_print_char(thread, u32::from(b' ') << 24);
            brolga_print_uint(thread, u64::MAX, 8);
            brolga_print_bool(thread, 0x100);
            brolga_print_int128(thread, u64::MAX, u64::MAX, 1);
            brolga_print_float(thread, 0x3c00, 16);
            brolga_print_string(thread, runtime.string("θ".as_bytes()));
            brolga_print_symbol(thread, runtime.symbol("sym"));
            brolga_print_nothing(thread);
        })
        .unwrap();
        let text = String::from_utf8(runtime.sink().take_captured()).unwrap();
        assert_eq!(text, "-5 255false-11.0θsymnothing");
    }
}
