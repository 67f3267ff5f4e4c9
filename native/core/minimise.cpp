#include "core/minimise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace o2 {
namespace {

constexpr double SUFFICIENT = 1e-3, FLAT = 0.9;  // a step gains this fraction of the slope's prediction; |slope| after it
constexpr double NARROW = 0.1;                   // relative width of a bracket that is not searched further
constexpr int TRIALS = 20;                       // along one direction
constexpr double ROUNDING = std::numeric_limits<double>::epsilon();

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) {
  double lanes[8] = {};
  size_t i = 0;
  for (; i + 8 <= a.size(); i += 8)
    for (size_t j = 0; j < 8; j++) lanes[j] += a[i + j] * b[i + j];
  for (size_t j = 0; i < a.size(); i++, j++) lanes[j] += a[i] * b[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void add(Vector& to, double by, const Vector& what) {
  for (size_t i = 0; i < to.size(); i++) to[i] += by * what[i];
}

// NaN if an entry is: no gradient with such entries is small
double largest(const Vector& x) {
  double most = 0;
  for (const double each : x) {
    if (std::isnan(each)) return each;
    most = std::max(most, std::fabs(each));
  }
  return most;
}

// The last pairs (step, change of the gradient), the newest at the end.
struct Memory {
  struct Pair {
    Vector step, change;
    double inner;  // step · change
  };
  std::vector<Pair> pairs;
  size_t most;

  // direction = -H gradient by the two-loop recursion, H scaled by the newest pair
  void direct(const Vector& gradient, Vector& direction) const {
    for (size_t i = 0; i < gradient.size(); i++) direction[i] = -gradient[i];
    if (pairs.empty()) return;
    Vector along(pairs.size());
    for (size_t k = pairs.size(); k-- > 0;) {
      along[k] = dot(pairs[k].step, direction) / pairs[k].inner;
      add(direction, -along[k], pairs[k].change);
    }
    const Pair& newest = pairs.back();
    const double scale = newest.inner / dot(newest.change, newest.change);
    for (double& each : direction) each *= scale;
    for (size_t k = 0; k < pairs.size(); k++)
      add(direction, along[k] - dot(pairs[k].change, direction) / pairs[k].inner, pairs[k].step);
  }

  void keep(Vector&& step, Vector&& change) {
    const double inner = dot(step, change);
    if (!(inner > ROUNDING * dot(change, change))) return;
    if (pairs.size() == most) pairs.erase(pairs.begin());
    if (most) pairs.push_back({std::move(step), std::move(change), inner});
  }
};

struct Trial {
  double length = 0, value = 0, slope = 0;
};

// The minimum of the cubic through both trials, away from the ends of the interval between them.
double between(const Trial& a, const Trial& b) {
  const double width = b.length - a.length, low = std::min(a.length, b.length), size = std::fabs(width);
  double place = 0.5 * (a.length + b.length);
  if (std::isfinite(b.value) && std::isfinite(b.slope)) {
    const double theta = 3 * (a.value - b.value) / width + a.slope + b.slope;
    const double square = theta * theta - a.slope * b.slope;
    if (square >= 0) {
      const double gamma = std::copysign(std::sqrt(square), width);
      const double cubic = b.length - width * (b.slope + gamma - theta) / (b.slope - a.slope + 2 * gamma);
      if (std::isfinite(cubic)) place = cubic;
    }
  } else {
    place = a.length + 0.1 * width;
  }
  return std::clamp(place, low + 0.1 * size, low + 0.9 * size);
}

}  // namespace

Minimum minimise(const Smooth& function, std::vector<double>& params, const MinimiseSettings& settings) {
  const size_t n = params.size();
  Vector gradient(n), direction(n), there(n), after(n), best_there(n), best_after(n);
  Memory memory{{}, static_cast<size_t>(settings.memory)};
  Minimum now{function(params.data(), gradient.data()), false, 1};
  for (int64_t iteration = 0; iteration < settings.iterations;) {
    now.converged = largest(gradient) <= settings.tolerance;
    if (now.converged) return now;
    memory.direct(gradient, direction);
    const Trial start{0, now.value, dot(gradient, direction)};
    if (!(start.slope < 0)) {
      if (memory.pairs.empty()) return now;
      memory.pairs.clear();
      continue;
    }
    // [low, high] holds a minimum once `bracketed`; `low` is the lowest trial that gained enough
    Trial low = start, high;
    bool bracketed = false, found = false;
    double length = memory.pairs.empty() ? std::min(1.0, 1 / std::sqrt(dot(direction, direction))) : 1.0;
    for (int trials = 0; trials < TRIALS && !found; trials++) {
      for (size_t i = 0; i < n; i++) there[i] = params[i] + length * direction[i];
      Trial trial{length, function(there.data(), after.data()), dot(after, direction)};
      now.evaluations++;
      const Trial last = low;
      if (!(trial.value <= start.value + SUFFICIENT * length * start.slope) || trial.value > low.value) {
        high = trial;
        bracketed = true;
      } else {
        if (bracketed ? trial.slope * (high.length - low.length) >= 0 : trial.slope >= 0) {
          high = low;
          bracketed = true;
        }
        low = trial;
        best_there.swap(there);
        best_after.swap(after);
        found = std::fabs(trial.slope) <= FLAT * -start.slope;
      }
      if (bracketed) {
        found = found || (low.length > 0 && std::fabs(high.length - low.length) <= NARROW * std::max(high.length, low.length));
        length = between(low, high);
      } else {  // the slope still falls: as far as the secant of the slopes says, at most four times as far
        const double secant = low.length - low.slope * (low.length - last.length) / (low.slope - last.slope);
        length = secant > 1.1 * low.length ? std::min(secant, 4 * low.length) : 4 * low.length;
      }
    }
    if (low.length == 0) {  // nothing was lower
      if (memory.pairs.empty()) return now;
      memory.pairs.clear();
      continue;
    }
    Vector step(n), change(n);
    for (size_t i = 0; i < n; i++) step[i] = best_there[i] - params[i], change[i] = best_after[i] - gradient[i];
    memory.keep(std::move(step), std::move(change));
    params.swap(best_there);
    gradient.swap(best_after);
    const double gained = now.value - low.value, scale = std::max({std::fabs(now.value), std::fabs(low.value), 1.0});
    now.value = low.value;
    iteration++;
    if (gained <= settings.negligible * scale) {
      now.converged = true;
      return now;
    }
  }
  now.converged = largest(gradient) <= settings.tolerance;
  return now;
}

}  // namespace o2
