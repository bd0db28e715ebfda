//! `#[derive(Brolga)]`: Rust structs that map to structs of programs, in calls from Rust and in host functions.
//!
//! ```text
//!   #[repr(C)]                          struct Point            program
//!   struct Point { x: f64, y: f64 }         x::Float64
//!                    │                      y::Float64
//!                    │                  end
//!                    └─► impl brolga::host::Struct: its name, its fields' names and offsets, to a tuple of its fields and back
//! ```
//!
//! The macro generates safe code only: values are passed as the tuple. Names, types and offsets are compared with the program's struct when a function
//! is looked up or defined (`brolga::host::Struct`).
//!
//! | refused, with the error at the offending item | reason |
//! |---|---|
//! | no `#[repr(C)]` | Rust may reorder the fields; programs do not |
//! | `packed`, `align` | programs lay out structs as C does |
//! | enums, unions, structs without named fields | programs have no such types, or find fields by name |
//! | parameters | each instance would need its own type, with its own name, in the program |
//! | no field, or more than twelve | there is nothing to pass; larger structs can nest others as fields |
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use proc_macro::TokenStream;
use proc_macro2::Span;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, LitStr, parse_macro_input};

/// The maximum number of fields of a struct: the size of the largest tuple that can be passed.
const MOST_FIELDS: usize = 12;

/// Implements `brolga::host::Struct` for a `#[repr(C)]` struct with named fields.
///
/// In programs the struct has its Rust name, or the one in `#[brolga(name = "…")]`.
#[proc_macro_derive(Brolga, attributes(brolga))]
pub fn derive_brolga(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn expand(input: &DeriveInput) -> Result<proc_macro2::TokenStream, Error> {
    let Data::Struct(data) = &input.data else {
        return Err(refuse(input, "only a struct stands for a struct of programs"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(refuse(input, "programs find fields by name: the struct needs named fields"));
    };
    if let Some(param) = input.generics.params.first() {
        return Err(Error::new_spanned(
            param,
            "a struct with parameters stands for no single struct of programs",
        ));
    }
    check_repr(input)?;
    let count = fields.named.len();
    if count == 0 {
        return Err(refuse(input, "a struct without fields has nothing to pass"));
    }
    if count > MOST_FIELDS {
        let text = format!(
            "{count} fields are more than {MOST_FIELDS}: put some into a struct of their own, which is a field"
        );
        return Err(refuse(input, &text));
    }
    let (name, ty) = (name_of(input)?, &input.ident);
    let idents: Vec<_> = fields.named.iter().filter_map(|field| field.ident.as_ref()).collect();
    let types: Vec<_> = fields.named.iter().map(|field| &field.ty).collect();
    let names = idents.iter().map(|ident| {
        let text = ident.to_string();
        LitStr::new(text.strip_prefix("r#").unwrap_or(&text), ident.span())
    });
    Ok(quote! {
        #[automatically_derived]
        impl ::brolga::host::Struct for #ty {
            type Fields = (#(#types,)*);
            const NAME: &'static str = #name;
            const FIELDS: &'static [&'static str] = &[#(#names),*];
            const OFFSETS: &'static [usize] = &[#(::core::mem::offset_of!(#ty, #idents)),*];

            fn into_fields(self) -> Self::Fields {
                let #ty { #(#idents),* } = self;
                (#(#idents,)*)
            }

            fn from_fields((#(#idents,)*): Self::Fields) -> Self {
                #ty { #(#idents),* }
            }
        }

        #[automatically_derived]
        impl ::brolga::host::StructValue for #ty {}
    })
}

fn refuse(input: &DeriveInput, text: &str) -> Error {
    Error::new(input.ident.span(), text)
}

/// Requires the plain C layout: `#[repr(C)]` and no other representation.
fn check_repr(input: &DeriveInput) -> Result<(), Error> {
    let mut is_c = false;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("C") {
                is_c = true;
                return Ok(());
            }
            Err(meta.error("programs lay out structs by the rules of C alone: write `#[repr(C)]`"))
        })?;
    }
    match is_c {
        true => Ok(()),
        false => Err(refuse(input, "Rust chooses the order of its fields: write `#[repr(C)]`")),
    }
}

/// The struct's name in programs.
fn name_of(input: &DeriveInput) -> Result<LitStr, Error> {
    let mut name = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("brolga")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("the only setting is `name = \"…\"`"));
            }
            name = Some(meta.value()?.parse::<LitStr>()?);
            Ok(())
        })?;
    }
    Ok(name.unwrap_or_else(|| {
        let text = input.ident.to_string();
        LitStr::new(text.strip_prefix("r#").unwrap_or(&text), Span::call_site())
    }))
}
