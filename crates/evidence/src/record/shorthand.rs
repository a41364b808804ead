//! The shorthand of the record: a quarter of the length of its entries, and expanded to exactly the same
//! bytes.
//!
//! A block begins with [`SHORTHAND`]. A line of it is its time, as eight bytes, the highest first, then what its data holds, then
//! [`END`] and the number of its type. Data is a sequence of these, commas and colons being understood:
//!
//! | byte | what follows it | in JSON |
//! |---|---|---|
//! | 1, 2 | | `{` and `}` |
//! | 3, 4 | | `[` and `]` |
//! | 5 | a length, then so many bytes | a string, escaped as it stands there |
//! | 6 | a number, seven bits in a byte, the lowest first, with the high bit set in all but the last | the number |
//! | 7 | eight bytes, the highest first | a number that may be negative |
//! | 8 | 16 bytes | a string: a UUID in lower case |
//! | 9 | 32 bytes | a string: 64 hex digits in lower case |
//! | 10 | 16 bytes | a string: 32 hex digits in lower case |
//! | 11, 12 | | `true` and `false` |
//! | 13 | facts, then 32 to 47 | what a rule that passed rests on, the rule being the value with that number, less 32 |
//! | 16 to 31 | | the same of a rule that rests on no facts, less 16 |
//! | 64 to 127 | | a string: the value with that number, less 64 |
//! | 128 to 255 | a value | the name of a member with that number, less 128 |

use super::words::{Kind, Name, Value};

/// What a block begins with that is in this shorthand. Blocks of lines in JSON begin with a brace.
pub(super) const SHORTHAND: u8 = 1;

pub(super) const END: u8 = 0;
pub(super) const OBJECT: u8 = 1;
pub(super) const OBJECT_END: u8 = 2;
pub(super) const LIST: u8 = 3;
pub(super) const LIST_END: u8 = 4;
pub(super) const STRING: u8 = 5;
pub(super) const NUMBER: u8 = 6;
pub(super) const SIGNED: u8 = 7;
pub(super) const UUID: u8 = 8;
pub(super) const DIGEST: u8 = 9;
pub(super) const TRACE: u8 = 10;
pub(super) const TRUE: u8 = 11;
pub(super) const FALSE: u8 = 12;
pub(super) const FACTS: u8 = 13;
pub(super) const PASSED: u8 = 16;
pub(super) const FACTS_PASSED: u8 = 32;
pub(super) const VALUES: u8 = 64;
pub(super) const NAMES: u8 = 128;

/// Where UUIDs have dashes, counted in bytes.
pub(super) const DASHES: [usize; 4] = [4, 6, 8, 10];

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the bytes are not in the compact encoding of the record")]
pub(super) struct Garbled;

/// When the next line happened, in microseconds.
pub(super) fn time_of(lines: &[u8]) -> Option<i64> {
    lines.first_chunk().map(|bytes| i64::from_be_bytes(*bytes))
}

