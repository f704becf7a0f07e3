//! The bytes of a key, by which a [`Limiter`](crate::Limiter) counts.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;

/// A key of a [`Limiter`](crate::Limiter): anything that has a fixed form in bytes.
///
/// | type | bytes |
/// |---|---|
/// | `str`, `String` | UTF-8 |
/// | `[u8]`, `[u8; N]`, `Vec<u8>` | the bytes themselves |
/// | integers | little-endian, in the width of the type: `7_u64` has eight bytes |
/// | `Ipv4Addr`, `Ipv6Addr`, `IpAddr` | the 4 or 16 octets |
///
/// References, `Box`, `Rc`, `Arc` and `Cow` have the bytes of what they hold. These forms never change. Keys with the
/// same bytes are the same key, whatever their types: put a prefix before keys of several kinds.
///
/// ```
/// use std::net::IpAddr;
/// use flowgate::Limiter;
///
/// let limiter = Limiter::new("1/60s")?;
/// let address: IpAddr = "192.0.2.1".parse().unwrap();
/// assert!(limiter.take(address).allowed());
/// assert!(!limiter.take([192, 0, 2, 1]).allowed());
/// assert!(limiter.take(42_u64).allowed());
/// assert!(limiter.take("user:42").allowed());
/// assert!(!limiter.take(String::from("user:42")).allowed());
/// # Ok::<(), flowgate::LimitError>(())
/// ```
pub trait KeyBytes {
    /// Calls `use_bytes` with the bytes of the key.
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R;
}

/// Types that give a slice or an array of bytes.
macro_rules! by_bytes {
    ($($kind:ty: $value:ident => $bytes:expr),* $(,)?) => {$(
        impl KeyBytes for $kind {
            #[inline]
            fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
                let $value = self;
                use_bytes($bytes)
            }
        }
    )*};
}

by_bytes! {
    str: text => text.as_bytes(),
    String: text => text.as_bytes(),
    [u8]: bytes => bytes,
    Vec<u8>: bytes => bytes,
    Ipv4Addr: address => &address.octets(),
    Ipv6Addr: address => &address.octets(),
    u8: number => &number.to_le_bytes(),
    u16: number => &number.to_le_bytes(),
    u32: number => &number.to_le_bytes(),
    u64: number => &number.to_le_bytes(),
    u128: number => &number.to_le_bytes(),
    i8: number => &number.to_le_bytes(),
    i16: number => &number.to_le_bytes(),
    i32: number => &number.to_le_bytes(),
    i64: number => &number.to_le_bytes(),
    i128: number => &number.to_le_bytes(),
}

impl<const N: usize> KeyBytes for [u8; N] {
    #[inline]
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        use_bytes(self)
    }
}

impl KeyBytes for IpAddr {
    #[inline]
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            IpAddr::V4(address) => address.with_bytes(use_bytes),
            IpAddr::V6(address) => address.with_bytes(use_bytes),
        }
    }
}

/// Pointers, by what they point to.
macro_rules! by_target {
    ($($pointer:ty),*) => {$(
        impl<T: KeyBytes + ?Sized> KeyBytes for $pointer {
            #[inline]
            fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
                (**self).with_bytes(use_bytes)
            }
        }
    )*};
}

by_target!(&T, &mut T, Box<T>, Rc<T>, Arc<T>);

impl<T: KeyBytes + ToOwned + ?Sized> KeyBytes for Cow<'_, T> {
    #[inline]
    fn with_bytes<R>(&self, use_bytes: impl FnOnce(&[u8]) -> R) -> R {
        (**self).with_bytes(use_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(key: impl KeyBytes, bytes: &[u8]) {
        key.with_bytes(|found| assert_eq!(found, bytes));
    }

    #[test]
    fn the_bytes_of_each_type_are_fixed() {
        check("user:42", b"user:42");
        check("user:42", "user:42".to_string().as_bytes());
        check(String::from("é"), &[0xc3, 0xa9]);
        check(Arc::<str>::from("a"), b"a");
        check(Cow::Borrowed("a"), b"a");
        check(Box::new([1_u8, 2]), &[1, 2]);
        check([1_u8, 2].as_slice(), &[1, 2]);
        check(vec![1_u8, 2], &[1, 2]);
        check(0x0102_u16, &[2, 1]);
        check(7_u64, &[7, 0, 0, 0, 0, 0, 0, 0]);
        check(-1_i32, &[255; 4]);
        check(IpAddr::from([10, 0, 0, 1]), &[10, 0, 0, 1]);
        check(Ipv4Addr::new(10, 0, 0, 1), &[10, 0, 0, 1]);
        check(IpAddr::from(Ipv6Addr::LOCALHOST), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
