//! A report as a page.

use super::{Report, Row};
use crate::{
    draw,
    palette::{FONT, variables},
    xml::Element,
};

pub(super) fn page(report: &Report) -> String {
    let meta = |name, value| Element::new("meta").with(name, value);
    let head = Element::new("head")
        .child(meta("charset", "utf-8"))
        .child(meta("name", "viewport").with("content", "width=device-width, initial-scale=1"))
        .child(Element::new("title").text(&report.title))
        .child(Element::new("style").text(sheet()));
    let sections = report.rows.iter().enumerate().map(|(number, row)| section(row, number));
    let main = Element::new("main")
        .child(Element::new("h1").with("id", "top").text(&report.title))
        .child(about(report))
        .child(table(report))
        .children(sections);
    let page =
        Element::new("html").with("lang", "en").child(head).child(Element::new("body").child(main));
    format!("<!DOCTYPE html>\n{page}\n")
}

fn about(report: &Report) -> Element {
    let failed = report.rows.iter().filter(|row| !row.passed).count();
    let came = match failed {
        0 => format!("{} passed", report.rows.len()),
        _ => format!("{failed} of {} failed", report.rows.len()),
    };
    let class = if failed == 0 { "good" } else { "bad" };
    let pair = |name: &str, value: Element| {
        Element::new("div")
            .child(Element::new("dt").text(name))
            .child(Element::new("dd").child(value))
    };
    let values =
        report.about.iter().map(|(name, value)| pair(name, Element::new("span").text(value)));
    let came = Element::new("span").with("class", class).text(came);
    Element::new("dl").child(pair("result", came)).children(values)
}

fn table(report: &Report) -> Element {
    let alignment: Vec<&str> = (0..report.width())
        .map(|column| if report.is_figures(column) { "figure" } else { "word" })
        .collect();
    let mut lines = report.lines();
    let heads = lines.next().into_iter().flatten().zip(&alignment).map(|(text, class)| {
        Element::new("th").with("scope", "col").with("class", class).text(text)
    });
    let head = Element::new("thead").child(Element::new("tr").children(heads));
    let rows = lines.zip(&report.rows).enumerate().map(|(number, (cells, row))| {
        let cells = cells.zip(&alignment).enumerate().map(|(column, (text, class))| {
            let cell = Element::new("td").with("class", class);
            let is_verdict = column > 0 && column + 1 == report.width();
            match column {
                0 => {
                    let link = Element::new("a").with("href", format!("#row-{}", number + 1));
                    cell.child(link.text(text))
                }
                _ if is_verdict => cell.child(verdict(row, text)),
                _ => cell.text(text),
            }
        });
        Element::new("tr").children(cells)
    });
    let body = Element::new("tbody").children(rows.collect::<Vec<_>>());
    let table = Element::new("table").child(head).child(body);
    Element::new("div").with("class", "wide").child(table)
}

fn verdict(row: &Row, text: &str) -> Element {
    Element::new("span").with("class", if row.passed { "good" } else { "bad" }).text(text)
}

fn section(row: &Row, number: usize) -> Element {
    let names: Vec<&str> = row
        .cells
        .split_last()
        .map_or(&[][..], |(_, names)| names)
        .iter()
        .map(String::as_str)
        .take(2)
        .collect();
    let head = Element::new("h2")
        .text(names.join(", ") + " ")
        .child(verdict(row, if row.passed { "passed" } else { "failed" }))
        .text(" ")
        .child(Element::new("a").with("class", "up").with("href", "#top").text("to the table"));
    let details = (!row.details.is_empty()).then(|| {
        let class = if row.passed { "details" } else { "details failure" };
        Element::new("pre").with("class", class).text(&row.details)
    });
    let picture = row
        .picture
        .as_ref()
        .map(|picture| Element::new("div").with("class", "wide").child(draw::in_page(picture)));
    Element::new("section")
        .with("id", format!("row-{}", number + 1))
        .child(head)
        .children(details)
        .children(picture)
}

fn sheet() -> String {
    let own = format!(
        "html{{background:var(--page);color:var(--text);font:15px/1.5 {FONT}}}
body{{margin:0}}
main{{max-width:1240px;margin:0 auto;padding:24px 20px 80px}}
h1{{font-size:26px;line-height:1.25;margin:0 0 16px}}
h2{{font-size:18px;margin:0 0 12px}}
a{{color:var(--term-0)}}
dl{{display:flex;flex-wrap:wrap;gap:8px 32px;margin:0 0 24px}}
dt{{color:var(--muted);font-size:13px}}
dd{{margin:0;overflow-wrap:anywhere}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
th,td{{padding:6px 16px 6px 0;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}}
th{{color:var(--muted);font-size:13px;font-weight:600}}
.figure{{text-align:right}}
.good,.bad{{font-weight:600}}
.good{{color:var(--good)}}
.bad{{color:var(--bad)}}
h2 .good,h2 .bad,.up{{font-size:14px;margin-left:8px}}
.up{{font-weight:400}}
section{{margin-top:40px;padding-top:20px;border-top:1px solid var(--line)}}
.wide{{overflow-x:auto}}
.wide svg{{display:block;width:100%;min-width:900px;height:auto}}
.details{{margin:0 0 16px;padding:10px 14px;background:var(--alive);border-left:4px solid var(--line);white-space:pre-wrap;overflow-wrap:anywhere}}
.failure{{border-left-color:var(--bad)}}
@media print{{section{{break-inside:avoid}}}}
"
    );
    variables(":root") + &own + &draw::style()
}
