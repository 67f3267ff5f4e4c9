// Rows of a log in lanes.
#pragma once
#include "core/dense_kernels.hpp"
#include "core/simd.hpp"

namespace o2 {
namespace {
namespace laying {

// (x - shift) scale within clip; 0 where no row is
O2_IN void place(V x, V inside, const Raw& raw, int i, float* to) {
  const V most_ = set1(raw.clip), least_ = set1(-raw.clip);
  store(to + i * LANES, least(most((x - set1(raw.shift[i])) * set1(raw.scale[i]), least_), most_) * inside);
}

// inputs i .. i + some of sixteen rows
#if O2_LEVEL == 3
O2_IN void turn(const float* const* rows, int i, int some, V inside, const Raw& raw, float* to) {
  __m512 r[16], t[16];
  __mmask16 in = (__mmask16)((1u << some) - 1);
  for (int l = 0; l < 16; l++) r[l] = _mm512_maskz_loadu_ps(in, rows[l] + i);
  for (int l = 0; l < 8; l++) t[2 * l] = _mm512_unpacklo_ps(r[2 * l], r[2 * l + 1]), t[2 * l + 1] = _mm512_unpackhi_ps(r[2 * l], r[2 * l + 1]);
  for (int q = 0; q < 4; q++) {
    __m512d a = _mm512_castps_pd(t[4 * q]), b = _mm512_castps_pd(t[4 * q + 1]), c = _mm512_castps_pd(t[4 * q + 2]), d = _mm512_castps_pd(t[4 * q + 3]);
    r[4 * q] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c)), r[4 * q + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
    r[4 * q + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d)), r[4 * q + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
  }  // r[4 q + j]: rows 4 q … 4 q + 3 of columns j, 4 + j, 8 + j, 12 + j
  for (int j = 0; j < 4; j++) {
    __m512 a = _mm512_shuffle_f32x4(r[j], r[4 + j], 0x88), b = _mm512_shuffle_f32x4(r[j], r[4 + j], 0xdd);
    __m512 c = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0x88), d = _mm512_shuffle_f32x4(r[8 + j], r[12 + j], 0xdd);
    t[j] = _mm512_shuffle_f32x4(a, c, 0x88), t[8 + j] = _mm512_shuffle_f32x4(a, c, 0xdd);
    t[4 + j] = _mm512_shuffle_f32x4(b, d, 0x88), t[12 + j] = _mm512_shuffle_f32x4(b, d, 0xdd);
  }
  for (int j = 0; j < some; j++) place({t[j]}, inside, raw, i + j, to);
}
#else
O2_IN void turn(const float* const* rows, int i, int some, V inside, const Raw& raw, float* to) {
  float column[LANES];
  for (int j = i; j < i + some; j++) {
    for (int l = 0; l < LANES; l++) column[l] = rows[l][j];
    place(load(column), inside, raw, j, to);
  }
}
#endif

constexpr int AHEAD = 16;  // vectors. What is asked for in larger bursts comes too late, or not at all

// Inlined, as `fetch`: compilers drop calls of what changes nothing.
O2_IN void fetch_all(const float* from, int64_t n) {
  for (int64_t i = 0; i < n; i += LANES) __builtin_prefetch(from + i, 0, 2);
}

O2_IN void fetch_raw(const Rows& rows, int v) {
  if (v >= rows.vectors) return;
  const Raw& raw = rows.raw;
  const int64_t first = (int64_t)v * LANES, d = raw.d, left = rows.rows - first;
  if (!raw.order) fetch_all(raw.X + first * d, (left < LANES ? left : LANES) * d);
  else for (int64_t i = first; i < first + LANES; i++) if (raw.order[i] >= 0) fetch_all(raw.X + raw.order[i] * d, d);
}

void lay_out(const Rows& rows, int start, int vectors, float* out) {
  const Raw& raw = rows.raw;
  const int d = raw.d, step = rows.factors * LANES;
  for (int v = start; v < start + vectors; v++, out += step) {
    fetch_raw(rows, v + AHEAD);
    float in[LANES];
    const float* from[LANES] = {};
    for (int l = 0; l < LANES; l++) {  // the first of a vector is a row, which stands for those that are none
      const int place = v * LANES + l, row = raw.order ? raw.order[place] : place < rows.rows ? place : -1;
      in[l] = row >= 0;
      from[l] = row >= 0 ? raw.X + (int64_t)row * d : from[0];
    }
    const V inside = load(in);
    store(out, inside);
    float* inputs = out + LANES;
    for (int i = 0; i < d; i += LANES) turn(from, i, d - i < LANES ? d - i : LANES, inside, raw, inputs);
    for (int j = 0; j < raw.m; j++) {
      V s = zero();
      for (int i = 0; i < d; i++) s = fma(set1(raw.directions[j * d + i]), load(inputs + i * LANES), s);
      store(inputs + (d + j) * LANES, s);
    }
    for (int i = 1 + d + raw.m; i < rows.factors; i++) store(out + i * LANES, zero());
  }
}

// The next block of rows that are kept, while one is worked on.
O2_IN void fetch(const Rows& rows, int from, int vectors) {
  if (rows.vectors - from < vectors) vectors = rows.vectors - from;
  const int64_t step = (int64_t)rows.factors * LANES;
  if (rows.x) fetch_all(rows.x + from * step, vectors * step);
}

// Some vectors from v on. room: where they are laid out unless they are kept
O2_IN const float* laid_at(const Rows& rows, int v, int some, float* room) {
  if (rows.x) return rows.x + (int64_t)v * rows.factors * LANES;
  lay_out(rows, v, some, room);
  return room;
}

}  // namespace laying
}  // namespace
}  // namespace o2
