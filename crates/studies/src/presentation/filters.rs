//! Filters of templates: the text forms of reports ([`wirestamp_report::format`]). A missing value stays missing. A
//! number may be an [`Estimate`], which is written with its interval.

use minijinja::{Environment, Error, ErrorKind, Value};
use wirestamp_report::estimate::{Estimate, Sign, coefficient, decimal};
use wirestamp_report::format::{self, plural};

use crate::experiment::factor;

type Filtered = Result<Value, Error>;

/// Registers the filters.
pub(super) fn add(environment: &mut Environment<'_>) {
    // Nanoseconds, or units of this number of them, with the unit of their size.
    environment.add_filter("duration", |value: &Value, nanos: Option<f64>| {
        with(value, |it| Ok(it.text(|number| format::duration(number * nanos.unwrap_or(1.0)))))
    });
    // Nanoseconds in microseconds, with three decimals.
    environment.add_filter("micros", |value: &Value| with(value, |it| Ok(it.text(format::micros))));
    environment.add_filter("decimal", |value: &Value, decimals: usize| {
        with(value, |it| Ok(decimal(it, decimals)))
    });
    // Without groups of digits; for an estimate its mean.
    environment.add_filter("fixed", |value: &Value, decimals: usize| {
        with(value, |it| Ok(format!("{:.decimals$}", it.mean)))
    });
    // With as many decimals as it has.
    environment.add_filter("plain", |value: &Value| with(value, |it| Ok(format::number(it.mean))));
    environment.add_filter("member", |value: &Value, name: &str| {
        optional(value, |value| value.get_attr(name))
    });
    environment.add_filter("coefficient", |value: &Value| with(value, |it| Ok(coefficient(it))));
    // A difference of logarithms as a factor.
    environment.add_filter("factor", |value: &Value| with(value, |it| Ok(factor(it))));
    environment.add_filter("thousands", |value: &Value| {
        with(value, |it| Ok(Value::from_serialize(it.times(1e-3))))
    });
    environment.add_filter("ratio", |of: &Value, to: &Value| {
        with(of, |of| with(to, |to| Ok(Some(of.mean / to.mean).filter(|ratio| ratio.is_finite()))))
    });
    environment.add_filter("count", count);
    environment.add_filter("percent_of", |part: &Value, whole: u64| {
        optional(part, |part| Ok(format::percent(u64::try_from(part.clone())?, whole)))
    });
    environment.add_filter("plural", |value: u64, one: &str, many: &str| plural(value, one, many));
    environment.add_filter("total", total);
    environment.add_filter("points", points);
    environment.add_filter("numbered", numbered);
    environment.add_filter("flatten", |lists: Vec<Vec<Value>>| lists.concat());
    environment.add_filter("largest_effects", largest_effects);
}

/// Points of a line for the function `plot`: two members of each row, by their names. Rows without a value have no
/// point. Values are multiplied by their units.
fn points(
    rows: Vec<Value>,
    x: &Value,
    y: &Value,
    x_unit: Option<f64>,
    y_unit: Option<f64>,
) -> Result<Vec<Value>, Error> {
    let mut points = Vec::new();
    let (x_unit, y_unit) = (x_unit.unwrap_or(1.0), y_unit.unwrap_or(1.0));
    for row in rows {
        let (at, value) = (row.get_item(x)?, row.get_item(y)?);
        if !at.is_none() && !value.is_none() {
            let (at, Estimate { mean, ci95, .. }) = (estimate(&at)?.mean, estimate(&value)?);
            let ci95 = ci95.map(|ci95| ci95 * y_unit);
            points.push(Value::from_serialize((at * x_unit, mean * y_unit, ci95)));
        }
    }
    Ok(points)
}

/// Points of a line for the function `plot`: the finite values, numbered from 1. They are multiplied by the unit, if
/// given.
fn numbered(values: Vec<Option<f64>>, unit: Option<f64>) -> Vec<Value> {
    let numbers = (1..).map(f64::from as fn(u32) -> f64);
    let point = |(at, value): (f64, Option<f64>)| {
        let value = value.filter(|value| value.is_finite())? * unit.unwrap_or(1.0);
        Some(Value::from_serialize((at, value, None::<f64>)))
    };
    numbers.zip(values).filter_map(point).collect()
}

/// The effects that differ significantly from zero, largest first.
fn largest_effects(effects: Vec<Value>) -> Result<Vec<Value>, Error> {
    let mut significant = Vec::new();
    for effect in effects {
        let it = estimate(&effect.get_attr("effect")?)?;
        if it.sign() != Sign::Open {
            significant.push((it.mean.abs(), effect));
        }
    }
    significant.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Ok(significant.into_iter().map(|(_, effect)| effect).collect())
}

/// The result of `text` for an estimate or a number.
fn with<T: Into<Value>>(value: &Value, text: impl Fn(Estimate) -> Result<T, Error>) -> Filtered {
    optional(value, |value| text(estimate(value)?))
}

/// An estimate, or a number, which is one without an interval.
fn estimate(value: &Value) -> Result<Estimate, Error> {
    let mean = value.get_attr("mean").unwrap_or_default();
    if mean.is_undefined() {
        return Ok(Estimate::new(f64::try_from(value.clone())?, None));
    }
    let ci95 = value.get_attr("ci95")?;
    let ci95 = if ci95.is_none() { None } else { Some(f64::try_from(ci95)?) };
    Ok(Estimate::new(f64::try_from(mean)?, ci95))
}

fn optional<T: Into<Value>>(
    value: &Value,
    text: impl FnOnce(&Value) -> Result<T, Error>,
) -> Filtered {
    if value.is_none() { Ok(Value::from(())) } else { text(value).map(Into::into) }
}

/// A whole number, with groups of three digits.
fn count(value: &Value) -> Filtered {
    optional(value, |value| {
        let number = i128::try_from(value.clone())?;
        let digits = u64::try_from(number.unsigned_abs()).map(format::count);
        let digits =
            digits.map_err(|_| Error::new(ErrorKind::InvalidOperation, "a count is too large"))?;
        Ok(if number < 0 { format!("\u{2212}{digits}") } else { digits })
    })
}

/// The sum of whole numbers; `none` if one of them is.
fn total(values: Vec<Value>) -> Filtered {
    let mut sum: i128 = 0;
    for value in values {
        if value.is_none() {
            return Ok(value);
        }
        sum += i128::try_from(value)?;
    }
    Ok(Value::from(sum))
}
