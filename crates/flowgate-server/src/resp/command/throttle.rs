//! `CL.THROTTLE key max_burst count period [quantity]`, as redis-cell answers it.

use flowgate::Throttle;

use super::{Call, number};
use crate::resp::error::{Error, QuotedText};

pub(super) fn throttle(call: &mut Call<'_>) -> Result<(), Error> {
    let key = call.command.arg(0).unwrap_or_default();
    let throttle = numbers(call.command.count(), |index| call.command.arg(index))?;
    let answer = call.session.shared.service.throttle_at(call.session.key(key), &throttle, call.at);
    let answer = call.session.batch.count_throttle(&call.session.shared, key, call.at, answer);
    call.reply_with(answer, |answer, reply| {
        reply.integers(answer?.numbers());
        Ok(())
    })
}

/// The numbers in the arguments after the key.
#[inline]
pub(crate) fn numbers<'a>(arguments: usize, argument: impl Fn(usize) -> Option<&'a [u8]>) -> Result<Throttle, Error> {
    if !matches!(arguments, 4 | 5) {
        return Err(Error::CellUsage);
    }
    let integer = |index| {
        let text = argument(index).unwrap_or_default();
        number::parse(text).ok_or_else(|| Error::CellNotInteger(QuotedText::new(text)))
    };
    let (max_burst, count, period) = (integer(1)?, integer(2)?, integer(3)?);
    let quantity = if arguments == 5 { Some(integer(4)?) } else { None };
    let throttle = Throttle::new(max_burst, count, period)?;
    Ok(quantity.map_or(Ok(throttle), |quantity| throttle.quantity(quantity))?)
}
