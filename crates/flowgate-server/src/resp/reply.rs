//! Replies to bytes: the answer side of the Redis protocol.

use super::decode::ProtocolError;

/// A client's own words are repeated to it up to this many bytes, as Redis does.
const MAX_ECHO: usize = 128;

/// What a command answers.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    Simple(&'static str),
    Bulk(&'a [u8]),
    UnknownCommand {
        name: &'a [u8],
    },
    WrongArity {
        command: &'static str,
    },
    /// The last reply of a connection.
    Protocol(ProtocolError),
}

impl Reply<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Simple(text) => line(out, &["+", text]),
            Self::Bulk(bytes) => {
                line(out, &["$", &bytes.len().to_string()]);
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Self::UnknownCommand { name } => {
                // Escaped, a name cannot hold a line break that would pass for a reply of ours.
                let name = &name[..name.len().min(MAX_ECHO)];
                line(out, &["-ERR unknown command '", &name.escape_ascii().to_string(), "'"]);
            }
            Self::WrongArity { command } => {
                line(out, &["-ERR wrong number of arguments for '", command, "' command"]);
            }
            Self::Protocol(error) => line(out, &["-ERR Protocol error: ", &error.to_string()]),
        }
    }
}

fn line(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reply: &Reply<'_>, expected: &str) {
        let mut out = Vec::new();
        reply.write(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn replies() {
        check(&Reply::Simple("PONG"), "+PONG\r\n");
        check(&Reply::Bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n");
        check(&Reply::WrongArity { command: "ping" }, "-ERR wrong number of arguments for 'ping' command\r\n");
        check(&Reply::Protocol(ProtocolError::BulkLength), "-ERR Protocol error: invalid bulk length\r\n");
    }

    #[test]
    fn a_command_name_cannot_forge_a_reply() {
        check(&Reply::UnknownCommand { name: b"x\r\n+OK" }, "-ERR unknown command 'x\\r\\n+OK'\r\n");
        let name = [b'a'; 1000];
        check(&Reply::UnknownCommand { name: &name }, &format!("-ERR unknown command '{}'\r\n", "a".repeat(128)));
    }
}
