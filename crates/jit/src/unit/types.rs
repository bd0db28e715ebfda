//! The types of a unit's functions, by name: known, or found in an image when they are requested.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brolga_codegen::sig::FunctionType;

use crate::link::image_code::ImageFunctions;

/// The types of the functions of a unit that can be looked up.
pub(crate) enum Types {
    /// The types of code that was compiled here.
    Known(BTreeMap<String, Arc<FunctionType>>),
    /// The types of an image's code.
    Image(ImageTypes),
}

/// The types of an image's functions. Found ones are kept.
pub(crate) struct ImageTypes {
    functions: Arc<dyn ImageFunctions>,
    found: Mutex<BTreeMap<String, Arc<FunctionType>>>,
    names: OnceLock<Box<[String]>>,
}

impl ImageTypes {
    pub(crate) fn new(functions: Arc<dyn ImageFunctions>) -> ImageTypes {
        ImageTypes { functions, found: Mutex::default(), names: OnceLock::new() }
    }

    fn find(&self, name: &str) -> Result<Option<Arc<FunctionType>>, String> {
        let found = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ty) = found().get(name) {
            return Ok(Some(ty.clone()));
        }
        // Two threads that miss make the same type; the first one is kept.
        let Some(ty) = self.functions.ty(name)? else { return Ok(None) };
        Ok(Some(found().entry(name.to_owned()).or_insert_with(|| Arc::new(ty)).clone()))
    }
}

impl<T: IntoIterator<Item = Arc<FunctionType>>> From<T> for Types {
    fn from(types: T) -> Types {
        Types::Known(types.into_iter().map(|ty| (ty.name.clone(), ty)).collect())
    }
}

impl Types {
    /// The type of the function of that name.
    ///
    /// # Errors
    /// An image contradicts itself: the reason.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Arc<FunctionType>>, String> {
        match self {
            Types::Known(types) => Ok(types.get(name).cloned()),
            Types::Image(image) => image.find(name),
        }
    }

    /// The type of the function with that symbol, which may have another name.
    pub(crate) fn of_symbol(&self, symbol: &str) -> Option<Arc<FunctionType>> {
        let by_name = self.find(symbol).ok().flatten().filter(|ty| ty.symbol == symbol);
        by_name.or_else(|| match self {
            Types::Known(types) => types.values().find(|ty| ty.symbol == symbol).cloned(),
            // Names of an image are symbols.
            Types::Image(_) => None,
        })
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Types::Known(types) => Box::new(types.keys().map(String::as_str)),
            Types::Image(image) => {
                let names = image.names.get_or_init(|| image.functions.names().into());
                Box::new(names.iter().map(String::as_str))
            }
        }
    }
}
