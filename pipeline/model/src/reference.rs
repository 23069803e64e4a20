//! The figures of the Kungfu report: kungfu-core 2.6.0-alpha.6 on Intel Xeon E5-2643 at 3.6 GHz, 12 cores, 32 GB; 80
//! strategies, 86 processes. They are of another machine, so they say what to look for and not what to reach.

/// The lowest and the highest mean of a run, in hundredths of a microsecond as the report prints them.
pub type MeanRange = [u64; 2];

/// Figures of the report for one scenario of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceRow {
    /// `A1` to `D12`.
    pub id: &'static str,
    /// Market data: md wrote the quote, the strategy read it.
    pub md: MeanRange,
    /// Order: the strategy wrote it, td read it.
    pub order: MeanRange,
    /// Tick to order.
    pub t2o: MeanRange,
}

/// Machine of [`REFERENCE`], to be shown beside its figures.
pub const REFERENCE_MACHINE: &str =
    "Intel Xeon E5-2643 at 3.6 GHz, 12 cores, 32 GB, kungfu-core 2.6.0-alpha.6";

/// The reference of a row of the matrix; none for rows that the report has no table of.
pub fn reference(id: &str) -> Option<&'static ReferenceRow> {
    REFERENCE.iter().find(|row| row.id == id)
}

/// Returns the report's statement on a group without a table, one sentence; `None` if there is none.
pub fn note(group: char) -> Option<&'static str> {
    match group {
        'R' => Some(
            "In the report market data takes about 50 ms in this mode: its fast writers wake nobody, so a strategy \
             sees a quote when its wait of 100 ms ends; orders take about as long as with every process fast.",
        ),
        'S' | 'T' | 'F' | 'G' => Some("The report ran this too, and prints no figures of it."),
        _ => None,
    }
}

const fn row(id: &'static str, md: MeanRange, order: MeanRange, t2o: MeanRange) -> ReferenceRow {
    ReferenceRow { id, md, order, t2o }
}

