//! Inputs from other inputs: bytes turned, pieces moved, doubled and cut, words and numbers of the language put in.

/// Numbers at the edges of what programs count with.
const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "-1",
    "00",
    "9",
    "10",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "4611686018427387904",
    "4611686018427387905",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
];

/// Bytes that mean something in most languages.
const BYTES: &[u8] = b"\0\t\n\r \"#%&'()*+,-./:;<=>?@[\\]^_{|}~\x1b\x7f\x80\xc2\xe2\xff0aAzZ";

/// Random numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below `n`, or 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next() % n as u64) as usize }
    }

    pub(super) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Changes `input`, in one way or several, to at most `most` bytes.
pub(super) fn mutate(input: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str], most: usize, dice: &mut Dice) {
    for _ in 0..1 + dice.below(4) * dice.below(2) {
        once(input, pool, words, dice);
    }
    input.truncate(most);
}

fn once(input: &mut Vec<u8>, pool: &[Vec<u8>], words: &[&str], dice: &mut Dice) {
    let at = dice.below(input.len() + 1);
    match dice.below(14) {
        0 => turn(input, |byte, dice| byte ^ (1 << dice.below(8)), dice),
        1 => turn(input, |_, dice| *dice.of(BYTES), dice),
        2 => turn(input, |_, dice| dice.next() as u8, dice),
        3 => input.insert(at, *dice.of(BYTES)),
        4 | 5 if !words.is_empty() => put(input, at, 0, dice.of(words).as_bytes()),
        6 if !words.is_empty() => put(input, at, 1 + dice.below(8), dice.of(words).as_bytes()),
        7 => put(input, at, run_of_digits(input, at), dice.of(&NUMBERS).as_bytes()),
        8 => {
            let n = 1 + dice.below(16);
            put(input, at, n, b"");
        }
        9 => {
            let piece = piece(input, dice).to_vec();
            put(input, at, 0, &piece);
        }
        10 => {
            let other: &Vec<u8> = dice.of(pool);
            let piece = piece(other, dice).to_vec();
            put(input, at, piece.len() * dice.below(2), &piece);
        }
        11 => {
            let other = dice.of(pool);
            input.truncate(at);
            input.extend_from_slice(&other[dice.below(other.len())..]);
        }
        12 => input.truncate(at),
        _ => many(input, at, dice),
    }
}

fn turn(input: &mut [u8], change: impl Fn(u8, &mut Dice) -> u8, dice: &mut Dice) {
    let at = dice.below(input.len());
    if let Some(byte) = input.get_mut(at) {
        *byte = change(*byte, dice);
    }
}

/// Puts `piece` in the place of `n` bytes.
fn put(input: &mut Vec<u8>, at: usize, n: usize, piece: &[u8]) {
    let end = (at + n).min(input.len());
    input.splice(at..end, piece.iter().copied());
}

fn run_of_digits(input: &[u8], at: usize) -> usize {
    input[at..].iter().take_while(|b| b.is_ascii_digit()).count()
}

fn piece<'a>(of: &'a [u8], dice: &mut Dice) -> &'a [u8] {
    let start = dice.below(of.len());
    let length = dice.below((of.len() - start).min(64) + 1);
    &of[start..start + length]
}

/// One piece many times.
fn many(input: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let piece = piece(input, dice);
    let times = 1 << dice.below(6);
    let copies = piece[..piece.len().min(16)].repeat(times);
    put(input, at, 0, &copies);
}
