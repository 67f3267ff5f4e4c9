#include "core/double_rows.hpp"
#include "core/eight.hpp"
#include "core/laying.inl"

namespace o2 {
namespace {

constexpr int ROWS_BLOCK = MOST_OF_BLOCK;
constexpr int PAIR = O2_LEVEL == 3 ? 2 : 1;  // vectors whose scores are summed up together
constexpr int JOINT = O2_LEVEL == 1 ? 1 : 2;  // features that are pulled together

// Half of a feature of sixteen rows.
O2_IN Eight half_feature(const float* x, const Products& p, int q, int half) {
  const Eight first = eight_of_floats(x + p.first[q] + half);
  return p.linear ? first : first * eight_of_floats(x + p.second[q] + half);
}

template <int R>
O2_IN void scores_of(const float* x, int step, const Products& p, int count, const double* W, double* out) {
  Eight sums[R][2];
  for (int r = 0; r < R; r++) sums[r][0] = sums[r][1] = eight_of(0);
  for (int q = 0; q < count; q++) {
    const Eight w = eight_of(W[q]);
    for (int r = 0; r < R; r++)
      for (int half = 0; half < 2; half++) sums[r][half] = sums[r][half] + w * half_feature(x + r * step, p, q, 8 * half);
  }
  for (int r = 0; r < R; r++)
    for (int half = 0; half < 2; half++) to_lanes(sums[r][half], out + r * LANES + 8 * half);
}

void double_scores(const Rows& rows, const Products& p, int count, const double* W, double* out, float* room) {
  const int step = rows.factors * LANES;
  for (int v = 0; v < rows.vectors; v += ROWS_BLOCK) {
    const int some = rows.vectors - v < ROWS_BLOCK ? rows.vectors - v : ROWS_BLOCK;
    const float* x = laying::laid_at(rows, v, some, room);
    double* to = out + static_cast<int64_t>(v) * LANES;
    int u = 0;
    for (; u + PAIR <= some; u += PAIR) scores_of<PAIR>(x + u * step, step, p, count, W, to + u * LANES);
    for (; u < some; u++) scores_of<1>(x + u * step, step, p, count, W, to + u * LANES);
  }
}

template <int J>
O2_IN void pull_of(const float* x, int step, int vectors, const Products& p, int q, const double* first, const double* second,
                   double* G, int count) {
  Eight sums[J][2];
  for (int j = 0; j < J; j++) sums[j][0] = sums[j][1] = eight_of(0);
  for (int v = 0; v < vectors; v++)
    for (int half = 0; half < LANES; half += 8) {
      const Eight a = eight_at(first + v * LANES + half), b = eight_at(second + v * LANES + half);
      for (int j = 0; j < J; j++) {
        const Eight f = half_feature(x + v * step, p, q + j, half);
        sums[j][0] = sums[j][0] + f * a;
        sums[j][1] = sums[j][1] + f * b;
      }
    }
  for (int j = 0; j < J; j++) {
    G[q + j] += sum(sums[j][0]);
    G[count + q + j] += sum(sums[j][1]);
  }
}

void double_pull(const Rows& rows, const Products& p, int count, const double* first, const double* second, double* G,
                 float* room) {
  const int step = rows.factors * LANES;
  for (int q = 0; q < 2 * count; q++) G[q] = 0;
  for (int v = 0; v < rows.vectors; v += ROWS_BLOCK) {
    const int some = rows.vectors - v < ROWS_BLOCK ? rows.vectors - v : ROWS_BLOCK;
    const float* x = laying::laid_at(rows, v, some, room);
    const double *a = first + static_cast<int64_t>(v) * LANES, *b = second + static_cast<int64_t>(v) * LANES;
    int q = 0;
    for (; q + JOINT <= count; q += JOINT) pull_of<JOINT>(x, step, some, p, q, a, b, G, count);
    for (; q < count; q++) pull_of<1>(x, step, some, p, q, a, b, G, count);
  }
}

}  // namespace

const DoubleRowsKernels O2_TABLE(double_rows) = {double_scores, double_pull};

}  // namespace o2
