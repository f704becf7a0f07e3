//! `CL.THROTTLE key max_burst count period [quantity]`, as redis-cell answers it.

use flowgate::Throttle;

use super::{Call, number};
use crate::resp::error::{Error, QuotedText};

pub(super) fn throttle(call: &mut Call<'_>) -> Result<(), Error> {
    if !matches!(call.command.count(), 4 | 5) {
        return Err(Error::CellUsage);
    }
    let key = call.command.arg(0).unwrap_or_default();
    let integer = |index| {
        let text = call.command.arg(index).unwrap_or_default();
        number::parse(text).ok_or_else(|| Error::CellNotInteger(QuotedText::new(text)))
    };
    let (max_burst, count, period) = (integer(1)?, integer(2)?, integer(3)?);
    let quantity = if call.command.count() == 5 { Some(integer(4)?) } else { None };
    let mut throttle = Throttle::new(max_burst, count, period)?;
    if let Some(quantity) = quantity {
        throttle = throttle.quantity(quantity)?;
    }
    let answer = call.session.shared.service.throttle_at(call.session.key(key), call.prefetched(), &throttle, call.at);
    let answer = call.session.batch.count_throttle(&call.session.shared, key, call.at, answer);
    call.reply_with(answer, |answer, reply| {
        reply.integers(answer?.numbers());
        Ok(())
    })
}
