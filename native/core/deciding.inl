// From a row of inputs to scores. Compiled once per level of instructions: no header with code that others compile too.
#include "core/deciding_kernels.hpp"
#include "core/eight.hpp"

namespace o2 {
namespace {
namespace deciding_pass {

constexpr int AT_ONCE = O2_LEVEL == 3 ? 3 : 1;  // eights of columns whose sums are in registers together

// Four sums per column, of every fourth row, so that additions need not wait for each other; nothing is fused.
template <int C>
O2_IN void columns_of(const double* row, int64_t width, const double* W, int64_t columns, double* out) {
  Eight s[C][4];
  for (int c = 0; c < C; c++)
    for (int j = 0; j < 4; j++) s[c][j] = eight_of(0);
  int64_t i = 0;
  for (; i + 4 <= width; i += 4)
    for (int j = 0; j < 4; j++)
      for (int c = 0; c < C; c++) s[c][j] = s[c][j] + eight_of(row[i + j]) * eight_at(W + (i + j) * columns + c * 8);
  for (; i < width; i++)
    for (int c = 0; c < C; c++) s[c][0] = s[c][0] + eight_of(row[i]) * eight_at(W + i * columns + c * 8);
  for (int c = 0; c < C; c++) to_lanes((s[c][0] + s[c][1]) + (s[c][2] + s[c][3]), out + c * 8);
}

void weighted_sums(const double* row, int64_t width, const double* W, int64_t columns, double* out) {
  int64_t c = 0;
  for (; c + 8 * AT_ONCE <= columns; c += 8 * AT_ONCE) columns_of<AT_ONCE>(row, width, W + c, columns, out + c);
  for (; c + 8 <= columns; c += 8) columns_of<1>(row, width, W + c, columns, out + c);
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
