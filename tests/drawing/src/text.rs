//! How wide texts are, in a font that nobody knows: rather too wide.

/// The width of a text whose letters have this size.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// How far a character of size one reaches, in the widest of the usual fonts.
fn advance(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | '·' | 'I' => 0.4,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '\\' | '-' => 0.47,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.05,
        'A'..='Z' | '+' | '=' | '<' | '>' | '~' | '#' => 0.85,
        ' '..='~' => 0.7,
        '\u{80}'..='\u{24f}' => 0.85,
        // Also those of East Asia, and emoji.
        _ => 1.3,
    }
}

/// The text, or as much of it as has room, with an ellipsis; nothing if there is no room for that.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let room = room - width("…", size);
    let mut taken = 0.0;
    let has_room = |character: &char| {
        taken += advance(*character) * size;
        taken <= room
    };
    let cut: String = text.chars().take_while(has_room).collect();
    match cut.trim_end() {
        "" => String::new(),
        cut => format!("{cut}…"),
    }
}

/// The text in lines that have room, broken between words.
pub(crate) fn wrap(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = width(&line, size) + width(" ", size) + width(word, size);
            if !line.is_empty() && longer > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&fit(word, size, room));
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_cut_with_an_ellipsis() {
        assert_eq!(fit("candidate", 10.0, 100.0), "candidate");
        for room in 0..100 {
            let cut = fit("a candidate with a long name", 10.0, room.into());
            assert!(width(&cut, 10.0) <= room.into(), "{cut}");
            assert!(cut.is_empty() || cut.ends_with('…') && cut.chars().count() > 1, "{cut}");
        }
    }

    #[test]
    fn lines_break_between_words_and_keep_them_all() {
        let text = "one two three four five\nsix  seven";
        let lines = wrap(text, 10.0, 90.0);
        assert!(lines.len() > 2, "{lines:?}");
        assert!(lines.iter().all(|line| width(line, 10.0) <= 90.0), "{lines:?}");
        assert_eq!(lines.join(" "), "one two three four five six seven");
        assert!(lines.contains(&"six seven".to_owned()), "{lines:?}");
    }

    #[test]
    fn a_word_without_room_is_cut() {
        let lines = wrap("a incomprehensibilities b", 10.0, 60.0);
        assert!(lines.iter().all(|line| width(line, 10.0) <= 60.0), "{lines:?}");
        assert_eq!(lines.len(), 3, "{lines:?}");
    }
}
