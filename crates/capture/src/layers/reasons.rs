//! The names that the running kernel has for why it drops packets.

use std::collections::BTreeMap;

use libbpf_rs::btf::{Btf, types};

/// The names of `enum skb_drop_reason` (include/net/dropreason-core.h), whose numbers differ from
/// kernel to kernel.
#[derive(Clone, Debug, Default)]
pub struct Reasons(BTreeMap<u32, String>);

impl Reasons {
    /// Those of the kernel with these types. None where it has no such names.
    pub(super) fn of(kernel: &Btf<'_>) -> Self {
        let Some(reasons) = kernel.type_by_name::<types::Enum<'_>>("skb_drop_reason") else {
            return Self::default();
        };
        let name = |member: types::EnumMember<'_>| {
            let name = member.name?.to_str()?;
            let short = name.strip_prefix("SKB_DROP_REASON_").unwrap_or(name);
            Some((u32::try_from(member.value).ok()?, short.to_owned()))
        };
        Self(reasons.iter().filter_map(name).collect())
    }

    /// What the kernel calls a reason, such as `SOCKET_RCVBUFF`; its number where it has no name, as
    /// those of a subsystem's own (`SKB_DROP_REASON_SUBSYS_SHIFT`).
    #[must_use]
    pub fn name(&self, reason: u32) -> String {
        self.0.get(&reason).cloned().unwrap_or_else(|| format!("{reason:#x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_running_kernel_names_its_reasons() {
        let reasons = Reasons::of(&Btf::from_vmlinux().unwrap());
        assert!(reasons.0.values().any(|name| name == "SOCKET_RCVBUFF"), "{reasons:?}");
        assert_eq!(reasons.name(0x3_0001), "0x30001");
    }
}
