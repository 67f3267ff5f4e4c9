// From a row of inputs to scores. Compiled once per level of instructions: no header with code that others compile too.
#include "core/deciding_kernels.hpp"
#include "core/eight.hpp"

namespace o2 {
namespace {
namespace deciding_pass {

// Four sums per column, of every fourth row of W, so that additions need not wait for each other; nothing is fused.
template <int R, int C>
O2_IN void columns_of(const double* rows, int64_t stride, int64_t width, const double* W, int64_t columns, double* out) {
  Eight s[R][C][4];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++)
      for (int j = 0; j < 4; j++) s[r][c][j] = eight_of(0);
  int64_t i = 0;
  for (; i + 4 <= width; i += 4)
    for (int j = 0; j < 4; j++)
      for (int c = 0; c < C; c++) {
        const Eight w = eight_at(W + (i + j) * columns + c * 8);
        for (int r = 0; r < R; r++) s[r][c][j] = s[r][c][j] + eight_of(rows[r * stride + i + j]) * w;
      }
  for (; i < width; i++)
    for (int c = 0; c < C; c++) {
      const Eight w = eight_at(W + i * columns + c * 8);
      for (int r = 0; r < R; r++) s[r][c][0] = s[r][c][0] + eight_of(rows[r * stride + i]) * w;
    }
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) to_lanes((s[r][c][0] + s[r][c][1]) + (s[r][c][2] + s[r][c][3]), out + r * columns + c * 8);
}

// As many eights of columns at once as registers hold sums.
template <int R>
void of_rows(const double* rows, int64_t stride, int64_t width, const double* W, int64_t columns, double* out) {
  int64_t c = 0;
  if constexpr (O2_LEVEL == 3 && R == 1) {
    for (; c + 24 <= columns; c += 24) columns_of<1, 3>(rows, stride, width, W + c, columns, out + c);
    if (c + 16 <= columns) columns_of<1, 2>(rows, stride, width, W + c, columns, out + c), c += 16;
  }
  for (; c + 8 <= columns; c += 8) columns_of<R, 1>(rows, stride, width, W + c, columns, out + c);
}

void weighted_sums(const double* rows, int64_t n, int64_t stride, int64_t width, const double* W, int64_t columns, double* out) {
  int64_t r = 0;
  if constexpr (O2_LEVEL == 3)
    for (; r + SCORED_TOGETHER <= n; r += SCORED_TOGETHER)
      of_rows<SCORED_TOGETHER>(rows + r * stride, stride, width, W, columns, out + r * columns);
  for (; r < n; r++) of_rows<1>(rows + r * stride, stride, width, W, columns, out + r * columns);
}

void products(const double* f, int64_t m, const double* shift, const double* scale, double* out) {
  for (int64_t i = 0; i < m; i++) {
    const double x = f[i];
    int64_t j = i;
    for (; j + 8 <= m; j += 8, shift += 8, scale += 8, out += 8)
      to_lanes((eight_of(x) * eight_at(f + j) - eight_at(shift)) * eight_at(scale), out);
    for (; j < m; j++) *out++ = (x * f[j] - *shift++) * *scale++;
  }
}

}  // namespace deciding_pass
}  // namespace

const DecidingKernels O2_TABLE(deciding) = {deciding_pass::weighted_sums, deciding_pass::products};

}  // namespace o2
