//! A rule engine: rules are text that users write; what they may call is given by the host.
//!
//! | function | given as | costs a rule |
//! |---|---|---|
//! | `discounted(price, percent)` | IR, that may be inlined | nothing: there is no call left |
//! | `stock(article)` | a closure that gives a number or an error | a call into Rust |
//!
//! ```text
//! $ cargo run --example embed
//! 3 of article 7 at 5.00: 13.50
//! 3 of article 8 at 5.00: no article 8
//! ```

use std::collections::BTreeMap;
use std::error::Error;

use brolga::build::Type;
use brolga::session::{Dylib, Signature};
use brolga::{CallError, Options, Session, TypedFunc, Workers};

const LIBRARY: &str = "
function discounted(price::Float64, percent::Float64)::Float64
1 ─ %1 = Base.div_float(percent, 100.0)::Float64
│   %2 = Base.sub_float(1.0, %1)::Float64
│   %3 = Base.mul_float(price, %2)::Float64
└──      return %3
end
";

/// The price of some pieces of an article for a customer: large orders of stock get a tenth off.
const RULE: &str = "
function total(article::Int64, pieces::Int64, price::Float64)::Float64
1 ─ %1 = invoke Main.stock(article::Int64)::Int64
│   %2 = Base.sitofp(Float64, pieces)::Float64
│   %3 = Base.mul_float(%2, price)::Float64
│   %4 = Base.sle_int(pieces, %1)::Bool
└──      goto #3 if not %4
2 ─ %6 = invoke Main.discounted(%3::Float64, 10.0::Float64)::Float64
└──      return %6
3 ─      return %3
end
";

/// Functions of the host, for rules.
fn host(session: &Session) -> Result<Dylib, Box<dyn Error>> {
    let host = session.create_dylib("host")?;
    host.define(host.read("library.jlir", LIBRARY.as_bytes())?.inlinable())?;
    let stock = BTreeMap::from([(7i64, 12i64), (9, 0)]);
    host.define_host(&Signature::new("stock", &[Type::INT64], Type::INT64), move |scope, args| {
        let article = match args.get(1).map(|root| root.get(scope).unboxed::<i64>()) {
            Some(Ok(article)) => article,
            _ => return Err(scope.throw_error("an article is an integer")),
        };
        match stock.get(&article) {
            Some(&pieces) => scope.int(pieces).map_err(|error| scope.throw_error(&error.to_string())),
            None => Err(scope.throw_error(&format!("no article {article}"))),
        }
    })?;
    Ok(host)
}

type Total = TypedFunc<(i64, i64, f64), f64>;

/// A session, and a rule that is compiled.
fn rule() -> Result<(Session, Total), Box<dyn Error>> {
    let session = Session::new(Options::new(), Workers::Pool(2))?;
    let rules = session.create_dylib("rules")?;
    rules.link_against(&host(&session)?)?;
    rules.define(rules.read("rule.jlir", RULE.as_bytes())?)?;
    let total = rules.func("total")?;
    Ok((session, total))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (session, total) = rule()?;
    for article in [7, 8] {
        let outcome = match total.call((article, 3, 5.0)) {
            Ok(total) => format!("{total:.2}"),
            Err(CallError::Exception(thrown)) => thrown.message,
            Err(error) => return Err(error.into()),
        };
        println!("3 of article {article} at 5.00: {outcome}");
    }
    session.end();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::rule;
    use brolga::CallError;

    #[test]
    fn results_and_exceptions_of_the_host_reach_the_caller() {
        let (session, total) = rule().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(total.call((7, 3, 5.0)), Ok(13.5));
        assert_eq!(total.call((9, 3, 5.0)), Ok(15.0));
        match total.call((8, 3, 5.0)) {
            Err(CallError::Exception(thrown)) => assert_eq!(thrown.message, "no article 8"),
            other => panic!("{other:?}"),
        }
        assert_eq!(session.stats().compiled_functions, 2, "the rule and `stock`: `discounted` is inlined");
    }
}
