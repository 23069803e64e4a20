//! INI files as TuneD reads them, with Python's `configparser`.

/// One option of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: String,
    /// Its value as written. Continued lines are separated by line feeds.
    pub value: String,
    pub path: String,
    /// Line number, from 1.
    pub line: u32,
}

/// A section with its options. Repeated sections and options keep their first place and get their last value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    pub entries: Vec<Entry>,
}

/// Maximum number of options in a file.
const ENTRIES_MAX: usize = 10_000;
/// Longest part of a line that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

/// Parses a profile. Errors: a line of a form that TuneD rejects.
pub fn parse(text: &str, path: &str) -> Result<Vec<Section>, String> {
    read(text, path, Vec::new())
}

/// Parses a file of variables, whose options need no section and no value.
pub fn parse_variables(text: &str, path: &str) -> Result<Vec<Entry>, String> {
    let outside = Section { name: String::new(), entries: Vec::new() };
    read(text, path, vec![outside])
        .map(|sections| sections.into_iter().flat_map(|section| section.entries).collect())
}

fn read(text: &str, path: &str, mut sections: Vec<Section>) -> Result<Vec<Section>, String> {
    let needs_no_value = !sections.is_empty();
    let mut section = sections.len().checked_sub(1);
    // The option that an indented line continues, and the indentation of its own line.
    let (mut open, mut depth) = (None, 0);
    for (number, whole) in (1..).zip(text.lines()) {
        let bare = uncommented(whole);
        let line = bare.trim();
        let indent = whole.len() - whole.trim_start().len();
        if line.is_empty() || indent > depth && open.is_some() {
            let continued = section.and_then(|at| sections.get_mut(at)).zip(open);
            let continued = continued.and_then(|(section, at): (_, usize)| section.entries.get_mut(at));
            // An empty line belongs to the value, a comment does not.
            if let Some(entry) = continued.filter(|_| !line.is_empty() || bare == whole) {
                entry.value = format!("{}\n{line}", entry.value);
            }
            continue;
        }
        depth = indent;
        open = None;
        if let Some(name) = header(line) {
            section = sections.iter().position(|section| section.name == name).or(Some(sections.len()));
            if section == Some(sections.len()) {
                sections.push(Section { name: name.to_owned(), entries: Vec::new() });
            }
            continue;
        }
        let entry = line.split_once('=').map(|(key, value)| Entry {
            key: key.trim().to_owned(),
            value: value.trim().to_owned(),
            path: path.to_owned(),
            line: number,
        });
        let wrong = match (section.and_then(|at| sections.get_mut(at)), entry) {
            (Some(section), Some(entry)) if !entry.key.is_empty() => {
                let at = set(&mut section.entries, entry);
                if at >= ENTRIES_MAX {
                    return Err(format!("a section has more than {ENTRIES_MAX} options"));
                }
                open = Some(at);
                continue;
            }
            (Some(_), None) if needs_no_value => continue,
            (Some(_), _) => "is not NAME=VALUE",
            (None, _) if line.starts_with('[') => "is not a section header",
            (None, _) => "is not in a section",
        };
        let shown: String = line.chars().take(SHOWN_CHARS_MAX).collect();
        return Err(format!("line {number} {wrong}: \"{shown}\""));
    }
    for entry in sections.iter_mut().flat_map(|section| &mut section.entries) {
        entry.value.truncate(entry.value.trim_end().len());
    }
    Ok(sections)
}

/// Sets an option: one of the same name keeps its place. Returns the place.
pub fn set(entries: &mut Vec<Entry>, entry: Entry) -> usize {
    let at = entries.iter().position(|old| old.key == entry.key).unwrap_or(entries.len());
    if let Some(old) = entries.get_mut(at) {
        *old = entry;
    } else {
        entries.push(entry);
    }
    at
}

/// The name in a section's header. Text behind the last bracket is ignored.
fn header(line: &str) -> Option<&str> {
    line.strip_prefix('[')?.rsplit_once(']').map(|(name, _)| name).filter(|name| !name.is_empty())
}

/// A line without its comment: from `#` at the start or after a blank, or all of a line that starts with `#` or `;`.
fn uncommented(line: &str) -> &str {
    if line.trim_start().starts_with(['#', ';']) {
        return "";
    }
    let is_comment = |at: usize| line[..at].ends_with(char::is_whitespace);
    line.match_indices('#').map(|(at, _)| at).find(|at| is_comment(*at)).map_or(line, |at| &line[..at])
}
