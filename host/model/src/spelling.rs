//! The closest match for what a user typed.

/// Returns the ID whose spelling is closest to `id`, if one is close. An ID without its layer counts as
/// complete: "nohz_full" is "boot.nohz_full".
pub fn nearest<'a>(id: &str, ids: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |known: &str| {
        let without_layer = known.split_once('.').map_or(known, |(_, rest)| rest);
        let names = [known, without_layer, known.rsplit('.').next().unwrap_or_default()];
        names.into_iter().map(|name| edit_distance(id, name)).min().unwrap_or(usize::MAX)
    };
    let near = ids.into_iter().min_by_key(|known| distance(known))?;
    (distance(near) <= id.len() / 3).then_some(near)
}

/// Number of insertions, deletions and replacements between two texts (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