/// Every row of the report's four tables: market data, order, tick to order.
#[rustfmt::skip]
pub const REFERENCE: &[ReferenceRow] = &[
    row("A1", [44_681, 48_928], [41_738, 47_945], [91_780, 101_659]),
    row("A2", [44_382, 49_985], [43_525, 45_281], [92_626, 100_171]),
    row("A3", [44_453, 48_250], [42_886, 44_804], [92_273, 95_858]),
    row("A4", [43_839, 49_580], [52_936, 90_620], [101_493, 139_709]),
    row("A5", [41_862, 42_592], [49_298, 62_138], [94_570, 107_488]),
    row("A6", [39_497, 40_155], [37_232, 71_326], [80_591, 114_076]),
    row("A7", [38_671, 39_627], [61_736, 69_451], [104_050, 110_432]),
    row("A8", [36_690, 37_526], [39_161, 56_936], [78_695, 95_303]),
    row("A9", [35_190, 36_580], [39_134, 46_551], [76_337, 85_051]),
    row("A10", [115_806, 279_056], [153_293, 455_828], [492_812, 3_781_485]),
    row("A11", [34_989, 38_383], [39_989, 54_272], [80_286, 91_501]),
    row("A12", [62_583, 80_114], [87_063, 105_823], [151_702, 187_596]),
    row("B1", [43_409, 45_331], [41_089, 45_458], [86_539, 92_475]),
    row("B2", [43_405, 44_013], [42_528, 43_345], [88_192, 89_460]),
    row("B3", [43_295, 47_427], [41_841, 43_894], [88_080, 91_623]),
    row("B4", [42_990, 43_796], [48_823, 65_766], [94_182, 120_352]),
    row("B5", [39_784, 40_742], [56_179, 68_693], [98_109, 110_673]),
    row("B6", [38_469, 39_030], [47_156, 61_161], [87_439, 101_311]),
    row("B7", [37_561, 39_053], [56_844, 68_380], [95_588, 108_585]),
    row("B8", [36_130, 37_257], [56_119, 58_411], [93_665, 96_405]),
    row("B9", [33_904, 35_165], [37_792, 43_416], [72_818, 79_113]),
    row("B10", [122_205, 696_760], [124_463, 367_910], [407_325, 2_556_159]),
    row("B11", [32_144, 36_336], [43_300, 48_771], [76_727, 84_865]),
    row("B12", [42_560, 50_389], [55_273, 64_004], [98_782, 115_298]),
    row("C1", [44_214, 45_469], [29_268, 32_738], [79_858, 83_822]),
    row("C2", [41_428, 42_924], [26_951, 31_942], [76_445, 83_366]),
    row("C3", [40_988, 43_526], [26_476, 32_282], [75_251, 80_574]),
    row("C4", [38_319, 39_063], [50_509, 60_741], [93_972, 105_080]),
    row("C5", [36_740, 42_778], [41_572, 53_454], [86_285, 101_142]),
    row("C6", [35_685, 37_640], [35_418, 53_416], [76_500, 97_709]),
    row("C7", [35_165, 38_334], [37_567, 42_565], [76_571, 82_956]),
    row("C8", [36_170, 42_918], [29_463, 34_407], [71_888, 80_580]),
    row("C9", [35_058, 50_369], [29_746, 34_732], [68_893, 87_123]),
    row("C10", [36_012, 44_187], [28_278, 38_657], [68_409, 80_828]),
    row("C11", [22_441, 29_056], [23_862, 25_859], [48_180, 56_799]),
    row("C12", [116_180, 134_529], [139_687, 156_520], [260_434, 292_568]),
    row("D1", [43_278, 45_492], [32_071, 35_755], [77_853, 82_759]),
    row("D2", [42_112, 42_878], [32_086, 34_244], [76_944, 79_438]),
    row("D3", [40_693, 41_382], [29_784, 33_432], [74_744, 77_756]),
    row("D4", [36_778, 44_405], [41_841, 72_780], [83_826, 119_822]),
    row("D5", [35_202, 38_679], [44_783, 51_794], [82_934, 93_073]),
    row("D6", [34_904, 36_737], [40_215, 50_256], [77_597, 89_008]),
    row("D7", [34_462, 37_264], [35_552, 37_609], [71_481, 75_423]),
    row("D8", [35_738, 47_828], [30_709, 34_593], [68_691, 83_637]),
    row("D9", [34_610, 69_846], [27_522, 29_097], [63_713, 100_100]),
    row("D10", [38_673, 48_611], [24_278, 30_745], [66_308, 80_348]),
    row("D11", [23_497, 27_524], [22_641, 23_944], [47_523, 51_187]),
    row("D12", [90_882, 136_974], [115_709, 198_176], [228_485, 303_469]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    #[test]
    fn ranges_are_ranges_and_each_is_of_a_row() {
        assert_eq!(REFERENCE.len(), 48);
        for of in REFERENCE {
            for range in [of.md, of.order, of.t2o] {
                assert!(0 < range[0] && range[0] < range[1], "{}", of.id);
            }
            // The stages make the whole: no mean of a whole is below the lowest mean of a part.
            assert!(of.t2o[0] >= of.md[0].max(of.order[0]), "{}", of.id);
            assert!(matrix::rows().any(|row| row.id() == of.id), "{}", of.id);
        }
        assert_eq!(reference("A10").unwrap().t2o[1], 3_781_485);
        assert!(reference("S1").is_none());
        let told = |letter: char| REFERENCE.iter().any(|row| row.id.starts_with(letter));
        for group in matrix::GROUPS {
            assert_eq!(group.is_in_report, told(group.letter), "{}", group.letter);
            assert!(!group.is_in_report || note(group.letter).is_none(), "{}", group.letter);
        }
    }
}
