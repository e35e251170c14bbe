//! Tests in Rust against a broker of their own: cargo test

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

/// A broker, which ends with its value, and with this process.
struct Broker {
    process: Child,
    ready: String,
}

impl Broker {
    fn start(name: &str) -> Broker {
        let file = std::env::temp_dir().join(format!("barnabas-{}-{name}.json", std::process::id()));
        let command = std::env::var("BARNABAS").unwrap_or("barnabas".into());
        let process = Command::new(command)
            .args(["serve", "--dev", "--port", "0", "--ready-file", file.to_str().unwrap()])
            .args(["--parent-pid", &std::process::id().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("barnabas is not installed");
        while !file.exists() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let ready = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        Broker { process, ready }
    }

    /// Asks the admin API; an HTTP library does it better.
    fn admin(&self, method: &str, path: &str, body: &str) -> String {
        let address = field(&self.ready, "admin").replace("http://", "");
        let mut stream = TcpStream::connect(&address).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, told) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 2"), "{told}");
        told.to_string()
    }

    async fn publish(&self, value: &str) {
        let servers = vec![field(&self.ready, "bootstrap_servers")];
        let client = ClientBuilder::new(servers).client_id("shop").build().await.unwrap();
        let orders = client.partition_client("orders", 0, UnknownTopicHandling::Retry).await.unwrap();
        let record = Record {
            key: Some(b"ann".to_vec()),
            value: Some(value.as_bytes().to_vec()),
            headers: BTreeMap::new(),
            timestamp: chrono::Utc::now(),
        };
        orders.produce(vec![record], Compression::NoCompression).await.unwrap();
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Returns the first value of a field in JSON; a JSON library does it better.
fn field(json: &str, name: &str) -> String {
    let rest = json.split(&format!("\"{name}\":")).nth(1).unwrap();
    let end = rest.find([',', '}']).unwrap();
    rest[..end].trim().trim_matches('"').to_string()
}

#[tokio::test]
async fn an_order_survives_a_leader_that_moves() {
    let broker = Broker::start("moves");
    broker.admin("POST", "/topics", r#"{"name": "orders"}"#);
    let rule = r#"{"api": "Produce", "nth": 1, "error": "NOT_LEADER_OR_FOLLOWER"}"#;
    let rule = broker.admin("POST", "/faults", rule);
    broker.publish("tea").await;
    let path = format!("/faults/{}", field(&rule, "id"));
    assert_eq!(field(&broker.admin("GET", &path, ""), "hits"), "1");
    assert_eq!(field(&broker.admin("GET", "/topics/orders/records", ""), "value"), "tea");
}

#[tokio::test]
async fn orders_are_kept_for_an_hour() {
    let broker = Broker::start("hour");
    broker.admin("POST", "/topics", r#"{"name": "orders", "configs": {"retention.ms": 3600000}}"#);
    broker.publish("tea").await;
    broker.admin("POST", "/clock/advance", r#"{"hours": 7}"#);
    assert_eq!(broker.admin("GET", "/topics/orders/records", ""), "[]");
}
