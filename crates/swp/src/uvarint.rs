//! Unsigned LEB128 numbers and the fields made of them, read without copying.

use bytes::{Buf, BufMut, Bytes};

use crate::FrameReason;

const MOST_OCTETS: usize = 10;

/// Takes a number off the front. Padded forms are read; only too many octets or too many bits are refused.
pub(crate) fn read(from: &mut Bytes) -> Result<u64, FrameReason> {
    let mut value = 0u64;
    for (at, octet) in from.iter().copied().take(MOST_OCTETS).enumerate() {
        let last = at + 1 == MOST_OCTETS;
        if last && octet >= 0x80 {
            return Err(FrameReason::UvarintTooLong);
        }
        // Nine octets hold 63 bits, so the tenth has room for one.
        if last && octet > 1 {
            return Err(FrameReason::UvarintOverflow);
        }
        value |= u64::from(octet & 0x7f) << (7 * at);
        if octet < 0x80 {
            from.advance(at + 1);
            return Ok(value);
        }
    }
    Err(FrameReason::UvarintTruncated)
}

/// Takes a length and that many octets off the front; they stay where they are.
pub(crate) fn read_bytes(from: &mut Bytes) -> Result<Bytes, FrameReason> {
    let length = read(from)?;
    match usize::try_from(length) {
        Ok(length) if length <= from.len() => Ok(from.split_to(length)),
        _ => Err(FrameReason::TruncatedField),
    }
}

/// Writes the shortest form.
pub(crate) fn write(mut value: u64, to: &mut impl BufMut) {
    while value >= 0x80 {
        to.put_u8((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    to.put_u8(value as u8);
}

pub(crate) fn write_bytes(value: &[u8], to: &mut impl BufMut) {
    write(value.len() as u64, to);
    to.put_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(octets: &'static [u8]) -> Result<(u64, usize), FrameReason> {
        let mut from = Bytes::from_static(octets);
        read(&mut from).map(|value| (value, from.len()))
    }

    #[test]
    fn numbers_are_read_lowest_group_first() {
        assert_eq!(read_all(&[0x00]), Ok((0, 0)));
        assert_eq!(read_all(&[0x8f, 0x4e, 0x07]), Ok((9999, 1)));
        assert_eq!(read_all(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]), Ok((u64::MAX, 0)));
    }

    #[test]
    fn padded_numbers_are_read_and_never_written() {
        assert_eq!(read_all(&[0x81, 0x00]), Ok((1, 0)));
        assert_eq!(read_all(&[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]), Ok((1, 0)));
        let mut written = Vec::new();
        write(1, &mut written);
        assert_eq!(written, [1]);
    }

    #[test]
    fn numbers_that_do_not_end_or_do_not_fit_are_refused() {
        assert_eq!(read_all(&[]), Err(FrameReason::UvarintTruncated));
        assert_eq!(read_all(&[0x80; 9]), Err(FrameReason::UvarintTruncated));
        assert_eq!(read_all(&[0x80; 10]), Err(FrameReason::UvarintTooLong));
        assert_eq!(read_all(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]), Err(FrameReason::UvarintOverflow));
    }

    #[test]
    fn a_field_longer_than_what_is_left_is_refused_whatever_length_it_claims() {
        for octets in [&[2, 0][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]] {
            assert_eq!(read_bytes(&mut Bytes::from_static(octets)), Err(FrameReason::TruncatedField));
        }
        assert_eq!(read_bytes(&mut Bytes::from_static(&[2, 7, 7])), Ok(Bytes::from_static(&[7, 7])));
    }
}
