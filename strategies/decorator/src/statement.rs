//! What the Python layer asks about a statement: which option it sets, or how it reads with another input.
//!
//! The host has no call that parses without running, so the text is parsed on this side, with the same parser.

use std::collections::HashMap;

use datafusion::common::{Result, plan_datafusion_err};
use datafusion::logical_expr::sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use datafusion::sql::parser::{CopyToStatement, DFParserBuilder, ResetStatement, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, Insert, ObjectName, ObjectNamePart, Set, Statement as SqlStatement, Value,
};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use df_strategies_bindings::to_py_err;
use pyo3::prelude::*;

/// Dialects to try after the generic one. The session's own is not told to extensions; the host has parsed the text
/// with it already, and a text that two dialects accept names the same table, file and options in both.
const DIALECTS: [&str; 11] = [
    "postgresql",
    "mysql",
    "sqlite",
    "hive",
    "snowflake",
    "redshift",
    "mssql",
    "clickhouse",
    "bigquery",
    "duckdb",
    "databricks",
];

/// `("set", key, value)`, `("reset", key, None)` or `("show", key, None)` of such a statement; None of another.
#[pyfunction]
pub fn option_statement(sql: &str) -> Option<(&'static str, String, Option<String>)> {
    match first_parsed(sql)? {
        Statement::Reset(ResetStatement::Variable(name)) => Some(("reset", dotted(&name), None)),
        Statement::Statement(statement) => match *statement {
            SqlStatement::Set(Set::SingleAssignment {
                variable, values, ..
            }) if values.len() == 1 => Some(("set", dotted(&variable), Some(plain(&values[0])))),
            SqlStatement::ShowVariable { variable } => {
                let parts: Vec<&str> = variable.iter().map(|part| part.value.as_str()).collect();
                Some(("show", parts.join("."), None))
            }
            _ => None,
        },
        _ => None,
    }
}

/// COPY or INSERT, perhaps explained, with all rows of `table` as its input; None of another statement.
///
/// Args:
///     sql: The statement.
///     replacements: Text for each named placeholder, as the host replaces it. Other placeholders may stand anywhere
///         in the input, which is left out.
///     table: Name of the table to read.
#[pyfunction]
pub fn sink_statement(
    sql: &str,
    replacements: HashMap<String, String>,
    table: &str,
) -> PyResult<Option<String>> {
    let text = replace_placeholders(sql, &replacements);
    let Some(statement) = first_parsed(&text) else {
        return Ok(None);
    };
    with_input(statement, table).map_err(to_py_err)
}

fn first_parsed(sql: &str) -> Option<Statement> {
    parse(sql, &GenericDialect {}).or_else(|| {
        DIALECTS
            .iter()
            .filter_map(|name| dialect_from_str(name))
            .find_map(|dialect| parse(sql, dialect.as_ref()))
    })
}

fn parse(sql: &str, dialect: &dyn Dialect) -> Option<Statement> {
    let mut parser = DFParserBuilder::new(sql)
        .with_dialect(dialect)
        .build()
        .ok()?;
    let mut statements = parser.parse_statements().ok()?;
    (statements.len() == 1).then(|| statements.pop_front())?
}

fn replace_placeholders(sql: &str, replacements: &HashMap<String, String>) -> String {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize() else {
        return sql.to_string();
    };
    if !tokens.iter().any(|t| matches!(t, Token::Placeholder(_))) {
        return sql.to_string();
    }
    let text = |token: Token| match token {
        Token::Placeholder(name) => {
            let name = name.trim_start_matches(['$', '?', ':', '@']);
            // A name parses wherever a table or an expression does.
            let known = replacements.get(name).cloned();
            known.unwrap_or_else(|| format!("p{name}"))
        }
        other => other.to_string(),
    };
    tokens.into_iter().map(text).collect()
}

fn with_input(statement: Statement, table: &str) -> Result<Option<String>> {
    Ok(match statement {
        Statement::CopyTo(copy) => Some(copy_from(&copy, table)),
        Statement::Statement(statement) => match *statement {
            SqlStatement::Insert(insert) => Some(insert_from(insert, table)?),
            _ => None,
        },
        Statement::Explain(explain) => {
            let (all, inner) = (explain.to_string(), explain.statement.to_string());
            let prefix = all.strip_suffix(&inner).unwrap_or("EXPLAIN ").to_string();
            with_input(*explain.statement, table)?.map(|statement| prefix + &statement)
        }
        _ => None,
    })
}

/// The parser's own rendering leaves the target without quotes.
fn copy_from(copy: &CopyToStatement, table: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let mut sql = format!("COPY {table} TO {}", quoted(&copy.target));
    if let Some(format) = &copy.stored_as {
        sql += &format!(" STORED AS {format}");
    }
    if !copy.partitioned_by.is_empty() {
        sql += &format!(" PARTITIONED BY ({})", copy.partitioned_by.join(", "));
    }
    if !copy.options.is_empty() {
        let options = copy.options.iter();
        let options: Vec<String> = options
            .map(|(key, value)| format!("{} {value}", quoted(key)))
            .collect();
        sql += &format!(" OPTIONS ({})", options.join(", "));
    }
    sql
}

/// The host has brought the input into the order of the table's columns already.
fn insert_from(mut insert: Insert, table: &str) -> Result<String> {
    let select = first_parsed(&format!("SELECT * FROM {table}"));
    let Some(Statement::Statement(select)) = select else {
        return Err(plan_datafusion_err!("'{table}' is no table name"));
    };
    if let SqlStatement::Query(query) = *select {
        insert.source = Some(query);
    }
    insert.columns.clear();
    insert.after_columns.clear();
    Ok(insert.to_string())
}

fn dotted(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| match part {
        ObjectNamePart::Identifier(identifier) => identifier.value.clone(),
        ObjectNamePart::Function(function) => function.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}

fn plain(value: &Expr) -> String {
    match value {
        Expr::Identifier(identifier) => identifier.value.clone(),
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        other => other.to_string(),
    }
}
