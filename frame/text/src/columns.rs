//! Tables that fit the terminal: empty columns are dropped first, then the least important ones.

use crate::text::{column_lines, with_dim_head};

/// Placeholder for a missing value.
pub const NONE: &str = "-";
/// Rank of a column that only pages show.
pub const PAGES_ONLY: u8 = u8::MAX;

/// One column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    pub head: String,
    pub cells: Vec<String>,
    /// True if the column is right-aligned.
    pub is_right: bool,
    /// Importance; 0 is never dropped, higher ranks go first.
    pub rank: u8,
    /// True if a page emphasizes it.
    pub is_strong: bool,
}

impl Column {
    /// Creates a right-aligned column of figures.
    pub fn figures(head: &str, rank: u8, cells: Vec<String>) -> Self {
        Self { head: head.to_owned(), cells, is_right: true, rank, is_strong: false }
    }

    /// Creates a left-aligned column of words.
    pub fn words(head: &str, rank: u8, cells: Vec<String>) -> Self {
        Self { head: head.to_owned(), cells, is_right: false, rank, is_strong: false }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.head.chars().count()]).max().unwrap_or(0)
    }

    /// True if no item has a value.
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(|cell| cell == NONE || cell.is_empty())
    }
}

/// A table with a row for each item.
pub struct Table<'a, T> {
    rows: &'a [T],
    columns: Vec<Column>,
}

impl<'a, T> Table<'a, T> {
    /// Creates a table without columns.
    pub fn of(rows: &'a [T]) -> Self {
        Self { rows, columns: Vec::new() }
    }

    /// Adds a column of figures; an item without one has [`NONE`].
    #[must_use]
    pub fn figures<C: Into<Option<String>>>(self, head: &str, rank: u8, cell: impl Fn(&'a T) -> C) -> Self {
        self.with(Column::figures, head, rank, cell)
    }

    /// Adds a column of words; an item without one has [`NONE`].
    #[must_use]
    pub fn words<C: Into<Option<String>>>(self, head: &str, rank: u8, cell: impl Fn(&'a T) -> C) -> Self {
        self.with(Column::words, head, rank, cell)
    }

    fn with<C: Into<Option<String>>>(
        mut self,
        column: fn(&str, u8, Vec<String>) -> Column,
        head: &str,
        rank: u8,
        cell: impl Fn(&'a T) -> C,
    ) -> Self {
        let cell = |row| cell(row).into().unwrap_or_else(|| NONE.to_owned());
        self.columns.push(column(head, rank, self.rows.iter().map(cell).collect()));
        self
    }

    /// Emphasizes the last column on pages.
    #[must_use]
    pub fn strong(mut self) -> Self {
        self.columns.iter_mut().last().into_iter().for_each(|column| column.is_strong = true);
        self
    }

    /// True if it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn into_columns(self) -> Vec<Column> {
        self.columns
    }

    /// Formats the columns that fit, indented by two spaces, with a dimmed head.
    pub fn text(self, width: usize) -> String {
        table(self.columns, width)
    }

    /// Returns the lines without colours.
    pub fn lines(self, width: usize) -> Vec<String> {
        lines(self.columns, width)
    }
}

/// Formats the columns that fit as a table, indented by two spaces, with a dimmed head. No text without rows.
pub fn table(all: Vec<Column>, width: usize) -> String {
    if all.iter().all(|of| of.cells.is_empty()) {
        return String::new();
    }
    with_dim_head(lines(all, width))
}

/// Returns the lines of [`table`] without colours.
pub fn lines(all: Vec<Column>, width: usize) -> Vec<String> {
    let mut kept: Vec<Column> =
        all.into_iter().filter(|of| of.rank == 0 || (of.rank < PAGES_ONLY && !of.is_empty())).collect();
    let is_wide = |kept: &[Column]| kept.iter().map(|of| of.width() + 2).sum::<usize>() > width;
    while is_wide(&kept) {
        let least = kept.iter().enumerate().max_by_key(|(_, of)| of.rank).filter(|(_, of)| of.rank > 0);
        let Some((place, _)) = least else { break };
        kept.remove(place);
    }
    let right: Vec<usize> =
        kept.iter().enumerate().filter(|(_, of)| of.is_right).map(|(place, _)| place).collect();
    let rows = kept.iter().map(|of| of.cells.len()).max().unwrap_or(0);
    let mut lines = vec![kept.iter().map(|of| of.head.clone()).collect::<Vec<_>>()];
    for row in 0..rows {
        lines.push(kept.iter().map(|of| of.cells.get(row).cloned().unwrap_or_default()).collect());
    }
    column_lines(&lines, &right, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_columns_are_dropped_first_and_then_the_least_important() {
        let cells = |text: &str| vec![text.to_owned(); 2];
        let all = || {
            vec![
                Column::figures("CPU", 0, cells("1023")),
                Column::words("part", 2, cells("housekeeping")),
                Column::figures("p99", 1, cells(NONE)),
                Column::figures("max", 1, cells("1.28 ms")),
            ]
        };
        let text = |width| anstream::adapter::strip_str(&table(all(), width)).to_string();
        assert_eq!(text(80).lines().next(), Some("   CPU  part              max"));
        assert_eq!(text(20).lines().next(), Some("   CPU      max"));
        assert_eq!(text(3).lines().next(), Some("   CPU"));
    }
}
