//! The program that the kernel runs for each frame of the interface: it sends those of one flow to AF_XDP sockets and
//! lets all others pass.
//!
//! Instructions are those of the kernel's Documentation/bpf/standardization/instruction-set.rst.

use std::net::{IpAddr, SocketAddr};

/// The flow of one run, as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    pub source: SocketAddr,
    /// The receiver, which is this end.
    pub destination: SocketAddr,
}

/// Return value for frames that do not belong to the flow.
const XDP_PASS: i32 = 2;
/// Number of the helper `bpf_redirect_map`.
const REDIRECT_MAP: i32 = 51;

/// Loads 1, 2 or 4 bytes from memory.
const LOAD_8: u8 = 0x71;
const LOAD_16: u8 = 0x69;
const LOAD_32: u8 = 0x61;
/// Loads a number of 64 bits: two instructions.
const LOAD_64: u8 = 0x18;
/// Jumps if the lower 32 bits of a register differ from the number.
const JUMP_NOT_EQUAL_32: u8 = 0x56;
/// Jumps if any bit of the number is set.
const JUMP_SET: u8 = 0x45;
/// Jumps if a register is greater than another.
const JUMP_GREATER: u8 = 0x2d;
const MOVE_NUMBER: u8 = 0xb7;
const MOVE: u8 = 0xbf;
const ADD_NUMBER: u8 = 0x07;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// In the source register of [`LOAD_64`]: the number is the descriptor of a map.
const MAP_DESCRIPTOR: u8 = 1;

/// Offsets of fields in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE: i16 = 16;

/// One instruction. Registers: destination, source.
fn instruction(code: u8, registers: (u8, u8), offset: i16, number: i32) -> u64 {
    let [low, high] = offset.to_ne_bytes();
    let [n0, n1, n2, n3] = number.to_ne_bytes();
    let (to, from) = registers;
    // The order of the nibbles follows the byte order of the processor, as C bit fields do.
    let registers = if cfg!(target_endian = "big") { to << 4 | from } else { from << 4 | to };
    u64::from_ne_bytes([code, registers, low, high, n0, n1, n2, n3])
}

/// Checks of fields of the frame, in order; each jumps to the program's end if it fails.
struct Checks(Vec<u64>);

impl Checks {
    /// Requires these bytes in the field of this load at this offset.
    fn field(&mut self, load: u8, offset: i16, number: i32) {
        self.0.push(instruction(load, (4, 2), offset, 0));
        self.0.push(instruction(JUMP_NOT_EQUAL_32, (4, 0), 0, number));
    }

    fn byte(&mut self, offset: i16, value: u8) {
        self.field(LOAD_8, offset, i32::from(value));
    }

    fn two(&mut self, offset: i16, bytes: [u8; 2]) {
        self.field(LOAD_16, offset, i32::from(u16::from_ne_bytes(bytes)));
    }

    /// Requires consecutive groups of four bytes.
    fn fours(&mut self, offset: i16, bytes: &[u8]) {
        for (place, four) in (offset..).step_by(4).zip(bytes.as_chunks::<4>().0) {
            self.field(LOAD_32, place, i32::from_ne_bytes(*four));
        }
    }

    fn ports(&mut self, offset: i16, flow: &Flow) {
        self.two(offset, flow.source.port().to_be_bytes());
        self.two(offset + 2, flow.destination.port().to_be_bytes());
    }
}

