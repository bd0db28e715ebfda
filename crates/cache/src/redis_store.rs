//! Entries in a Redis server, through the crate `redis`.
//!
//! An entry is a string whose key is the store's prefix and the entry's name. Settings of the server bound
//! its memory and choose the entries to evict: `maxmemory` and `maxmemory-policy allkeys-lru`.
//!
//! Each request has its own connection from a pool of open ones, so threads do not wait for each other. A
//! failed connection is dropped. Connecting, sending and waiting for an answer each have a time limit, so a
//! dead or silent server costs that time, and only a few times (`breaker.rs`).
//!
//! A claim is a key with a random value, which expires after [`CLAIMED`]; its owner removes it, unless it has expired and another one has it. So the machines of a fleet
//! wait for each other.
//!
//! Cost: one round trip per request, and one or two for a connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::{Client, Connection, FromRedisValue, RedisResult};

use crate::key::nonce;
use crate::store::{CacheStore, Claim, EntryName, StoreError};

/// The maximum number of idle connections; further ones are closed after use.
const IDLE: usize = 16;

/// How long a claim lasts whose owner has vanished.
const CLAIMED: Duration = Duration::from_secs(10);
/// Removes a claim with this value.
const RELEASE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

/// See the file's header.
pub struct RedisStore {
    server: Arc<Server>,
}

struct Server {
    client: Client,
    /// The server's address without the password.
    address: String,
    prefix: String,
    timeout: Duration,
    idle: Mutex<Vec<Connection>>,
}

impl RedisStore {
    /// The entries of a server: `redis://host:port/database`, or `redis+unix:///path`. Their keys begin with
    /// `prefix`. The constructor does not connect.
    ///
    /// # Errors
    /// The address is malformed.
    pub fn new(url: &str, prefix: &str, timeout: Duration) -> Result<RedisStore, StoreError> {
        let client = Client::open(url).map_err(|error| StoreError::new("redis", error))?;
        let address = format!("redis {}", client.get_connection_info().addr());
        // The system treats zero as no limit.
        let timeout = timeout.max(Duration::from_millis(1));
        let server = Server { client, address, prefix: prefix.to_owned(), timeout, idle: Mutex::default() };
        Ok(RedisStore { server: Arc::new(server) })
    }
}

impl Server {
    fn describe(&self) -> String {
        self.address.clone()
    }

    fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(self.timeout)?;
        connection.set_read_timeout(Some(self.timeout))?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T: FromRedisValue>(&self, command: &redis::Cmd) -> Result<T, StoreError> {
        let failed = |error: redis::RedisError| StoreError::new(self.describe(), error);
        let kept = self.idle().pop();
        let was_kept = kept.is_some();
        let mut connection = kept.map_or_else(|| self.connect(), Ok).map_err(failed)?;
        let mut answer = command.query(&mut connection);
        if was_kept && answer.as_ref().is_err_and(|error: &redis::RedisError| error.is_connection_dropped()) {
            // The server has closed it since it was used; the other idle connections are as old.
            self.idle().clear();
            connection = self.connect().map_err(failed)?;
            answer = command.query(&mut connection);
        }
        let answer = answer.map_err(failed)?;
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(connection);
        }
        Ok(answer)
    }

    fn key(&self, name: &EntryName) -> String {
        format!("{}{name}", self.prefix)
    }
}

impl CacheStore for RedisStore {
    fn describe(&self) -> String {
        self.server.describe()
    }

    fn get(&self, name: &EntryName) -> Result<Option<Vec<u8>>, StoreError> {
        self.server.ask(redis::cmd("GET").arg(self.server.key(name)))
    }

    fn put(&self, name: &EntryName, entry: &[u8]) -> Result<(), StoreError> {
        self.server.ask(redis::cmd("SET").arg(self.server.key(name)).arg(entry))
    }

    fn append(&self, name: &EntryName, more: &[u8]) -> Result<(), StoreError> {
        let length: Result<u64, StoreError> =
            self.server.ask(redis::cmd("APPEND").arg(self.server.key(name)).arg(more));
        length.map(drop)
    }

    fn claim(&self, name: &EntryName) -> Result<Option<Claim>, StoreError> {
        let value = nonce().map_err(|error| StoreError::new(self.describe(), error))?.to_vec();
        let key = format!("{}claim:{name}", self.server.prefix);
        let mut set = redis::cmd("SET");
        let lasts = u64::try_from(CLAIMED.as_millis()).unwrap_or(u64::MAX);
        set.arg(&key).arg(&value).arg("NX").arg("PX").arg(lasts);
        let is_set: Option<String> = self.server.ask(&set)?;
        Ok(is_set.map(|_| Claim::new(Held { server: Arc::clone(&self.server), key, value })))
    }
}

/// A claim of this process.
struct Held {
    server: Arc<Server>,
    key: String,
    value: Vec<u8>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Without an answer it expires.
        let _: Result<u64, StoreError> =
            self.server.ask(redis::cmd("EVAL").arg(RELEASE).arg(1).arg(&self.key).arg(&self.value));
    }
}

impl std::fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RedisStore").field(&self.server.address).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_is_an_error_in_time() {
        // A port that was free a moment ago has no listener.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let url = format!("redis://:secret@127.0.0.1:{port}/");
        let store = RedisStore::new(&url, "test:", Duration::from_millis(200)).unwrap();
        let name = EntryName::new([1; 32]);
        let error = store.get(&name).unwrap_err().to_string();
        assert!(error.contains("127.0.0.1") && !error.contains("secret"), "{error}");
        assert!(store.put(&name, b"code").is_err());
        assert!(RedisStore::new("no address", "", Duration::ZERO).is_err());
    }

    /// Run by `tests/cache_redis.sh`, which starts the server.
    #[test]
    #[ignore = "needs a server: tests/cache_redis.sh"]
    fn a_server_keeps_entries() {
        let url = std::env::var("BROLGA_TEST_REDIS").unwrap();
        let store = RedisStore::new(&url, "test:", Duration::from_secs(2)).unwrap();
        let entry: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        std::thread::scope(|scope| {
            for thread in 0..8u8 {
                let (store, entry) = (&store, &entry);
                scope.spawn(move || {
                    for round in 0..20u8 {
                        let name = EntryName::new([thread.wrapping_mul(20).wrapping_add(round); 32]);
                        assert_eq!(store.get(&name).unwrap(), None);
                        store.put(&name, entry).unwrap();
                        assert_eq!(store.get(&name).unwrap().as_ref(), Some(entry));
                        store.append(&name, b"more").unwrap();
                        assert_eq!(store.get(&name).unwrap().unwrap().len(), entry.len() + 4);
                        let held = store.claim(&name).unwrap().unwrap();
                        assert!(store.claim(&name).unwrap().is_none());
                        drop(held);
                        assert!(store.claim(&name).unwrap().is_some());
                    }
                });
            }
        });
    }
}
