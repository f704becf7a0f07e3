//! Tables of routes: a macro that makes the function which answers by a table.

use hyper::Method;

use super::auth::Access;

/// Makes `answer` of a table: each path with the right that it needs and what answers its methods. The last row answers
/// all other paths. `GET` includes `HEAD`, and `ANY` is every method. For tests, `ROUTES` has the methods and the path
/// of each row.
macro_rules! routes {
    ($call:ident, $body:ident: $($path:literal $access:ident { $($method:ident => $answer:expr),+ })+ _ => $other:expr) => {
        /// Finds the route, lets the request in, answers it.
        pub(crate) async fn answer($call: &Call<'_>, $body: Body<'_>) -> Result<Reply, Error> {
            $(if const { route_table::RoutePath::new($path) }.matches($call.head.path) {
                // Checked before the method: a caller without the right learns nothing about the endpoint.
                $call.check_access(route_table::access_for(Access::$access, $call.head.method))?;
                return match *$call.head.method {
                    $(route_table::method!($method) => $answer,)+
                    #[allow(unreachable_patterns, reason = "a row of ANY leaves no other method")]
                    _ => Err(Error::Method(route_table::names!($($method)+))),
                };
            })+
            $other
        }

        #[cfg(test)]
        pub(crate) const ROUTES: &[(&str, &str)] = &[$((route_table::names!($($method)+), $path)),+];
    };
}

/// The pattern of a method.
macro_rules! method {
    (GET) => {
        Method::GET | Method::HEAD
    };
    (ANY) => {
        _
    };
    ($method:ident) => {
        Method::$method
    };
}

/// The names of methods, as the header `allow` lists them.
macro_rules! names {
    (GET) => { "GET, HEAD" };
    (ANY) => { "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE" };
    ($method:ident) => { stringify!($method) };
    ($first:ident $($other:ident)+) => { concat!(route_table::names!($first), ", ", route_table::names!($($other)+)) };
}

pub(crate) use {method, names, routes};

/// A path. If it ends in `{..}`, it matches any last segment.
pub(crate) struct RoutePath {
    path: &'static str,
    /// The bytes of the path before `{..}`.
    prefix_bytes: Option<usize>,
}

impl RoutePath {
    pub(crate) const fn new(path: &'static str) -> RoutePath {
        let (bytes, mut at) = (path.as_bytes(), 0);
        while at < bytes.len() && bytes[at] != b'{' {
            at += 1;
        }
        let prefix_bytes = if at < bytes.len() { Some(at) } else { None };
        RoutePath { path, prefix_bytes }
    }

    #[inline]
    pub(crate) fn matches(&self, path: &str) -> bool {
        match self.prefix_bytes {
            None => path == self.path,
            Some(bytes) => {
                let last = path.strip_prefix(&self.path[..bytes]);
                last.is_some_and(|last| !last.is_empty() && !last.contains('/'))
            }
        }
    }
}

/// The right that a method needs: reading needs less than a change.
pub(crate) fn access_for(access: Access, method: &Method) -> Access {
    match (access, method) {
        (Access::Admin, &Method::GET | &Method::HEAD) => Access::Read,
        (access, _) => access,
    }
}
