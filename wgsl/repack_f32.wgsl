// repack_f32.wgsl: f32
//            from the file -> quants and scales as format_f32.wgsl reads them
// shapes     raw: n_blocks f32 (a block of ggml's F32 is one weight); quants, scales: a slab
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// dispatch   (n_blocks): one thread a weight)
// needs      rows.wgsl
// reference  tests/support/format_reference.py: repack_f32; exact

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> quants: array<u32>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<uniform> rows: Rows;

fn repack(block: u32, out: u32) {
  quants[out] = raw[block];
}
