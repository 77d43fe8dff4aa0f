//! The identity under which this process registers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::lock;

/// Queues, machines and names of the running workers of this process.
static TAKEN: Mutex<Vec<Identity>> = Mutex::new(Vec::new());

type Identity = (String, String, String);

/// How many characters a name may have.
const LONGEST_NAME: usize = 128;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The labels that the environment describes.
pub(crate) fn labels_found() -> BTreeMap<String, String> {
    let known =
        [("pod", "POD_NAME"), ("namespace", "POD_NAMESPACE"), ("node", "NODE_NAME"), ("zone", "ZONE"), ("deployment", "DEPLOYMENT")];
    known.into_iter().filter_map(|(label, name)| Some((label.to_string(), setting(name)?))).collect()
}

/// The language, and the language with its version.
pub(crate) fn runtimes_found() -> Vec<String> {
    vec!["rust".into(), concat!("rust", env!("LUBDUB_RUST_VERSION")).into()]
}

/// The host's name; empty if it is unknown.
pub(crate) fn hostname() -> String {
    let mut name = [0u8; 256];
    // Safe: the buffer is as long as stated. A name that fills it has no zero at its end, and is cut.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len()) } != 0 {
        return String::new();
    }
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// The machine: NODE_NAME, or else the host's name.
pub(crate) fn machine_found() -> String {
    as_id(&setting("NODE_NAME").unwrap_or_else(hostname))
}

/// Turns a host's name into an id.
fn as_id(name: &str) -> String {
    let allowed: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    allowed.trim_start_matches(['.', '_', '-']).chars().take(LONGEST_NAME).collect()
}

/// POD_NAME, or else the program's name. Neighbours in other containers may also be process 1: then the container's id is added.
pub(crate) fn name_found() -> String {
    let program = || {
        let path = std::env::current_exe().ok();
        let name = path.as_ref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| "rust".into());
        match (std::process::id(), std::fs::read_to_string("/proc/self/mountinfo")) {
            (1, Ok(mounts)) => container(&mounts).map_or(name.clone(), |id| format!("{name}-{id}")),
            _ => name,
        }
    };
    setting("POD_NAME").unwrap_or_else(program).chars().take(LONGEST_NAME).collect()
}

/// The first twelve digits of the container's id: the first 64 hexadecimal digits in the list of its mounts.
fn container(mounts: &str) -> Option<&str> {
    let digits = mounts.split(|c: char| !matches!(c, '0'..='9' | 'a'..='f'));
    digits.filter(|digits| digits.len() == 64).map(|digits| &digits[..12]).next()
}

/// A name that this process's other workers do not have; it is free again when this is dropped.
pub(crate) struct Name(Identity);

impl Name {
    /// The wanted name, with a number from 2 on if another worker of the same queue and machine has it: two of one name replace each other.
    pub(crate) fn take(queue: &str, machine: &str, wanted: &str) -> Name {
        let mut taken = lock(&TAKEN);
        let mut number = 1;
        loop {
            let suffix = if number == 1 { String::new() } else { format!("-{number}") };
            let short: String = wanted.chars().take(LONGEST_NAME - suffix.len()).collect();
            let identity = (queue.to_string(), machine.to_string(), short + &suffix);
            if !taken.contains(&identity) {
                taken.push(identity.clone());
                return Name(identity);
            }
            number += 1;
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0 .2
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        lock(&TAKEN).retain(|identity| *identity != self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids() {
        assert_eq!(as_id("-my host.local"), "my-host.local");
        let id = "0123456789ab".to_string() + &"c".repeat(52);
        assert_eq!(container(&format!("1 2 /docker/containers/{id}/hostname /etc/hostname")), Some("0123456789ab"));
        assert_eq!(container("1 2 / / rw"), None);
        assert_eq!(runtimes_found()[0], "rust");
        assert!(runtimes_found()[1].starts_with("rust1."), "{:?}", runtimes_found());
    }

    #[test]
    fn a_name_is_free_again_after_its_worker() {
        let one = Name::take("names", "m", "w");
        let two = Name::take("names", "m", "w");
        assert_eq!((one.as_str(), two.as_str()), ("w", "w-2"));
        drop(one);
        assert_eq!(Name::take("names", "m", "w").as_str(), "w");
        assert_eq!(Name::take("other", "m", "w").as_str(), "w");
    }
}
