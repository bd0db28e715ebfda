//! Counts the memory taken by names, types and what is made of them.
//!
//! Programs make names and types while they run. So a heap has a meter, which its context views and its type
//! descriptions charge, and counts the meter towards its limit.
//!
//! ```text
//!   meter  ◄── charge: the names of a view      ◄── 300 bytes for a name
//!          ◄── charge: the types of a view      ◄── 500 bytes for a type, 96 for each of its parts
//!          ◄── charge: a description of a type  …            dropping a charge subtracts its bytes
//! ```
//!
//! The bytes estimate what the allocator hands out: an entry with its share of the look-up tables.
//!
//! | row | operation | order | pairs with | without it |
//! |---|---|---|---|---|
//! | N1 | bytes of meters and charges: load, add, subtract | Relaxed | – | nothing: sums on which no other memory depends |

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The approximate number of bytes that tables take.
#[derive(Debug, Default)]
pub struct Meter(AtomicUsize);

impl Meter {
    /// The sum of all live charges.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed) // N1
    }
}

/// The share of one table. Dropping it subtracts its bytes from the meter.
#[derive(Debug, Default)]
pub struct Charge {
    meter: Arc<Meter>,
    bytes: AtomicUsize,
}

impl Charge {
    /// A charge of this many bytes.
    pub fn new(meter: &Arc<Meter>, bytes: usize) -> Charge {
        let charge = Charge { meter: meter.clone(), bytes: AtomicUsize::new(0) };
        charge.grow(bytes);
        charge
    }

    /// Whether it charges this meter.
    pub(crate) fn is_to(&self, meter: &Arc<Meter>) -> bool {
        Arc::ptr_eq(&self.meter, meter)
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) // N1
    }

    /// Adds bytes to the charge.
    pub fn grow(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed); // N1
        self.meter.0.fetch_add(bytes, Ordering::Relaxed); // N1
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.meter.0.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed); // N1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_ends_with_its_table() {
        let meter = Arc::default();
        let (one, two) = (Charge::new(&meter, 5), Charge::new(&meter, 7));
        one.grow(10);
        assert_eq!(meter.bytes(), 22);
        drop(one);
        assert_eq!(meter.bytes(), 7);
        drop(two);
        assert_eq!(meter.bytes(), 0);
    }
}
