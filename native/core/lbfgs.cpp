#include "core/lbfgs.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/levels.hpp"

namespace o2 {
namespace {

constexpr double SUFFICIENT = 1e-4;  // Armijo: a step must gain this fraction of the slope's prediction,
constexpr double ROUNDING = 1e-7;    // up to rounding of single precision
constexpr int PATIENCE = 7;          // trials along a direction before its pairs are considered misleading
constexpr int TRIALS = 20;           // trials per step in all
constexpr int STANDSTILL = 3;        // consecutive steps without gain beyond rounding
constexpr double TINY = 1e-6;        // (|step| / |parameters|)² below which a step may be due to a kink or rounding,
constexpr double KINK = 10;          // if its curvature exceeds the largest known one by this factor
constexpr double REACH = 10;         // largest step, relative to the norm of the parameters, or to 1

double dot(const double* x, const double* y, int64_t n) {
  return at_level([&](auto L) { return kernels::dot<L>(x, y, n); });
}
double dot(const float* x, const double* y, int64_t n) {
  return at_level([&](auto L) { return kernels::dot<L>(x, y, n); });
}
double dot(const float* x, const float* y, int64_t n) {
  return at_level([&](auto L) { return kernels::dot<L>(x, y, n); });
}
void add(double by, const float* x, double* to, int64_t n) {
  at_level([&](auto L) { kernels::add<L>(by, x, to, n); });
}

void scale(double by, const double* x, double* to, int64_t n) {
  at_level([&](auto L) { kernels::scale<L>(by, x, to, n); });
}
void combine(const double* x, double by, const double* y, double* to, int64_t n) {
  at_level([&](auto L) { kernels::combine<L>(x, by, y, to, n); });
}

struct Found {
  double largest, slope, length;
};

}  // namespace

double lbfgs_direction(const double* gradient, const Pairs& p, double* out) {
  const int64_t n = p.size, count = *p.count;
  std::vector<double> along(p.memory);
  scale(-1, gradient, out, n);
  for (int64_t back = 0; back < count; back++) {
    const int64_t k = (*p.at - 1 - back + p.memory) % p.memory;
    const float* change = p.changes + k * p.stride;
    along[k] = dot(p.steps + k * p.stride, out, n) / p.inner[k];
    add(-along[k], change, out, n);
  }
  if (count == 0) return dot(gradient, out, n);
  const int64_t newest = (*p.at - 1 + p.memory) % p.memory;
  const float* change = p.changes + newest * p.stride;
  scale(p.inner[newest] / dot(change, change, n), out, out, n);
  for (int64_t back = count - 1; back >= 0; back--) {
    const int64_t k = (*p.at - 1 - back + p.memory) % p.memory;
    const float* step = p.steps + k * p.stride;
    const double by = along[k] - dot(p.changes + k * p.stride, out, n) / p.inner[k];
    add(by, step, out, n);
  }
  return dot(gradient, out, n);
}

namespace {

// The largest entry of the gradient, the slope along a direction (written to `out`), and the first step's length.
// If the pairs lead uphill, steepest descent, and the pairs are dropped: the objective may have changed since.
Found search(const double* params, const double* gradient, const Pairs& p, double* out) {
  const int64_t n = p.size;
  double slope = *p.count ? lbfgs_direction(gradient, p, out) : 0.0, length = 1;
  const double largest = at_level([&](auto L) { return kernels::largest<L>(gradient, n); });
  if (!(slope < 0)) {
    *p.count = 0;
    scale(-1, gradient, out, n);
    const double size = dot(gradient, gradient, n);
    slope = -size, length = 1 / std::sqrt(std::max(size, 1e-300));
  }
  const double farthest = REACH * (1 + std::sqrt(dot(params, params, n)));
  const double reach = length * std::sqrt(dot(out, out, n));
  return {largest, slope, length * std::min(1.0, farthest / std::max(reach, 1e-300))};
}

}  // namespace

void remember(const double* start, const double* step, const double* change, const Pairs& p) {
  const int64_t n = p.size;
  const double product = dot(step, change, n);
  if (!(product > 0)) return;
  const double size = dot(step, step, n);
  if (size < TINY * (1 + dot(start, start, n))) {
    double known = 0;
    for (int64_t j = 0; j < *p.count; j++) known = std::max(known, p.inner[j] / dot(p.steps + j * p.stride, p.steps + j * p.stride, n));
    if (product > KINK * known * size) return;
  }
  const int64_t k = *p.at;
  for (int64_t i = 0; i < n; i++) p.steps[k * p.stride + i] = static_cast<float>(step[i]);
  for (int64_t i = 0; i < n; i++) p.changes[k * p.stride + i] = static_cast<float>(change[i]);
  p.inner[k] = product;
  *p.at = (k + 1) % p.memory;
  *p.count = std::min(*p.count + 1, p.memory);
}

Descent descend(const Function& function, std::vector<double>& params, const Pairs& pairs, const Stop& stop) {
  const auto n = static_cast<int64_t>(params.size());
  const auto room = std::make_unique_for_overwrite<double[]>(4 * n);
  double *gradient = room.get(), *out = gradient + n, *there = out + n, *after = there + n;
  double value = function(params.data(), gradient);
  int64_t evaluations = 1, steps = 0, idle = 0;
  while (true) {
    Found next = search(params.data(), gradient, pairs, out);
    const double promise = *pairs.count ? 0.5 * next.length * std::fabs(next.slope) : HUGE_VAL;  // unknown at first
    const bool converged = next.largest <= stop.tolerance || promise <= stop.negligible;
    if (converged || steps == stop.iterations || idle == STANDSTILL) return {value, converged, evaluations};
    double found = 0;
    int trial = 1;
    for (; trial <= TRIALS; trial++) {
      combine(params.data(), next.length, out, there, n);
      found = function(there, after);
      evaluations++;
      const double promised = next.length * next.slope;
      if (found <= value + SUFFICIENT * promised + ROUNDING * std::fabs(value)) break;
      // minimum of the parabola through value, slope and trial, within limits
      const double shrinkage = std::isfinite(found) ? -0.5 * promised / (found - value - promised) : 0.1;
      next.length *= std::min(std::max(shrinkage, 0.1), 0.5);
      if (trial == PATIENCE && *pairs.count) {
        *pairs.count = 0;
        next = search(params.data(), gradient, pairs, out);
      }
    }
    if (trial > TRIALS) return {value, false, evaluations};
    combine(there, -1, params.data(), out, n);
    combine(after, -1, gradient, gradient, n);
    remember(params.data(), out, gradient, pairs);
    const double gained = value - found;
    idle = gained <= ROUNDING * std::fabs(value) ? idle + 1 : 0;
    steps++;
    std::copy(there, there + n, params.begin());
    std::swap(after, gradient);
    value = found;
    if (stop.negligible > 0 && gained <= stop.negligible) return {value, true, evaluations};
  }
}

}  // namespace o2
