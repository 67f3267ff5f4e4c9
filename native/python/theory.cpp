#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "core/bernstein.hpp"
#include "core/bets.hpp"
#include "core/math.hpp"
#include "core/sums.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::Bets, o2::MOST_BETS, o2::NewArray;

namespace {

void expect(const char* what, int64_t found, int64_t expected) {
  if (found != expected)
    throw std::invalid_argument(std::string(what) + ": found " + std::to_string(found) + ", expected " + std::to_string(expected));
}

Bets bets_of(Array<const double> bets, Array<const double> log_shares) {
  const int64_t K = bets.size();
  expect("log_shares", log_shares.size(), K);
  if (K > MOST_BETS) throw std::invalid_argument("bets: found " + std::to_string(K) + ", expected at most 32");
  Bets all;
  for (int64_t k = 0; k < MOST_BETS; k++) {
    all.bets[k] = k < K ? bets[k] : 0;
    all.log_shares[k] = k < K ? log_shares[k] : -std::numeric_limits<double>::infinity();
  }
  all.log_number = o2::log_of(static_cast<double>(K));
  return all;
}

NewArray<double> bet_sums(Array<const double> values, Array<const double> bets) {
  double sums[MOST_BETS];
  const Bets all = bets_of(bets, bets);
  {
    nb::gil_scoped_release threads;
    o2::bet_kernels().bet_sums(values.data, values.size(), all, sums);
  }
  NewArray<double> out({bets.size()});
  std::copy_n(sums, bets.size(), out.view.data);
  return out;
}

double lower_root(Array<const double> logs, double t, double threshold, bool common, Array<const double> bets) {
  expect("logs", logs.size(), bets.size());
  const Bets all = bets_of(bets, logs);  // -infinity where there is no bet
  return o2::bet_kernels().lower_root(all.log_shares, t, 0.0, threshold, common, all);
}

NewArray<double> mixture_lower(Array<const double> values, double threshold, bool common, Array<const double> bets,
                               Array<const double> log_shares) {
  const Bets all = bets_of(bets, log_shares);
  NewArray<double> bounds({values.size()});
  nb::gil_scoped_release threads;
  o2::bet_kernels().mixture_lower(values.data, values.size(), threshold, common, all, bounds.view.data);
  return bounds;
}

std::tuple<double, int64_t> betting_end(Array<const double> weights, Array<const double> against, Array<const double> shares,
                                        double scale, double threshold, double level, Array<const double> bets,
                                        Array<const double> log_shares, Array<double, 3> sums, Array<int64_t> rows) {
  const int64_t n = shares.size(), looks = o2::count_looks(n);
  expect("weights", weights.size(), n);
  expect("against", against.size(), n);
  expect("rows", rows.size(), looks);
  if (sums.shape != std::array<int64_t, 3>{looks, 2, MOST_BETS}) throw std::invalid_argument("sums: expected [looks, 2, 32]");
  const Bets all = bets_of(bets, log_shares);
  nb::gil_scoped_release threads;
  const auto& kernels = o2::bet_kernels();
  kernels.sums_at_looks(weights.data, against.data, shares.data, scale, all, sums.data, rows.data, looks);
  const auto [bound, passed] = kernels.largest_root(sums.data, rows.data, looks, threshold, all, level);
  return {bound, passed};
}

template <auto lower>
NewArray<double> bounds_of(Array<const double> values, auto... settings) {
  NewArray<double> bounds({values.size()});
  nb::gil_scoped_release threads;
  lower(values.data, values.size(), settings..., bounds.view.data);
  return bounds;
}

NewArray<double> plugin_lower(Array<const double> values, double log_inverse) {
  return bounds_of<o2::plugin_lower>(values, log_inverse);
}

NewArray<double> realized_lower(Array<const double> values, double delta, bool common) {
  return bounds_of<o2::realized_lower>(values, delta, common);
}

std::tuple<double, double> shifted_sums(Array<const double> values, double first) {
  nb::gil_scoped_release threads;
  const auto [total, squares] = o2::sum_kernels().shifted(values.data, values.size(), first);
  return {total, squares};
}

std::tuple<double, double, double, double> weighed(Array<const double> weights, Array<const double> rewards,
                                                   Array<const double> modelled) {
  const int64_t n = weights.size();
  expect("rewards", rewards.size(), n);
  if (modelled.size()) expect("modelled", modelled.size(), n);
  nb::gil_scoped_release threads;
  const auto [size, squares, least, most] =
      o2::sum_kernels().weighed(weights.data, rewards.data, modelled.size() ? modelled.data : nullptr, n);
  return {size, squares, least, most};
}

}  // namespace

void bind_theory(nb::module_& m) {
  m.def("bet_sums", &bet_sums, nb::arg("values"), nb::arg("bets"), "Return A_k = Σ log(1 + κ_k y). [K]");
  m.def("lower_root", &lower_root, nb::arg("logs"), nb::arg("t"), nb::arg("threshold"), nb::arg("common"), nb::arg("bets"),
        "Return the root m of log Σ_k exp(logs_k - t log(1 + κ_k m)) = threshold. logs [K]");
  m.def("mixture_lower", &mixture_lower, nb::arg("values"), nb::arg("threshold"), nb::arg("common"), nb::arg("bets"),
        nb::arg("log_shares"), "Return the lower bound after each row. [n]");
  m.def("count_looks", &o2::count_looks, nb::arg("n"), "Return the number of looks at the capital after n rows.");
  m.def("betting_end", &betting_end, nb::arg("weights"), nb::arg("against"), nb::arg("shares"), nb::arg("scale"),
        nb::arg("threshold"), nb::arg("level"), nb::arg("bets"), nb::arg("log_shares"), nb::arg("sums"), nb::arg("rows"),
        "Return the last bound, and the rows of the first look whose bound is above `level`, or -1. "
        "sums [looks, 2, 32] and rows [looks] are overwritten");
  m.def("peeled_deviation", &o2::peeled_deviation, nb::arg("v"), nb::arg("bound"), nb::arg("delta"),
        "Return min_k log(1/δ_k)/λ_k + λ_k v.");
  m.def("plugin_lower", &plugin_lower, nb::arg("values"), nb::arg("log_inverse"),
        "Return the plug-in empirical Bernstein sequence. [n]");
  m.def("realized_lower", &realized_lower, nb::arg("values"), nb::arg("delta"), nb::arg("common"),
        "Return the peeled sequence of Prop. B.1. [n]");
  m.def("shifted_sums", &shifted_sums, nb::arg("values"), nb::arg("first"), "Return Σ (x - first) and Σ (x - first)².");
  m.def("weighed", &weighed, nb::arg("weights"), nb::arg("rewards"), nb::arg("modelled"),
        "Return Σ |w|, Σ w², and the smallest and largest r - m; without a model (empty), of r.");
}
