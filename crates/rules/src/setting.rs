//! Rejects settings without a possible meaning at their place in the config.

use std::fmt::Display;

use serde::de::{Deserialize, Deserializer, Error};

/// A number of which zero makes no sense.
pub(crate) fn more_than_zero<'de, D: Deserializer<'de>, N: Deserialize<'de> + Default + PartialOrd>(
    from: D,
) -> Result<N, D::Error> {
    let number = N::deserialize(from)?;
    if number > N::default() { Ok(number) } else { Err(D::Error::custom("must be more than 0")) }
}

/// A share of which neither none nor more than all makes sense.
pub(crate) fn one_to_hundred<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    within(from, 1, 100)
}

/// A share that leaves at least as much as it takes.
pub(crate) fn up_to_half<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    within(from, 0, 50)
}

/// A multiple that is one.
pub(crate) fn more_than_one<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    within(from, 2, u32::MAX)
}

fn within<'de, D: Deserializer<'de>, N: Deserialize<'de> + PartialOrd + Display>(
    from: D,
    least: N,
    most: N,
) -> Result<N, D::Error> {
    let number = N::deserialize(from)?;
    if number < least || number > most {
        return Err(D::Error::custom(format_args!("must be from {least} to {most}")));
    }
    Ok(number)
}

/// The same for a setting that need not be there.
pub(crate) fn some_more_than_zero<'de, D: Deserializer<'de>, N: Deserialize<'de> + Default + PartialOrd>(
    from: D,
) -> Result<Option<N>, D::Error> {
    more_than_zero(from).map(Some)
}
