//! A YAML document as a tree whose nodes have their places.

use std::collections::HashMap;
use std::fmt;

use saphyr_parser::{Event, Parser, Span};

/// The most nodes of a document, including those that aliases repeat.
const MAX_NODES: usize = 1_000_000;
/// The deepest nesting.
const MAX_DEPTH: usize = 64;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A mistake and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    pub(super) at: Place,
    pub(super) message: String,
}

impl Mistake {
    pub(super) fn new(at: Place, message: impl Into<String>) -> Mistake {
        Mistake { at, message: message.into() }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
}

impl Node {
    pub(super) fn text(&self) -> Result<&str, Mistake> {
        match &self.value {
            Value::Scalar(text) => Ok(text),
            Value::List(_) | Value::Map(_) => Err(Mistake::new(self.at, "expected a text")),
        }
    }

    /// The items of a list; an empty value has no items.
    pub(super) fn list(&self) -> Result<&[Node], Mistake> {
        match &self.value {
            Value::List(items) => Ok(items),
            Value::Scalar(text) if is_null(text) => Ok(&[]),
            Value::Scalar(_) | Value::Map(_) => Err(Mistake::new(self.at, "expected a list")),
        }
    }

    pub(super) fn map(&self) -> Result<&[(Node, Node)], Mistake> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            Value::Scalar(text) if is_null(text) => Ok(&[]),
            Value::Scalar(_) | Value::List(_) => Err(Mistake::new(self.at, "expected keys and values")),
        }
    }

    pub(super) fn boolean(&self) -> Result<bool, Mistake> {
        match self.text()? {
            "true" | "True" | "TRUE" => Ok(true),
            "false" | "False" | "FALSE" => Ok(false),
            other => Err(Mistake::new(self.at, format!("expected true or false, found {other:?}"))),
        }
    }

    pub(super) fn number(&self) -> Result<u32, Mistake> {
        let text = self.text()?;
        text.parse().map_err(|_| Mistake::new(self.at, format!("expected a number up to 4294967295, found {text:?}")))
    }
}

fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// Reads the first document of a text.
pub(super) fn read(text: &str) -> Result<Node, Mistake> {
    let mut reader = Reader { events: Parser::new_from_str(text), anchors: HashMap::new(), nodes: 0 };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_), _) => {}
            (Event::StreamEnd, span) => return Err(Mistake::new(place(span), "the file is empty")),
            (event, span) => return reader.node(event, span, 0),
        }
    }
}

struct Reader<'t> {
    events: Parser<'t, saphyr_parser::StrInput<'t>>,
    /// The nodes that aliases refer to, by the number of the anchor.
    anchors: HashMap<usize, Node>,
    nodes: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Mistake> {
        match self.events.next() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = Place { line: error.marker().line(), column: error.marker().col() + 1 };
                Err(Mistake::new(at, error.info().to_owned()))
            }
            None => Err(Mistake::new(Place::default(), "the file ends too early")),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, Mistake> {
        let at = place(span);
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            return Err(Mistake::new(at, "the file is too large or too deep"));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, _, anchor, _) => (Value::Scalar(text.into_owned()), anchor),
            Event::SequenceStart(anchor, _) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break (Value::List(items), anchor),
                        (event, span) => items.push(self.node(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(anchor, _) => {
                let mut entries = Vec::new();
                loop {
                    let (event, span) = self.next()?;
                    if event == Event::MappingEnd {
                        break (Value::Map(entries), anchor);
                    }
                    let key = self.node(event, span, depth + 1)?;
                    let (event, span) = self.next()?;
                    entries.push((key, self.node(event, span, depth + 1)?));
                }
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err(Mistake::new(at, "the alias has no anchor"));
                };
                self.nodes += size(&node);
                (node.value, 0)
            }
            _ => return Err(Mistake::new(at, "expected a value")),
        };
        let node = Node { at, value };
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }
}

fn size(node: &Node) -> usize {
    1 + match &node.value {
        Value::Scalar(_) => 0,
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(entries) => entries.iter().map(|(key, value)| size(key) + size(value)).sum(),
    }
}

fn place(span: Span) -> Place {
    Place { line: span.start.line(), column: span.start.col() + 1 }
}
