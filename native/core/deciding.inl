// From a row of inputs to scores. Compiled once per level of instructions: no header with code that others compile too.
#include "core/deciding_kernels.hpp"

namespace o2 {
namespace {
namespace deciding_pass {

typedef double D8 __attribute__((vector_size(64)));

O2_IN D8 load8(const double* p) {
  D8 x;
  __builtin_memcpy(&x, p, 64);
  return x;
}
O2_IN void store8(double* p, D8 x) { __builtin_memcpy(p, &x, 64); }

// Four sums per column, of every fourth row, so that additions need not wait for each other; nothing is fused.
template <int C>
O2_IN void columns_of(const double* row, int64_t width, const double* W, int64_t columns, double* out) {
  D8 s[C][4] = {};
  int64_t i = 0;
  for (; i + 4 <= width; i += 4)
    for (int j = 0; j < 4; j++)
      for (int c = 0; c < C; c++) s[c][j] += row[i + j] * load8(W + (i + j) * columns + c * 8);
  for (; i < width; i++)
    for (int c = 0; c < C; c++) s[c][0] += row[i] * load8(W + i * columns + c * 8);
  for (int c = 0; c < C; c++) store8(out + c * 8, (s[c][0] + s[c][1]) + (s[c][2] + s[c][3]));
}

void weighted_sums(const double* row, int64_t width, const double* W, int64_t columns, double* out) {
  int64_t c = 0;
  for (; c + 24 <= columns; c += 24) columns_of<3>(row, width, W + c, columns, out + c);
  if (c + 16 <= columns) columns_of<2>(row, width, W + c, columns, out + c), c += 16;
  if (c + 8 <= columns) columns_of<1>(row, width, W + c, columns, out + c);
}

void products(const double* f, int64_t m, const double* shift, const double* scale, double* out) {
  for (int64_t i = 0; i < m; i++) {
    const double x = f[i];
    int64_t j = i;
    for (; j + 8 <= m; j += 8, shift += 8, scale += 8, out += 8)
      store8(out, (x * load8(f + j) - load8(shift)) * load8(scale));
    for (; j < m; j++) *out++ = (x * f[j] - *shift++) * *scale++;
  }
}

}  // namespace deciding_pass
}  // namespace

const DecidingKernels O2_TABLE(deciding) = {deciding_pass::weighted_sums, deciding_pass::products};

}  // namespace o2
