//! Boxed entries of a session's methods: compiled at the first dynamic call of the method (`method_table.rs`).
//!
//! ```text
//!   first call ──► row ──► label looked up: the cell of the function, or its code ──► boxed entry, linked to it
//! ```
//!
//! Cost: a look-up and a small function for each method called dynamically.

use std::error::Error;
use std::sync::{Arc, Weak};

use brolga_codegen::linkage::CallKind;
use brolga_jit::{Linkage, Unit};
use brolga_linking::{Label, Link, LookupKind, Priority, Sees, Until, WeakSession, required};
use brolga_runtime::objects::{CodeEntry, Elsewhere, EntrySource, MethodEntry};

use super::compile::Found;
use super::error::SessionError;
use super::lazy::elsewhere;
use super::linking;
use super::shared::Shared;
use super::sync::lock;
use super::target::{Moved, Native, Place};
use crate::boxed::Declared;

/// The entry of the method with this label.
pub(super) fn deferred(
    shared: &Arc<Shared>,
    session: &linking::Session<Native>,
    label: Label,
    declared: Declared,
) -> MethodEntry {
    MethodEntry::deferred(Entry {
        session: session.downgrade(),
        shared: Arc::downgrade(shared),
        label,
        declared,
    })
}

/// Materializes the boxed entry of a function.
struct Entry {
    session: WeakSession<Native>,
    shared: Weak<Shared>,
    label: Label,
    declared: Declared,
}

impl Entry {
    /// Returns the function; one without a cell is compiled first.
    fn find(
        &self,
        shared: &Shared,
        session: &linking::Session<Native>,
    ) -> Result<Place, Box<dyn Error + Send + Sync>> {
        let home = Link { dylib: self.label.dylib, sees: Sees::All };
        let (kind, wants) = (LookupKind::Static, required([self.label.symbol]));
        loop {
            let lookup =
                session.lookup_with(vec![home], wants.clone(), Until::Ready, kind, Priority::Blocking);
            let found = lookup.wait_one()?;
            let placed = match found.address {
                Some(address) => shared.placed.find(address, || session.leads_to(found.label)),
                None => Ok(None),
            };
            match placed {
                Ok(Some(place)) => return Ok(place),
                Ok(None) => {
                    let name = session.name(found.label).to_string();
                    return Err(SessionError::NotFunction { name }.into());
                }
                // It has been redefined since the look-up.
                Err(Moved) => {}
            }
        }
    }
}

impl EntrySource for Entry {
    fn make(&self) -> Result<CodeEntry, Box<dyn Error + Send + Sync>> {
        let session = self.session.upgrade().ok_or(linking::Error::SessionEnded)?;
        let shared = self.shared.upgrade().ok_or(linking::Error::SessionEnded)?;
        let place = self.find(&shared, &session)?;
        let name: Arc<str> = session.names().text(self.label.symbol);
        let (mut visible, mut cells): (Vec<Unit>, Found) = Default::default();
        let call_kind = match place {
            Place::Function(function) => {
                if let Some(declared) = self.declared.function_type(&name)
                    && !declared.is_called_like(function.ty())
                {
                    return Err(Box::new(crate::Error::Changed {
                        function: name.to_string(),
                        expected: declared.describe(),
                        found: function.ty().describe_beside(&declared),
                    }));
                }
                cells.0.insert(name, function.cell.clone());
                CallKind::Cell
            }
            // Functions without a native form have no cell.
            Place::Compiled(compiled) => {
                visible.push(compiled.unit);
                CallKind::Far
            }
            Place::Object(_) => return Err(SessionError::NotFunction { name: name.to_string() }.into()),
        };
        let (compiled, symbol) = self.declared.compile(&shared.jit, &shared.recipe, call_kind)?;
        lock(&shared.compiled).bytes += compiled.code_bytes() as u64;
        let linkage = Linkage { visible: &visible, indirect: Some(&cells), ..Linkage::default() };
        Ok(shared.jit.link_boxed(&compiled, &symbol, &linkage)?)
    }

    fn elsewhere(&self) -> Elsewhere {
        elsewhere()
    }
}
