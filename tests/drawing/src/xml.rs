//! Elements, and how they are written: well-formed whatever the texts are.

use std::fmt::{self, Display, Write as _};

/// An element with its attributes and what is in it.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: Vec<Content>,
}

#[derive(Clone, Debug)]
enum Content {
    Element(Element),
    Text(String),
}

impl Element {
    pub(crate) const fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), content: Vec::new() }
    }

    pub(crate) fn with(mut self, attribute: &'static str, value: impl Display) -> Self {
        self.attributes.push((attribute, value.to_string()));
        self
    }

    pub(crate) fn text(mut self, text: impl Into<String>) -> Self {
        self.content.push(Content::Text(text.into()));
        self
    }

    pub(crate) fn child(mut self, child: Self) -> Self {
        self.content.push(Content::Element(child));
        self
    }

    pub(crate) fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.content.extend(children.into_iter().map(Content::Element));
        self
    }
}

/// What has no closing tag in HTML, and shapes. All others would swallow what follows.
const EMPTY: [&str; 4] = ["circle", "meta", "path", "rect"];

impl Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, attributes, content } = self;
        write!(f, "<{name}")?;
        for (attribute, value) in attributes {
            write!(f, " {attribute}=\"{}\"", Escaped(value))?;
        }
        if content.is_empty() && EMPTY.contains(name) {
            return f.write_str("/>");
        }
        f.write_char('>')?;
        for part in content {
            match (part, *name) {
                (Content::Element(element), _) => element.fmt(f)?,
                // HTML takes what is in it as it is.
                (Content::Text(text), "style") => f.write_str(text)?,
                (Content::Text(text), _) => Escaped(text).fmt(f)?,
            }
        }
        write!(f, "</{name}>")
    }
}

/// A text with nothing in it that XML takes for its own, or does not allow.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(character)?,
                // XML 1.0 has no form for these.
                '\u{fffe}' | '\u{ffff}' => f.write_char(char::REPLACEMENT_CHARACTER)?,
                _ if character.is_control() => f.write_char(char::REPLACEMENT_CHARACTER)?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// A length or a place in a picture, to a tenth of its unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // Without the sign of a zero.
        write!(f, "{}", if tenths == 0.0 { 0.0 } else { tenths })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_out_as_it_went_in() {
        let hostile = "<b attr=\"1\">&amp; it's ]]> é 選挙 🗳\n</b>";
        let written = Element::new("p").with("title", hostile).text(hostile).to_string();
        let read = roxmltree::Document::parse(&written).unwrap();
        assert_eq!(read.root_element().text(), Some(hostile));
        // A line break in an attribute is read as a space.
        let title = hostile.replace('\n', " ");
        assert_eq!(read.root_element().attribute("title"), Some(&*title));
    }

    #[test]
    fn what_xml_has_no_form_for_is_replaced() {
        for forbidden in ['\0', '\u{1b}', '\u{7f}', '\u{fffe}', '\u{ffff}'] {
            let written = Element::new("p").text(forbidden).to_string();
            let read = roxmltree::Document::parse(&written).unwrap();
            assert_eq!(read.root_element().text(), Some("\u{fffd}"), "{forbidden:?}");
        }
    }

    #[test]
    fn what_is_no_shape_is_closed_even_if_it_is_empty() {
        assert_eq!(Element::new("td").to_string(), "<td></td>");
        assert_eq!(Element::new("rect").to_string(), "<rect/>");
    }

    #[test]
    fn numbers_are_short() {
        let shown = |number| Px(number).to_string();
        assert_eq!([shown(12.0), shown(12.34), shown(-0.01)], ["12", "12.3", "0"]);
    }
}
