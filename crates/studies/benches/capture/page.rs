//! The page: verdicts, figures, and what was printed, in one file that opens anywhere.

use wirestamp_report::format::Escaped;

use crate::results::{Figure, Results, Verdict};

const STYLE: &str = "body { font: 16px/1.5 sans-serif; max-width: 66rem; margin: 2rem auto; \
    padding: 0 1rem; color: #333d4a; } pre { font-size: 0.8rem; overflow-x: auto; } \
    figure { margin: 2rem 0; } svg { max-width: 100%; height: auto; } \
    .holds::before { content: \"holds: \"; color: #006b4f; } \
    .fails::before { content: \"does not hold: \"; color: #d53e00; font-weight: bold; }";

pub(crate) fn html(results: &Results) -> String {
    let verdict = |Verdict { holds, text }: &Verdict| {
        let class = if *holds { "holds" } else { "fails" };
        format!("<li class=\"{class}\">{}</li>\n", Escaped(text))
    };
    let figure = |Figure { svg, caption }: &Figure| {
        format!("<figure>\n{svg}\n<figcaption>{}</figcaption>\n</figure>\n", Escaped(caption))
    };
    let verdicts: String = results.verdicts.iter().map(verdict).collect();
    let figures: String = results.figures.iter().map(figure).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Capture tools side by side</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Capture tools side by side</h1>\n<ul>\n{verdicts}</ul>\n{figures}\
         <pre>{}</pre>\n</body>\n</html>\n",
        Escaped(&results.said)
    )
}
