//! Session keys, which a login returns in exchange for a token.
//!
//! Form       `fgs1.END.MAC` for the admin token, `fgv1.END.MAC` for the view token. END is in seconds since 1970. MAC
//!            is HMAC-SHA256 with the token as its key, over the text before it, in hexadecimal digits.
//! Rule       The server keeps no state of a session. A key opens, until its end, what its token opens, on every server
//!            with that token and over a restart. A new token ends all keys of the old one.

use flowgate::Time;
use flowgate_api::Rights;
use ring::hmac;

/// The first part of keys with these rights.
fn prefix(rights: Rights) -> &'static str {
    match rights {
        Rights::Admin => "fgs1",
        Rights::View => "fgv1",
    }
}

const MAC_BYTES: usize = 32;

/// The most digits of END: one with more digits lies beyond the year 33000.
const MAX_END_DIGITS: usize = 12;

/// The key that `token` opens until `until`, in seconds since 1970.
pub(super) fn make(token: &str, rights: Rights, until: u64) -> String {
    let signed = format!("{}.{until}", prefix(rights));
    let mac = hmac::sign(&mac_key(token), signed.as_bytes());
    let digits: String = mac.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{signed}.{digits}")
}

/// A text in the form of a key, whose MAC is not checked yet.
#[derive(Debug)]
pub(super) struct SessionKey<'k> {
    pub(super) rights: Rights,
    until: u64,
    signed: &'k str,
    mac: [u8; MAC_BYTES],
}

/// Reads a text in the form of a key.
pub(super) fn parse(text: &[u8]) -> Option<SessionKey<'_>> {
    let (signed, digits) = str::from_utf8(text).ok()?.rsplit_once('.')?;
    let (prefix, until) = signed.split_once('.')?;
    let rights = [Rights::Admin, Rights::View].into_iter().find(|rights| self::prefix(*rights) == prefix)?;
    let is_end = until.len() <= MAX_END_DIGITS && until.bytes().all(|byte| byte.is_ascii_digit());
    let until = if is_end { until.parse().ok()? } else { return None };
    let is_mac = digits.len() == 2 * MAC_BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_mac {
        return None;
    }
    let mut mac = [0; MAC_BYTES];
    for (byte, digits) in mac.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(SessionKey { rights, until, signed, mac })
}

impl SessionKey<'_> {
    /// True if `token` has made the key, and its end is yet to come.
    pub(super) fn is_valid(&self, token: &str, now: Time) -> bool {
        // Compared in constant time.
        let is_ours = hmac::verify(&mac_key(token), self.signed.as_bytes(), &self.mac).is_ok();
        is_ours && now < Time::from_secs(self.until)
    }
}

fn mac_key(token: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 1_763_312_400;

    fn opens(key: &str, token: &str, now: u64) -> Option<Rights> {
        let key = parse(key.as_bytes())?;
        key.is_valid(token, Time::from_secs(now)).then_some(key.rights)
    }

    #[test]
    fn a_key_is_what_openssl_makes() {
        // printf fgs1.1763312400 | openssl dgst -sha256 -hmac adm1n
        let mac = "6adb5219c730e4e0904c1309f8466c383c497c84d132c5e3476041d49a0d7fc0";
        assert_eq!(make("adm1n", Rights::Admin, END), format!("fgs1.{END}.{mac}"));
    }

    #[test]
    fn a_key_opens_until_its_end_by_its_own_token() {
        for rights in [Rights::Admin, Rights::View] {
            let key = make("adm1n", rights, END);
            assert_eq!(opens(&key, "adm1n", END - 1), Some(rights));
            assert_eq!(opens(&key, "adm1n", END), None);
            assert_eq!(opens(&key, "adm1N", END - 1), None);
        }
    }

    #[test]
    fn a_key_that_was_changed_opens_nothing() {
        let key = make("adm1n", Rights::View, END);
        assert_eq!(opens(&key.replace("fgv1", "fgs1"), "adm1n", 0), None, "more rights");
        assert_eq!(opens(&key.replace("1763", "2763"), "adm1n", 0), None, "a later end");
        for at in 0..key.len() {
            let mut changed = key.clone().into_bytes();
            changed[at] ^= 1;
            assert_eq!(opens(&String::from_utf8(changed).unwrap(), "adm1n", 0), None, "at {at}");
        }
    }

    #[test]
    fn other_texts_are_no_keys() {
        let mac = "0".repeat(64);
        for text in [
            String::new(),
            "fgs1".into(),
            format!("fgs1..{mac}"),
            format!("fgs2.1.{mac}"),
            format!("fgs1.-1.{mac}"),
            format!("fgs1.+1.{mac}"),
            format!("fgs1.9999999999999.{mac}"),
            format!("fgs1.1.{mac}0"),
            format!("fgs1.1.{}", &mac[1..]),
            format!("fgs1.1.{}\u{fc}", &mac[2..]),
        ] {
            assert!(parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(parse(b"fgs1.1.\xff").is_none());
    }
}