/// Writes the next line out as canonical JSON, without a line feed, and what `link` writes where the link belongs.
pub(super) fn write_out(lines: &mut &[u8], to: &mut Vec<u8>, link: impl FnOnce(&mut Vec<u8>)) -> Result<(), Garbled> {
    to.extend_from_slice(br#"{"at":"#);
    write_signed(to, i64::from_be_bytes(*take(lines)?));
    to.extend_from_slice(br#","data":{"#);
    loop {
        let [code] = *take(lines)?;
        match code {
            NAMES.. => {
                let name = Name::WRITTEN.get(usize::from(code - NAMES)).ok_or(Garbled)?.as_bytes();
                let comma = usize::from(to.last() == Some(&b'{'));
                to.extend_from_slice(&name[comma..]);
            }
            END => break,
            OBJECT_END => to.push(b'}'),
            LIST_END => to.push(b']'),
            FACTS_PASSED..VALUES => {
                to.extend_from_slice(br#"],"passed":true,"rule":"#);
                write_word(to, Value::WRITTEN, code - FACTS_PASSED)?;
                to.push(b'}');
            }
            code => {
                if !matches!(to.last(), Some(b':' | b'[')) {
                    to.push(b',');
                }
                write_value(code, lines, to)?;
            }
        }
    }
    let [kind] = *take(lines)?;
    to.extend_from_slice(b"},");
    link(to);
    write_word(to, Kind::WRITTEN, kind)
}

fn write_value(code: u8, lines: &mut &[u8], to: &mut Vec<u8>) -> Result<(), Garbled> {
    match code {
        VALUES.. => write_word(to, Value::WRITTEN, code - VALUES)?,
        STRING => {
            let length = usize::try_from(take_number(lines)?).map_err(|_| Garbled)?;
            let (text, rest) = lines.split_at_checked(length).ok_or(Garbled)?;
            *lines = rest;
            to.push(b'"');
            to.extend_from_slice(text);
            to.push(b'"');
        }
        NUMBER => write_number(to, take_number(lines)?),
        UUID => write_uuid(to, take(lines)?),
        DIGEST => write_hex_string(to, take::<32>(lines)?),
        TRACE => write_hex_string(to, take::<16>(lines)?),
        PASSED..FACTS_PASSED => {
            to.extend_from_slice(br#"{"passed":true,"rule":"#);
            write_word(to, Value::WRITTEN, code - PASSED)?;
            to.push(b'}');
        }
        FACTS => to.extend_from_slice(br#"{"facts":["#),
        OBJECT => to.push(b'{'),
        LIST => to.push(b'['),
        TRUE => to.extend_from_slice(b"true"),
        FALSE => to.extend_from_slice(b"false"),
        SIGNED => write_signed(to, i64::from_be_bytes(*take(lines)?)),
        _ => return Err(Garbled),
    }
    Ok(())
}

fn write_word(to: &mut Vec<u8>, words: &[&str], number: u8) -> Result<(), Garbled> {
    to.extend_from_slice(words.get(usize::from(number)).ok_or(Garbled)?.as_bytes());
    Ok(())
}

fn take<'a, const N: usize>(lines: &mut &'a [u8]) -> Result<&'a [u8; N], Garbled> {
    let (taken, rest) = lines.split_first_chunk().ok_or(Garbled)?;
    *lines = rest;
    Ok(taken)
}

fn take_number(lines: &mut &[u8]) -> Result<u64, Garbled> {
    if let [small @ 0..128, rest @ ..] = *lines {
        *lines = rest;
        return Ok(u64::from(*small));
    }
    let mut number = 0;
    for place in 0..10 {
        let [byte] = *take(lines)?;
        let bits = u64::from(byte & 127);
        number |= bits.checked_shl(7 * place).filter(|shifted| shifted >> (7 * place) == bits).ok_or(Garbled)?;
        if byte < 128 {
            return Ok(number);
        }
    }
    Err(Garbled)
}

pub(super) fn write_number(to: &mut Vec<u8>, number: u64) {
    let mut digits = [0; 20];
    let (mut start, mut rest) = (digits.len(), number);
    // Two digits at a time, because a division costs more than a look at a table.
    while rest >= 10 {
        start -= 2;
        digits[start..start + 2].copy_from_slice(&HUNDREDS[(rest % 100) as usize]);
        rest /= 100;
    }
    if rest > 0 || number == 0 {
        start -= 1;
        digits[start] = b'0' + rest as u8;
    }
    to.extend_from_slice(&digits[start..]);
}

/// The two digits of each number below 100.
const HUNDREDS: [[u8; 2]; 100] = {
    let (mut pairs, mut number) = ([[0; 2]; 100], 0);
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

fn write_signed(to: &mut Vec<u8>, number: i64) {
    if number < 0 {
        to.push(b'-');
    }
    write_number(to, number.unsigned_abs());
}

/// The two digits of each byte.
const PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let (mut pairs, mut byte) = ([[0; 2]; 256], 0);
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

/// In quotes.
pub(super) fn write_hex_string<const N: usize>(to: &mut Vec<u8>, bytes: &[u8; N]) {
    let mut pairs = [[0; 2]; N];
    for (pair, byte) in pairs.iter_mut().zip(bytes) {
        *pair = PAIRS[usize::from(*byte)];
    }
    to.push(b'"');
    to.extend_from_slice(pairs.as_flattened());
    to.push(b'"');
}

fn write_uuid(to: &mut Vec<u8>, bytes: &[u8; 16]) {
    let mut text = *b"\"------------------------------------\"";
    let mut at = 1;
    for (place, byte) in bytes.iter().enumerate() {
        at += usize::from(DASHES.contains(&place));
        text[at..at + 2].copy_from_slice(&PAIRS[usize::from(*byte)]);
        at += 2;
    }
    to.extend_from_slice(&text);
}
