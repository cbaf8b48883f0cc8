// The self-test's probe: `x[0]` turns of a loop that no compiler foresees, and products with denormals.
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read> params: array<i32>;

@compute @workgroup_size(1)
fn main() {
    if (params[0] < 1) {
        return;
    }
    let turns = x[0];
    let step = x[2];
    var state = x[1];
    for (var i = 0u; i < turns; i++) {
        state = (state ^ (state >> 7u)) * 747796405u + step;
    }
    y[0] = state;
    y[1] = bitcast<u32>(bitcast<f32>(x[3]) * bitcast<f32>(x[4]));
    y[2] = bitcast<u32>(bitcast<f32>(x[5]) * bitcast<f32>(x[6]));
}
