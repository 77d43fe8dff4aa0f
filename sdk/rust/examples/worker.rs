//! A worker that counts words, and the tasks that it gets. It needs a server, as `lubdub dev` starts one, and LUBDUB_URL and LUBDUB_TOKEN
//! with a token of the role admin, since it both works and creates tasks:
//!
//! ```sh
//! cargo run --example worker -- "some words" "and more words"
//! ```

use std::time::Duration;

use lubdub::{Error, NewTask, Task, Worker};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Text {
    text: String,
}

/// Counts one word a tenth of a second, and continues where an earlier attempt ended.
fn count(task: &Task) -> Result<usize, lubdub::Failure> {
    let text: Text = task.payload()?;
    let words: Vec<&str> = text.text.split_whitespace().collect();
    if words.is_empty() {
        return Err(lubdub::permanent("there are no words"));
    }
    for done in task.last_checkpoint()?.unwrap_or(0)..words.len() {
        task.wait(Duration::from_millis(100))?; // fails when the work must end
        task.progress(100.0 * (done + 1) as f64 / words.len() as f64, words[done])?;
        task.checkpoint(&(done + 1))?;
    }
    println!("{}: {} words", task.id(), words.len());
    Ok(words.len())
}

fn main() -> Result<(), Error> {
    let worker = Worker::builder("texts").concurrency(4).handle("count", count).build()?;
    let tasks = std::env::args().skip(1).map(|text| NewTask::new("texts", "count", &Text { text })).collect::<Result<Vec<_>, _>>()?;
    for created in worker.client().create_tasks(&tasks) {
        println!("{}: created", created?.task_id);
    }
    worker.run_until_signal() // Ctrl-C stops it
}
