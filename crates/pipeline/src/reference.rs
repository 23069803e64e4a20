//! The figures of the Kungfu report: kungfu-core 2.6.0-alpha.6 on Intel Xeon E5-2643 at 3.6 GHz, 12 cores, 32 GB; 80
//! strategies, 86 processes. They are of another machine, so they say what to look for and not what to reach.

/// A range of means over runs, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeanRange {
    /// The lowest mean of a run.
    pub low_ns: u64,
    /// The highest.
    pub high_ns: u64,
}

/// What the report says of one scenario of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceRow {
    /// `A1` to `D12`.
    pub id: &'static str,
    /// Tick to order.
    pub t2o: MeanRange,
}

/// Which machine [`REFERENCE`] is of, for those who read its figures beside others.
pub const REFERENCE_MACHINE: &str =
    "Intel Xeon E5-2643 at 3.6 GHz, 12 cores, 32 GB, kungfu-core 2.6.0-alpha.6";

/// The reference of a row of the matrix; none for rows that the report has no table of.
pub fn reference(id: &str) -> Option<&'static ReferenceRow> {
    REFERENCE.iter().find(|row| row.id == id)
}

const fn row(id: &'static str, low_us_hundredths: u64, high_us_hundredths: u64) -> ReferenceRow {
    ReferenceRow { id, t2o: MeanRange { low_ns: low_us_hundredths * 10, high_ns: high_us_hundredths * 10 } }
}

/// Every row of the report's four tables, in hundredths of a microsecond as it prints them.
pub const REFERENCE: &[ReferenceRow] = &[
    row("A1", 91_780, 101_659),
    row("A2", 92_626, 100_171),
    row("A3", 92_273, 95_858),
    row("A4", 101_493, 139_709),
    row("A5", 94_570, 107_488),
    row("A6", 80_591, 114_076),
    row("A7", 104_050, 110_432),
    row("A8", 78_695, 95_303),
    row("A9", 76_337, 85_051),
    row("A10", 492_812, 3_781_485),
    row("A11", 80_286, 91_501),
    row("A12", 151_702, 187_596),
    row("B1", 86_539, 92_475),
    row("B2", 88_192, 89_460),
    row("B3", 88_080, 91_623),
    row("B4", 94_182, 120_352),
    row("B5", 98_109, 110_673),
    row("B6", 87_439, 101_311),
    row("B7", 95_588, 108_585),
    row("B8", 93_665, 96_405),
    row("B9", 72_818, 79_113),
    row("B10", 407_325, 2_556_159),
    row("B11", 76_727, 84_865),
    row("B12", 98_782, 115_298),
    row("C1", 79_858, 83_822),
    row("C2", 76_445, 83_366),
    row("C3", 75_251, 80_574),
    row("C4", 93_972, 105_080),
    row("C5", 86_285, 101_142),
    row("C6", 76_500, 97_709),
    row("C7", 76_571, 82_956),
    row("C8", 71_888, 80_580),
    row("C9", 68_893, 87_123),
    row("C10", 68_409, 80_828),
    row("C11", 48_180, 56_799),
    row("C12", 260_434, 292_568),
    row("D1", 77_853, 82_759),
    row("D2", 76_944, 79_438),
    row("D3", 74_744, 77_756),
    row("D4", 83_826, 119_822),
    row("D5", 82_934, 93_073),
    row("D6", 77_597, 89_008),
    row("D7", 71_481, 75_423),
    row("D8", 68_691, 83_637),
    row("D9", 63_713, 100_100),
    row("D10", 66_308, 80_348),
    row("D11", 47_523, 51_187),
    row("D12", 228_485, 303_469),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    #[test]
    fn ranges_are_ranges_and_each_is_of_a_row() {
        assert_eq!(REFERENCE.len(), 48);
        for of in REFERENCE {
            assert!(of.t2o.low_ns < of.t2o.high_ns, "{}", of.id);
            assert!(matrix::rows().any(|row| row.id() == of.id), "{}", of.id);
        }
        assert_eq!(reference("A10").unwrap().t2o.high_ns, 37_814_850);
        assert!(reference("S1").is_none());
    }
}
