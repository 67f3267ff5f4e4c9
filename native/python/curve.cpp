#include "core/curve.hpp"

#include "core/recursive.hpp"
#include "core/vector_kernels.hpp"
#include "python/arrays.hpp"
#include "python/module.hpp"

namespace nb = nanobind;
using o2::Array, o2::NewArray;

namespace {

NewArray<double, 2> legendre(Array<const double> places, int64_t count) {
  o2::expect(count >= 0, "count: expected 0 or more");
  const int64_t n = places.size();
  NewArray<double, 2> out({n, count});
  for (int64_t r = 0; r < n; r++) o2::legendre(places[r], count, out.view.data + r * count);
  return out;
}

o2::CurveTerms terms_of(Array<const int64_t> powers, Array<const int64_t> which, Array<const double> scales, int64_t degree,
                        int64_t width) {
  const int64_t count = scales.size();
  o2::expect(powers.size() == count && which.size() == count, "powers, which: expected one per term");
  for (int64_t i = 0; i < count; i++) {
    o2::expect(0 <= powers[i] && powers[i] <= degree, "powers: expected integers from 0 to the degree");
    o2::expect(0 <= which[i] && which[i] < width, "which: expected columns of the features");
  }
  return {count, degree, powers.data, which.data, scales.data};
}

NewArray<double, 2> curve_design(Array<const double, 2> features, Array<const double> places, Array<const int64_t> powers,
                                 Array<const int64_t> which, Array<const double> scales, int64_t degree) {
  const auto [n, width] = features.shape;
  o2::expect(places.size() == n, "places: expected one per row of the features");
  const o2::CurveTerms terms = terms_of(powers, which, scales, degree, width);
  NewArray<double, 2> out({n, terms.count});
  o2::curve_design(features.data, width, places.data, n, terms, out.view.data);
  return out;
}

NewArray<double, 2> curve_weights(Array<const double, 2> thetas, Array<const double, 2> basis, Array<const int64_t> powers,
                                  Array<const int64_t> which, Array<const double> scales, int64_t width) {
  const int64_t S = thetas.shape[0], places = basis.shape[0], degree = basis.shape[1] - 1;
  const o2::CurveTerms terms = terms_of(powers, which, scales, degree, width);
  o2::expect(thetas.shape[1] == terms.count && degree >= 0 && width > 0, "thetas, basis: expected one column per term, and per power");
  NewArray<double, 2> out({S, places * width});
  o2::curve_weights(thetas.data, S, basis.data, places, width, terms, out.view.data);
  return out;
}

void learn_rows(Array<const double, 2> Z, Array<const double> targets, Array<const double> weights, int64_t first,
                Array<double, 2> P, Array<double> theta, Array<double, 2> deviations, Array<double> noise) {
  const auto [m, D] = Z.shape;
  o2::expect(targets.size() == m && (weights.size() == m || weights.size() == 0), "targets, weights: expected one per row");
  o2::expect(theta.size() == D && P.shape[0] == D && P.shape[1] == D && deviations.shape[1] == D,
             "P, theta, deviations: expected as many columns as the design has");
  o2::expect(noise.size() == 2, "noise: expected two numbers");
  const double* weighed = weights.size() ? weights.data : nullptr;
  nb::gil_scoped_release release;
  o2::vector_kernels().learn_rows({D, deviations.shape[0], P.data, theta.data, deviations.data, noise.data}, Z.data, targets.data,
                                  weighed, m, first);
}

NewArray<double, 2> signs(int64_t first, int64_t rows, int64_t draws) {
  o2::expect(rows >= 0 && draws >= 0, "rows, draws: expected 0 or more");
  NewArray<double, 2> out({rows, draws});
  for (int64_t r = 0; r < rows; r++)
    for (int64_t s = 0; s < draws; s++) out.view[r * draws + s] = o2::sign_of(first + r, s);
  return out;
}

}  // namespace

void bind_curve(nb::module_& m) {
  m.def("legendre", &legendre, nb::arg("places"), nb::arg("count"),
        "Return the first Legendre polynomials at positions in [0, 1], with mean square 1 on it. [n, count]");
  m.def("curve_design", &curve_design, nb::arg("features"), nb::arg("places"), nb::arg("powers"), nb::arg("which"),
        nb::arg("scales"), nb::arg("degree"), "Return the design matrix of a reward curve. features [n, width] -> [n, D]");
  m.def("curve_weights", &curve_weights, nb::arg("thetas"), nb::arg("basis"), nb::arg("powers"), nb::arg("which"),
        nb::arg("scales"), nb::arg("width"),
        "Return the weights of the features at positions, of curves [S, D]. basis [places, degree + 1] -> [S, places · width]");
  m.def("learn_rows", &learn_rows, nb::arg("Z"), nb::arg("targets"), nb::arg("weights"), nb::arg("first"), nb::arg("P"),
        nb::arg("theta"), nb::arg("deviations"), nb::arg("noise"),
        "Update the state of recursive least squares in place. Z [m, D]; weights [m], or empty; first: number of the first row");
  m.def("signs", &signs, nb::arg("first"), nb::arg("rows"), nb::arg("draws"),
        "Return the pseudo-random signs ±1 of rows from `first` on and of draws; always the same. [rows, draws]");
}
