//! The control token, and where it comes from.

use std::path::PathBuf;
use std::sync::Mutex;

use serde::Deserialize;

use crate::errors::Error;
use crate::lock;

pub(crate) struct Tokens {
    current: Mutex<String>,
    file: Option<PathBuf>,
}

impl Tokens {
    pub(crate) fn fixed(token: String) -> Result<Tokens, Error> {
        check(&token)?;
        Ok(Tokens { current: Mutex::new(token), file: None })
    }

    pub(crate) fn in_file(file: PathBuf) -> Result<Tokens, Error> {
        let token = std::fs::read_to_string(&file).map_err(|e| Error::Usage(format!("the token file {}: {e}", file.display())))?;
        let mut tokens = Tokens::fixed(token.trim().to_string())?;
        tokens.file = Some(file);
        Ok(tokens)
    }

    pub(crate) fn current(&self) -> String {
        lock(&self.current).clone()
    }

    /// Reads the file again; whether it has another token than the refused one.
    pub(crate) fn reread(&self, refused: &str) -> bool {
        let read = self.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
        let mut current = lock(&self.current);
        if let Some(token) = read.map(|token| token.trim().to_string()).filter(|token| !token.is_empty()) {
            *current = token;
        }
        *current != refused
    }
}

/// Refuses a token that is for callbacks only.
fn check(token: &str) -> Result<(), Error> {
    if token.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Error::Usage("the token contains a space or a control character: is it cut or quoted?".into()));
    }
    #[derive(Deserialize)]
    struct Claims {
        knd: String,
    }
    let payload = token.split('.').nth(1).and_then(decode);
    match payload.and_then(|json| serde_json::from_slice::<Claims>(&json).ok()) {
        Some(claims) if claims.knd == "task" || claims.knd == "worker" => Err(Error::Usage(format!(
            "this is the token of a {}, which is for callbacks; create a control token: lubdub token --role enroll",
            claims.knd
        ))),
        _ => Ok(()),
    }
}

/// Decodes base64url; None if it is something else.
fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bits, mut count, mut bytes) = (0u32, 0, Vec::new());
    for c in text.trim_end_matches('=').bytes() {
        let value = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".iter().position(|&known| known == c)?;
        bits = bits << 6 | value as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_tasks_and_workers_are_refused() {
        // {"knd":"task","sub":"t1"} and {"knd":"control"}
        for (token, refused) in
            [("h.eyJrbmQiOiJ0YXNrIiwic3ViIjoidDEifQ.s", true), ("h.eyJrbmQiOiJjb250cm9sIn0.s", false), ("opaque", false)]
        {
            let checked = Tokens::fixed(token.into());
            assert_eq!(checked.is_err(), refused, "{token}");
            assert!(!checked.err().map(|e| e.to_string()).unwrap_or_default().contains(token));
        }
    }

    #[test]
    fn a_token_file_is_read_again() {
        let path = std::env::temp_dir().join(format!("lubdub-{}", crate::random::id()));
        std::fs::write(&path, "one\n").unwrap();
        let tokens = Tokens::in_file(path.clone()).unwrap();
        assert_eq!((tokens.current().as_str(), tokens.reread("one")), ("one", false));
        std::fs::write(&path, "two\n").unwrap();
        assert_eq!((tokens.reread("one"), tokens.current().as_str()), (true, "two"));
        std::fs::remove_file(path).unwrap();
    }
}
