// repack_q4_k.wgsl: block_q4_K (f16 d, f16 dmin, 8 x 6 bits sc and m, 128 bytes of nibbles)
//            from the file -> quants and scales as format_q4_k.wgsl reads them
// shapes     raw: n_blocks blocks of 32 weights, eight in 144 bytes; quants, scales: a slab
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// dispatch   (n_blocks): one thread a block
// needs      rows.wgsl
// reference  tests/support/format_reference.py: repack_q4_k; exact

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> quants: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<uniform> rows: Rows;

// Word w of the nibbles of 32 weights; the file has the first 32 of 64 in the low nibbles, the others in the high ones.
fn nibbles(at: u32, shift: u32, w: u32) -> u32 {
  let low = (raw[at + w] >> shift) & 0x0F0F0F0Fu;
  let high = (raw[at + 4u + w] >> shift) & 0x0F0F0F0Fu;
  return low | (high << 4u);
}

fn repack(block: u32, out: u32) {
  let at = block / 8u * 36u;
  let i = block % 8u;
  let q = at + 4u + i / 2u * 8u;
  let shift = i % 2u * 4u;
  quants[out] = vec4<u32>(nibbles(q, shift, 0u), nibbles(q, shift, 1u), nibbles(q, shift, 2u), nibbles(q, shift, 3u));
  // Two blocks share a word of scales: the even one writes it.
  if (i % 2u == 1u) {
    return;
  }
  let a = raw[at + 1u];
  let b = raw[at + 2u];
  let c = raw[at + 3u];
  var sc = a & 0x3F3F3F3Fu;
  var m = b & 0x3F3F3F3Fu;
  if (i >= 4u) {
    sc = (c & 0x0F0F0F0Fu) | ((a >> 2u) & 0x30303030u);
    m = ((c >> 4u) & 0x0F0F0F0Fu) | ((b >> 2u) & 0x30303030u);
  }
  sc >>= i % 4u * 8u;
  m >>= i % 4u * 8u;
  let first = out / 8u * 5u;
  scales[first + 1u + i / 2u] = (sc & 0xFFu) | ((m & 0xFFu) << 8u) | ((sc & 0xFF00u) << 8u) | ((m & 0xFF00u) << 16u);
  if (i == 0u) {
    scales[first] = raw[at];
  }
}
