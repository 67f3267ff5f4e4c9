// The arrays of objectives on dense rows, and the table of their kernels.
#pragma once
#include <cstdint>

namespace o2 {

constexpr int LANES = 16, MOST_AT_ONCE = 6;  // actions whose sums are in registers together

// Rows as a log has them. In lanes they are (x - shift) scale within clip, and their projections on directions.
struct Raw {
  const float* X;        // [.., d], from the first of the rows on
  const int32_t* order;  // the row of each place, -1: none; null: in their own order
  const float *shift, *scale, *directions;  // [d], [d], [m, d]
  int d, m;
  float clip;
};

// Rows for learning: lanes are rows, [vector][factor][16]; factor 0 is 1, and 0 where there is none.
struct Rows {
  int vectors, factors, rows;
  const float* x;  // null: laid out from `raw` as they are used, a block at a time
  const float *action, *reward;  // reward: for the pessimistic objective, the residual e = y - b
  const float* weight;           // null: 1 each
  const float* inverse;                       // 1/q, for the pessimistic objective
  const int32_t* alike;                       // the action of all rows of a vector; null: mixed
  Raw raw;
};

// A score is a sum of weights times products of two factors. Weights: [chunk of actions][product][actions of chunk]
struct Products {
  int count;
  const int32_t *first, *second;  // factors, times LANES
  bool linear;  // all second ones are the constant
};

// A control variate m(x, a) of rows from `start` on, minus b; null: none. values [K, stride]
struct Control {
  const float* values;
  int64_t stride, start;
  float baseline;
};

struct OutcomeSums { double loss = 0, pulled = 0; };
struct PessimisticSums { double risk = 0, variance = 0, modelled = 0; };

struct DenseKernels {
  // loss, and gradient by the packed weights, of competing or of independent actions; room: see `room_for`
  OutcomeSums (*competing)(const Rows&, const Products&, int K, const float* W, float tau, float* G, float* room);
  OutcomeSums (*independent)(const Rows&, const Products&, int K, const float* W, float tau, float* G, float* room);
  // G: gradients of risk and control, then of the variance
  PessimisticSums (*pessimistic)(const Rows&, const Products&, int K, const float* W, float alpha, const Control&, float* G,
                                 float* room);
  // `vectors` of raw rows to lanes, from the vector `from` on
  void (*lay_out)(const Rows& rows, int from, int vectors, float* out);
};

extern const DenseKernels dense_1, dense_2, dense_3;  // of each level
const DenseKernels& dense_kernels();                  // of this machine's level

static inline constexpr int chunks_of(int K) { return (K + MOST_AT_ONCE - 1) / MOST_AT_ONCE; }
static inline constexpr int chunk_size(int K, int c) {  // as even as possible
  const int n = chunks_of(K);
  return K / n + (c < K % n ? 1 : 0);
}
static inline constexpr int chunk_start(int K, int c) {
  const int n = chunks_of(K), more = K % n;
  return c * (K / n) + (c < more ? c : more);
}
constexpr int MOST_OF_BLOCK = 16;
static inline constexpr int laid_of(int factors) { return MOST_OF_BLOCK * factors * LANES; }  // numbers of a block laid out
static inline constexpr int block_of(int factors) {  // vectors that are worked on together: they fit into the cache
  const int v = 1408 / factors;
  return v > MOST_OF_BLOCK ? MOST_OF_BLOCK : v < 4 ? 4 : v;
}

}  // namespace o2
