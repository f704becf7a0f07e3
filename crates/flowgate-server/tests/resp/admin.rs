//! Who may ban: the user `admin`, where `auth.admin_token` is set.

use super::commands::check;
use super::*;

fn with_admin(mut config: Config) -> Running {
    config.auth.admin_token = Some(Secret::new("t0ken"));
    Running::start(config, "")
}

#[test]
fn bans_need_the_admin_token_where_one_is_set() {
    let server = with_admin(config(""));
    let script = "
        FG.BAN user 42 60               -> -NOPERM 'fg.ban' needs the admin token: AUTH admin TOKEN
        FG.UNBAN user 42                -> -NOPERM 'fg.unban' needs the admin token: AUTH admin TOKEN
        FG.TAKE 1 user 42               -> [1 -1 -1 -1 0 0 allow '']
        AUTH t0ken                      -> -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
        AUTH admin t0ke                 -> -WRONGPASS invalid username-password pair or user is disabled.
        AUTH admin t0ken1               -> -WRONGPASS invalid username-password pair or user is disabled.
        FG.BAN user 42 60               -> -NOPERM 'fg.ban' needs the admin token: AUTH admin TOKEN
        AUTH admin t0ken                -> OK
        FG.BAN user 42 60               -> OK
        AUTH admin wrong                -> -WRONGPASS invalid username-password pair or user is disabled.
        FG.UNBAN user 42                -> 1
        AUTH default anything           -> OK
        FG.UNBAN user 42                -> -NOPERM 'fg.unban' needs the admin token: AUTH admin TOKEN
        AUTH admin t0ken                -> OK
        RESET                           -> RESET
        FG.UNBAN user 42                -> -NOPERM 'fg.unban' needs the admin token: AUTH admin TOKEN";
    check(&server, &mut server.connect(), script);
    let mut client = server.connect();
    assert!(client.call("HELLO 3 AUTH admin t0ken").contains("proto 3"));
    assert_eq!(client.call("FG.BAN user 42 60"), "OK");
}

#[test]
fn the_admin_token_opens_a_listener_with_a_password() {
    let server = with_admin(locked());
    let script = "
        FG.BAN user 42 60               -> -NOAUTH Authentication required.
        AUTH sesame                     -> OK
        FG.BAN user 42 60               -> -NOPERM 'fg.ban' needs the admin token: AUTH admin TOKEN
        AUTH admin t0ken                -> OK
        FG.BAN user 42 60               -> OK
        PING                            -> PONG
        RESET                           -> RESET
        PING                            -> -NOAUTH Authentication required.
        AUTH admin t0ken                -> OK
        PING                            -> PONG";
    check(&server, &mut server.connect(), script);
}

#[test]
fn a_transaction_bans_only_as_admin() {
    let server = with_admin(config(""));
    let script = "
        MULTI                           -> OK
        AUTH admin t0ken                -> QUEUED
        FG.BAN user 42 60               -> -NOPERM 'fg.ban' needs the admin token: AUTH admin TOKEN
        EXEC                            -> -EXECABORT Transaction discarded because of previous errors.
        AUTH admin t0ken                -> OK
        MULTI                           -> OK
        FG.BAN user 42 60               -> QUEUED
        AUTH default x                  -> QUEUED
        FG.UNBAN user 42                -> QUEUED
        EXEC                            -> [OK OK -NOPERM 'fg.unban' needs the admin token: AUTH admin TOKEN]";
    check(&server, &mut server.connect(), script);
}

#[test]
fn without_an_admin_token_every_client_may_ban() {
    let server = Running::start(locked(), "");
    let script = "
        FG.BAN user 42 60               -> -NOAUTH Authentication required.
        AUTH admin sesame               -> -WRONGPASS invalid username-password pair or user is disabled.
        AUTH sesame                     -> OK
        FG.BAN user 42 60               -> OK
        FG.UNBAN user 42                -> 1";
    check(&server, &mut server.connect(), script);
}

#[test]
fn the_token_that_the_server_made_is_the_password_of_admin() {
    let server = Running::serve(locked(), |server| server.set_admin_token(Secret::new("m4de")));
    let script = "
        AUTH admin sesame               -> -WRONGPASS invalid username-password pair or user is disabled.
        AUTH admin m4de                 -> OK
        FG.BAN user 42 60               -> OK
        AUTH sesame                     -> OK
        FG.UNBAN user 42                -> 1";
    check(&server, &mut server.connect(), script);
}
