#include <cmath>

#include "core/recursive.hpp"

namespace o2 {
namespace {

// P -= u uᵀ and v += P z, of N rows of the lower triangle from row i on, which are in one block of eight.
template <int N>
O2_IN void pass_rows(double* P, int64_t width, int64_t i, const double* z, const double* u, double* v) {
  const int64_t last = i / EIGHT * EIGHT;
  double* own = P + i * width;
  Eight x[N], w[N], total[N];
  for (int r = 0; r < N; r++) x[r] = eight_of(z[i + r]), w[r] = eight_of(u[i + r]), total[r] = eight_of(0);
  for (int64_t j = 0; j < last; j += EIGHT) {
    const Eight u_j = eight_at(u + j), z_j = eight_at(z + j);
    Eight v_j = eight_at(v + j);
    for (int r = 0; r < N; r++) {
      const Eight p = eight_at(own + r * width + j) - w[r] * u_j;
      to_lanes(p, own + r * width + j);
      total[r] = total[r] + p * z_j;
      v_j = v_j + p * x[r];
    }
    to_lanes(v_j, v + j);
  }
  for (int r = 0; r < N; r++) {
    const Eight p = eight_at(own + r * width + last) - w[r] * eight_at(u + last);
    to_lanes(p, own + r * width + last);
    v[i + r] += sum(total[r] + p * eight_at(z + last));
  }
}

// P is a copy in rows of whole vectors: the blocks of eight on the diagonal are complete, the rest is the lower triangle.
// The change of P by a row is made while P is multiplied with the next one: P passes through the cache once per row.
// It is -u uᵀ, which is exactly symmetric: a row's result does not depend on the rows that came with it.
void learn_rows(const Recursion& to, const double* Z, const double* targets, const double* weights, int64_t m, int64_t first) {
  const int64_t D = to.D, width = in_eights(D);
  double* room = new double[static_cast<size_t>((D + to.S + 4) * width)]();
  double *P = room, *draws = P + D * width, *theta = draws + to.S * width, *z = theta + width, *v = z + width, *u = v + width;
  for (int64_t i = 0; i < D; i++)
    for (int64_t j = 0; j < (i / EIGHT + 1) * EIGHT && j < D; j++) P[i * width + j] = to.P[i >= j ? i * D + j : j * D + i];
  for (int64_t s = 0; s < to.S; s++) memcpy(draws + s * width, to.deviations + s * D, D * sizeof(double));
  memcpy(theta, to.theta, D * sizeof(double));
  for (int64_t r = 0; r <= m; r++) {  // the last pass only completes P
    for (int64_t i = 0; i < width; i++) v[i] = 0.0;
    if (r < m) memcpy(z, Z + r * D, D * sizeof(double));
    int64_t i = 0;
    for (; i + EIGHT <= D; i += EIGHT) pass_rows<EIGHT>(P, width, i, z, u, v);
    for (; i < D; i++) pass_rows<1>(P, width, i, z, u, v);
    if (r == m) break;
    const double weight = weights ? weights[r] : 1.0;
    const double size = 1.0 + weight * dot8(z, v, width), off = targets[r] - dot8(z, theta, width), step = weight / size;
    const double root = std::sqrt(step), noise = weight > 0 ? 1 / std::sqrt(weight) : 0.0;
    for (int64_t i = 0; i < width; i += EIGHT) {
      to_lanes(eight_of(root) * eight_at(v + i), u + i);
      to_lanes(eight_at(theta + i) + eight_of(step * off) * eight_at(v + i), theta + i);
    }
    for (int64_t s = 0; s < to.S; s++) {
      double* own = draws + s * width;
      const double by = step * (sign_of(first + r, s) * noise - dot8(z, own, width));
      for (int64_t i = 0; i < width; i += EIGHT) to_lanes(eight_at(own + i) + eight_of(by) * eight_at(v + i), own + i);
    }
    to.noise[0] += weight * off * off / size;
    to.noise[1] += weight;
  }
  for (int64_t i = 0; i < D; i++) memcpy(to.P + i * D, P + i * width, (i + 1) * sizeof(double));
  for (int64_t s = 0; s < to.S; s++) memcpy(to.deviations + s * D, draws + s * width, D * sizeof(double));
  memcpy(to.theta, theta, D * sizeof(double));
  delete[] room;
}

}  // namespace
}  // namespace o2
