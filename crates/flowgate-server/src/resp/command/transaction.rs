//! `MULTI`, `EXEC` and `DISCARD`: see [`transaction`](crate::resp::transaction).

use super::Call;
use crate::resp::error::Error;

/// Commands that are executed at once and not queued, as in Redis.
pub(super) const DONE_AT_ONCE: [&str; 5] = ["multi", "exec", "discard", "quit", "reset"];

pub(super) fn multi(call: &mut Call<'_>) -> Result<(), Error> {
    if call.session.transaction.is_some() {
        return Err(Error::NestedMulti);
    }
    call.session.transaction = Some(Box::default());
    call.reply().ok();
    Ok(())
}

pub(super) fn exec(call: &mut Call<'_>) -> Result<(), Error> {
    let Some(transaction) = &mut call.session.transaction else { return Err(Error::WithoutMulti("EXEC")) };
    if transaction.is_refused {
        call.session.transaction = None;
        return Err(Error::Refused);
    }
    // The queued commands are answered behind this header.
    transaction.is_due = true;
    let commands = transaction.commands;
    call.reply().array(commands);
    Ok(())
}

pub(super) fn discard(call: &mut Call<'_>) -> Result<(), Error> {
    if call.session.transaction.take().is_none() {
        return Err(Error::WithoutMulti("DISCARD"));
    }
    call.reply().ok();
    Ok(())
}

/// Queues the command until `EXEC`.
#[cold]
pub(super) fn keep(call: &mut Call<'_>) -> Result<(), Error> {
    let Some(transaction) = &mut call.session.transaction else { return Ok(()) };
    if !transaction.is_refused && !transaction.keep(&call.command) {
        transaction.refuse();
        call.session.shared.counters.long_transactions.add(1);
        return Err(Error::TooMuchKept);
    }
    call.reply().simple("QUEUED");
    Ok(())
}
