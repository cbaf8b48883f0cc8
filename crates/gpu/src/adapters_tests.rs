use super::*;

#[test]
fn real_devices_come_first_and_ids_are_stable() {
    let infos = Adapters::find(Api::ALL).infos();
    assert!(!infos.is_empty(), "no adapter: {}", driver_hint());
    assert!(infos.is_sorted_by_key(|info| info.kind));
    for (number, info) in infos.iter().enumerate() {
        assert_eq!(info.id, format!("gpu:{number}"));
        assert!(info.limits.buffer_bytes >= info.limits.binding_bytes && info.limits.bindings >= 8);
        assert!(!info.kind.is_unified() || info.memory_bytes.is_some());
    }
    assert_eq!(infos, Adapters::find(Api::ALL).infos());
}

#[test]
fn no_backend_means_no_adapter() {
    let adapters = Adapters::find(&[]);
    assert!(adapters.infos().is_empty());
    let error = adapters.open(3, &GpuConfig::default()).map(|_| ()).expect_err("there is none");
    assert_eq!(error, GpuError::NoAdapter { index: 3, found: 0 });
    // Backends of other systems are none here.
    if cfg!(target_os = "linux") {
        assert!(Adapters::find(&[Api::Metal, Api::Dx12]).infos().is_empty());
    }
}