/// Assembles the program of a flow. `map` is the descriptor of the map from queues to sockets.
pub fn program(flow: &Flow, map: i32) -> Vec<u64> {
    let mut checks = Checks(Vec::new());
    // The frame is as long as its headers: r2 = start, r3 = end, r4 = start + headers.
    let headers = match (flow.source.ip(), flow.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            checks.two(12, [0x08, 0x00]);
            checks.byte(14, 0x45);
            // No fragment: neither "more fragments" nor an offset.
            checks.0.push(instruction(LOAD_16, (4, 2), 20, 0));
            checks.0.push(instruction(JUMP_SET, (4, 0), 0, i32::from(u16::from_ne_bytes([0x3f, 0xff]))));
            checks.byte(23, 17);
            checks.fours(26, &source.octets());
            checks.fours(30, &destination.octets());
            checks.ports(34, flow);
            42
        }
        (source, destination) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            checks.two(12, [0x86, 0xdd]);
            checks.byte(20, 17);
            checks.fours(22, &octets(source));
            checks.fours(38, &octets(destination));
            checks.ports(54, flow);
            62
        }
    };
    let mut program = vec![
        instruction(LOAD_32, (2, 1), DATA, 0),
        instruction(LOAD_32, (3, 1), DATA_END, 0),
        instruction(MOVE, (4, 2), 0, 0),
        instruction(ADD_NUMBER, (4, 0), 0, headers),
        instruction(JUMP_GREATER, (4, 3), 0, 0),
    ];
    program.extend(checks.0);
    program.extend([
        // The socket of the queue; without one, the frame passes.
        instruction(LOAD_32, (2, 1), RX_QUEUE, 0),
        instruction(LOAD_64, (1, MAP_DESCRIPTOR), 0, map),
        0,
        instruction(MOVE_NUMBER, (3, 0), 0, XDP_PASS),
        instruction(CALL, (0, 0), 0, REDIRECT_MAP),
        instruction(EXIT, (0, 0), 0, 0),
    ]);
    let end = program.len();
    program.extend([instruction(MOVE_NUMBER, (0, 0), 0, XDP_PASS), instruction(EXIT, (0, 0), 0, 0)]);
    // Every jump goes to the end.
    for (place, one) in program.iter_mut().enumerate() {
        let mut bytes = one.to_ne_bytes();
        if matches!(bytes[0], JUMP_NOT_EQUAL_32 | JUMP_SET | JUMP_GREATER) {
            let distance = i16::try_from(end - place - 1).unwrap_or(i16::MAX);
            [bytes[2], bytes[3]] = distance.to_ne_bytes();
            *one = u64::from_ne_bytes(bytes);
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdp::frame::{Path, build};

    /// Runs a program on a frame: the queue that it is sent to, or `None` if it passes.
    fn run(program: &[u64], frame: &[u8]) -> Option<u64> {
        const QUEUE: u64 = 3;
        let mut registers = [0_u64; 11];
        let mut at = 0;
        loop {
            let [code, pair, o0, o1, n0, n1, n2, n3] = program[at].to_ne_bytes();
            let (to, from) = (usize::from(pair & 15), usize::from(pair >> 4));
            let offset = i16::from_ne_bytes([o0, o1]);
            let number = i32::from_ne_bytes([n0, n1, n2, n3]);
            at += 1;
            let place = || usize::try_from(offset).unwrap();
            let is_jump = match code {
                LOAD_8 => (registers[to] = frame[place()].into(), false).1,
                LOAD_16 => {
                    registers[to] = u16::from_ne_bytes([frame[place()], frame[place() + 1]]).into();
                    false
                }
                LOAD_32 if from == 1 => {
                    registers[to] = match offset {
                        DATA => 0,
                        DATA_END => frame.len() as u64,
                        RX_QUEUE => QUEUE,
                        other => panic!("{other}"),
                    };
                    false
                }
                LOAD_32 => {
                    registers[to] = u32::from_ne_bytes(*frame[place()..].first_chunk().unwrap()).into();
                    false
                }
                LOAD_64 => {
                    at += 1;
                    false
                }
                MOVE => (registers[to] = registers[from], false).1,
                MOVE_NUMBER => (registers[to] = u64::try_from(number).unwrap(), false).1,
                ADD_NUMBER => (registers[to] += u64::try_from(number).unwrap(), false).1,
                JUMP_GREATER => registers[to] > registers[from],
                JUMP_SET => registers[to] & u64::try_from(number).unwrap() != 0,
                JUMP_NOT_EQUAL_32 => registers[to] != u64::from(number.cast_unsigned()),
                CALL => return Some(registers[2]),
                EXIT => return None,
                other => panic!("{other:x}"),
            };
            if is_jump {
                at += place();
            }
        }
    }

    #[test]
    fn frames_of_the_flow_reach_the_socket_and_all_others_pass() {
        for (source, destination) in [("10.0.0.1:7", "10.0.0.2:9"), ("[fd00::1]:7", "[fd00::2]:9")] {
            let path = Path {
                source_mac: [1; 6],
                destination_mac: [2; 6],
                source: source.parse().unwrap(),
                destination: destination.parse().unwrap(),
            };
            let flow = Flow { source: path.source, destination: path.destination };
            let program = program(&flow, 5);
            let frame = build(&path, &[0; 40]).unwrap();
            assert_eq!(run(&program, &frame), Some(3));
            let headers = if path.source.is_ipv4() { 42 } else { 62 };
            for cut in 0..frame.len() {
                assert_eq!(run(&program, &frame[..cut]).is_some(), cut >= headers, "{cut}");
            }
            let mut other = path;
            other.destination.set_port(22);
            assert_eq!(run(&program, &build(&other, &[0; 40]).unwrap()), None);
            // Every field that is checked decides: type, fragment, protocol, addresses, ports.
            let checked: Vec<usize> = if path.source.is_ipv4() {
                [12, 13, 14, 21, 23].into_iter().chain(26..38).collect()
            } else {
                [12, 13, 20].into_iter().chain(22..58).collect()
            };
            for at in checked {
                let mut frame = frame.clone();
                frame[at] ^= 1;
                assert_eq!(run(&program, &frame), None, "{at}");
            }
        }
    }
}
