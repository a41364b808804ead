//! Why no connection could be made, with what to do about it.

use tokio_postgres::{Config, Error};

use super::fault::{self, PostgresFault};

/// What to do if no host answers.
const CHECK_ADDRESS: &str = "check host and port of the URL, and that the server runs and accepts connections there";

/// No host answered, neither with yes nor with no.
pub(super) fn silent() -> PostgresFault {
    PostgresFault::away(format!("no host answered in time; {CHECK_ADDRESS}"))
}

/// A connection that was not made. A server that refuses a session is away for this node, with any code.
pub(super) fn of_connection(error: &Error, config: &Config) -> PostgresFault {
    let words = fault::in_words(error);
    let words = match remedy(error, &words, config) {
        Some(remedy) => format!("{words}; {remedy}"),
        None => words,
    };
    if was_answered(error) { PostgresFault::Refused(words.into()) } else { PostgresFault::away(words) }
}

/// Whether the server said anything before the connection failed. The driver names the step in its message alone.
fn was_answered(error: &Error) -> bool {
    let message = error.to_string();
    let before = ["error connecting to server", "error communicating with the server", "connection closed", "timeout"];
    !before.iter().any(|step| message.starts_with(step))
}

fn remedy(error: &Error, words: &str, config: &Config) -> Option<String> {
    if let Some(answer) = error.as_db_error() {
        let role = config.get_user().unwrap_or("the role");
        let database = config.get_dbname().unwrap_or(role);
        return Some(match answer.code().code() {
            "28P01" => format!("set the password of role {role} by store.password_env or store.password_file"),
            "28000" => format!("check that role {role} may log in, and the lines of the server's pg_hba.conf for it"),
            "3D000" => format!("run CREATE DATABASE \"{database}\" ENCODING 'UTF8' TEMPLATE template0, or correct the URL"),
            "42501" => format!("run GRANT CONNECT ON DATABASE \"{database}\" TO \"{role}\""),
            "53300" => "raise max_connections of the server, or lower store.readers".to_owned(),
            "57P03" => "the server is starting or stopping; try again".to_owned(),
            _ => return None,
        });
    }
    let has = |part: &str| words.contains(part);
    Some(if has("password missing") {
        "the server asks for a password: set store.password_env or store.password_file".to_owned()
    } else if has("does not support TLS") {
        "turn on ssl at the server, or set store.ssl_mode to \"disable\" if the network is trusted".to_owned()
    } else if has("TLS") {
        "check store.ssl_mode, and that store.ca_file has the authority of the server's certificate".to_owned()
    } else if has("does not allow writes") {
        "no host of the URL accepts writes: add the host of the primary server".to_owned()
    } else if !was_answered(error) {
        CHECK_ADDRESS.to_owned()
    } else {
        return None;
    })
}
