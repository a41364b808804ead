//! Comma-separated values as RFC 4180 has them, safe to open in a spreadsheet.

/// Characters that make a spreadsheet take a cell for a formula.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// A line for each row.
pub(super) fn table<const N: usize>(rows: impl Iterator<Item = [String; N]>) -> String {
    rows.map(|row| format!("{}\r\n", row.map(|cell| field(&cell)).join(","))).collect()
}

fn field(cell: &str) -> String {
    let is_formula = cell.trim_start_matches([' ', '\u{a0}', '\n']).starts_with(FORMULA);
    let cell = if is_formula { format!("'{cell}") } else { cell.to_owned() };
    match cell.contains([',', '"', '\r', '\n', '\'']) || cell.starts_with(' ') || cell.ends_with(' ') {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_have_to_be_and_no_formula_comes_through() {
        for (cell, expected) in [
            ("", ""),
            ("acme/planner", "acme/planner"),
            ("0.000001", "0.000001"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            (" x", "\" x\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
            ("  =1", "\"'  =1\""),
        ] {
            assert_eq!(field(cell), expected, "{cell:?}");
        }
        let rows = [["agent", "usd"], ["a,b", "1"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(rows.into_iter()), "agent,usd\r\n\"a,b\",1\r\n");
    }
}
