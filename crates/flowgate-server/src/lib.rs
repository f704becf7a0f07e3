//! Flowgate as a server.
