//! The links to one server: one for each runtime that asks it.
//!
//! A link lives on the runtime of its users, so nothing crosses threads between a request, its reply and the
//! socket. Each event loop has a runtime, so there is one connection for each event loop.

use std::sync::Arc;

use tokio::runtime::{self, Handle};

use super::link::{Failure, Link};
use super::node::Node;
use crate::lock::Lock;

/// The links to a server.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) node: Arc<Node>,
    links: Lock<Vec<(runtime::Id, Arc<Link>)>>,
}

impl Pool {
    pub(crate) fn new(node: Node) -> Pool {
        Pool { node: Arc::new(node), links: Lock::default() }
    }

    /// The link of the runtime that we are on.
    ///
    /// # Errors
    /// If the breaker of the server is open, or the caller is not on a runtime, which must await the reply.
    pub(crate) fn link(&self) -> Result<Arc<Link>, Failure> {
        if self.node.is_open() {
            return Err(Failure::Down);
        }
        self.link_even_if_open()
    }

    /// While the breaker is open, lets every link check whether to send a probe. The link that saw the failure may have
    /// no connection.
    pub(crate) fn wake(&self) {
        if self.node.is_open() {
            let links = self.links.lock();
            links.iter().for_each(|(_, link)| link.wake());
        }
    }

    /// As [`Pool::link`], also while the breaker is open: a link that connects shows that the server is back.
    pub(crate) fn link_even_if_open(&self) -> Result<Arc<Link>, Failure> {
        let runtime = Handle::try_current().map_err(|_| Failure::Down)?;
        let id = runtime.id();
        // A panic may lose an entry of the list, but never leaves half of one.
        let mut links = self.links.lock();
        if let Some((_, link)) = links.iter().find(|(of, _)| *of == id) {
            return Ok(Arc::clone(link));
        }
        // Links of runtimes that have ended are dropped: they cannot send.
        links.retain(|(_, link)| !link.has_ended());
        let link = Arc::new(Link::start(Arc::clone(&self.node), &runtime));
        links.push((id, Arc::clone(&link)));
        Ok(link)
    }
}
