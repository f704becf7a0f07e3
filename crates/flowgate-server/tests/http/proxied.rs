//! Clients behind a plain `proxy_pass` on the same machine are not administrators.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};

use flowgate_testkit::port::Port;
use flowgate_testkit::wait::until_listening;
use tempfile::TempDir;

use super::gateways::nginx;
use super::*;

/// What a proxy may say of whom a request is for: what it does by itself, what the client says, nothing.
const HOSTS: [&str; 3] = ["", "proxy_set_header Host $http_host;", "proxy_set_header Host \"\";"];

struct Proxy {
    port: Port,
    child: Child,
}

impl Proxy {
    /// Nginx that passes everything on, by each of [`HOSTS`] under a path of its own.
    fn start(directory: &Path, upstream: &str) -> Proxy {
        let port = Port::claim();
        let location = |(index, host)| format!("location /{index}/ {{ {host} proxy_pass {upstream}/; }}\n");
        let locations: String = HOSTS.into_iter().enumerate().map(location).collect();
        let server = format!("server {{ listen {};\n{locations} }}\n", port.address());
        fs::write(directory.join("nginx.conf"), server).unwrap();
        let child = nginx(directory).stdout(Stdio::null()).spawn().unwrap();
        let mut proxy = Proxy { port, child };
        until_listening(&mut proxy.child, proxy.port.address());
        proxy
    }

    /// Expects that a client without the token cannot administer through it, and that decisions still pass.
    fn check(&self) {
        for (index, host) in HOSTS.iter().enumerate() {
            let call = |method: &str, path: &str, token: &str| {
                let mut client = http::Client::connect(self.port.address());
                let headers = [("authorization", token), ("content-type", "application/json"), ("connection", "close")];
                let body = if method == "POST" { r#"{"fields":{}}"# } else { "" };
                client.call(method, &format!("/{index}{path}"), &headers, body).status
            };
            for path in ["/v1/rules", "/v1/bans", "/v1/stats"] {
                assert_eq!(call("GET", path, ""), 401, "{path} {host}");
            }
            assert_eq!(call("GET", "/v1/bans", &format!("Bearer {ADMIN_TOKEN}")), 200, "{host}");
            assert_eq!(call("POST", "/v1/take", ""), 200, "{host}");
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_of_nginx_over_tcp_are_no_administrators() {
    let directory = TempDir::new().unwrap();
    let server = Running::start("");
    Proxy::start(directory.path(), &format!("http://{}", server.address)).check();
}

#[cfg(unix)]
#[test]
fn clients_of_nginx_over_a_unix_socket_are_no_administrators() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("http.sock").display().to_string();
    let toml =
        format!("listen = {{ http = 'unix:{socket}', resp = '127.0.0.1:0' }}\nauth.admin_token = '{ADMIN_TOKEN}'");
    let _server = Running::serve(Config::from_toml(&toml).unwrap(), |_| {});
    Proxy::start(directory.path(), &format!("http://unix:{socket}:")).check();
}
