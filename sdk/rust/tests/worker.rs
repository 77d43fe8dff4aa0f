//! A worker against a server that this test plays: what the conformance cases do not show.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lubdub::{Client, Worker};
use serde_json::{json, Value};

/// How long an event may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// A request that the server has answered: the last part of its path, and its body.
type Request = (String, Value);

/// Answers what the function says, one connection at a time in each thread, and reports the requests.
fn serve(answer: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static) -> (String, Receiver<Request>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = channel();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let (sender, answer) = (sender.clone(), answer.clone());
            std::thread::spawn(move || converse(connection.unwrap(), answer.as_ref(), &sender));
        }
    });
    (url, requests)
}

fn converse(mut connection: TcpStream, answer: &dyn Fn(&str, &Value) -> (u16, Value), requests: &Sender<Request>) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    loop {
        let mut first = String::new();
        reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if header.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let call = first.split(' ').nth(1)?.rsplit('/').next()?.to_string();
        let body: Value = serde_json::from_slice(&body).ok()?;
        let (status, answer) = answer(&call, &body);
        let _ = requests.send((call, body)); // the test may have ended
        let answer = answer.to_string();
        write!(connection, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{answer}", answer.len()).ok()?;
    }
}

/// Waits for the next request of a kind that the function accepts.
fn until(requests: &Receiver<Request>, call: &str, accept: impl Fn(&Value) -> bool) -> Value {
    loop {
        let (name, body) = requests.recv_timeout(LONG).unwrap_or_else(|_| panic!("{call} comes"));
        if name == call && accept(&body) {
            return body;
        }
    }
}

#[test]
fn tasks_with_their_own_timeout_get_their_own_heartbeats() {
    // The worker beats every minute; its task a wants heartbeats much more often. The completion of b is not answered until the end, so that
    // the inventory may omit it once, and then only heartbeats without tasks follow: a needs requests for itself.
    let claimed = Mutex::new(false);
    let completes = Arc::new(Mutex::new(false));
    let may_complete = completes.clone();
    let (url, requests) = serve(move |call, body| match call {
        "workers" => {
            let interval = 60_000;
            (
                201,
                json!({"workerId": "w1", "workerToken": "wt", "machineId": "m", "tokenExpiresAt": "2100-01-01T00:00:00Z",
                "heartbeatIntervalMs": interval, "heartbeatTimeoutMs": 3 * interval}),
            )
        }
        "claim" if !std::mem::replace(&mut *claimed.lock().unwrap(), true) => {
            let task = |id: &str, timeout: Value| {
                json!({"taskId": id, "attempt": 1, "type": "t", "state": "RUNNING", "taskToken": format!("{id}-token"),
                "callbackBaseUrl": "", "heartbeatIntervalMs": 100, "heartbeatTimeoutMs": timeout, "tokenExpiresAt": "2100-01-01T00:00:00Z"})
            };
            (200, json!({"tasks": [task("a", 10_000.into()), task("b", Value::Null)]}))
        }
        "claim" => (200, json!({"tasks": []})),
        "heartbeat" => (
            200,
            json!({"accepted": true, "cancelTasks": [], "lostTasks": [], "serverTime": "", "shouldDrain": false,
            "heartbeatIntervalMs": 60_000, "heartbeatTimeoutMs": 180_000}),
        ),
        "heartbeats" => {
            let results: Vec<Value> = body["heartbeats"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| json!({"taskId": item["taskId"], "status": 200, "nextHeartbeatMs": 100, "shouldCancel": false}))
                .collect();
            (200, json!({ "results": results }))
        }
        "completed" if *may_complete.lock().unwrap() => (200, json!({"acknowledged": true, "finalState": "SUCCEEDED"})),
        "completed" => (503, json!({"error": "unavailable"})),
        _ => (200, json!({})),
    });
    let client = Client::builder().url(&url).token("t").logger(|_, _| {}).build().unwrap();
    let (release, released) = channel::<()>();
    let released = Mutex::new(released);
    let worker = Worker::builder("q")
        .client(&client)
        .name("own-timeouts")
        .probe("127.0.0.1:0")
        .handle("t", move |task| {
            if task.id() == "a" {
                let _ = released.lock().unwrap().recv(); // until the test has ended
            }
            Ok(task.id().to_string())
        })
        .build()
        .unwrap();
    let run = {
        let worker = worker.clone();
        std::thread::spawn(move || worker.run())
    };

    let registration = until(&requests, "workers", |_| true);
    assert_eq!(registration["types"], json!(["t"]));
    assert_eq!(probe(registration["probeUrl"].as_str().unwrap()), "HTTP/1.1 200 OK");
    let names = |body: &Value| body["tasks"].as_array().map(|tasks| tasks.iter().any(|task| task["taskId"] == "a"));
    assert_eq!(names(&until(&requests, "heartbeat", |body| body["tasks"].is_array())), Some(true), "it beats early, and lists a");
    until(&requests, "heartbeat", |body| body["tasks"].is_null());
    for _ in 0..3 {
        let alone = until(&requests, "heartbeats", |_| true);
        assert_eq!(alone["heartbeats"], json!([{"taskId": "a", "attempt": 1, "taskToken": "a-token"}]));
    }
    *completes.lock().unwrap() = true;
    until(&requests, "heartbeat", |body| body["completedDelta"] == 1);
    assert_eq!(names(&until(&requests, "heartbeat", |body| body["tasks"].is_array())), Some(true), "inventories again");
    release.send(()).unwrap();
    worker.close();
    until(&requests, "deregister", |_| true);
    assert_eq!(run.join().unwrap(), Ok(()));
}

/// The first line of the answer.
fn probe(url: &str) -> String {
    let address = url.strip_prefix("http://").unwrap().trim_end_matches('/');
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut line = String::new();
    BufReader::new(connection).read_line(&mut line).unwrap();
    line.trim().to_string()
}
