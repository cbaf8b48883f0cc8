use super::*;

fn context() -> Context {
    Context::of(KERNEL_VERSION, "cpu", "")
}

fn key(context: &Context, words: &[u64], leaves: Vec<Leaf<'_>>, inputs: &[&[u8]]) -> Key {
    let mut task = context.shared(&fingerprint(words, leaves.into_iter())).task();
    inputs.iter().for_each(|bytes| task.append(bytes));
    task.finish()
}

#[test]
fn a_fingerprint_is_the_same_on_every_machine_and_in_every_process() {
    let found = fingerprint(&[1, 2, 3], [Leaf::Input, Leaf::Data(b"abc")].into_iter());
    let expected = [0x54a3_0f0a_aca7_7128, 0x926b_7c92_70e8_173a, 0x16ac_0791_5072_9dc6, 0x0e5d_0cbb_a309_e9bd];
    assert_eq!(found, expected, "found {found:#x?}: results on disk would be lost, raise FORMAT");
}

#[test]
fn every_implementation_of_the_hash_is_the_same() {
    let bytes: Vec<u8> = (0..255).collect();
    for len in [0, 1, 4, 31, 32, 33, 64, 100, 255] {
        let mut portable = highway::PortableHash::new(highway::Key(SEED));
        let mut quickest = hasher(&SEED);
        for part in bytes[..len].chunks(7) {
            portable.append(part);
            quickest.append(part);
        }
        assert_eq!(portable.finalize128(), quickest.finalize128(), "{len}");
    }
}

#[test]
fn everything_that_results_depend_on_changes_the_key() {
    let plain = || vec![Leaf::Input, Leaf::Data(b"weights")];
    let usual = key(&context(), &[7, 8], plain(), &[b"abcd"]);
    assert_eq!(usual, key(&context(), &[7, 8], plain(), &[b"abcd"]), "nothing is random");
    let others = [
        key(&Context::of(KERNEL_VERSION + 1, "cpu", ""), &[7, 8], plain(), &[b"abcd"]),
        key(&Context::of(KERNEL_VERSION, "gpu:0", ""), &[7, 8], plain(), &[b"abcd"]),
        key(&Context::of(KERNEL_VERSION, "cpu", "mine"), &[7, 8], plain(), &[b"abcd"]),
        key(&Context::of(KERNEL_VERSION, "", "cpu"), &[7, 8], plain(), &[b"abcd"]),
        key(&context(), &[7, 9], plain(), &[b"abcd"]),
        key(&context(), &[7, 8, 0], plain(), &[b"abcd"]),
        key(&context(), &[7, 8], vec![Leaf::Input, Leaf::Data(b"weighty")], &[b"abcd"]),
        key(&context(), &[7, 8], vec![Leaf::Data(b"weights"), Leaf::Input], &[b"abcd"]),
        key(&context(), &[7, 8], plain(), &[b"abce"]),
    ];
    for (at, other) in others.iter().enumerate() {
        assert_ne!(*other, usual, "{at}");
        assert!(!others[..at].contains(other), "{at}");
    }
}

#[test]
fn only_a_device_that_was_named_is_told_from_others() {
    let of = |device| {
        let config = Config { device, ..Config::default() };
        context_key(&Context::new(&config, None, ""))
    };
    fn context_key(context: &Context) -> Key {
        key(context, &[1], vec![], &[])
    }
    assert_eq!(of(Device::Auto), of(Device::All));
    let named = [of(Device::Auto), of(Device::Cpu), of(Device::Gpu(None)), of(Device::Gpu(Some(1)))];
    assert_eq!(named.iter().collect::<std::collections::HashSet<_>>().len(), 4);
    let wish = Context::new(&Config::default(), Some(Device::Cpu), "");
    assert_eq!(context_key(&wish), of(Device::Cpu), "a wish of one batch is as good as the engine's");
}

#[test]
fn a_checksum_belongs_to_its_key() {
    assert_ne!(checksum(1, b"abc"), checksum(2, b"abc"));
    assert_ne!(checksum(1, b"abc"), checksum(1 << 64, b"abc"));
    assert_ne!(checksum(1, b"abc"), checksum(1, b"abd"));
    assert_ne!(checksum(1, b""), checksum(1, b"\0"));
}
