//! `IF` or `IF@NAMESPACE`: an interface, in the current or in a named network namespace.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, anyhow};
use wirestamp_capture::Error;
use wirestamp_sys::netns::Netns;

/// An interface argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) interface: String,
    namespace: Option<String>,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (interface, namespace) = match text.split_once('@') {
            Some((interface, namespace)) => (interface, Some(namespace)),
            None => (text, None),
        };
        if interface.is_empty() || namespace.is_some_and(str::is_empty) {
            return Err("expected IF or IF@NAMESPACE".into());
        }
        Ok(Self { interface: interface.into(), namespace: namespace.map(str::to_owned) })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}@{namespace}", self.interface),
            None => f.write_str(&self.interface),
        }
    }
}

impl Target {
    /// Runs `work` in the interface's namespace.
    pub(crate) fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
        enter_namespace(self.namespace.as_deref(), work)
    }

    /// Runs a query about the interface in its namespace.
    pub(crate) fn query<T: Send>(
        &self,
        query: impl FnOnce() -> Result<T, Error> + Send,
    ) -> anyhow::Result<T> {
        self.enter(query)?.map_err(|error| match (&self.namespace, error) {
            (Some(namespace), Error::NoSuchInterface(name)) => anyhow!(
                "no interface {name} in the namespace {namespace}; \
                 `ip -n {namespace} link` lists its interfaces"
            ),
            (_, error) => error.into(),
        })
    }
}

/// Runs `work` in the named namespace, or in the current one for none.
pub(crate) fn enter_namespace<T: Send>(
    name: Option<&str>,
    work: impl FnOnce() -> T + Send,
) -> anyhow::Result<T> {
    match name {
        None => Ok(work()),
        Some(name) => Netns::open(name)?
            .run(work)
            .with_context(|| format!("cannot enter the namespace {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_follows_the_at_sign() {
        let here: Target = "eth0".parse().unwrap();
        assert_eq!((here.interface.as_str(), here.namespace), ("eth0", None));
        let there: Target = "tap-b@wirestamp-sink".parse().unwrap();
        assert_eq!(there.interface, "tap-b");
        assert_eq!(there.namespace.as_deref(), Some("wirestamp-sink"));
        assert_eq!(there.to_string(), "tap-b@wirestamp-sink");
        assert!("@x".parse::<Target>().is_err());
        assert!("eth0@".parse::<Target>().is_err());
    }
}
